/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events with several threads: who sleeps is woken, whatever
 * others do meanwhile; a thread may be cancelled in its sleep; what is queued for an object goes
 * with it.
 */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- two threads asleep on two channels, a peer that wakes one or the other */

#define ROUNDS 3000

static int wakes(int sock, void *arg)
{
	struct node n;
	struct vrb_hqp *q[2];
	uint32_t k;

	(void)arg;
	node_open(&n, false);
	for (int i = 0; i < 2; i++) {
		q[i] = node_qp(&n, VRB_QPT_RC);
		put_u32(sock, vrb_hqp_qpn(q[i]));
		MUST(!node_connect(q[i], get_u32(sock)));
	}
	while ((k = get_u32(sock)) < 2) {
		node_send(&n, q[k], 1, 32);
		MUST(node_wc(&n, 1) == VRB_WC_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		vrb_hqp_destroy(q[i]);
	node_close(&n);
	return 0;
}

struct sleeper {
	struct node n;
	struct vrb_hqp *q;
	pthread_t thread;
	_Atomic bool more;
	int told[2]; /* a pipe: one byte for each message */
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	bool more = true;

	while (more) {
		struct vrb_wc wc;
		void *user;

		MUST(!vrb_hcq_arm(s->n.cq, false));
		while (!node_has_wc(&s->n, &wc, 0)) {
			int err;

			do
				err = vrb_hchan_get(s->n.chan, &user);
			while (err == -EINTR);
			MUST(!err && user == &s->n);
			MUST(!vrb_hcq_arm(s->n.cq, false));
		}
		MUST(wc.status == VRB_WC_SUCCESS);
		more = s->more;
		node_recv(&s->n, s->q, 1);
		MUST(write(s->told[1], "m", 1) == 1);
	}
	return arg;
}

static void nothing(int sig)
{
	(void)sig;
}

static void test_two_sleepers(void)
{
	static struct sleeper s[2];
	struct sigaction sa = {.sa_handler = nothing}; /* without SA_RESTART */
	struct child c;
	char byte;

	sigaction(SIGUSR1, &sa, NULL);
	child_start(&c, wakes, NULL);
	for (int i = 0; i < 2; i++) {
		node_open(&s[i].n, true);
		s[i].q = node_qp(&s[i].n, VRB_QPT_RC);
		MUST(!pipe(s[i].told));
		node_recv(&s[i].n, s[i].q, 1);
		MUST(!node_connect(s[i].q, get_u32(c.sock)));
		put_u32(c.sock, vrb_hqp_qpn(s[i].q));
	}
	for (int i = 0; i < 2; i++) {
		s[i].more = true;
		MUST(!pthread_create(&s[i].thread, NULL, sleeps, &s[i]));
	}
	for (int i = 0; i % 2 || s[1].more; i++) {
		/* the other one is woken for nothing now and then */
		if (i % 7 == 0)
			pthread_kill(s[(i + 1) % 2].thread, SIGUSR1);
		if (i % 5 == 0)
			usleep(200);
		s[i % 2].more = i % 2 ? s[0].more : go_on(i, ROUNDS);
		put_u32(c.sock, (uint32_t)i % 2);
		MUST(read(s[i % 2].told[0], &byte, 1) == 1);
	}
	put_u32(c.sock, 2);
	for (int i = 0; i < 2; i++) {
		pthread_join(s[i].thread, NULL);
		MUST(!vrb_hqp_destroy(s[i].q));
	}
	child_join(&c);
	for (int i = 0; i < 2; i++)
		node_close(&s[i].n);
}

/* ---- cancellation */

static void *waits(void *arg)
{
	struct node *n = arg;
	void *user;

	MUST(!vrb_hchan_get(n->chan, &user));
	return arg;
}

static void test_cancel(void)
{
	struct child c;
	struct vrb_hqp *q[2];
	struct node n;

	child_start(&c, wakes, NULL);
	node_open(&n, true);
	for (int i = 0; i < 2; i++) {
		q[i] = node_qp(&n, VRB_QPT_RC);
		node_recv(&n, q[i], 1);
		MUST(!node_connect(q[i], get_u32(c.sock)));
		put_u32(c.sock, vrb_hqp_qpn(q[i]));
	}
	for (int i = 0; i < 50; i++) {
		pthread_t t;
		void *end;

		MUST(!vrb_hcq_arm(n.cq, false));
		MUST(!pthread_create(&t, NULL, waits, &n));
		usleep((useconds_t)(i * 40));
		MUST(!pthread_cancel(t));
		MUST(!pthread_join(t, &end));
		MUST(end == PTHREAD_CANCELED);
	}
	/* Nobody drives any more: the helper does, and tells who poll()s. */
	MUST(vrb_engine_current->n_drivers == 0);
	for (uint32_t k = 0; k < 2; k++) {
		struct pollfd p = {.fd = vrb_hchan_fd(n.chan), .events = POLLIN};
		void *user;

		MUST(!vrb_hcq_arm(n.cq, false));
		put_u32(c.sock, k);
		MUST(poll(&p, 1, WAIT_MS) == 1);
		MUST(!vrb_hchan_get(n.chan, &user));
		MUST(node_wc(&n, 1) == VRB_WC_SUCCESS);
	}
	put_u32(c.sock, 2);
	child_join(&c);
	for (int i = 0; i < 2; i++)
		MUST(!vrb_hqp_destroy(q[i]));
	node_close(&n);
}

static void complete(struct vrb_hcq *cq)
{
	struct vrb_engine *e = cq->ctx->e;

	vrb_engine_lock(e);
	vrb_event_completion(cq);
	vrb_engine_unlock(e);
}

/* ---- signals: as for read(), the handler's SA_RESTART decides */

static _Atomic int n_handled;

static void counts(int sig)
{
	(void)sig;
	n_handled++;
}

struct waiter {
	struct node n;
	_Atomic int n_returned, last;
};

/* One signal it blocks: that waits for ever, and is none of the call's business. */
static void *waits_on(void *arg)
{
	struct waiter *w = arg;
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	do {
		void *user;

		w->last = vrb_hchan_get(w->n.chan, &user);
		w->n_returned++;
	} while (w->last == -EINTR);
	return arg;
}

static void on_signal(int sig, int flags)
{
	struct sigaction sa = {.sa_handler = counts, .sa_flags = flags};

	MUST(!sigaction(sig, &sa, NULL));
}

static double cpu_of(pthread_t t)
{
	struct timespec used;
	clockid_t clock;

	MUST(!pthread_getcpuclockid(t, &clock) && !clock_gettime(clock, &used));
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* A thread is in the call; asleep, but for a moment. */
static void await_waiter(void)
{
	while (!vrb_engine_current || !atomic_load(&vrb_engine_current->n_drivers))
		usleep(100);
	usleep(2000);
}

static void send_signals(struct waiter *w, pthread_t t)
{
	int handled = n_handled, returned = w->n_returned;

	await_waiter();
	MUST(!pthread_kill(t, SIGUSR2)); /* goes on */
	while (n_handled == handled)
		usleep(100);
	usleep(2000);
	MUST(w->n_returned == returned);
	await_waiter();
	MUST(!pthread_kill(t, SIGUSR1)); /* comes back */
	while (w->n_returned == returned)
		usleep(100);
	MUST(w->last == -EINTR && n_handled == handled + 2);
}

/* One completion is there, and its event held back for longer than the test takes. */
static void hold_one(struct node *n, struct vrb_hqp *q, int sock)
{
	MUST(!vrb_hcq_moderate(n->cq, 1000, 600 * VRB_NS_PER_S));
	MUST(!vrb_hcq_arm(n->cq, false));
	node_recv(n, q, 1);
	put_u32(sock, 0);
	while (vrb_peek(&vrb_engine_current->held_first) == VRB_NS_NEVER)
		usleep(100);
	usleep(5000);
}

static void signals(bool is_moderated)
{
	struct vrb_hqp *q[2];
	struct waiter w = {0};
	struct child c;
	pthread_t t;
	double used;

	SKIP_SIGNALS();
	on_signal(SIGUSR1, 0);
	on_signal(SIGUSR2, SA_RESTART);
	on_signal(SIGHUP, 0);
	child_start(&c, wakes, NULL);
	node_open(&w.n, true);
	for (int i = 0; i < 2; i++) {
		q[i] = node_qp(&w.n, VRB_QPT_RC);
		MUST(!node_connect(q[i], get_u32(c.sock)));
		put_u32(c.sock, vrb_hqp_qpn(q[i]));
	}
	MUST(!pthread_create(&t, NULL, waits_on, &w));
	await_waiter();
	if (is_moderated)
		hold_one(&w.n, q[0], c.sock);
	for (int i = 0; i < 20; i++)
		send_signals(&w, t);
	await_waiter();
	MUST(!pthread_kill(t, SIGHUP));
	usleep(5000);
	used = cpu_of(t);
	usleep(300000);
	MUST(cpu_of(t) - used < 0.1);
	if (is_moderated)
		MUST(!vrb_hcq_moderate(w.n.cq, 0, 0));
	else
		complete(w.n.cq);
	pthread_join(t, NULL);
	MUST(w.last == 0 && n_handled == 40);
	MUST(!q[0]->wire.addr || vrb_engine_current->n_watches > 0);
	put_u32(c.sock, 2);
	child_join(&c);
	for (int i = 0; i < 2; i++)
		MUST(!vrb_hqp_destroy(q[i]));
	node_close(&w.n);
}

static void test_signals(void)
{
	signals(false);
}

static void test_signals_moderated(void)
{
	signals(true);
}

/* ---- events for those who poll(), although another thread waits in a call */

struct two_cqs {
	struct node n;
	struct vrb_hcq *other;
};

static void *takes_one(void *arg)
{
	struct two_cqs *t = arg;
	void *user;

	MUST(!vrb_hchan_get(t->n.chan, &user));
	return arg;
}

static void test_tokens(void)
{
	struct two_cqs t;
	struct pollfd p = {.events = POLLIN};
	pthread_t thread;
	void *user;

	node_open(&t.n, true);
	MUST(!vrb_hcq_create(t.n.ctx,
			     &(struct vrb_hcq_init){.cqe = 16, .chan = t.n.chan, .user = &t},
			     &t.other));
	p.fd = vrb_hchan_fd(t.n.chan);
	for (int i = 0; go_on(i, 200); i++) {
		MUST(!pthread_create(&thread, NULL, takes_one, &t));
		while (!vrb_engine_current->n_drivers)
			usleep(10);
		if (i % 2)
			usleep(100);
		/* both while it waits */
		vrb_engine_lock(vrb_engine_current);
		vrb_event_completion(t.n.cq);
		vrb_event_completion(t.other);
		vrb_engine_unlock(vrb_engine_current);
		pthread_join(thread, NULL);
		MUST(poll(&p, 1, WAIT_MS) == 1);
		MUST(!vrb_hchan_get(t.n.chan, &user));
		MUST(poll(&p, 1, 0) == 0);
	}
	MUST(!vrb_hcq_destroy(t.other));
	node_close(&t.n);
}

/* What is queued for a CQ goes with it, and the descriptor tells of the rest only. */
static void test_purge(void)
{
	struct pollfd p = {.events = POLLIN};
	struct vrb_hcq *other;
	struct node n;
	void *user;

	node_open(&n, true);
	p.fd = vrb_hchan_fd(n.chan);
	fcntl(p.fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 50; i++) {
		MUST(!vrb_hcq_create(
			n.ctx, &(struct vrb_hcq_init){.cqe = 16, .chan = n.chan, .user = &other},
			&other));
		for (int k = 0; k < 5; k++) {
			complete(other);
			if (k < i % 3)
				complete(n.cq);
		}
		MUST(!vrb_hcq_destroy(other));
		for (int k = 0; k < i % 3; k++) {
			MUST(poll(&p, 1, 0) == 1);
			MUST(!vrb_hchan_get(n.chan, &user) && user == &n);
		}
		MUST(poll(&p, 1, 0) == 0);
		MUST(vrb_hchan_get(n.chan, &user) == -EAGAIN);
	}
	node_close(&n);
}

static void test_async(void)
{
	struct pollfd p = {.events = POLLIN};
	struct vrb_hasync ev, out;
	struct node n;
	int user[3];

	node_open(&n, false);
	p.fd = vrb_hctx_async_fd(n.ctx);
	fcntl(p.fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 1000; i++) {
		ev = (struct vrb_hasync){.kind = 1, .user = &user[i % 3], .port = 1};
		vrb_hctx_put_async(n.ctx, &ev);
		if (i % 10 == 9)
			MUST(!vrb_hctx_get_async(n.ctx, &out));
	}
	vrb_engine_lock(vrb_engine_current);
	vrb_event_purge_async(n.ctx, &user[1]);
	vrb_engine_unlock(vrb_engine_current);
	for (int left = 600; left > 0; left--) {
		MUST(poll(&p, 1, 0) == 1);
		MUST(!vrb_hctx_get_async(n.ctx, &out) && out.user != &user[1]);
	}
	MUST(poll(&p, 1, 0) == 0);
	MUST(vrb_hctx_get_async(n.ctx, &out) == -EAGAIN);
	node_close(&n);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"two_sleepers", test_two_sleepers},
		{"cancel", test_cancel},
		{"signals", test_signals},
		{"signals_moderated", test_signals_moderated},
		{"tokens", test_tokens},
		{"purge", test_purge},
		{"async", test_async},
	};

	if (getenv("VERBENA_LINK")) /* by the wire: the port is ours alone */
		kit_own_network();
	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
