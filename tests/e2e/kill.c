/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	controller --- kill -9 | SIGSTOP | "exec" --> worker 0 <== SEND, WRITE, READ ==> worker 1
 *
 *	test_kill [CYCLES [SEED]]
 *
 * Two workers keep a window of mixed operations in flight, both ways. At a random moment one of
 * them dies. The survivor must see every work request complete exactly once, the first failure with
 * RETRY_EXC and the rest flushed, then connect its QP (reset, or a new one) to a fresh worker, and
 * hold no more descriptors and mappings than in its first round. A survivor lives for many rounds.
 */
#include "support/end.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WINDOW	 16
#define RECVS	 64
#define REGION	 (256u << 10)
#define MSG_MAX	 (48u << 10)
#define PATIENCE 20000 /* ms: many times the retry time of the options below */
#define LIFE	 25    /* rounds a survivor lives */
#define SLACK	 8     /* what one peer needs may be there or not; less than LIFE */

enum how { BY_KILL, BY_STOP, BY_EXEC };

struct report {
	int first_status; /* of the first failed completion */
	int fds, maps;
	uint64_t done;
};

struct worker {
	pid_t pid;
	int sock;
	int fds, maps; /* of its first round; -1: none yet */
};

/* ---- the worker */

struct flight {
	uint64_t posted[2], done[2]; /* sends, receives */
	int first_status;
};

static int count_dir(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:") != NULL;
	if (f)
		fclose(f);
	return n;
}

static void post_random(struct end *e, const struct end_id *peer, struct flight *f, uint64_t *seed)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	uint64_t r = rnd(seed);
	uint32_t len = (uint32_t)(r >> 8) % (r & 0x80 ? 256 : MSG_MAX) + 1;
	struct ibv_sge sge = {(uintptr_t)e->buf + REGION / 2, len, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = f->posted[0],
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = ops[r % 3],
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {peer->addr, peer->rkey}};
	struct ibv_send_wr *bad;

	MUST(!ibv_post_send(e->qp, &wr, &bad));
	f->posted[0]++;
}

static void post_recv(struct end *e, struct flight *f)
{
	MUST(!end_recv(e, (1ull << 63) | f->posted[1], 0, MSG_MAX));
	f->posted[1]++;
}

/* Each queue completes in order, so the expected ids are known. */
static void account(struct flight *f, const struct ibv_wc *wc)
{
	int q = wc->wr_id >> 63 ? 1 : 0;

	if ((wc->wr_id & ~(1ull << 63)) != f->done[q])
		die("queue %d: completion %llu, wanted %llu", q, (unsigned long long)wc->wr_id,
		    (unsigned long long)f->done[q]);
	f->done[q]++;
	if (wc->status == IBV_WC_SUCCESS && f->first_status)
		die("a success after a failure");
	if (wc->status != IBV_WC_SUCCESS && !f->first_status)
		f->first_status = (int)wc->status;
	else if (wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR)
		die("second failure: %s", ibv_wc_status_str(wc->status));
}

/* Traffic until the peer is gone and everything has completed. */
static struct report fly(struct end *e, const struct end_id *peer, uint64_t *seed)
{
	struct flight f = {0};
	struct report r = {0};
	struct ibv_wc wc;

	for (int i = 0; i < RECVS; i++)
		post_recv(e, &f);
	while (!f.first_status) {
		while (f.posted[0] - f.done[0] < WINDOW)
			post_random(e, peer, &f, seed);
		if (!end_wc(e, &wc, PATIENCE))
			die("%llu sends in flight and no completion for %d s",
			    (unsigned long long)(f.posted[0] - f.done[0]), PATIENCE / 1000);
		account(&f, &wc);
		if (f.posted[1] - f.done[1] < RECVS && !f.first_status)
			post_recv(e, &f);
	}
	while (f.done[0] < f.posted[0] || f.done[1] < f.posted[1]) {
		if (!end_wc(e, &wc, PATIENCE))
			die("not flushed: %llu sends, %llu receives",
			    (unsigned long long)(f.posted[0] - f.done[0]),
			    (unsigned long long)(f.posted[1] - f.done[1]));
		account(&f, &wc);
	}
	r.first_status = f.first_status;
	r.done = f.done[0] + f.done[1];
	return r;
}

static void new_qp(struct end *e, bool reset)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
					.recv_cq = e->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {e->opts.send_wr, e->opts.recv_wr, 1, 1, 0}};

	if (reset) {
		MUST(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE));
		end_init(e);
		return;
	}
	MUST(!ibv_destroy_qp(e->qp));
	MUST((e->qp = ibv_create_qp(e->pd, &init)) != NULL);
	e->id.qpn = e->qp->qp_num;
	end_init(e);
}

static void on_usr1(int sig)
{
	(void)sig;
	execl("/bin/sleep", "sleep", "60", (char *)NULL);
}

static void work(int sock, uint64_t seed)
{
	struct end_opts o = {.len = REGION};
	struct end_id peer;
	struct end e;

	signal(SIGUSR1, on_usr1);
	end_open(&e, &o);
	for (uint64_t i = 0;; i++) {
		struct report r;

		if (!end_meet(&e, sock, &peer))
			_exit(0); /* the controller has ended */
		r = fly(&e, &peer, &seed);
		new_qp(&e, i % 2);
		r.fds = count_dir("/proc/self/fd");
		r.maps = count_maps();
		if (!put_all(sock, &r, sizeof(r)))
			_exit(0);
	}
}

/* ---- the controller */

static void start(struct worker *w, const struct worker *other, uint64_t seed)
{
	int s[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	w->pid = fork();
	MUST(w->pid >= 0);
	if (!w->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(s[0]);
		if (other->sock >= 0)
			close(other->sock);
		work(s[1], seed | 1);
	}
	close(s[1]);
	w->sock = s[0];
	w->fds = w->maps = -1;
}

static void want(struct worker *w, void *p, size_t n, const char *what)
{
	struct pollfd pf = {.fd = w->sock, .events = POLLIN};
	int status;

	if (poll(&pf, 1, 2 * PATIENCE) != 1)
		die("process %d: no %s", (int)w->pid, what);
	if (get_all(w->sock, p, n))
		return;
	if (waitpid(w->pid, &status, 0) == w->pid && WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	die("process %d ended without its %s: wait status 0x%x", (int)w->pid, what,
	    (unsigned int)status);
}

static void join(struct worker w[2])
{
	struct end_id id[2];
	char go;

	for (int i = 0; i < 2; i++)
		want(&w[i], &id[i], sizeof(id[i]), "address");
	for (int i = 0; i < 2; i++)
		MUST(put_all(w[i].sock, &id[1 - i], sizeof(id[i])));
	for (int i = 0; i < 2; i++)
		want(&w[i], &go, 1, "readiness");
	for (int i = 0; i < 2; i++)
		MUST(put_all(w[i].sock, "g", 1));
}

static void end_worker(struct worker *w)
{
	int status;

	kill(w->pid, SIGKILL);
	waitpid(w->pid, &status, 0);
	close(w->sock);
}

/* One round. Returns the seconds the survivor took to see its failure and its flushes. */
static double cycle(struct worker w[2], int victim, enum how how, uint64_t *seed)
{
	static const int signals[] = {SIGKILL, SIGSTOP, SIGUSR1};
	struct worker *s = &w[1 - victim];
	struct report r;
	double t0;
	long us = rnd(seed) % 8 ? (long)(rnd(seed) % 60000) : 0;

	join(w);
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
	if (poll(&(struct pollfd){.fd = s->sock, .events = POLLIN}, 1, 0))
		die("the connection failed while both processes lived");
	t0 = now_s();
	kill(w[victim].pid, signals[how]);
	want(s, &r, sizeof(r), "report");
	t0 = now_s() - t0;
	if (r.first_status != IBV_WC_RETRY_EXC_ERR && r.first_status != IBV_WC_WR_FLUSH_ERR)
		die("the survivor's first failure is %s",
		    ibv_wc_status_str((enum ibv_wc_status)r.first_status));
	if (s->fds < 0) {
		s->fds = r.fds;
		s->maps = r.maps;
	}
	if (r.fds > s->fds + SLACK || r.maps > s->maps + SLACK)
		die("the survivor grows: %d descriptors (%d at first), %d mappings (%d)", r.fds,
		    s->fds, r.maps, s->maps);
	end_worker(&w[victim]);
	return t0;
}

int main(int argc, char **argv)
{
	long cycles = argc > 1 ? strtol(argv[1], NULL, 0) : 10;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) | 1;
	struct worker w[2] = {{.sock = -1}, {.sock = -1}};
	double worst[3] = {0, 0, 0};

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%ld rounds, seed %llu\n", cycles, (unsigned long long)seed);
	start(&w[0], &w[1], rnd(&seed));
	start(&w[1], &w[0], rnd(&seed));
	for (long i = 0; i < cycles; i++) {
		int victim = (int)(i * 2 / (cycles < 2 * LIFE ? cycles : 2 * LIFE)) & 1;
		enum how how = i % 10 == 8 ? BY_EXEC : i % 10 == 9 ? BY_STOP : BY_KILL;
		double t;

		if (getenv("KILL_VERBOSE"))
			printf("round %ld: worker %d (%d) ends by %d\n", i, victim,
			       (int)w[victim].pid, (int)how);
		t = cycle(w, victim, how, &seed);

		if (t > worst[how])
			worst[how] = t;
		start(&w[victim], &w[1 - victim], rnd(&seed));
	}
	join(w);
	end_worker(&w[0]);
	end_worker(&w[1]);
	printf("ok: slowest report after kill %.3f s, exec %.3f s, stop %.3f s\n", worst[BY_KILL],
	       worst[BY_EXEC], worst[BY_STOP]);
	return 0;
}
