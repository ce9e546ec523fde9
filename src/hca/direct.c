/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA WRITE by the initiator; see hca/direct.h for the protocol. */
#include "hca/direct.h"
#include "hca/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/qp_fast.h"

#define EXPORT_VERSION 1u
#define PIPELINE                                                                                   \
	2u /* more entries than this in flight: the ring is faster than a system call each */
#define WAIT_NS (100 * VRB_NS_PER_MS)

int vrb_export_open(struct vrb_engine *e)
{
	int fd = memfd_create("verbena-export", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct vrb_export *x;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(*x)) ||
	    (x = mmap(NULL, sizeof(*x), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		      0)) == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	madvise(x, sizeof(*x), MADV_DONTFORK);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	x->version = EXPORT_VERSION;
	x->key_size = sizeof(struct vrb_key);
	e->export = x;
	e->export_fd = fd;
	return 0;
}

void vrb_export_close(struct vrb_engine *e)
{
	if (e->export)
		munmap(e->export, sizeof(*e->export));
	if (e->export_fd >= 0)
		close(e->export_fd);
	e->export = NULL;
	e->export_fd = -1;
}

void vrb_direct_attach(struct vrb_peer *p, int fd, int sock)
{
	struct vrb_export *x;
	char path[48];

	if (p->export || p->owner <= 0 || !vrb_shm_is_sealed(fd, sizeof(*x)))
		return;
	snprintf(path, sizeof(path), "/proc/%d/mem", p->owner);
	p->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (p->mem_fd < 0)
		return;
	x = mmap(NULL, sizeof(*x), PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	/* While the connection stands the process has not ended and the number is still its own;
	 * after an exec the memory would be the new program's. */
	if (x == MAP_FAILED || x->version != EXPORT_VERSION ||
	    x->key_size != sizeof(struct vrb_key) || vrb_meet_hung_up(sock)) {
		if (x != MAP_FAILED)
			munmap(x, sizeof(*x));
		close(p->mem_fd);
		p->mem_fd = -1;
		return;
	}
	madvise(x, sizeof(*x), MADV_DONTFORK);
	p->export = x;
}

void vrb_direct_detach(struct vrb_peer *p)
{
	if (p->export)
		munmap((void *)(uintptr_t)p->export, sizeof(*p->export));
	if (p->mem_fd >= 0)
		close(p->mem_fd);
	p->export = NULL;
	p->mem_fd = -1;
}

/* A peer that does not end an operation in time was stopped, or lies: it is cut off, and this value
 * is not waited for again. What it still writes it could write by other means as well. */
static void wait_for(struct vrb_peer *p, vrb_ns *end)
{
	_Atomic uint32_t *seq = &p->rx.m.ctl->direct_seq;
	uint32_t seen = atomic_load_explicit(seq, memory_order_acquire), spins = 0;

	if (!(seen & 1) || seen == p->direct_hung)
		return;
	/* pairs with the release at the end of vrb_direct_write */
	while (atomic_load_explicit(seq, memory_order_acquire) == seen) {
		if (++spins % 64)
			continue;
		sched_yield();
		if (!*end)
			*end = vrb_clock_now() + WAIT_NS;
		if (vrb_clock_now() < *end)
			continue;
		p->direct_hung = seen;
		vrb_peer_cut(p);
		return;
	}
}

void vrb_direct_wait(struct vrb_engine *e)
{
	vrb_ns end = 0;

	/* pairs with the fence in vrb_direct_write: the writer sees the withdrawal or we see its
	 * announcement */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < atomic_load_explicit(&e->n_hot, memory_order_relaxed); i++) {
		struct vrb_peer *p = atomic_load_explicit(&e->hot[i], memory_order_relaxed);

		if (!p->self)
			wait_for(p, &end);
	}
}

void vrb_direct_update(struct vrb_engine *e, struct vrb_hqp *q)
{
	const struct vrb_qp *c = &q->core;
	struct vrb_direct_qp *x = &e->export->qp[c->qpn & VRB_QPN_INDEX_MASK];
	bool ok = q->peer && !q->peer->self && !c->tapped && c->type != VRB_QPT_UD &&
		  (c->state == VRB_QPS_RTS || (c->state == VRB_QPS_RTR && c->comm_est_done));

	if (vrb_likely(ok == q->direct_ok))
		return;
	q->direct_ok = ok;
	x->peer_qpn = c->dqpn;
	x->pd = c->pd;
	x->access = c->access;
	atomic_store_explicit(&x->ok, ok, memory_order_release);
	if (!ok)
		vrb_direct_wait(e);
}

/* The target's address for an access that is good, or 0. The entry is the peer's: read once,
 * believed for bounds only. */
static uint64_t target(const struct vrb_export *x, const struct vrb_direct_qp *t,
		       const struct vrb_swqe *w)
{
	const uint32_t need = VRB_ACC_REMOTE_WRITE;
	uint32_t i = w->rkey >> 8;
	const volatile struct vrb_key *k;
	uint64_t off, len;

	if (i >= atomic_load_explicit(&x->n_keys, memory_order_acquire) || i >= VRB_EXPORT_KEYS)
		return 0;
	k = &x->key[i];
	off = w->va - k->base;
	len = k->len;
	if (k->kind != VRB_KEY_REMOTE || k->key != w->rkey || k->pd != t->pd ||
	    !(k->access & need) || !(t->access & need) || off > len || w->len > len - off)
		return 0;
	return k->host + off;
}

static const void *source(const struct vrb_hqp *q, const struct vrb_swqe *w)
{
	if (w->flags & VRB_WRF_INLINE)
		return w->data;
	if (w->n_sge != 1)
		return NULL;
	return (const void *)(uintptr_t)vrb_key_fast_local(q->core.keys, w->sge, w->len, q->core.pd,
							   0);
}

static void complete(struct vrb_hqp *q, struct vrb_swqe *w)
{
	struct vrb_qp *c = &q->core;
	struct vrb_cqe cqe = {.qp = c, .sq_free = c->sq.tail + 1, .is_send = 1};

	w->first = w->last = c->next_psn;
	c->next_psn = vrb_psn_add(c->next_psn, 1);
	c->una_psn = c->next_psn;
	if (c->type == VRB_QPT_RC)
		q->direct_n++; /* UC takes any PSN for a new message */
	c->sq.tail++;
	c->sq_send++;
	c->sq_una++;
	q->count.tx_packets++;
	q->count.tx_bytes += w->len;
	if (!(w->flags & VRB_WRF_SIGNALED))
		return;
	cqe.wc = (struct vrb_wc){
		.wr_id = w->wr_id, .opcode = VRB_WCO_WRITE, .byte_len = w->len, .qp_num = c->qpn};
	vrb_cq_push(c->scq, &cqe, false, &q->e->fx);
	vrb_engine_apply(q->e);
}

bool vrb_direct_write(struct vrb_hqp *q, struct vrb_swqe *w)
{
	struct vrb_qp *c = &q->core;
	struct vrb_peer *p = q->peer;
	const struct vrb_direct_qp *t;
	_Atomic uint32_t *seq;
	const void *src;
	uint64_t dst;
	bool done = false;

	if (w->op != VRB_WR_WRITE || !p || !p->export || !w->len || w->len > VRB_DIRECT_MAX ||
	    c->slow_tx & ~(c->type == VRB_QPT_UC ? VRB_SLOW_STATE : 0u) || c->state != VRB_QPS_RTS)
		return false;
	/* Nothing of this queue pair may wait unexecuted in the ring, and no stream of WRITEs be
	 * slowed down. */
	if (c->sq_una != c->sq.tail || vrb_qp_sq_used(c) > PIPELINE)
		return false;
	t = &p->export->qp[c->dqpn & VRB_QPN_INDEX_MASK];
	src = source(q, w);
	if (!src || !atomic_load_explicit(&t->ok, memory_order_acquire) || t->peer_qpn != c->qpn ||
	    !target(p->export, t, w))
		return false;
	seq = &p->tx.m.ctl->direct_seq;
	atomic_fetch_add_explicit(seq, 1, memory_order_seq_cst);
	/* pairs with the fence in vrb_direct_wait */
	atomic_thread_fence(memory_order_seq_cst);
	dst = atomic_load_explicit(&t->ok, memory_order_acquire) ? target(p->export, t, w) : 0;
	if (dst)
		done = syscall(SYS_pwrite64, p->mem_fd, src, (size_t)w->len, (off_t)dst) ==
		       (long)w->len;
	atomic_fetch_add_explicit(seq, 1, memory_order_release);
	if (done)
		complete(q, w);
	return done;
}

void vrb_direct_tell(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_peer *p)
{
	struct vrb_shm_line *l = &p->tx.m.line[p->tx.head % VRB_SHM_LINES];

	l->ack = 0;
	atomic_store_explicit(&l->word,
			      vrb_shm_word(p->tx.head, VRB_SHM_OP_DIRECT, (uint16_t)q->core.dqpn,
					   e->tx.pkt.psn, 0),
			      memory_order_release);
	p->tx.head++;
	q->direct_n = 0;
	vrb_engine_pushed(e, p);
}

void vrb_direct_told(struct vrb_hqp *q, struct vrb_psn psn)
{
	struct vrb_qp *c = &q->core;
	int32_t n = vrb_psn_diff(psn, c->epsn);

	/* Only between messages and forward: anything else is a peer that lies to itself. (It may
	 * have been done before the queue pair was closed for direct operations.) */
	if (n <= 0 || c->type != VRB_QPT_RC ||
	    (c->slow_rx & ~(uint32_t)(VRB_SLOW_SRQ | VRB_SLOW_TAPPED)))
		return;
	c->epsn = psn;
	c->ack_psn = vrb_psn_sub(psn, 1);
	c->msn += (uint32_t)n;
	q->count.rx_packets += (uint32_t)n;
}
