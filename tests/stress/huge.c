/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	sender ---- 2^31 bytes: SEND (1 and 32 SGEs), WRITE, READ ----> receiver
 *
 * The largest message there is (IBA C9-2), and one byte more, which is refused. Both ends see 2 GiB
 * of address space that is one block of 2 MiB again and again, so that little memory is needed; the
 * block holds the sender's pattern afterwards.
 */
#include "stress.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_LEN (1ull << 31)
#define BLOCK	 (1ull << 21)
#define SGES	 32

struct huge {
	uint8_t *at;
	struct ibv_mr *mr;
};

static void map_huge(struct huge *h, struct end *e)
{
	int fd = memfd_create("huge", MFD_CLOEXEC);

	MUST(fd >= 0 && !ftruncate(fd, (off_t)BLOCK));
	h->at = mmap(NULL, HUGE_LEN + BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	MUST(h->at != MAP_FAILED);
	for (uint64_t off = 0; off < HUGE_LEN + BLOCK; off += BLOCK)
		MUST(mmap(h->at + off, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			  0) != MAP_FAILED);
	close(fd);
	h->mr = ibv_reg_mr(e->pd, h->at, HUGE_LEN + BLOCK,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	MUST(h->mr);
}

static void pattern(const struct huge *h, uint64_t seed)
{
	uint64_t *p = (uint64_t *)(void *)h->at;

	for (uint64_t i = 0; i < BLOCK / 8; i++)
		p[i] = rnd(&seed);
}

static void want_pattern(const struct huge *h, uint64_t seed)
{
	const uint64_t *p = (const uint64_t *)(const void *)h->at;

	for (uint64_t i = 0; i < BLOCK / 8; i++)
		MUST(p[i] == rnd(&seed));
}

static void fill_sges(struct ibv_sge *s, const struct huge *h, int n)
{
	for (int i = 0; i < n; i++)
		s[i] = (struct ibv_sge){(uintptr_t)h->at + HUGE_LEN / (uint64_t)n * (uint64_t)i,
					(uint32_t)(HUGE_LEN / (uint64_t)n), h->mr->lkey};
}

static void receive(int sock)
{
	struct end_opts o = {.sges = SGES};
	struct ibv_sge s[SGES];
	struct ibv_recv_wr w = {.sg_list = s}, *bad;
	struct end_id peer, mem;
	struct ibv_wc wc;
	struct huge h;
	struct end e;
	char c = 0;

	end_open(&e, &o);
	map_huge(&h, &e);
	for (w.num_sge = 1; w.num_sge <= SGES; w.num_sge += SGES - 1) {
		fill_sges(s, &h, w.num_sge);
		MUST(!ibv_post_recv(e.qp, &w, &bad));
	}
	MUST(end_meet(&e, sock, &peer));
	mem = (struct end_id){.addr = (uintptr_t)h.at, .rkey = h.mr->rkey};
	MUST(put_all(sock, &mem, sizeof(mem)));
	for (uint64_t seed = 1; seed <= 2; seed++) {
		MUST(end_wc(&e, &wc, WAIT_MS) && wc.status == IBV_WC_SUCCESS);
		MUST(wc.byte_len == HUGE_LEN);
		want_pattern(&h, seed);
		MUST(put_all(sock, &c, 1));
	}
	MUST(get_all(sock, &c, 1)); /* the WRITE is done */
	want_pattern(&h, 3);
	pattern(&h, 4);
	MUST(put_all(sock, &c, 1) && get_all(sock, &c, 1));
	_exit(0);
}

static void post(struct end *e, struct ibv_send_wr *w)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	w->send_flags = IBV_SEND_SIGNALED;
	MUST(!ibv_post_send(e->qp, w, &bad));
	MUST(end_wc(e, &wc, WAIT_MS) && wc.status == IBV_WC_SUCCESS);
}

static void send_all(struct end *e, struct huge *h, int sock)
{
	struct ibv_sge s[SGES];
	struct ibv_send_wr w = {.sg_list = s, .opcode = IBV_WR_SEND}, *bad;
	struct end_id mem;
	uint64_t seed = 1;
	char c = 0;

	MUST(get_all(sock, &mem, sizeof(mem)));
	for (w.num_sge = 1; w.num_sge <= SGES; w.num_sge += SGES - 1) {
		fill_sges(s, h, w.num_sge);
		pattern(h, seed++);
		post(e, &w);
		MUST(get_all(sock, &c, 1));
	}
	w.num_sge = 1;
	fill_sges(s, h, 1);
	w.wr.rdma.remote_addr = mem.addr;
	w.wr.rdma.rkey = mem.rkey;
	pattern(h, 3);
	w.opcode = IBV_WR_RDMA_WRITE;
	post(e, &w);
	MUST(put_all(sock, &c, 1) && get_all(sock, &c, 1));
	w.opcode = IBV_WR_RDMA_READ;
	post(e, &w);
	want_pattern(h, 4);
	/* one byte more is refused at once and changes nothing */
	s[1] = (struct ibv_sge){(uintptr_t)h->at, 1, h->mr->lkey};
	w.num_sge = 2;
	w.opcode = IBV_WR_SEND;
	MUST(ibv_post_send(e->qp, &w, &bad) == EINVAL && bad == &w);
	MUST(put_all(sock, &c, 1));
}

void test_huge(long n)
{
	struct end_opts o = {.sges = SGES, .timeout = 18};
	struct end_id peer;
	struct huge h;
	struct end e;
	int sock;
	pid_t pid = start_child(&sock);

	(void)n;
	if (!pid)
		receive(sock);
	end_open(&e, &o);
	map_huge(&h, &e);
	MUST(end_meet(&e, sock, &peer));
	send_all(&e, &h, sock);
	join_child(pid);
	MUST(!ibv_dereg_mr(h.mr));
	end_close(&e);
}
