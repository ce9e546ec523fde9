/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	initiator ---- WRITE, READ, CAS, FETCH_ADD ----> target: connects, then never calls again
 *
 * The target sleeps in read() (first) or computes without a pause (second) while its memory is
 * written and read; it looks at the outcome with its own eyes only.
 */
#include "stress.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define LEN 70000u

static void target(int sock, bool busy)
{
	struct end_opts o = {.len = LEN};
	struct end_id peer;
	struct end e;
	char c;

	end_open(&e, &o);
	MUST(end_meet(&e, sock, &peer));
	if (busy) { /* until the initiator's last WRITE is seen in memory */
		_Atomic uint8_t *last = (_Atomic uint8_t *)(e.buf + LEN - 1);

		while (atomic_load_explicit(last, memory_order_acquire) != 0xee)
			;
	}
	MUST(get_all(sock, &c, 1));
	MUST(e.buf[LEN - 1] == 0xee);
	_exit(0);
}

static void initiate(struct end *e, const struct end_id *t, long n)
{
	uint64_t seed = 99, expect = 0, *word = (uint64_t *)(void *)e->buf;

	*word = 0;
	MUST(!end_rdma(e, IBV_WR_RDMA_WRITE, 1, 8, t->addr, t->rkey));
	end_done(e, 1);
	for (long i = 0; go_on(i, n); i++) {
		uint32_t len = (uint32_t)(rnd(&seed) % (LEN - 64)) + 1;
		uint8_t mark = (uint8_t)(i % 200);

		memset(e->buf, mark, len);
		MUST(!end_rdma(e, IBV_WR_RDMA_WRITE, 1, len, t->addr + 8, t->rkey));
		end_done(e, 1);
		memset(e->buf, 0xff, len);
		MUST(!end_rdma(e, IBV_WR_RDMA_READ, 2, len, t->addr + 8, t->rkey));
		end_done(e, 2);
		MUST(e->buf[0] == mark && e->buf[len / 2] == mark && e->buf[len - 1] == mark);
		MUST(!end_atomic(e, false, t->addr, t->rkey, 3, 0));
		end_done(e, 1);
		MUST(*word == expect);
		expect += 3;
		MUST(!end_atomic(e, true, t->addr, t->rkey, expect, expect + 1));
		end_done(e, 1);
		MUST(*word == expect);
		expect++;
	}
	memset(e->buf, 0xee, 1);
	MUST(!end_rdma(e, IBV_WR_RDMA_WRITE, 1, 1, t->addr + LEN - 1, t->rkey));
	end_done(e, 1);
}

void test_passive(long n)
{
	for (int busy = 0; busy < 2; busy++) {
		struct end_opts o = {.len = LEN};
		struct end_id peer;
		struct end e;
		int sock;
		pid_t pid = start_child(&sock);

		if (!pid)
			target(sock, busy);
		end_open(&e, &o);
		MUST(end_meet(&e, sock, &peer));
		initiate(&e, &peer, busy ? n / 10 : n);
		MUST(put_all(sock, "q", 1));
		join_child(pid);
		close(sock);
		end_close(&e);
	}
}
