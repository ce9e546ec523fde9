/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	tx ---> [ ring in a memfd, mapped twice ] ---> rx
 *
 * The contract of the same-host ring: every frame arrives once, in order, unchanged, whatever its
 * headers and wherever the 32-bit cursors stand; the sender never writes what the receiver has not
 * given back; credit is asked for and given; nothing a liar writes leads out of the mapping.
 */
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/prng.h"
#include "link/shm.h"

struct ring {
	struct vrb_shm_tx tx;
	struct vrb_shm_rx rx;
};

static void ring_open(struct ring *r, uint32_t line, uint32_t data)
{
	int fd = vrb_shm_create("test-ring");

	memset(r, 0, sizeof(*r));
	assert_true(fd >= 0);
	assert_int_equal(vrb_shm_map(fd, NULL, &r->tx.m), 0);
	assert_int_equal(vrb_shm_map(fd, NULL, &r->rx.m), 0);
	close(fd);
	r->tx.head = r->tx.used = r->rx.tail = r->rx.published = line;
	r->tx.data_head = r->tx.data_used = r->rx.data_tail = r->rx.data_published = data;
	atomic_store(&r->tx.m.ctl->lines_used, line);
	atomic_store(&r->tx.m.ctl->data_used, data);
}

static void ring_close(struct ring *r)
{
	munmap(r->tx.m.ctl, VRB_SHM_SIZE);
	munmap(r->rx.m.ctl, VRB_SHM_SIZE);
}

/* ---- frames of every kind */

struct sent {
	struct vrb_pkt pkt;
	struct vrb_shm_grh grh;
	struct vrb_psn ack;
	bool has_ack;
	uint8_t first, last; /* bytes of the payload */
};

static uint8_t payload[VRB_SHM_FRAME_MAX];

static struct vrb_opcode some_opcode(struct vrb_prng *rng)
{
	struct vrb_opcode op;

	do
		op.v = (uint8_t)vrb_prng_next(rng);
	while (!(vrb_op_flags(op) & VRB_OPF_KNOWN));
	return op;
}

static void make(struct sent *s, struct vrb_prng *rng)
{
	static const uint32_t lens[] = {
		0, 1, 8, 20, 52, 53, 64, 255, 256, 257, 1000, 4096, VRB_SHM_FRAME_MAX};

	memset(s, 0, sizeof(*s));
	s->pkt = (struct vrb_pkt){.op = some_opcode(rng),
				  .flags = (uint8_t)(vrb_prng_next(rng) & VRB_PKT_SE),
				  .psn = vrb_psn((uint32_t)vrb_prng_next(rng)),
				  .dqpn = (uint16_t)vrb_prng_next(rng),
				  .va = vrb_prng_next(rng),
				  .rkey = (uint32_t)vrb_prng_next(rng),
				  .dma_len = (uint32_t)vrb_prng_next(rng),
				  .imm = (uint32_t)vrb_prng_next(rng),
				  .qkey = (uint32_t)vrb_prng_next(rng),
				  .compare = vrb_prng_next(rng),
				  .atomic_orig = vrb_prng_next(rng)};
	if (vrb_prng_next(rng) % 3 == 0)
		s->pkt.len = lens[vrb_prng_next(rng) % 13];
	else
		s->pkt.len = (uint32_t)(vrb_prng_next(rng) % (VRB_SHM_FRAME_MAX + 1));
	s->grh.hop_limit = (uint8_t)vrb_prng_next(rng);
	s->grh.sgid.raw[3] = (uint8_t)vrb_prng_next(rng);
	s->has_ack = vrb_op_transport(s->pkt.op) == VRB_TP_RC && vrb_prng_next(rng) % 2;
	s->ack = vrb_psn((uint32_t)vrb_prng_next(rng));
	s->first = (uint8_t)vrb_prng_next(rng);
	s->last = (uint8_t)vrb_prng_next(rng);
}

static void push(struct ring *r, const struct sent *s)
{
	struct vrb_seg seg[2] = {{payload, s->pkt.len / 2},
				 {payload + s->pkt.len / 2, s->pkt.len - s->pkt.len / 2}};

	if (s->pkt.len) {
		payload[0] = s->first;
		payload[s->pkt.len - 1] = s->last;
	}
	vrb_shm_push(&r->tx, &s->pkt, seg, s->has_ack ? &s->ack : NULL, &s->grh);
}

static void want_same(const struct sent *s, const struct vrb_shm_frame *f)
{
	uint32_t flags = vrb_op_flags(s->pkt.op);

	assert_int_equal(f->pkt.op.v, s->pkt.op.v);
	assert_int_equal(f->index, s->pkt.dqpn);
	assert_int_equal(f->pkt.psn.v, s->pkt.psn.v);
	assert_int_equal(f->pkt.flags & VRB_PKT_SE, s->pkt.flags & VRB_PKT_SE);
	assert_int_equal(f->pkt.len, s->pkt.len);
	assert_int_equal(f->has_ack, s->has_ack);
	if (s->has_ack)
		assert_int_equal(f->ack.v, s->ack.v);
	if (flags & VRB_OPF_RETH)
		assert_true(f->pkt.va == s->pkt.va && f->pkt.rkey == s->pkt.rkey &&
			    f->pkt.dma_len == s->pkt.dma_len);
	if (flags & VRB_OPF_ATOMICETH)
		assert_true(f->pkt.compare == s->pkt.compare);
	if (flags & VRB_OPF_ATOMICACK)
		assert_true(f->pkt.atomic_orig == s->pkt.atomic_orig);
	if (flags & VRB_OPF_IMM)
		assert_true(f->pkt.imm == s->pkt.imm);
	if (flags & VRB_OPF_DETH)
		assert_true(f->pkt.qkey == s->pkt.qkey && f->hop_limit == s->grh.hop_limit &&
			    f->sgid.raw[3] == s->grh.sgid.raw[3]);
	if (s->pkt.len > 1) {
		assert_int_equal(f->pkt.payload[0], s->first);
		assert_int_equal(f->pkt.payload[s->pkt.len - 1], s->last);
	}
}

static void pop(struct ring *r, const struct sent *s)
{
	struct vrb_shm_frame f;

	assert_true(vrb_shm_peek(&r->rx));
	assert_int_equal(vrb_shm_next(&r->rx, &f), 1);
	want_same(s, &f);
	vrb_shm_pop(&r->rx, f.has_data, f.data_end);
	if (vrb_shm_publish_due(&r->rx))
		(void)vrb_shm_publish(&r->rx);
}

#define QUEUE 512

/* n frames through the ring, with as many under way as there is room for, now and then none. */
static void stream(uint32_t line, uint32_t data, uint32_t n)
{
	static struct sent queue[QUEUE];
	struct vrb_prng rng;
	uint32_t in = 0, out = 0, held = 0;
	struct ring r;

	rng = vrb_prng_seed(line ^ data);
	ring_open(&r, line, data);
	while (out < n) {
		struct sent *s = &queue[in % QUEUE];
		bool full;

		if (!held && in < n)
			make(s, &rng);
		held = in < n;
		full = !held || !vrb_shm_room(&r.tx, s->pkt.len) || vrb_prng_next(&rng) % 300 == 0;
		if (!full) {
			push(&r, s);
			in++;
			held = 0;
			continue;
		}
		assert_true(in - out < VRB_SHM_LINES);
		for (uint32_t k = vrb_prng_next(&rng) % 200 + 1; k && out != in; k--)
			pop(&r, &queue[out++ % QUEUE]);
		if (out == in)
			assert_false(vrb_shm_peek(&r.rx));
	}
	ring_close(&r);
}

static void test_order(void **state)
{
	(void)state;
	stream(0, 0, 20000);
}

static void test_cursors_wrap(void **state)
{
	(void)state;
	stream(0u - 5000, 0u - (64u << 20), 20000);
	stream(0u - 1, 0u - 64, 3000);
	stream(255 * VRB_SHM_LINES - 3, VRB_SHM_DATA - 64, 3000); /* lap 0 */
}

/* ---- room and credit */

static void test_full(void **state)
{
	struct sent s = {.pkt = {.op = {VRB_TP_RC | VRB_OP_SEND_ONLY}, .len = 8}};
	struct ring r;
	uint32_t n = 0;

	(void)state;
	ring_open(&r, 0, 0);
	for (; vrb_shm_room(&r.tx, 8); n++)
		push(&r, &s);
	assert_int_equal(n, VRB_SHM_LINES - 1); /* one is left for a notice before the last */
	assert_false(vrb_shm_want_credit(&r.tx, 8));
	for (n = 1; n < VRB_SHM_LINES / 4; n++) {
		struct vrb_shm_frame f;

		assert_int_equal(vrb_shm_next(&r.rx, &f), 1);
		vrb_shm_pop(&r.rx, f.has_data, f.data_end);
		assert_false(vrb_shm_publish_due(&r.rx));
	}
	vrb_shm_pop(&r.rx, false, 0);
	assert_true(vrb_shm_publish_due(&r.rx));
	assert_true(vrb_shm_publish(&r.rx)); /* the wish, once */
	assert_false(vrb_shm_publish(&r.rx));
	assert_true(vrb_shm_room(&r.tx, 8));
	ring_close(&r);
}

/* The data area ends where it must and gives room back. Frames of full size run out of lines first.
 */
static void test_data_full(void **state)
{
	uint32_t n = 0, end;
	struct ring r;

	(void)state;
	ring_open(&r, 0, 0);
	for (; vrb_shm_data_alloc(&r.tx, 16000, &end) != UINT32_MAX; n++)
		r.tx.data_head = end;
	assert_int_equal(n, VRB_SHM_DATA / 16000);
	assert_false(vrb_shm_room(&r.tx, 16000));
	assert_true(vrb_shm_room(&r.tx, VRB_SHM_SLOT));
	r.rx.data_tail = r.tx.data_head;
	assert_true(vrb_shm_publish_due(&r.rx));
	vrb_shm_publish(&r.rx);
	assert_true(vrb_shm_room(&r.tx, 16000));
	ring_close(&r);
}

/* ---- memory */

static int file_of(const char *template, uint64_t size)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s", template);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static int memory_of(uint64_t size, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void test_only_sealed_memory(void **state)
{
	const int fds[] = {
		file_of("/tmp/vrb-shm-XXXXXX", VRB_SHM_SIZE), /* no seals at all */
		memory_of(VRB_SHM_SIZE, F_SEAL_GROW),
		memory_of(VRB_SHM_SIZE - 4096, F_SEAL_SHRINK | F_SEAL_GROW),
		memory_of(VRB_SHM_SIZE + 4096, F_SEAL_SHRINK | F_SEAL_GROW),
		memory_of(VRB_SHM_SIZE, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
		-1,
	};
	struct vrb_shm_map m;

	(void)state;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		assert_true(vrb_shm_map(fds[i], NULL, &m) < 0);
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static void test_blank(void **state)
{
	struct sent s = {.pkt = {.op = {VRB_TP_RC | VRB_OP_SEND_ONLY}, .len = 8}};
	struct vrb_shm_line *line;
	struct ring r;

	(void)state;
	ring_open(&r, 0, 0);
	push(&r, &s);
	line = r.rx.m.line;
	vrb_shm_blank(&r.rx.m);
	assert_ptr_equal(line, r.rx.m.line);
	assert_false(vrb_shm_peek(&r.rx));
	assert_int_equal(atomic_load(&r.rx.m.ctl->lines_used), 0);
	ring_close(&r);
}

/* ---- lies */

/* Whatever stands in a line: refused, or a payload inside the mapping. */
static void want_inside(struct ring *r, const struct vrb_shm_frame *f)
{
	const uint8_t *from = (const uint8_t *)r->rx.m.line, *to = r->rx.m.data + VRB_SHM_DATA;

	if (!f->pkt.len)
		return;
	assert_true(f->pkt.payload >= from && f->pkt.payload + f->pkt.len <= to);
	assert_true(f->pkt.len <= VRB_SHM_FRAME_MAX);
	if (!f->has_data)
		assert_true(f->pkt.len <= VRB_SHM_SLOT);
}

static void test_lies(void **state)
{
	struct vrb_prng rng;
	struct ring r;
	uint32_t good = 0, bad = 0;

	(void)state;
	rng = vrb_prng_seed(7);
	ring_open(&r, 0, 0);
	for (uint32_t i = 0; i < 2000000; i++) {
		struct vrb_shm_line *l = &r.tx.m.line[r.rx.tail % VRB_SHM_LINES];
		struct vrb_shm_frame f;
		uint64_t word = vrb_prng_next(&rng);
		int got;

		for (uint32_t k = 0; k < VRB_SHM_BODY; k += 4) {
			uint32_t v = (uint32_t)vrb_prng_next(&rng);

			v = v % 4 == 0 ? v % 20000 : v % 4 == 1 ? v & ~63u : v;
			memcpy(l->body + k, &v, 4);
		}
		l->ack = (uint32_t)vrb_prng_next(&rng);
		if (word % 4)
			l->ack &= 0x3fffffff;
		word = (word & ~0xffull) | vrb_shm_lap(r.rx.tail);
		atomic_store(&l->word, word);
		got = vrb_shm_next(&r.rx, &f);
		assert_int_not_equal(got, 0);
		if (got > 0)
			want_inside(&r, &f);
		vrb_shm_pop(&r.rx, got > 0 && f.has_data, f.data_end);
		good += got > 0;
		bad += got < 0;
	}
	assert_true(good > 10000 && bad > 10000);
	ring_close(&r);
}

/* A receiver that reports nonsense gets no room, or room in its own ring. */
static void test_lying_credit(void **state)
{
	static const uint32_t lies[] = {1, 255, 256, 257, 1u << 31, UINT32_MAX};
	struct sent s = {.pkt = {.op = {VRB_TP_RC | VRB_OP_SEND_ONLY}, .len = 9000}};
	struct ring r;

	(void)state;
	ring_open(&r, 0, 0);
	for (uint32_t i = 0; i < 6 * 600; i++) {
		atomic_store(&r.rx.m.ctl->lines_used, r.tx.head + lies[i / 600]);
		atomic_store(&r.rx.m.ctl->data_used, r.tx.data_head + lies[i / 600] * 64);
		if (vrb_shm_room(&r.tx, s.pkt.len))
			push(&r, &s);
	}
	ring_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_cursors_wrap),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_data_full),
		cmocka_unit_test(test_only_sealed_memory),
		cmocka_unit_test(test_blank),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_lying_credit),
	};

	return VRB_RUN_TESTS(tests);
}
