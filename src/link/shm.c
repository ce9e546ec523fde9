/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same-host ring: frames in and out, memory, credit. Which headers a frame carries follows from
 * its opcode; they are stored in host order in the order of the fields below. This file trusts
 * nothing it reads from a ring but the lap byte.
 */
#include "link/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NO_SPACE UINT32_MAX

static inline uint32_t round_line(uint32_t len)
{
	return (len + 63) & ~63u;
}

uint32_t vrb_shm_data_alloc(struct vrb_shm_tx *tx, uint32_t len, uint32_t *end)
{
	uint32_t need = round_line(len), start = tx->data_head;
	uint32_t offset = start % VRB_SHM_DATA;

	/* A payload is contiguous: skip the rest of the area when it does not fit behind the
	 * cursor. */
	if (offset + need > VRB_SHM_DATA)
		start += VRB_SHM_DATA - offset;
	if (start + need - tx->data_used > VRB_SHM_DATA) {
		/* pairs with the release in vrb_shm_publish */
		tx->data_used = atomic_load_explicit(&tx->m.ctl->data_used, memory_order_acquire);
		if (start + need - tx->data_used > VRB_SHM_DATA)
			return NO_SPACE;
	}
	*end = start + need;
	return start % VRB_SHM_DATA;
}

bool vrb_shm_room(struct vrb_shm_tx *tx, uint32_t len)
{
	uint32_t end;

	return vrb_shm_line_room(tx, 0) &&
	       (len <= VRB_SHM_SLOT || vrb_shm_data_alloc(tx, len, &end) != NO_SPACE);
}

/* A cursor over the body of a line. */
struct body {
	uint8_t *p, *end;
};

static inline void put(struct body *b, const void *v, size_t n)
{
	memcpy(b->p, v, n);
	b->p += n;
}

static inline void get(struct body *b, void *v, size_t n)
{
	memcpy(v, b->p, n);
	b->p += n;
}

#define EXT_FIELDS(move, b, pkt, flags)                                                            \
	do {                                                                                       \
		if ((flags) & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) {                                \
			move(b, &(pkt)->va, 8);                                                    \
			move(b, &(pkt)->rkey, 4);                                                  \
		}                                                                                  \
		if ((flags)&VRB_OPF_RETH)                                                          \
			move(b, &(pkt)->dma_len, 4);                                               \
		if ((flags)&VRB_OPF_ATOMICETH) {                                                   \
			move(b, &(pkt)->swap_add, 8);                                              \
			move(b, &(pkt)->compare, 8);                                               \
		}                                                                                  \
		if ((flags)&VRB_OPF_AETH) {                                                        \
			move(b, &(pkt)->syndrome, 1);                                              \
			move(b, &(pkt)->msn, 4);                                                   \
		}                                                                                  \
		if ((flags)&VRB_OPF_ATOMICACK)                                                     \
			move(b, &(pkt)->atomic_orig, 8);                                           \
		if ((flags)&VRB_OPF_DETH) {                                                        \
			move(b, &(pkt)->qkey, 4);                                                  \
			move(b, &(pkt)->sqpn, 4);                                                  \
		}                                                                                  \
		if ((flags)&VRB_OPF_IMM)                                                           \
			move(b, &(pkt)->imm, 4);                                                   \
		if ((flags)&VRB_OPF_INV)                                                           \
			move(b, &(pkt)->inv_rkey, 4);                                              \
	} while (0)

static void gather(uint8_t *dst, const struct vrb_seg *seg, uint32_t len)
{
	while (len) {
		uint32_t n = seg->len < len ? seg->len : len;

		memcpy(dst, seg->base, n);
		dst += n;
		len -= n;
		seg++;
	}
}

void vrb_shm_push(struct vrb_shm_tx *tx, const struct vrb_pkt *pkt, const struct vrb_seg *seg,
		  const struct vrb_psn *ack, const struct vrb_shm_grh *grh)
{
	struct vrb_shm_line *l = &tx->m.line[tx->head % VRB_SHM_LINES];
	uint32_t flags = vrb_op_flags(pkt->op), inline_len = 0;
	struct body b = {l->body, l->body + VRB_SHM_BODY};
	uint8_t f = (pkt->flags & VRB_PKT_SE ? VRB_SHM_SE : 0) |
		    (pkt->flags & VRB_PKT_ACKREQ ? VRB_SHM_ACKREQ : 0) | (ack ? VRB_SHM_ACK : 0);
	uint32_t low = ack ? ack->v : 0;

	EXT_FIELDS(put, &b, pkt, flags);
	if (flags & VRB_OPF_DETH) {
		put(&b, &grh->sgid, 16);
		put(&b, &grh->dgid, 16);
		low = grh->traffic_class | (uint32_t)grh->hop_limit << 8;
	}
	if (pkt->len && pkt->len <= (size_t)(b.end - b.p)) {
		inline_len = pkt->len;
		gather(b.p, seg, pkt->len);
	} else if (pkt->len && pkt->len <= VRB_SHM_SLOT) {
		inline_len = pkt->len - 1;
		gather(vrb_shm_slot(&tx->m, tx->head), seg, pkt->len);
		f |= VRB_SHM_BESIDE;
	} else if (pkt->len) {
		uint32_t end = 0, at = vrb_shm_data_alloc(tx, pkt->len, &end);

		gather(tx->m.data + at, seg, pkt->len);
		f |= VRB_SHM_DATA_REF;
		tx->data_head = end;
		put(&b, &end, 4);
		put(&b, &pkt->len, 4);
	}
	l->ack = low | inline_len << 24;
	/* pairs with the acquire in vrb_shm_peek and vrb_shm_next */
	atomic_store_explicit(&l->word,
			      vrb_shm_word(tx->head, pkt->op.v, (uint16_t)pkt->dqpn, pkt->psn, f),
			      memory_order_release);
	tx->head++;
}

/* The payload in the data area: what the peer claims, bounded to the area. */
static int get_data(struct vrb_shm_rx *rx, struct body *b, struct vrb_shm_frame *f)
{
	uint32_t end, len, start;

	if (b->end - b->p < 8)
		return -1;
	get(b, &end, 4);
	get(b, &len, 4);
	VRB_SHM_ONCE(end);
	VRB_SHM_ONCE(len);
	if (len == 0 || len > VRB_SHM_FRAME_MAX || end % 64)
		return -1;
	start = (end - round_line(len)) % VRB_SHM_DATA;
	if (start + len > VRB_SHM_DATA || end - rx->data_tail > VRB_SHM_DATA)
		return -1;
	f->pkt.payload = rx->m.data + start;
	f->pkt.len = len;
	f->has_data = true;
	f->data_end = end;
	return 1;
}

int vrb_shm_next(struct vrb_shm_rx *rx, struct vrb_shm_frame *f)
{
	struct vrb_shm_line *l = &rx->m.line[rx->tail % VRB_SHM_LINES];
	uint64_t w = atomic_load_explicit(&l->word, memory_order_acquire);
	struct vrb_pkt *pkt = &f->pkt;
	uint32_t low, flags, inline_len;
	struct body b = {l->body, l->body + VRB_SHM_BODY};
	uint8_t wf = (uint8_t)(w >> 56);

	if ((uint8_t)w != vrb_shm_lap(rx->tail))
		return 0;
	low = *(volatile uint32_t *)&l->ack;
	pkt->op.v = (uint8_t)(w >> 8);
	flags = vrb_op_flags(pkt->op);
	f->is_direct = pkt->op.v == VRB_SHM_OP_DIRECT;
	f->index = (uint16_t)(w >> 16);
	pkt->psn = vrb_psn((uint32_t)(w >> 32));
	if (!(flags & VRB_OPF_KNOWN) && !f->is_direct && pkt->op.v != VRB_SHM_OP_CARRIED)
		return -1;
	pkt->flags =
		(wf & VRB_SHM_SE ? VRB_PKT_SE : 0) | (wf & VRB_SHM_ACKREQ ? VRB_PKT_ACKREQ : 0);
	pkt->pad = 0;
	pkt->pkey = 0xffff;
	pkt->payload = NULL;
	pkt->len = 0;
	pkt->grh = NULL;
	f->has_ack = wf & VRB_SHM_ACK;
	f->ack = vrb_psn(low);
	f->has_data = false;
	EXT_FIELDS(get, &b, pkt, flags);
	if (flags & VRB_OPF_DETH) {
		get(&b, &f->sgid, 16);
		get(&b, &f->dgid, 16);
		f->traffic_class = (uint8_t)low;
		f->hop_limit = (uint8_t)(low >> 8);
	}
	if (wf & VRB_SHM_DATA_REF)
		return wf & VRB_SHM_BESIDE ? -1 : get_data(rx, &b, f);
	inline_len = low >> 24;
	if (wf & VRB_SHM_BESIDE) {
		pkt->payload = vrb_shm_slot(&rx->m, rx->tail);
		pkt->len = inline_len + 1;
		return 1;
	}
	if (inline_len > (size_t)(b.end - b.p))
		return -1;
	pkt->payload = b.p;
	pkt->len = inline_len;
	return 1;
}

bool vrb_shm_publish(struct vrb_shm_rx *rx)
{
	struct vrb_shm_ctl *c = rx->m.ctl;

	rx->published = rx->tail;
	rx->data_published = rx->data_tail;
	atomic_store_explicit(&c->data_used, rx->data_tail, memory_order_release);
	atomic_store_explicit(&c->lines_used, rx->tail, memory_order_release);
	/* with the fence in vrb_shm_want_credit: either we see the wish or it sees the progress */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&c->want_credit, memory_order_relaxed))
		return false;
	atomic_store_explicit(&c->want_credit, 0, memory_order_relaxed);
	/* The caller reads the sender's bell next: pairs with the fence in vrb_engine_arm, behind
	 * which the sender looks at its wish. */
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

bool vrb_shm_want_credit(struct vrb_shm_tx *tx, uint32_t len)
{
	atomic_store_explicit(&tx->m.ctl->want_credit, 1, memory_order_relaxed);
	/* pairs with the fence in vrb_shm_publish */
	atomic_thread_fence(memory_order_seq_cst);
	return vrb_shm_room(tx, len);
}

int vrb_shm_create(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, VRB_SHM_SIZE) || fcntl(fd, F_ADD_SEALS, SEALS)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

bool vrb_shm_is_sealed(int fd, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS); /* -1: no memfd at all */
	struct stat st;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       (uint64_t)st.st_size == size;
}

int vrb_shm_map(int fd, void *at, struct vrb_shm_map *m)
{
	uint8_t *p;

	if (!vrb_shm_is_sealed(fd, VRB_SHM_SIZE))
		return -EPERM;
	p = mmap(at, VRB_SHM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd,
		 0);
	if (p == MAP_FAILED) {
		int err = -errno;

		if (at) /* what was there may be gone already, and others may still look */
			vrb_shm_blank(m);
		return err;
	}
	madvise(p, VRB_SHM_SIZE, MADV_DONTFORK);
	madvise(p, 4096 + VRB_SHM_LINES * 64, MADV_POPULATE_WRITE);
	if (at)
		return 0; /* the same addresses, which others may be reading */
	m->ctl = (struct vrb_shm_ctl *)(void *)p;
	m->line = (struct vrb_shm_line *)(void *)(p + 4096);
	m->slot = p + 4096 + VRB_SHM_LINES * 64;
	m->data = m->slot + VRB_SHM_LINES * VRB_SHM_SLOT;
	return 0;
}

void vrb_shm_blank(struct vrb_shm_map *m)
{
	if (!m->ctl)
		return;
	if (mmap(m->ctl, VRB_SHM_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return;
	madvise(m->ctl, VRB_SHM_SIZE, MADV_DONTFORK);
}
