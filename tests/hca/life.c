/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Beginnings and ends in every order: engines that come and go, slots that change owners, forked
 * children and exec, queues that go while traffic runs, limits that are met.
 */
#include "kit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void pair_up(struct node *n, struct vrb_hqp **a, struct vrb_hqp **b)
{
	*a = node_qp(n, VRB_QPT_RC);
	*b = node_qp(n, VRB_QPT_RC);
	MUST(!node_connect(*a, vrb_hqp_qpn(*b)) && !node_connect(*b, vrb_hqp_qpn(*a)));
}

static void want_both(struct node *n)
{
	struct vrb_wc wc;

	for (int i = 0; i < 2; i++)
		MUST(node_has_wc(n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
}

static void talk(struct node *n, struct vrb_hqp *a, struct vrb_hqp *b)
{
	node_recv(n, b, 2);
	node_send(n, a, 1, 64);
	want_both(n);
}

/* The engine ends with its last context and begins again, and leaves nothing behind. */
static void test_reopen(void)
{
	struct vrb_hqp *a, *b;
	int fds = 0, maps = 0;
	struct node n, m;

	for (int i = 0; i < 100; i++) {
		node_open(&n, i & 1);
		node_open(&m, false); /* two contexts, one engine, closed in both orders */
		pair_up(&n, &a, &b);
		talk(&n, a, b);
		if (i & 2)
			node_close(&m);
		MUST(!vrb_hqp_destroy(i & 1 ? a : b) && !vrb_hqp_destroy(i & 1 ? b : a));
		node_close(&n);
		if (!(i & 2))
			node_close(&m);
		MUST(!vrb_engine_current);
		if (i == 0) {
			fds = count_fds();
			maps = count_maps();
		}
	}
	MUST(count_fds() == fds && count_maps() == maps);
}

/* Objects that are left when their context closes. */
static void test_left_over(void)
{
	struct vrb_hqp *a, *b;
	struct node n, m;

	node_open(&n, false);
	node_open(&m, true);
	for (int i = 0; i < 20; i++) {
		pair_up(&m, &a, &b);
		node_recv(&m, b, 1);
		node_send(&m, a, 1, 64);
	}
	vrb_hctx_close(m.ctx);
	pair_up(&n, &a, &b);
	talk(&n, a, b);
	MUST(!vrb_hqp_destroy(a) && !vrb_hqp_destroy(b));
	node_close(&n);
}

static void test_many_qps(void)
{
	static struct vrb_hqp *q[1000];
	struct node n;
	uint64_t seed = 5;

	node_open(&n, false);
	for (int i = 0; i < 1000; i += 2)
		pair_up(&n, &q[i], &q[i + 1]);
	for (int i = 0; i < 1000; i += 2)
		talk(&n, q[i], q[i + 1]);
	for (int left = 1000; left > 0; left--) {
		uint32_t k;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		k = (uint32_t)(seed >> 33) % (uint32_t)left;
		if (left % 3 == 0) /* with something under way */
			node_send(&n, q[k], 1, 32);
		MUST(!vrb_hqp_destroy(q[k]));
		q[k] = q[left - 1];
	}
	node_close(&n);
}

/* ---- a peer process that sends all the time */

static int floods(int sock, void *arg)
{
	struct node n;
	struct vrb_hqp *q;
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint64_t sent = 0, done = 0;
	struct vrb_wc wc;
	uint32_t peer;

	(void)arg;
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(sock, vrb_hqp_qpn(q));
	while ((peer = get_u32(sock))) {
		MUST(!node_to(q, VRB_QPS_RESET));
		vrb_hqp_destroy(q);
		q = node_qp(&n, VRB_QPT_RC);
		MUST(!node_connect(q, peer));
		put_u32(sock, vrb_hqp_qpn(q));
		MUST(get_u32(sock) == 1);
		for (sent = done = 0; poll(&p, 1, 0) == 0;) {
			if (sent - done < 100)
				node_send(&n, q, 0, (uint32_t)(sent++ * 37 % 3000));
			while (node_has_wc(&n, &wc, 0))
				done += wc.status == VRB_WC_SUCCESS || wc.status != 0;
		}
		while (node_has_wc(&n, &wc, 0))
			;
	}
	vrb_hqp_destroy(q);
	node_close(&n);
	return 0;
}

/* Connects q to a new queue pair of the flooding child and has it begin. */
static void flood_on(struct child *c, struct vrb_hqp *q)
{
	put_u32(c->sock, vrb_hqp_qpn(q));
	MUST(!node_connect(q, get_u32(c->sock)));
	put_u32(c->sock, 1);
}

static void test_destroy_under_load(void)
{
	struct child c;
	struct node n;

	child_start(&c, floods, NULL);
	node_open(&n, false);
	(void)get_u32(c.sock);
	for (int i = 0; go_on(i, 100); i++) {
		struct vrb_hqp *q = node_qp(&n, VRB_QPT_RC);
		struct vrb_wc wc;

		for (uint64_t k = 0; k < 300; k++)
			node_recv(&n, q, k);
		flood_on(&c, q);
		for (int k = 0; k < i; k++)
			if (node_has_wc(&n, &wc, 100))
				MUST(wc.status == VRB_WC_SUCCESS);
		if (i % 3 == 0)
			MUST(!node_to(q, VRB_QPS_ERR));
		if (i % 3 == 1)
			MUST(!node_to(q, VRB_QPS_RESET));
		MUST(!vrb_hqp_destroy(q));
		MUST(!node_has_wc(&n, &wc, 0)); /* its completions went with it */
	}
	put_u32(c.sock, 0);
	child_join(&c);
	node_close(&n);
}

static void test_resize_under_load(void)
{
	struct vrb_hqp *q;
	struct vrb_wc wc;
	struct child c;
	struct node n;
	uint64_t next = 0;

	child_start(&c, floods, NULL);
	node_open(&n, false);
	(void)get_u32(c.sock);
	q = node_qp(&n, VRB_QPT_RC);
	for (uint64_t k = 0; k < 300; k++)
		node_recv(&n, q, k);
	flood_on(&c, q);
	for (uint32_t i = 0; go_on(i, 3000); i++) {
		int err = vrb_hcq_resize(n.cq, (uint32_t[]){301, 4096, 512, 350}[i % 4]);

		MUST(!err || err == -EINVAL);
		for (int k = 0; k < 5 && node_has_wc(&n, &wc, 20); k++) {
			MUST(wc.status == VRB_WC_SUCCESS && wc.wr_id == next);
			node_recv(&n, q, next + 300);
			next++;
		}
	}
	MUST(next > 0);
	MUST(!vrb_hqp_destroy(q));
	put_u32(c.sock, 0);
	child_join(&c);
	node_close(&n);
}

/* ---- slots and their owners */

static int answers_once(int sock, void *arg)
{
	struct vrb_hqp *q;
	struct node n;

	(void)arg;
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(sock, vrb_hqp_qpn(q));
	node_recv(&n, q, 5);
	MUST(!node_connect(q, get_u32(sock)));
	put_u32(sock, 1);
	MUST(node_wc(&n, 5) == VRB_WC_SUCCESS);
	node_send(&n, q, 6, 32);
	MUST(node_wc(&n, 6) == VRB_WC_SUCCESS);
	if (get_u32(sock) == 1)
		pause(); /* to be killed */
	vrb_hqp_destroy(q);
	node_close(&n);
	return 0;
}

/* The same slot over and over, by processes that are killed or end; the survivor never waits for
 * the end of one before the next comes. */
static void test_slot_reuse(void)
{
	struct vrb_hqp *q = NULL, *old = NULL;
	int fds = 0, maps = 0;
	struct node n;

	SKIP_FORK_OF_THREADS();
	node_open(&n, false);
	for (int i = 0; go_on(i, 60); i++) {
		struct child c;

		/* The child inherits our engine and begins one of its own. */
		child_start(&c, answers_once, NULL);
		q = node_qp(&n, VRB_QPT_RC);
		node_recv(&n, q, 7);
		MUST(!node_connect(q, get_u32(c.sock)));
		put_u32(c.sock, vrb_hqp_qpn(q));
		MUST(get_u32(c.sock) == 1);
		node_send(&n, q, 8, 32);
		want_both(&n);
		put_u32(c.sock, i % 2);
		if (i % 2)
			child_kill(&c);
		else
			child_join(&c);
		if (old)
			MUST(!vrb_hqp_destroy(old));
		old = q;
		if (i == 3) {
			fds = count_fds();
			maps = count_maps();
		}
	}
	MUST(!vrb_hqp_destroy(old));
	/* our helper learns of each end when it gets its turn */
	for (int i = 0; i < WAIT_MS / 10 && (count_fds() > fds + 4 || count_maps() > maps + 2); i++)
		usleep(10000);
	MUST(count_fds() <= fds + 4 && count_maps() <= maps + 2);
	node_close(&n);
}

/* An engine that ends and begins again in the same process, on the same slot. */
static int comes_again(int sock, void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		MUST(answers_once(sock, NULL) == 0);
	return 0;
}

static void test_same_process_again(void)
{
	struct child c;
	struct node n;

	child_start(&c, comes_again, NULL);
	node_open(&n, false);
	for (int i = 0; i < 20; i++) {
		struct vrb_hqp *q = node_qp(&n, VRB_QPT_RC);

		node_recv(&n, q, 7);
		MUST(!node_connect(q, get_u32(c.sock)));
		put_u32(c.sock, vrb_hqp_qpn(q));
		MUST(get_u32(c.sock) == 1);
		node_send(&n, q, 8, 32);
		want_both(&n);
		put_u32(c.sock, 0);
		MUST(!vrb_hqp_destroy(q));
	}
	child_join(&c);
	node_close(&n);
}

/* A process that becomes another program: its peers hear of it, the new program is left alone. */
static int becomes_another(int sock, void *arg)
{
	struct vrb_hqp *q;
	struct node n;

	(void)arg;
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(sock, vrb_hqp_qpn(q));
	MUST(!node_connect(q, get_u32(sock)));
	put_u32(sock, 1);
	(void)get_u32(sock);
	execl("/bin/sleep", "sleep", "30", (char *)NULL);
	return 1;
}

static void test_exec(void)
{
	struct vrb_hqp *q;
	struct child c;
	struct node n;

	child_start(&c, becomes_another, NULL);
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(q, get_u32(c.sock)));
	put_u32(c.sock, vrb_hqp_qpn(q));
	MUST(get_u32(c.sock) == 1);
	put_u32(c.sock, 0);
	node_send(&n, q, 1, 32);
	MUST(node_wc(&n, 1) == VRB_WC_RETRY_EXC_ERR);
	child_kill(&c);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

/* Many processes at once around one. */
#define STAR 64

static void test_star(void)
{
	static struct child c[STAR];
	static struct vrb_hqp *q[STAR];
	struct node n;

	for (int i = 0; i < STAR; i++)
		child_start(&c[i], answers_once, NULL);
	node_open(&n, false);
	for (int i = 0; i < STAR; i++) {
		q[i] = node_qp(&n, VRB_QPT_RC);
		node_recv(&n, q[i], 7);
		MUST(!node_connect(q[i], get_u32(c[i].sock)));
		put_u32(c[i].sock, vrb_hqp_qpn(q[i]));
	}
	for (int i = 0; i < STAR; i++) {
		MUST(get_u32(c[i].sock) == 1);
		node_send(&n, q[i], 8, 32);
	}
	for (int i = 0; i < STAR; i++)
		want_both(&n);
	for (int i = 0; i < STAR; i++) {
		put_u32(c[i].sock, i % 2);
		if (i % 2)
			child_kill(&c[i]);
		else
			child_join(&c[i]);
		MUST(!vrb_hqp_destroy(q[i]));
	}
	node_close(&n);
}

/* ---- limits */

/* With k descriptors left: each call works or says why it does not; nothing hangs. */
static int with_few(int sock, void *arg)
{
	struct rlimit old, now;
	struct vrb_hctx *ctx = NULL;
	int k, err, first = dup(0);
	uint32_t peer = get_u32(sock);

	(void)arg;
	close(first);
	MUST(!getrlimit(RLIMIT_NOFILE, &old));
	for (k = 0; k < 40; k++) {
		struct vrb_hqp *q;
		struct node n;

		now = (struct rlimit){(rlim_t)(first + k), old.rlim_max};
		MUST(!setrlimit(RLIMIT_NOFILE, &now));
		err = node_try_open(&ctx);
		if (err) {
			MUST(err == -EMFILE && !vrb_engine_current);
			continue;
		}
		MUST(!setrlimit(RLIMIT_NOFILE, &old));
		node_open(&n, false);
		vrb_hctx_close(ctx);
		q = node_qp(&n, VRB_QPT_RC);
		MUST(!setrlimit(RLIMIT_NOFILE, &now));
		err = node_connect(q, k % 2 ? peer : vrb_hqp_qpn(q));
		MUST(!err || err == -EMFILE);
		MUST(vrb_hqp_state(q) == (err ? VRB_QPS_INIT : VRB_QPS_RTS));
		MUST(err || q->peer); /* not silently connected to nobody */
		MUST(!setrlimit(RLIMIT_NOFILE, &old));
		if (err) /* nothing is spoilt */
			MUST(!node_connect(q, k % 2 ? peer : vrb_hqp_qpn(q)));
		MUST(!vrb_hqp_destroy(q));
		node_close(&n);
	}
	return 0;
}

static void test_few_descriptors(void)
{
	struct child c;
	struct vrb_hqp *q;
	struct node n;

	child_start(&c, with_few, NULL);
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(c.sock, vrb_hqp_qpn(q));
	child_join(&c);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

/* All slots of the user taken, by whomever. */
static void test_no_slot(void)
{
	struct rogue *r = calloc(VRB_SLOTS, sizeof(*r));
	struct vrb_hctx *ctx;
	struct node n;
	int k = 0;

	node_open(&n, false); /* there is a device at all */
	node_close(&n);
	while (k < (int)VRB_SLOTS && rogue_try_claim(&r[k]))
		k++;
	MUST(k > 0 && node_try_open(&ctx) == -EUSERS);
	for (int i = 0; i < k; i++)
		close(r[i].listen);
	node_open(&n, false);
	node_close(&n);
	free(r);
}

/* Direct WRITEs, of which the target hears with the next frame only, and a change of state in
 * between. */
static int turns_to_sqd(int sock, void *arg)
{
	struct vrb_hqp *q;
	struct node n;

	(void)arg;
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(sock, vrb_hqp_qpn(q));
	put(sock, &(struct node_at){(uintptr_t)n.buf, n.mr->rkey, 64}, sizeof(struct node_at));
	node_recv(&n, q, 5);
	MUST(!node_connect(q, get_u32(sock)));
	put_u32(sock, 1);
	MUST(get_u32(sock) == 2);
	MUST(!node_to(q, VRB_QPS_SQD));
	put_u32(sock, 3);
	MUST(node_wc(&n, 5) == VRB_WC_SUCCESS);
	(void)get_u32(sock);
	vrb_hqp_destroy(q);
	node_close(&n);
	return 0;
}

static void test_direct_and_sqd(void)
{
	struct node_at at;
	struct vrb_hqp *q;
	struct child c;
	struct node n;
	vrb_qpn peer;

	child_start(&c, turns_to_sqd, NULL);
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	peer = get_u32(c.sock);
	get(c.sock, &at, sizeof(at));
	MUST(!node_connect(q, peer));
	put_u32(c.sock, vrb_hqp_qpn(q));
	MUST(get_u32(c.sock) == 1);
	for (uint64_t i = 0; i < 20; i++) {
		node_write(&n, q, i, &at);
		MUST(node_wc(&n, i) == VRB_WC_SUCCESS);
	}
	put_u32(c.sock, 2);
	MUST(get_u32(c.sock) == 3);
	node_send(&n, q, 30, 32);
	MUST(node_wc(&n, 30) == VRB_WC_SUCCESS);
	put_u32(c.sock, 0);
	child_join(&c);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

/* ---- threads */

/* Calls with a cancellation pending: it is acted on in none of them. (Not inlined, since
 * AddressSanitizer takes the frame of a cancelled thread for live.) */
static __attribute__((noinline)) void call_all(struct child *c)
{
	struct vrb_av av = {.hop_limit = 64};
	struct vrb_hasync ev = {.kind = 1};
	struct vrb_hqp *q, *ud;
	struct node_at at;
	struct node n;
	vrb_qpn peer;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* for what the test itself calls */
	node_open(&n, true);
	q = node_qp(&n, VRB_QPT_RC);
	ud = node_qp(&n, VRB_QPT_UD);
	memcpy(av.dgid.raw + 10, "\xff\xff\x7f\0\0\1", 6);
	peer = get_u32(c->sock);
	get(c->sock, &at, sizeof(at));
	MUST(!pthread_cancel(pthread_self()));
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	MUST(!vrb_hah_create(n.pd, &av) && !node_connect(q, peer));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	put_u32(c->sock, vrb_hqp_qpn(q));
	MUST(get_u32(c->sock) == 1);
	put_u32(c->sock, 2);
	MUST(get_u32(c->sock) == 3);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	MUST(!vrb_hcq_arm(n.cq, false));
	node_send(&n, q, 30, 32);
	for (struct vrb_wc wc; vrb_hcq_poll(n.cq, 1, &wc) == 0;)
		;
	node_write(&n, q, 31, &at);
	for (struct vrb_wc wc; vrb_hcq_poll(n.cq, 1, &wc) == 0;)
		;
	node_send_ud(&n, ud, &av, 0xfe0005);
	node_send_ud(&n, ud, &av, vrb_hqp_qpn(ud));
	vrb_hctx_put_async(n.ctx, &ev);
	vrb_hah_destroy(n.pd, &av);
	MUST(!vrb_hqp_destroy(ud) && !vrb_hqp_destroy(q));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	node_close(&n);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

static void *is_cancelled(void *arg)
{
	call_all(arg);
	pthread_testcancel();
	return NULL;
}

static void test_cancel_pending(void)
{
	struct child c;
	pthread_t t;
	struct node n;
	void *end;

	child_start(&c, turns_to_sqd, NULL);
	MUST(!pthread_create(&t, NULL, is_cancelled, &c));
	MUST(!pthread_join(t, &end));
	MUST(end == PTHREAD_CANCELED);
	MUST(!vrb_engine_current); /* it came to its end, and closed everything */
	put_u32(c.sock, 0);
	child_join(&c);
	node_open(&n, false);
	node_close(&n);
}

static void *registers(void *arg)
{
	struct node *n = arg;

	for (int i = 0; i < 3000; i++) {
		struct vrb_hmr *mr;

		MUST(!vrb_hmr_reg(n->pd, n->buf, 64, (uintptr_t)n->buf, 15, &mr));
		if (i % 3 == 0)
			MUST(!vrb_hmr_rereg(mr, NULL, n->buf + 64, 128, UINT32_MAX));
		MUST(!vrb_hmr_dereg(mr));
	}
	return arg;
}

/* Counts of references are right whoever changes them. */
static void test_references(void)
{
	pthread_t t[3];
	struct node n;

	node_open(&n, false);
	for (int i = 0; i < 3; i++)
		MUST(!pthread_create(&t[i], NULL, registers, &n));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	MUST(n.pd->refs == 1);
	node_close(&n); /* the PD is free */
}

static _Atomic bool stop;

static void *lists(void *arg)
{
	struct vrb_hdev *list[VRB_DEVICES_MAX];

	while (!stop)
		MUST(vrb_hca_devices(list) > 0);
	return arg;
}

/* Listing devices does not make an address vanish under whoever connects; forking in the middle of
 * it does no harm. */
static void test_list_and_connect(void)
{
	struct vrb_hqp *a, *b;
	pthread_t t;
	struct node n;

	node_open(&n, false);
	MUST(!pthread_create(&t, NULL, lists, NULL));
	for (int i = 0; go_on(i, 300); i++) {
		pair_up(&n, &a, &b);
		MUST(!vrb_hqp_destroy(a) && !vrb_hqp_destroy(b));
		if (i % 10 == 0) {
			int status;
			pid_t pid = fork();

			if (!pid) {
				struct vrb_hdev *list[VRB_DEVICES_MAX];

				alarm(WAIT_MS / 1000);
				_exit(vrb_hca_devices(list) > 0 ? 0 : 1);
			}
			MUST(waitpid(pid, &status, 0) == pid && !status);
		}
	}
	stop = true;
	pthread_join(t, NULL);
	node_close(&n);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"reopen", test_reopen},
		{"left_over", test_left_over},
		{"many_qps", test_many_qps},
		{"destroy_under_load", test_destroy_under_load},
		{"resize_under_load", test_resize_under_load},
		{"slot_reuse", test_slot_reuse},
		{"same_process_again", test_same_process_again},
		{"exec", test_exec},
		{"star", test_star},
		{"few_descriptors", test_few_descriptors},
		{"no_slot", test_no_slot},
		{"direct_and_sqd", test_direct_and_sqd},
		{"cancel_pending", test_cancel_pending},
		{"references", test_references},
		{"list_and_connect", test_list_and_connect},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
