/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends and what can be asked of them. k_do carries out one request on an end that lives in this
 * process; ask() either calls it or sends the request over the end's socket to the process where
 * the end lives, which calls it there. No verbs object ever crosses the socket.
 */
#include "kit.h"
#include "kit_do.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

bool k_two_processes;
const char *k_far_network;

/* ---- requests */

static void ask(struct k_end *e, struct k_req *q, struct k_rep *r)
{
	memset(r, 0, sizeof(*r));
	if (e->sock < 0) {
		k_do(e, q, r);
		return;
	}
	if (send(e->sock, q, sizeof(*q), MSG_NOSIGNAL) != (ssize_t)sizeof(*q) ||
	    recv(e->sock, r, sizeof(*r), MSG_WAITALL) != (ssize_t)sizeof(*r))
		k_fail(__FILE__, __LINE__, "the far end died at request %d", q->op);
}

int k_run_far_end(int sock)
{
	struct k_end e = {.sock = -1};
	struct k_req q;
	struct k_rep r;

	while (recv(sock, &q, sizeof(q), MSG_WAITALL) == (ssize_t)sizeof(q)) {
		memset(&r, 0, sizeof(r));
		k_do(&e, &q, &r);
		if (send(sock, &r, sizeof(r), MSG_NOSIGNAL) != (ssize_t)sizeof(r))
			break;
	}
	return 0;
}

/* Forks the process of a far end. It dies with its parent. */
static void fork_far_end(struct k_end *e)
{
	int s[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		k_fail(__FILE__, __LINE__, "socketpair: %m");
	pid = fork();
	if (pid < 0)
		k_fail(__FILE__, __LINE__, "fork: %m");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(s[0]);
		if (k_far_network && setns(open(k_far_network, O_RDONLY | O_CLOEXEC), CLONE_NEWNET))
			_exit(1);
		k_log_start();
		_exit(k_run_far_end(s[1]));
	}
	close(s[1]);
	e->sock = s[0];
	e->pid = pid;
}

static struct k_opts filled(const struct k_opts *given)
{
	struct k_opts o = {0};

	if (given)
		o = *given;
#define DEFAULT(field, value)                                                                      \
	do {                                                                                       \
		if (!o.field)                                                                      \
			o.field = (value);                                                         \
	} while (0)
	DEFAULT(type, IBV_QPT_RC);
	DEFAULT(send_wr, 32);
	DEFAULT(recv_wr, 32);
	DEFAULT(sges, 4);
	DEFAULT(inline_max, 64);
	DEFAULT(cqe, 128);
	DEFAULT(access,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	DEFAULT(qkey, 0x11111111);
	DEFAULT(rnr_retry, 7);
	DEFAULT(retry_cnt, 7);
	DEFAULT(rnr_timer, 1);
	DEFAULT(timeout, 14);
	DEFAULT(rd_atomic, 4);
	DEFAULT(dest_rd_atomic, 4);
	DEFAULT(stop, IBV_QPS_RTS);
	DEFAULT(mtu, IBV_MTU_1024);
#undef DEFAULT
	if (o.access == K_NO_ACCESS)
		o.access = 0;
	return o;
}

void k_open(struct k_end *e, const struct k_opts *o)
{
	struct k_req q = {.op = K_OPEN, .opts = filled(o)};
	struct k_rep r;

	e->opts = q.opts;
	ask(e, &q, &r);
	if (r.err == ENODEV)
		k_skip("no RDMA device");
	if (r.err)
		k_fail(__FILE__, __LINE__, "an end cannot be made: %s (%s)", r.text,
		       strerror(r.err));
	e->self = r.addr;
}

static void connect_to(struct k_end *e, const struct k_end *peer)
{
	struct k_req q = {.op = K_CONNECT, .addr = peer->self};
	struct k_rep r;

	e->peer = peer->self;
	ask(e, &q, &r);
	if (r.err)
		k_fail(__FILE__, __LINE__, "cannot connect: %s (%s)", r.text, strerror(r.err));
}

void k_pair(struct k_pair *p, const struct k_opts *a, const struct k_opts *b)
{
	memset(p, 0, sizeof(*p));
	p->a.sock = p->b.sock = -1;
	if (k_two_processes)
		fork_far_end(&p->b);
	k_open(&p->a, a);
	k_open(&p->b, b);
	connect_to(&p->b, &p->a);
	connect_to(&p->a, &p->b);
}

int k_reg(struct k_end *e, int pd, uint32_t off, uint32_t len, int access, struct k_mr *mr)
{
	struct k_req q = {.op = K_REG, .i = pd, .off = off, .len = len, .access = access};
	struct k_rep r;

	ask(e, &q, &r);
	*mr = r.mr;
	return r.err;
}

int k_dereg(struct k_end *e, const struct k_mr *mr)
{
	struct k_req q = {.op = K_DEREG, .i = mr->id};
	struct k_rep r;

	ask(e, &q, &r);
	return r.err;
}

static int ask_post(struct k_end *e, enum k_op op, const struct k_wr *wr)
{
	struct k_req q = {.op = op, .wr = *wr};
	struct k_rep r;

	ask(e, &q, &r);
	return r.err;
}

int k_send(struct k_end *e, const struct k_wr *wr)
{
	return ask_post(e, K_SEND, wr);
}

int k_recv(struct k_end *e, const struct k_wr *wr)
{
	return ask_post(e, K_RECV, wr);
}

int k_modify(struct k_end *e, enum ibv_qp_state to)
{
	struct k_req q = {.op = K_MODIFY, .i = (int)to};
	struct k_rep r;

	ask(e, &q, &r);
	return r.err;
}

enum ibv_qp_state k_state(struct k_end *e)
{
	struct k_req q = {.op = K_STATE};
	struct k_rep r;

	ask(e, &q, &r);
	if (r.err)
		k_fail(__FILE__, __LINE__, "ibv_query_qp: %s", strerror(r.err));
	return (enum ibv_qp_state)r.value;
}

void k_poke(struct k_end *e, uint64_t addr, const void *from, uint32_t len)
{
	struct k_req q = {.op = K_POKE, .addr64 = addr, .len = len};
	struct k_rep r;

	K_CHECK(len <= sizeof(q.data));
	memcpy(q.data, from, len);
	ask(e, &q, &r);
}

void k_peek(struct k_end *e, uint64_t addr, void *to, uint32_t len)
{
	struct k_req q = {.op = K_PEEK, .addr64 = addr, .len = len};
	struct k_rep r;

	K_CHECK(len <= sizeof(r.data));
	ask(e, &q, &r);
	memcpy(to, r.data, len);
}

bool k_poll(struct k_end *e, enum k_cq cq, int ms, struct ibv_wc *wc)
{
	struct k_req q = {.op = K_POLL, .i = cq, .ms = ms};
	struct k_rep r;

	ask(e, &q, &r);
	*wc = r.wc;
	return r.value == 1;
}

bool k_event(struct k_end *e, enum ibv_event_type type, int ms)
{
	struct k_req q = {.op = K_EVENT, .i = (int)type, .ms = ms};
	struct k_rep r;

	ask(e, &q, &r);
	return r.value == 1;
}

bool k_said(struct k_end *e, const char *counter, const char *text)
{
	struct k_req q = {.op = K_SAID};
	struct k_rep r;

	snprintf(q.text, sizeof(q.text), "verbena: %s:", counter);
	snprintf(q.text2, sizeof(q.text2), "%s", text ? text : "");
	ask(e, &q, &r);
	return r.value == 1;
}

void k_destroy_qp(struct k_end *e)
{
	struct k_req q = {.op = K_DESTROY_QP};
	struct k_rep r;

	ask(e, &q, &r);
	if (r.err)
		k_fail(__FILE__, __LINE__, "ibv_destroy_qp: %s", strerror(r.err));
}

/* ---- network */

static void lo_up(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	K_CHECK(s >= 0 && !ioctl(s, SIOCSIFFLAGS, &r));
	close(s);
}

/* Programs that are run in it keep the rights of its owner. */
static void map_to_root(uid_t uid)
{
	FILE *f = fopen("/proc/self/uid_map", "we");

	if (!f)
		return;
	fprintf(f, "0 %u 1\n", uid);
	fclose(f);
}

void k_own_network(void)
{
	uid_t uid = geteuid();

	if (unshare(CLONE_NEWNET)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			k_skip("no network namespace for this user");
		map_to_root(uid);
	}
	lo_up();
}

/* ---- short forms */

struct k_sge k_whole(const struct k_mr *mr)
{
	return (struct k_sge){.addr = mr->addr, .len = mr->len, .lkey = mr->lkey};
}

struct k_mr k_good(struct k_end *e, uint32_t page, uint32_t len)
{
	struct k_mr mr;
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC;

	K_WANT_INT(k_reg(e, 0, page * 4096, len, all, &mr), 0);
	return mr;
}

struct k_wr k_wr_send(uint64_t id, struct k_sge sge)
{
	return (struct k_wr){.id = id, .op = IBV_WR_SEND, .n_sge = 1, .sge = {sge}};
}

struct k_wr k_wr_rdma(uint64_t id, enum ibv_wr_opcode op, struct k_sge sge, uint64_t addr,
		      uint32_t rkey)
{
	return (struct k_wr){.id = id,
			     .op = op,
			     .n_sge = 1,
			     .sge = {sge},
			     .remote_addr = addr,
			     .rkey = rkey,
			     .add = 1,
			     .swap = 1};
}

double k_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- checks */

void k_want_wc_at(const char *at, int line, struct k_end *e, enum k_cq cq, uint64_t id,
		  enum ibv_wc_status status)
{
	struct ibv_wc wc;
	const char *queue = cq == K_SQ ? "send" : "receive";

	if (!k_poll(e, cq, K_WAIT_MS, &wc))
		k_fail(at, line, "no %s completion; wanted id %llu, %s", queue,
		       (unsigned long long)id, ibv_wc_status_str(status));
	if (wc.wr_id != id || wc.status != status)
		k_fail(at, line, "%s completion id %llu, %s; wanted id %llu, %s", queue,
		       (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
		       (unsigned long long)id, ibv_wc_status_str(status));
}

void k_want_quiet_at(const char *at, int line, struct k_end *e, enum k_cq cq)
{
	struct ibv_wc wc;

	if (k_poll(e, cq, K_QUIET_MS, &wc))
		k_fail(at, line, "a %s completion that should not be: id %llu, %s",
		       cq == K_SQ ? "send" : "receive", (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status));
}
