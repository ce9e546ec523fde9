/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	tool (speaks by hand) ---- file ----> engine <==== RC ====> friend (engine)
 *
 * A capture records what it should, takes every packet off the fast ways, gives way to the program
 * whatever happens to its file, and whoever asks for one with nonsense is refused.
 */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pcapng.h"
#include "hca/direct.h"
#include "wire/icrc.h"
#include "wire/net.h"
#include "wire/roce.h"

static uint64_t said(enum vrb_verdict v)
{
	return vrb_peek(&vrb_engine_current->stats->verdict[v]);
}

/* ---- the file, read back */

struct seen {
	uint32_t packets, in, out, by_op[256];
	char last[VRB_PCAPNG_COMMENT_MAX]; /* comment of the last packet of the opcode `of` */
	uint8_t of;
};

static int new_file(void)
{
	uint8_t head[VRB_PCAPNG_HEAD_MAX];
	int fd = memfd_create("capture", MFD_CLOEXEC);
	size_t n = vrb_pcapng_emit_head(head, "test");

	MUST(fd >= 0 && write(fd, head, n) == (ssize_t)n && !fcntl(fd, F_SETFL, O_APPEND));
	return fd;
}

static void look_at(struct seen *s, const uint8_t *block)
{
	const uint8_t *ip = block + VRB_PCAPNG_PACKET_AT, *bth, *options;
	struct vrb_net net;
	uint32_t kept;
	size_t len;

	memcpy(&kept, block + 20, 4);
	MUST(vrb_net_parse(ip, kept, &net, &bth, &len) == VRB_OK);
	MUST(vrb_icrc_check(ip, vrb_net_len(&net), bth, len, NULL) == VRB_OK);
	s->packets++;
	options = ip + ((kept + 3) & ~3u);
	*(options[4] == 2 ? &s->out : &s->in) += 1;
	s->by_op[bth[0]]++;
	if (bth[0] == s->of && options[8] == 1)
		snprintf(s->last, sizeof(s->last), "%.*s", options[10] | options[11] << 8,
			 (const char *)options + 12);
}

static void read_back(int fd, struct seen *s)
{
	static uint8_t bytes[8u << 20];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	struct vrb_pcapng_block b;
	uint8_t of = s->of;

	*s = (struct seen){.of = of};
	for (ssize_t at = 0; at < n; at += b.len) {
		MUST(vrb_pcapng_parse(bytes + at, (size_t)(n - at), &b) && b.is_whole);
		if (b.is_packet)
			look_at(s, bytes + at);
	}
}

/* ---- the tool */

static struct vrb_meet_hello request(void)
{
	return (struct vrb_meet_hello){
		.magic = VRB_MEET_MAGIC, .version = VRB_MEET_VERSION, .type = VRB_MEET_CAPTURE};
}

static int answer(int sock)
{
	struct vrb_meet_hello h;

	MUST(recv(sock, &h, sizeof(h), 0) == (ssize_t)sizeof(h) && h.type == VRB_MEET_CAPTURE);
	return (int)h.arg;
}

static int ask(uint32_t slot, const int *fds, unsigned n, int *sock)
{
	struct vrb_meet_hello h = request();

	*sock = rogue_connect(slot);
	MUST(!rogue_say(*sock, &h, fds, n));
	return answer(*sock);
}

static void hang_up(int sock)
{
	MUST(!shutdown(sock, SHUT_WR) && rogue_heard_end(sock, WAIT_MS));
	close(sock);
}

/* ---- two queue pairs of this process */

struct loop {
	struct node n;
	struct vrb_hqp *a, *b;
};

static void loop_open(struct loop *l)
{
	node_open(&l->n, false);
	l->a = node_qp(&l->n, VRB_QPT_RC);
	l->b = node_qp(&l->n, VRB_QPT_RC);
	MUST(!node_connect(l->a, vrb_hqp_qpn(l->b)) && !node_connect(l->b, vrb_hqp_qpn(l->a)));
}

static void loop_send(struct loop *l, int n)
{
	struct vrb_wc wc;

	for (int i = 0; i < n; i++) {
		node_recv(&l->n, l->b, 200 + (unsigned)i);
		node_send(&l->n, l->a, 100 + (unsigned)i, 64);
		for (int k = 0; k < 2; k++)
			MUST(node_has_wc(&l->n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	}
}

static void loop_close(struct loop *l)
{
	MUST(!vrb_hqp_destroy(l->a) && !vrb_hqp_destroy(l->b));
	node_close(&l->n);
}

/* Both directions, and nothing before or after. */
static void test_records(void)
{
	struct seen s = {.of = VRB_OP_SEND_ONLY};
	int fd = new_file(), sock;
	char want[80];
	struct loop l;

	loop_open(&l);
	loop_send(&l, 5);
	MUST(!ask(vrb_engine_current->slot, &fd, 1, &sock));
	loop_send(&l, 10);
	hang_up(sock);
	loop_send(&l, 5);
	read_back(fd, &s);
	MUST(s.by_op[VRB_OP_SEND_ONLY] == 20 && s.by_op[VRB_OP_ACK] >= 2);
	MUST(s.packets == s.in + s.out && s.in == s.out);
	snprintf(want, sizeof(want), "responder QP 0x%06x WR 209", vrb_hqp_qpn(l.b));
	MUST(!strcmp(s.last, want));
	loop_close(&l);
}

/* A second one has to wait; one that talks out of turn is closed. */
static void test_one_at_a_time(void)
{
	int fd = new_file(), other = new_file(), sock, second;
	struct vrb_meet_hello h = request();
	struct seen s = {0};
	struct loop l;

	loop_open(&l);
	MUST(!ask(vrb_engine_current->slot, &fd, 1, &sock));
	MUST(ask(vrb_engine_current->slot, &other, 1, &second) == EBUSY);
	MUST(rogue_heard_end(second, WAIT_MS));
	MUST(said(VRB_V_CAPTURE_REFUSED) == 1);
	loop_send(&l, 1);
	MUST(!rogue_say(sock, &h, &other, 1) && rogue_heard_end(sock, WAIT_MS));
	close(sock);
	close(second);
	read_back(fd, &s);
	MUST(s.packets >= 2);
	MUST(!ask(vrb_engine_current->slot, &other, 1, &sock));
	loop_send(&l, 1);
	loop_close(&l); /* with the capture on */
	MUST(rogue_heard_end(sock, WAIT_MS));
	read_back(other, &s);
	MUST(s.packets >= 2);
}

/* What is no file to append to is refused, and closed. */
static void test_nonsense(void)
{
	int before, p[2], bad[6], sock, fds[3];
	struct vrb_meet_hello h = request();
	struct loop l;
	uint32_t slot;

	loop_open(&l);
	slot = vrb_engine_current->slot;
	MUST(!pipe2(p, O_CLOEXEC));
	bad[0] = p[1];
	bad[1] = open("/dev/null", O_WRONLY | O_APPEND | O_CLOEXEC);
	bad[2] = memfd_create("not for appending", MFD_CLOEXEC);
	bad[3] = open("/proc/self/exe", O_RDONLY | O_APPEND | O_CLOEXEC);
	bad[4] = open("/", O_RDONLY | O_CLOEXEC);
	bad[5] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	before = count_fds();
	for (int i = 0; i < 6; i++) {
		MUST(bad[i] >= 0 && ask(slot, &bad[i], 1, &sock) == EINVAL);
		MUST(rogue_heard_end(sock, WAIT_MS));
		close(sock);
	}
	MUST(ask(slot, NULL, 0, &sock) == EINVAL && rogue_heard_end(sock, WAIT_MS));
	close(sock);
	fds[0] = fds[1] = fds[2] = new_file();
	MUST(ask(slot, fds, 3, &sock) == EINVAL && rogue_heard_end(sock, WAIT_MS));
	close(sock);
	/* more descriptors than any message has: no message at all */
	sock = rogue_connect(slot);
	MUST(!rogue_say(sock, &h, (int[]){p[0], p[0], p[0], p[0], p[0], p[0], p[0], p[0]}, 8));
	MUST(rogue_heard_end(sock, WAIT_MS));
	close(sock);
	close(fds[0]);
	MUST(said(VRB_V_CAPTURE_REFUSED) == 8);
	loop_send(&l, 2);
	MUST(count_fds() == before);
	loop_close(&l);
}

/* The file reaches RLIMIT_FSIZE, or cannot be written at all: the capture ends, the program goes
 * on and gets no SIGXFSZ. */
static void test_full(void)
{
	const struct rlimit limit = {8192, 8192};
	int fd = new_file(), sealed = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING), sock;
	struct loop l;

	loop_open(&l);
	MUST(!fcntl(sealed, F_SETFL, O_APPEND) && !fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE));
	MUST(!ask(vrb_engine_current->slot, &sealed, 1, &sock));
	loop_send(&l, 1);
	MUST(answer(sock) == EPERM && rogue_heard_end(sock, WAIT_MS));
	close(sock);
	MUST(!setrlimit(RLIMIT_FSIZE, &limit));
	MUST(!ask(vrb_engine_current->slot, &fd, 1, &sock));
	loop_send(&l, 100);
	MUST(answer(sock) == EFBIG && rogue_heard_end(sock, WAIT_MS));
	close(sock);
	MUST(said(VRB_V_CAPTURE_ENDED) == 2);
	loop_send(&l, 10);
	loop_close(&l);
}

/* VERBENA_CAPTURE: a frame is recorded once; a file that is not there costs nothing but the
 * capture. */
static void test_by_name(void)
{
	int fd = new_file();
	char path[64];
	struct seen s = {0};
	struct loop l;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	MUST(!setenv("VERBENA_CAPTURE", path, 1));
	loop_open(&l);
	loop_send(&l, 10);
	loop_close(&l);
	read_back(fd, &s);
	MUST(s.by_op[VRB_OP_SEND_ONLY] == 10 && s.in == 0);
	MUST(!setenv("VERBENA_CAPTURE", "/nonexistent/file", 1));
	loop_open(&l);
	MUST(said(VRB_V_CAPTURE_ENDED) == 1);
	loop_send(&l, 1);
	loop_close(&l);
}

/* A child writes nothing of its parent's, and does not keep the capture open. */
static void test_fork(void)
{
	struct seen s = {0};
	int fd = new_file(), sock, status;
	struct loop l;
	pid_t pid;

	loop_open(&l);
	MUST(!ask(vrb_engine_current->slot, &fd, 1, &sock));
	loop_send(&l, 3);
	pid = fork();
	if (!pid)
		pause();
	loop_send(&l, 3);
	loop_close(&l);
	MUST(rogue_heard_end(sock, WAIT_MS));
	kill(pid, SIGKILL);
	MUST(waitpid(pid, &status, 0) == pid);
	read_back(fd, &s);
	MUST(s.by_op[VRB_OP_SEND_ONLY] == 12);
}

/* ---- a friend that writes into our memory */

static int writes(int sock, void *arg)
{
	struct node_at at;
	struct vrb_hqp *q;
	struct node n;

	(void)arg;
	MUST(get_u32(sock) == 1);
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(sock, vrb_hqp_qpn(q));
	MUST(!node_connect(q, get_u32(sock)));
	get(sock, &at, sizeof(at));
	node_recv(&n, q, 9);
	put_u32(sock, 1);
	MUST(node_wc(&n, 9) == VRB_WC_SUCCESS);
	for (uint32_t round; (round = get_u32(sock)) != 0;) {
		for (uint32_t i = 0; i < 10; i++) {
			n.buf[0] = (uint8_t)round;
			node_write(&n, q, i, &at);
			MUST(node_wc(&n, i) == VRB_WC_SUCCESS);
		}
		put_u32(sock, 1);
	}
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
	return 0;
}

static void have_written(struct node *n, struct child *c, uint8_t round)
{
	put_u32(c->sock, round);
	MUST(get_u32(c->sock) == 1);
	vrb_engine_lock(vrb_engine_current); /* the helper may have placed it */
	MUST(n->buf[0] == round);
	vrb_engine_unlock(vrb_engine_current);
}

/* Direct WRITEs come as packets while they are recorded, with every PSN in its place. */
static void test_direct(void)
{
	struct seen s = {.of = VRB_OP_WRITE_ONLY};
	int fd = new_file(), sock;
	struct node_at at;
	struct vrb_hqp *q;
	struct child c;
	struct node n;

	child_start(&c, writes, NULL);
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(c.sock, 1);
	MUST(!node_connect(q, get_u32(c.sock)));
	put_u32(c.sock, vrb_hqp_qpn(q));
	at = (struct node_at){(uintptr_t)n.buf, n.mr->rkey, 100};
	put(c.sock, &at, sizeof(at));
	MUST(get_u32(c.sock) == 1);
	node_send(&n, q, 3, 8);
	MUST(node_wc(&n, 3) == VRB_WC_SUCCESS);
	have_written(&n, &c, 1);
	MUST(!ask(vrb_engine_current->slot, &fd, 1, &sock));
	have_written(&n, &c, 2);
	hang_up(sock);
	have_written(&n, &c, 3);
	read_back(fd, &s);
	MUST(s.by_op[VRB_OP_WRITE_ONLY] == 10);
	MUST(strstr(s.last, "responder QP 0x") == s.last && !strstr(s.last, "WR"));
	put_u32(c.sock, 0);
	child_join(&c);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

/* Why a NAK leaves stands with it, and with the request that it refuses. */
static void test_refused(void)
{
	struct seen s = {.of = VRB_OP_WRITE_ONLY};
	int fd = new_file(), sock;
	struct loop l;

	loop_open(&l);
	MUST(!ask(vrb_engine_current->slot, &fd, 1, &sock));
	node_write(&l.n, l.a, 1, &(struct node_at){(uintptr_t)l.n.buf, l.n.mr->rkey, NODE_LEN + 1});
	MUST(node_wc(&l.n, 1) == VRB_WC_LOC_PROT_ERR); /* it does not leave */
	MUST(!node_to(l.a, VRB_QPS_RESET) && !vrb_hqp_destroy(l.a) && !vrb_hqp_destroy(l.b));
	l.a = node_qp(&l.n, VRB_QPT_RC);
	l.b = node_qp(&l.n, VRB_QPT_RC);
	MUST(!node_connect(l.a, vrb_hqp_qpn(l.b)) && !node_connect(l.b, vrb_hqp_qpn(l.a)));
	node_write(&l.n, l.a, 2,
		   &(struct node_at){(uintptr_t)l.n.buf + NODE_LEN - 8, l.n.mr->rkey, 20});
	MUST(node_wc(&l.n, 2) == VRB_WC_REM_ACCESS_ERR);
	hang_up(sock);
	read_back(fd, &s);
	MUST(strstr(s.last, "run 12 bytes past the end"));
	s.of = VRB_OP_ACK;
	read_back(fd, &s);
	MUST(strstr(s.last, "requester QP 0x") == s.last && strstr(s.last, " WR 2: NAK, remote "));
	loop_close(&l);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"records", test_records},   {"one_at_a_time", test_one_at_a_time},
		{"nonsense", test_nonsense}, {"full", test_full},
		{"by_name", test_by_name},   {"fork", test_fork},
		{"direct", test_direct},     {"refused", test_refused},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
