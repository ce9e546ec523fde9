/* SPDX-License-Identifier: BSD-2-Clause */
/* See kit.h: nodes, children and the runner. */
#include "kit.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hca/direct.h"
#include "hca/fast.h"

void kit_die(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", file, line, what, errno);
	_exit(1);
}

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* ---- nodes */

int node_try_open(struct vrb_hctx **ctx)
{
	struct vrb_hdev *list[VRB_DEVICES_MAX];
	int n = vrb_hca_devices(list);

	if (n < 0)
		return n;
	return n ? vrb_hctx_open(list[0], ctx) : -ENODEV;
}

void node_open(struct node *n, bool chan)
{
	int err = node_try_open(&n->ctx);

	if (err == -ENODEV)
		_exit(77);
	MUST(!err);
	n->chan = NULL;
	n->buf = mmap(NULL, NODE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(n->buf != MAP_FAILED);
	MUST(!vrb_hpd_alloc(n->ctx, &n->pd));
	if (chan)
		MUST(!vrb_hchan_create(n->ctx, &n->chan));
	MUST(!vrb_hcq_create(
		n->ctx, &(struct vrb_hcq_init){.cqe = 4096, .chan = n->chan, .user = n}, &n->cq));
	MUST(!vrb_hmr_reg(n->pd, n->buf, NODE_LEN, (uintptr_t)n->buf, 15, &n->mr));
}

void node_close(struct node *n)
{
	MUST(!vrb_hcq_destroy(n->cq));
	if (n->chan)
		MUST(!vrb_hchan_destroy(n->chan));
	MUST(!vrb_hmr_dereg(n->mr));
	MUST(!vrb_hpd_dealloc(n->pd));
	vrb_hctx_close(n->ctx);
	munmap(n->buf, NODE_LEN);
}

struct vrb_hqp *node_qp(struct node *n, enum vrb_qp_type type)
{
	struct vrb_hqp_init init = {.type = type,
				    .scq = n->cq,
				    .rcq = n->cq,
				    .max_send_wr = 512,
				    .max_recv_wr = 512,
				    .max_send_sge = 1,
				    .max_recv_sge = 1};
	struct vrb_qp_attr a = {.state = VRB_QPS_INIT, .port = 1, .access = 15, .qkey = 7};
	struct vrb_hqp *q;

	init.user = n;
	MUST(!vrb_hqp_create(n->pd, &init, &q));
	MUST(!vrb_hqp_modify(q, &a, VRB_QPA_STATE | VRB_QPA_PORT | VRB_QPA_ACCESS | VRB_QPA_QKEY));
	if (type != VRB_QPT_UD)
		return q;
	a.state = VRB_QPS_RTR;
	MUST(!vrb_hqp_modify(q, &a, VRB_QPA_STATE));
	a.state = VRB_QPS_RTS;
	MUST(!vrb_hqp_modify(q, &a, VRB_QPA_STATE | VRB_QPA_SQ_PSN));
	return q;
}

int node_connect(struct vrb_hqp *q, vrb_qpn dqpn)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_RTR,
				.path_mtu = 5,
				.dest_qpn = dqpn,
				.min_rnr_timer = 1,
				.max_dest_rd_atomic = 128,
				.timeout = 14,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.max_rd_atomic = 128};
	int err;

	a.dgid = q->ctx->dev->gid[0].gid;
	err = vrb_hqp_modify(q, &a,
			     VRB_QPA_STATE | VRB_QPA_AV | VRB_QPA_PATH_MTU | VRB_QPA_DEST_QPN |
				     VRB_QPA_RQ_PSN | VRB_QPA_MAX_DEST_RD_ATOMIC |
				     VRB_QPA_MIN_RNR_TIMER);
	a.state = VRB_QPS_RTS;
	return err ? err
		   : vrb_hqp_modify(q, &a,
				    VRB_QPA_STATE | VRB_QPA_TIMEOUT | VRB_QPA_RETRY_CNT |
					    VRB_QPA_RNR_RETRY | VRB_QPA_SQ_PSN |
					    VRB_QPA_MAX_QP_RD_ATOMIC);
}

int node_to(struct vrb_hqp *q, enum vrb_qp_state state)
{
	struct vrb_qp_attr a = {.state = (uint8_t)state};

	return vrb_hqp_modify(q, &a, VRB_QPA_STATE);
}

void node_recv(struct node *n, struct vrb_hqp *q, uint64_t id)
{
	struct vrb_rwqe *w;

	vrb_engine_lock(q->e);
	w = vrb_wq_entry(&q->core.rq, q->core.rq.tail);
	w->wr_id = id;
	w->n_sge = 1;
	w->len = NODE_LEN / 2;
	w->sge[0] = (struct vrb_sge){
		.addr = (uintptr_t)n->buf + NODE_LEN / 2, .len = w->len, .lkey = n->mr->lkey};
	vrb_hqp_commit_recv(q, 1);
	vrb_engine_unlock(q->e);
}

static struct vrb_swqe *begin_send(struct node *n, struct vrb_hqp *q, uint64_t id, uint32_t len)
{
	struct vrb_swqe *w = vrb_hqp_swqe(q, 0);

	memset(w, 0, VRB_SWQE_HEADER);
	w->wr_id = id;
	w->len = len;
	w->op = VRB_WR_SEND;
	w->flags = VRB_WRF_SIGNALED;
	w->n_sge = 1;
	w->sge[0] = (struct vrb_sge){.addr = (uintptr_t)n->buf, .len = len, .lkey = n->mr->lkey};
	return w;
}

void node_send(struct node *n, struct vrb_hqp *q, uint64_t id, uint32_t len)
{
	struct vrb_swqe *w;

	vrb_engine_lock(q->e);
	w = begin_send(n, q, id, len);
	if (!vrb_hqp_fast_post(q, w, false))
		vrb_hqp_commit(q, 1);
	else
		vrb_engine_ring_bells(q->e);
	vrb_engine_unlock(q->e);
}

void node_write(struct node *n, struct vrb_hqp *q, uint64_t id, const struct node_at *at)
{
	struct vrb_swqe *w;

	vrb_engine_lock(q->e);
	w = begin_send(n, q, id, at->len);
	w->op = VRB_WR_WRITE;
	w->va = at->addr;
	w->rkey = at->rkey;
	if (!vrb_direct_write(q, w))
		vrb_hqp_commit(q, 1);
	vrb_engine_unlock(q->e);
}

void node_send_ud(struct node *n, struct vrb_hqp *q, const struct vrb_av *av, vrb_qpn qpn)
{
	struct vrb_swqe *w;

	vrb_engine_lock(q->e);
	w = begin_send(n, q, 1, 32);
	w->ud.av = av;
	w->ud.qpn = qpn;
	w->ud.qkey = 7;
	vrb_hqp_commit(q, 1);
	vrb_engine_unlock(q->e);
}

bool node_has_wc(struct node *n, struct vrb_wc *wc, int ms)
{
	double end = now_s() + ms / 1000.0;

	for (uint64_t i = 0;; i++) {
		int got = vrb_hcq_poll(n->cq, 1, wc);

		MUST(got >= 0);
		if (got)
			return true;
		if (i % 64 == 0) {
			sched_yield();
			if (now_s() > end)
				return false;
		}
	}
}

enum vrb_wc_status node_wc(struct node *n, uint64_t id)
{
	struct vrb_wc wc;

	MUST(node_has_wc(n, &wc, WAIT_MS));
	if (wc.wr_id != id)
		fprintf(stderr, "completion %llu, status %u; wanted %llu\n",
			(unsigned long long)wc.wr_id, wc.status, (unsigned long long)id);
	MUST(wc.wr_id == id);
	return (enum vrb_wc_status)wc.status;
}

/* ---- children */

void child_start(struct child *c, int (*fn)(int sock, void *arg), void *arg)
{
	pid_t me = getpid();
	int s[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	c->pid = fork();
	MUST(c->pid >= 0);
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(s[0]);
		_exit(getppid() == me ? fn(s[1], arg) : 1);
	}
	close(s[1]);
	c->sock = s[0];
}

void child_join(struct child *c)
{
	int status;

	MUST(waitpid(c->pid, &status, 0) == c->pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fprintf(stderr, "a child ended with wait status 0x%x\n", (unsigned)status);
	MUST(WIFEXITED(status) && !WEXITSTATUS(status));
	close(c->sock);
}

void child_stop(struct child *c)
{
	int status;

	kill(c->pid, SIGSTOP);
	MUST(waitpid(c->pid, &status, WUNTRACED) == c->pid && WIFSTOPPED(status));
}

void child_kill(struct child *c)
{
	kill(c->pid, SIGKILL);
	MUST(waitpid(c->pid, NULL, 0) == c->pid);
	close(c->sock);
}

void put(int sock, const void *p, size_t n)
{
	MUST(send(sock, p, n, MSG_NOSIGNAL) == (ssize_t)n);
}

void get(int sock, void *p, size_t n)
{
	MUST(recv(sock, p, n, MSG_WAITALL) == (ssize_t)n);
}

void put_u32(int sock, uint32_t v)
{
	put(sock, &v, sizeof(v));
}

uint32_t get_u32(int sock)
{
	uint32_t v;

	get(sock, &v, sizeof(v));
	return v;
}

/* ---- network */

static void lo_up(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(s >= 0 && !ioctl(s, SIOCGIFFLAGS, &r));
	r.ifr_flags |= IFF_UP;
	MUST(!ioctl(s, SIOCSIFFLAGS, &r));
	close(s);
}

/* The user keeps its number, so that it can make files. */
static void map_user(uid_t uid)
{
	FILE *f = fopen("/proc/self/uid_map", "we");

	if (!f)
		return;
	fprintf(f, "%u %u 1\n", uid, uid);
	fclose(f);
}

void kit_own_network_as_root(void)
{
	MUST(!unshare(CLONE_NEWNET));
	lo_up();
}

void kit_own_network(void)
{
	uid_t uid = geteuid();

	if (!unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		map_user(uid);
	} else if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "skipped: no network namespace for this user (errno %d)\n", errno);
		_exit(77);
	}
	lo_up();
}
