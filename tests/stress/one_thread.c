/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	one process, one thread:   end A <--- RC ---> end B      and  end C <--> itself
 *
 * Every operation in lockstep: only the CQ that is waited for is polled, so the other end must move
 * without its own CQ being looked at.
 */
#include "stress.h"

#include <string.h>

#define BIG (300u << 10)

static void want_equal(struct end *a, struct end *b, uint32_t len)
{
	if (memcmp(a->buf, b->buf, len))
		die("bytes differ in a message of %u bytes", len);
}

static void change(struct end *e, uint32_t len, uint64_t *seed)
{
	for (uint32_t i = 0; i + 8 <= len; i += 1024)
		*(uint64_t *)(void *)(e->buf + i) = rnd(seed);
	e->buf[len ? len - 1 : 0] = (uint8_t)rnd(seed);
}

static void round_of(struct end *a, struct end *b, uint32_t len, uint64_t *seed)
{
	uint64_t was = *(uint64_t *)(void *)b->buf;

	change(a, len, seed);
	MUST(!end_recv(b, 7, 0, BIG));
	MUST(!end_send(a, 1, 0, len, IBV_SEND_SIGNALED));
	end_done(b, 7); /* only the receiver's CQ is polled first */
	end_done(a, 1);
	want_equal(a, b, len);
	change(a, len, seed);
	MUST(!end_rdma(a, IBV_WR_RDMA_WRITE, 2, len, b->id.addr, b->id.rkey));
	end_done(a, 2);
	want_equal(a, b, len);
	change(b, len, seed);
	MUST(!end_rdma(a, IBV_WR_RDMA_READ, 3, len, b->id.addr, b->id.rkey));
	end_done(a, 3);
	want_equal(a, b, len);
	was = *(uint64_t *)(void *)b->buf;
	MUST(!end_atomic(a, false, b->id.addr, b->id.rkey, 5, 0));
	end_done(a, 1);
	MUST(*(uint64_t *)(void *)a->buf == was);
	MUST(*(uint64_t *)(void *)b->buf == was + 5);
	MUST(!end_atomic(a, true, b->id.addr, b->id.rkey, was + 5, 77));
	end_done(a, 1);
	MUST(*(uint64_t *)(void *)b->buf == 77);
}

/* A QP connected to itself, which is legal. */
static void to_itself(void)
{
	struct end_opts o = {.len = 2 * BIG};
	struct end e;

	end_open(&e, &o);
	end_connect(&e, &e.id);
	memset(e.buf, 3, BIG);
	for (uint64_t i = 0; i < 100; i++) {
		struct ibv_wc wc[2];

		MUST(!end_recv(&e, 7, BIG, BIG));
		MUST(!end_send(&e, 1, 0, (uint32_t)(i * 997 % BIG), IBV_SEND_SIGNALED));
		MUST(end_wc(&e, &wc[0], WAIT_MS) && end_wc(&e, &wc[1], WAIT_MS));
		MUST(wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS);
		MUST(wc[0].wr_id + wc[1].wr_id == 8);
	}
	end_close(&e);
}

void test_one_thread(long n)
{
	static const uint32_t sizes[] = {8, 56, 64, 1000, 4096, 5000, 65536, BIG};
	struct end_opts o = {.len = BIG};
	struct end a, b;
	uint64_t seed = 0x1234567;

	for (int same = 0; same < 2; same++) {
		end_open(&a, &o);
		o.ctx = same ? a.ctx : NULL;
		end_open(&b, &o);
		o.ctx = NULL;
		end_connect(&a, &b.id);
		end_connect(&b, &a.id);
		for (long i = 0; go_on(i, n / 2); i++)
			round_of(i % 3 ? &a : &b, i % 3 ? &b : &a, sizes[i % 8], &seed);
		end_close(&b);
		end_close(&a);
	}
	to_itself();
}
