/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The active end: does every operation in every length class, and compares what the passive end has
 * then. `mirror` is what its region must hold. The first difference ends the process.
 */
#include "ops.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 30000
#define EDGE	64 /* bytes around a target that must not change */

struct drive {
	struct ops *o;
	FILE *in, *out;
	char line[256];
	struct ops_qp *q;
	uint32_t n, remote_qpn, rkey; /* n: the number of q at the server */
	uint64_t addr;
	const char *step;
	uint32_t size; /* of the step, for the report */
	uint8_t *mirror;
	uint32_t seed, n_checks;
	bool lossy; /* a NAK that is lost is not repeated: no refusals */
};

static void differs(struct drive *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void differs(struct drive *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "ops: FAILED: %s %s, %u bytes: ", d->q ? ops_type_name(d->q->type) : "-",
		d->step, d->size);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

#define WANT(d, cond, ...)                                                                         \
	do {                                                                                       \
		(d)->n_checks++;                                                                   \
		if (!(cond))                                                                       \
			differs(d, __VA_ARGS__);                                                   \
	} while (0)

/* One order to the server; its answer, which begins with `want`, without it. */
static const char *ask(struct drive *d, const char *want, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static const char *ask(struct drive *d, const char *want, const char *fmt, ...)
{
	size_t n = strlen(want);
	va_list ap;

	va_start(ap, fmt);
	vfprintf(d->out, fmt, ap);
	va_end(ap);
	fprintf(d->out, "\n");
	fflush(d->out);
	if (!fgets(d->line, sizeof(d->line), d->in))
		differs(d, "the server is gone (order %s)", fmt);
	if (strncmp(d->line, want, n) != 0)
		differs(d, "the server answers: %s", d->line);
	return d->line + n;
}

static void open_qp(struct drive *d, enum ibv_qp_type type)
{
	unsigned int qpn, psn, len;
	char gid[64];
	union ibv_gid remote;

	d->step = "connect";
	d->n = (d->n + 1) % OPS_QPS;
	d->q = &d->o->qp[d->n];
	ops_create(d->o, d->q, type);
	ops_gid_print(&d->o->gid, gid);
	WANT(d,
	     sscanf(ask(d, "qp ", "qp %u %s %u %s %u %u", d->n, ops_type_name(type), d->q->mtu, gid,
			d->q->qp->qp_num, d->q->psn),
		    "%63s %u %u %u %" SCNu64 " %u", gid, &qpn, &psn, &d->rkey, &d->addr,
		    &len) == 6 &&
		     ops_gid_parse(gid, &remote),
	     "answer %s", d->line);
	d->remote_qpn = qpn;
	errno = ops_connect(d->o, d->q, &remote, qpn, psn);
	WANT(d, !errno, "modify_qp: %s", strerror(errno));
}

static void close_qp(struct drive *d)
{
	ask(d, "ok", "end %u", d->n);
	ops_destroy(d->q);
	d->q = NULL;
}

static void give_recv(struct drive *d, uint32_t count, uint32_t size)
{
	ask(d, "ok", "recv %u %u %u", d->n, count, size);
}

/* A work request on len bytes at off of the own region. */
static void post(struct drive *d, struct ibv_send_wr *wr, uint64_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)d->o->buf + off, len, d->o->mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = len ? 1 : 0;
	wr->send_flags |= IBV_SEND_SIGNALED;
	if (d->q->type == IBV_QPT_UD) {
		wr->wr.ud.ah = d->q->ah;
		wr->wr.ud.remote_qpn = d->remote_qpn;
		wr->wr.ud.remote_qkey = OPS_QKEY;
	}
	errno = ibv_post_send(d->q->qp, wr, &bad);
	WANT(d, !errno, "post_send: %s", strerror(errno));
}

static enum ibv_wc_status done(struct drive *d)
{
	struct ibv_wc wc;

	WANT(d, ops_wc(d->o->send_cq, &wc, WAIT_MS), "no completion");
	return wc.status;
}

static void want_done(struct drive *d, enum ibv_wc_status status)
{
	enum ibv_wc_status got = done(d);

	WANT(d, got == status, "completion %s, not %s", ibv_wc_status_str(got),
	     ibv_wc_status_str(status));
}

/* The server's next receive; crc of what must be in it. */
static void want_received(struct drive *d, uint32_t len, bool imm, uint32_t value, uint32_t crc)
{
	unsigned int qpn, flags, got_len, got_imm, got_crc;
	int status, opcode;

	WANT(d,
	     sscanf(ask(d, "wc ", "wc %d", WAIT_MS), "%u %d %d %u %u %u %u", &qpn, &status, &opcode,
		    &flags, &got_len, &got_imm, &got_crc) == 7,
	     "answer %s", d->line);
	WANT(d, status == 0, "the receive ends with %s", ibv_wc_status_str(status));
	WANT(d, qpn == d->remote_qpn, "on QP %u, not %u", qpn, d->remote_qpn);
	WANT(d, got_len == len, "%u bytes received", got_len);
	WANT(d, !!(flags & IBV_WC_WITH_IMM) == imm, "flags %u", flags);
	WANT(d, !imm || got_imm == value, "immediate %08x, not %08x", got_imm, value);
	if (opcode == IBV_WC_RECV)
		WANT(d, got_crc == crc, "the data differ");
}

static uint32_t lengths(const struct drive *d, uint32_t i)
{
	uint32_t m = d->q->mtu;
	const uint32_t all[] = {0, 1, 3, m - 1, m, m + 1, 2 * m, 3 * m + 5, 65537, 1u << 20};

	return i < sizeof(all) / sizeof(*all) ? all[i] : UINT32_MAX;
}

static void sends(struct drive *d, uint32_t longest)
{
	uint32_t len;

	for (uint32_t i = 0; (len = lengths(d, i)) != UINT32_MAX; i++) {
		for (int imm = 0; imm < 2 && len <= longest; imm++) {
			struct ibv_send_wr wr = {.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
						 .send_flags = i & 1 ? IBV_SEND_SOLICITED : 0};

			d->step = imm ? "SEND with immediate" : "SEND";
			d->size = len;
			wr.imm_data = htonl(0xabcd0000 + len);
			ops_fill(d->o->buf, len, ++d->seed);
			give_recv(d, 1, len + 40);
			post(d, &wr, 0, len);
			want_done(d, IBV_WC_SUCCESS);
			want_received(d, len, imm, 0xabcd0000 + len, ops_crc32(d->o->buf, len));
		}
	}
}

/* The server's region has, around the target too, what the mirror has. Unreliable packets may
 * still be on their way, hence the tries. */
static void want_mirror(struct drive *d, uint64_t off, uint32_t len, int tries)
{
	uint64_t from = off - EDGE;
	uint32_t n = len + 2 * EDGE, got = 0, want = ops_crc32(d->mirror + from, n);

	do {
		got = (uint32_t)strtoul(ask(d, "crc ", "crc %" PRIu64 " %u", from, n), NULL, 10);
		if (got == want)
			break;
		usleep(10000);
	} while (--tries > 0);
	WANT(d, got == want, "the target differs");
}

static void fill_target(struct drive *d, uint64_t from, uint32_t n)
{
	ask(d, "ok", "fill %" PRIu64 " %u %u", from, n, ++d->seed);
	ops_fill(d->mirror + from, n, d->seed);
}

static void writes(struct drive *d)
{
	bool rc = d->q->type == IBV_QPT_RC;
	uint32_t len;

	for (uint32_t i = 0; (len = lengths(d, i)) != UINT32_MAX; i++) {
		for (int imm = 0; imm < 2; imm++) {
			struct ibv_send_wr wr = {.opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM
							       : IBV_WR_RDMA_WRITE};
			uint64_t off = 4096 + i;

			d->step = imm ? "WRITE with immediate" : "WRITE";
			d->size = len;
			wr.imm_data = htonl(0x1000 + i);
			wr.wr.rdma.remote_addr = d->addr + off;
			wr.wr.rdma.rkey = d->rkey;
			fill_target(d, off - EDGE, len + 2 * EDGE);
			ops_fill(d->o->buf, len, ++d->seed);
			memcpy(d->mirror + off, d->o->buf, len);
			if (imm)
				give_recv(d, 1, 0);
			post(d, &wr, 0, len);
			want_done(d, IBV_WC_SUCCESS);
			if (imm)
				want_received(d, len, true, 0x1000 + i, 0);
			want_mirror(d, off, len, rc ? 1 : 500);
		}
	}
}

static void reads(struct drive *d)
{
	uint32_t len;

	for (uint32_t i = 0; (len = lengths(d, i)) != UINT32_MAX; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};
		uint64_t off = 8192 + i;

		d->step = "READ";
		d->size = len;
		wr.wr.rdma.remote_addr = d->addr + off;
		wr.wr.rdma.rkey = d->rkey;
		fill_target(d, off, len);
		memset(d->o->buf, 0xee, len + 1);
		post(d, &wr, 0, len);
		want_done(d, IBV_WC_SUCCESS);
		WANT(d, !memcmp(d->o->buf, d->mirror + off, len), "the data differ");
		WANT(d, d->o->buf[len] == 0xee, "one byte too many");
	}
}

static uint64_t atomic(struct drive *d, struct ibv_send_wr *wr, uint64_t off)
{
	wr->wr.atomic.remote_addr = d->addr + off;
	wr->wr.atomic.rkey = d->rkey;
	memset(d->o->buf, 0xee, 8);
	post(d, wr, 0, 8);
	want_done(d, IBV_WC_SUCCESS);
	return *(uint64_t *)(void *)d->o->buf;
}

static uint64_t value_at(struct drive *d, uint64_t off)
{
	return strtoull(ask(d, "value ", "get %" PRIu64, off), NULL, 10);
}

static void atomics(struct drive *d)
{
	uint64_t value = 0xfffffffffffffff0ull, off = 2048;

	d->size = 8;
	d->step = "FETCH_ADD";
	ask(d, "value ", "put %" PRIu64 " %" PRIu64, off, value);
	for (uint64_t add = 1; add < 20; add++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
		uint64_t old;

		wr.wr.atomic.compare_add = add;
		old = atomic(d, &wr, off);
		WANT(d, old == value, "returned %" PRIx64 ", not %" PRIx64, old, value);
		value += add;
	}
	WANT(d, value_at(d, off) == value, "the sum is not %" PRIx64, value);
	d->step = "CMP_SWAP";
	for (int hit = 0; hit < 2; hit++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
		uint64_t old;

		wr.wr.atomic.compare_add = hit ? value : value + 1;
		wr.wr.atomic.swap = 0x0123456789abcdefull;
		old = atomic(d, &wr, off);
		WANT(d, old == value, "returned %" PRIx64 ", not %" PRIx64, old, value);
		if (hit)
			value = 0x0123456789abcdefull;
		WANT(d, value_at(d, off) == value, "the word is not %" PRIx64, value);
	}
}

/* A window for two kilobytes: written through, invalidated by a SEND, used once more. */
static void windows(struct drive *d)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	uint64_t off = 16384;
	uint32_t key;

	d->step = "SEND with Invalidate";
	d->size = d->q->mtu + 7;
	key = (uint32_t)strtoul(ask(d, "mw ", "mw %u %" PRIu64 " %u", d->n, off, d->size), NULL,
				10);
	fill_target(d, off - EDGE, d->size + 2 * EDGE);
	ops_fill(d->o->buf, d->size, ++d->seed);
	memcpy(d->mirror + off, d->o->buf, d->size);
	wr.wr.rdma.remote_addr = d->addr + off;
	wr.wr.rdma.rkey = key;
	post(d, &wr, 0, d->size);
	want_done(d, IBV_WC_SUCCESS);
	want_mirror(d, off, d->size, 1);

	wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key};
	give_recv(d, 1, d->size);
	post(d, &wr, 0, d->size);
	want_done(d, IBV_WC_SUCCESS);
	want_received(d, d->size, false, 0, ops_crc32(d->o->buf, d->size));

	key = (uint32_t)strtoul(ask(d, "mw ", "mw %u %" PRIu64 " %u", d->n, off, 8), NULL, 10);
	wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key};
	d->size = 5;
	give_recv(d, 1, d->size);
	post(d, &wr, 0, d->size);
	want_done(d, IBV_WC_SUCCESS);
	want_received(d, d->size, false, 0, ops_crc32(d->o->buf, d->size));

	if (d->lossy)
		return;
	wr = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE};
	d->step = "WRITE by an invalidated key";
	wr.wr.rdma.remote_addr = d->addr + off;
	wr.wr.rdma.rkey = key;
	post(d, &wr, 0, 8);
	want_done(d, IBV_WC_REM_ACCESS_ERR);
}

static void receiver_not_ready(struct drive *d)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_wc wc;

	d->step = "SEND before the receive";
	d->size = 2 * d->q->mtu + 1;
	ops_fill(d->o->buf, d->size, ++d->seed);
	post(d, &wr, 0, d->size);
	WANT(d, !ops_wc(d->o->send_cq, &wc, 30), "completed without a receive");
	give_recv(d, 1, d->size);
	want_done(d, IBV_WC_SUCCESS);
	want_received(d, d->size, false, 0, ops_crc32(d->o->buf, d->size));
}

/* Operations of all kinds in flight together; each WRITE is read back behind it. */
static void mixed(struct drive *d)
{
	uint32_t len = d->q->mtu * 2 + 33, rounds = 16;
	uint64_t off = 1u << 20, local = OPS_HALF, word = 2048;

	d->step = "mixed operations";
	d->size = len;
	ask(d, "value ", "put %" PRIu64 " 0", word);
	give_recv(d, rounds, 64);
	ops_fill(d->o->buf, rounds * len, ++d->seed);
	memset(d->o->buf + local, 0, rounds * len);
	for (uint32_t i = 0; i < rounds; i++) {
		struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE}, send = {0}, add = {0},
				   read = {.opcode = IBV_WR_RDMA_READ};

		write.wr.rdma.remote_addr = read.wr.rdma.remote_addr = d->addr + off + i * len;
		write.wr.rdma.rkey = read.wr.rdma.rkey = d->rkey;
		send.opcode = IBV_WR_SEND;
		add.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		add.wr.atomic.remote_addr = d->addr + word;
		add.wr.atomic.rkey = d->rkey;
		add.wr.atomic.compare_add = 1;
		post(d, &write, i * len, len);
		post(d, &send, i * len, 64);
		post(d, &read, local + i * len, len);
		post(d, &add, OPS_HALF - 8 * (i + 1), 8);
	}
	for (uint32_t i = 0; i < 4 * rounds; i++)
		want_done(d, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t *old = (uint64_t *)(void *)(d->o->buf + OPS_HALF - 8 * (i + 1));

		WANT(d, *old == i, "FETCH_ADD %u returned %" PRIu64, i, *old);
		want_received(d, 64, false, 0, ops_crc32(d->o->buf + i * len, 64));
	}
	WANT(d, value_at(d, word) == rounds, "the sum differs");
	WANT(d, !memcmp(d->o->buf, d->o->buf + local, rounds * len), "what was read back differs");
}

/* Each on a queue pair of its own, which ends in ERR. */
static void refusals(struct drive *d)
{
	static const char *const what[] = {"WRITE by a wrong key", "READ past the end",
					   "READ by a wrong key", "atomic past the end"};

	for (unsigned int i = 0; i < 4; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

		open_qp(d, IBV_QPT_RC);
		d->step = what[i];
		d->size = 8;
		wr.wr.rdma.remote_addr = d->addr + (i & 1 ? 2 * OPS_HALF : 0);
		wr.wr.rdma.rkey = i & 1 ? d->rkey : d->rkey ^ 0x5500;
		if (i == 0)
			wr.opcode = IBV_WR_RDMA_WRITE;
		if (i == 3) {
			wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
			wr.wr.atomic.remote_addr = d->addr + 2 * OPS_HALF;
			wr.wr.atomic.rkey = d->rkey;
		}
		post(d, &wr, 0, 8);
		want_done(d, IBV_WC_REM_ACCESS_ERR);
		WANT(d, !strncmp(ask(d, "state ", "state %u", d->n), "6 ", 2),
		     "the far QP is in state %s", d->line);
		close_qp(d);
	}
}

/* The answer is NAK invalid request (IBA table 56); Linux 6.1 says remote operational error. */
static void receive_too_short(struct drive *d)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	enum ibv_wc_status got;

	open_qp(d, IBV_QPT_RC);
	d->step = "SEND into a short receive";
	d->size = 16;
	give_recv(d, 1, 8);
	post(d, &wr, 0, d->size);
	got = done(d);
	WANT(d, got == IBV_WC_REM_INV_REQ_ERR || got == IBV_WC_REM_OP_ERR, "completion %s",
	     ibv_wc_status_str(got));
	close_qp(d);
}

static void drive_type(struct drive *d, enum ibv_qp_type type)
{
	open_qp(d, type);
	sends(d, type == IBV_QPT_UD ? d->q->mtu : UINT32_MAX);
	if (type != IBV_QPT_UD)
		writes(d);
	if (type == IBV_QPT_RC) {
		reads(d);
		atomics(d);
		receiver_not_ready(d);
		mixed(d);
		windows(d);
	}
	close_qp(d);
	if (type == IBV_QPT_RC && !d->lossy) {
		refusals(d);
		receive_too_short(d);
	}
}

static int dial(const char *host, int port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	char service[16];
	int s;

	snprintf(service, sizeof(service), "%d", port);
	MUST(!getaddrinfo(host, service, &hints, &list));
	s = socket(list->ai_family, SOCK_STREAM, 0);
	if (s < 0 || connect(s, list->ai_addr, list->ai_addrlen))
		ops_die("connect to %s: %s", host, strerror(errno));
	freeaddrinfo(list);
	return s;
}

int ops_drive(struct ops *o, const char *host, int port, const char *what)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct drive d = {.o = o, .mirror = malloc(OPS_HALF), .step = "start"};
	int fd = dial(host, port);

	d.in = fdopen(fd, "r");
	d.out = fdopen(dup(fd), "w");
	MUST(d.in && d.out && d.mirror);
	ops_open(o);
	d.lossy = strstr(what, "-lossy");
	for (int i = 0; i < 3; i++)
		if (!strcmp(what, "all") || ops_type(what) == types[i])
			drive_type(&d, types[i]);
	printf("ops: ok, %u checks\n", d.n_checks);
	fclose(d.in);
	fclose(d.out);
	free(d.mirror);
	ibv_dereg_mr(o->mr);
	ibv_close_device(o->ctx);
	return 0;
}
