/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The passive end. Each TCP connection gets a process with its own device; each line of it is one
 * order and has one line of answer, "error ..." when it could not be done. N is the number of a
 * queue pair of this connection, 0 to 7.
 *
 *   qp N TYPE MTU GID QPN PSN    create, connect      qp GID QPN PSN RKEY ADDRESS LENGTH
 *   recv N COUNT SIZE            post receives        ok
 *   wc MS                        next receive         wc QPN STATUS OPCODE FLAGS LENGTH IMM CRC
 *                                                     or "none" when none comes within MS
 *   fill OFFSET LENGTH SEED      pattern              ok
 *   crc OFFSET LENGTH            of the region        crc CRC
 *   get OFFSET | put OFFSET V    64 bits              value V
 *   mw N OFFSET LENGTH           a bound window       mw RKEY
 *   send N LENGTH                post a SEND          ok
 *   read N LENGTH                post a READ          ok
 *   sent MS                      next completion      sent STATUS, or "none"
 *   state N                                           state QP-STATE RECEIVES-TAKEN
 *   end N                        destroy              ok
 *   pid                          of this connection   pid PID
 *
 * IMM is as the application sees it; of UD the CRC leaves out the GRH. A driver that goes away ends
 * its process.
 */
#include "ops.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool in_region(uint64_t off, uint64_t len)
{
	return off <= 2 * OPS_HALF && len <= 2 * OPS_HALF - off;
}

static struct ops_qp *find_qp(struct ops *o, const char *args)
{
	unsigned int n;

	if (sscanf(args, "%u", &n) != 1 || n >= OPS_QPS)
		return NULL;
	return &o->qp[n];
}

static void order_qp(struct ops *o, const char *args, FILE *out)
{
	unsigned int n, mtu, qpn, psn;
	char type[8], text[64];
	union ibv_gid gid;
	struct ops_qp *q;
	int err;

	if (sscanf(args, "%u %7s %u %63s %u %u", &n, type, &mtu, text, &qpn, &psn) != 6 ||
	    n >= OPS_QPS || o->qp[n].qp || !ops_gid_parse(text, &gid)) {
		fprintf(out, "error arguments\n");
		return;
	}
	q = &o->qp[n];
	ops_create(o, q, ops_type(type));
	q->mtu = mtu;
	err = ops_connect(o, q, &gid, qpn, psn);
	if (err) {
		fprintf(out, "error connect %s\n", strerror(err));
		ops_destroy(q);
		return;
	}
	ops_gid_print(&o->gid, text);
	fprintf(out, "qp %s %u %u %u %" PRIu64 " %u\n", text, q->qp->qp_num, q->psn, o->mr->rkey,
		(uint64_t)(uintptr_t)o->buf, OPS_HALF);
}

static void order_recv(struct ops *o, const char *args, FILE *out)
{
	struct ops_qp *q = find_qp(o, args);
	unsigned int n, count, size;
	int err;

	if (!q || !q->qp || sscanf(args, "%u %u %u", &n, &count, &size) != 3 || size > OPS_HALF) {
		fprintf(out, "error arguments\n");
		return;
	}
	err = ops_recv(o, q, count, size);
	fprintf(out, err ? "error post_recv %s\n" : "ok\n", strerror(err));
}

static void order_wc(struct ops *o, const char *args, FILE *out)
{
	struct ibv_wc wc;
	uint32_t skip = 0, crc = 0;

	if (!ops_wc(o->recv_cq, &wc, atoi(args))) {
		fprintf(out, "none\n");
		return;
	}
	for (int i = 0; i < OPS_QPS; i++) {
		if (!o->qp[i].qp || o->qp[i].qp->qp_num != wc.qp_num)
			continue;
		o->qp[i].n_done++;
		skip = o->qp[i].type == IBV_QPT_UD ? 40 : 0;
	}
	if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len >= skip)
		crc = ops_crc32(ops_recv_data(o, wc.wr_id) + skip, wc.byte_len - skip);
	if (wc.status != IBV_WC_SUCCESS)
		fprintf(out, "wc %u %d 0 0 0 0 0\n", wc.qp_num, wc.status);
	else
		fprintf(out, "wc %u %d %d %u %u %u %u\n", wc.qp_num, wc.status, wc.opcode,
			wc.wc_flags, wc.byte_len - skip,
			wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : ntohl(wc.imm_data),
			crc);
}

static void order_region(struct ops *o, const char *order, const char *args, FILE *out)
{
	uint64_t off, len = 8, value = 0;
	int n = sscanf(args, "%" SCNu64 " %" SCNu64 " %" SCNu64, &off, &len, &value);
	uint64_t *word;

	if (n < 1 || (*order == 'g' && (off & 7)))
		off = UINT64_MAX;
	if (*order == 'p') { /* its second word is a value */
		value = len;
		len = 8;
	}
	if (!in_region(off, len)) {
		fprintf(out, "error arguments\n");
		return;
	}
	word = (uint64_t *)(void *)(o->buf + off);
	if (*order == 'c') {
		fprintf(out, "crc %u\n", ops_crc32(o->buf + off, len));
	} else if (*order == 'f') {
		ops_fill(o->buf + off, len, (uint32_t)value);
		fprintf(out, "ok\n");
	} else {
		if (*order == 'p')
			__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
		fprintf(out, "value %" PRIu64 "\n", __atomic_load_n(word, __ATOMIC_SEQ_CST));
	}
}

static void order_mw(struct ops *o, const char *args, FILE *out)
{
	struct ops_qp *q = find_qp(o, args);
	struct ibv_mw *mw = q && q->qp ? ibv_alloc_mw(o->pd, IBV_MW_TYPE_2) : NULL;
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;
	uint64_t off, len;
	unsigned int n;

	if (!mw || sscanf(args, "%u %" SCNu64 " %" SCNu64, &n, &off, &len) != 3 ||
	    !in_region(off, len)) {
		fprintf(out, "error no window\n");
		return;
	}
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = o->mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)o->buf + off;
	wr.bind_mw.bind_info.length = len;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	if (ibv_post_send(q->qp, &wr, &bad) || !ops_wc(o->send_cq, &wc, 2000) || wc.status)
		fprintf(out, "error bind\n");
	else
		fprintf(out, "mw %u\n", wr.bind_mw.rkey);
}

/* A READ asks for an address and a key of nobody. */
static void order_send(struct ops *o, enum ibv_wr_opcode op, const char *args, FILE *out)
{
	struct ops_qp *q = find_qp(o, args);
	struct ibv_sge sge = {(uintptr_t)o->buf, 0, o->mr->lkey};
	struct ibv_send_wr wr = {.opcode = op, .send_flags = IBV_SEND_SIGNALED}, *bad;
	unsigned int n;
	int err;

	if (!q || !q->qp || sscanf(args, "%u %u", &n, &sge.length) != 2 || sge.length > OPS_HALF) {
		fprintf(out, "error arguments\n");
		return;
	}
	wr.sg_list = &sge;
	wr.num_sge = 1;
	if (op == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = 4096;
		wr.wr.rdma.rkey = 7;
	} else {
		wr.wr.ud.ah = q->ah;
		wr.wr.ud.remote_qpn = q->remote_qpn;
		wr.wr.ud.remote_qkey = OPS_QKEY;
	}
	err = ibv_post_send(q->qp, &wr, &bad);
	fprintf(out, err ? "error post_send %s\n" : "ok\n", strerror(err));
}

static void order_sent(struct ops *o, const char *args, FILE *out)
{
	struct ibv_wc wc;

	if (ops_wc(o->send_cq, &wc, atoi(args)))
		fprintf(out, "sent %d\n", wc.status);
	else
		fprintf(out, "none\n");
}

static void order_state(struct ops_qp *q, FILE *out)
{
	struct ibv_qp_attr a = {0};
	struct ibv_qp_init_attr init;

	if (ibv_query_qp(q->qp, &a, IBV_QP_STATE, &init))
		fprintf(out, "error query_qp\n");
	else
		fprintf(out, "state %d %u\n", a.qp_state, q->n_done);
}

static void obey(struct ops *o, char *line, FILE *out)
{
	char *order = line, *args = line + strcspn(line, " \n");
	struct ops_qp *q;

	if (*args)
		*args++ = 0;
	q = find_qp(o, args);
	if (!strcmp(order, "qp"))
		order_qp(o, args, out);
	else if (!strcmp(order, "recv"))
		order_recv(o, args, out);
	else if (!strcmp(order, "wc"))
		order_wc(o, args, out);
	else if (!strcmp(order, "pid"))
		fprintf(out, "pid %d\n", (int)getpid());
	else if (!strcmp(order, "send"))
		order_send(o, IBV_WR_SEND, args, out);
	else if (!strcmp(order, "read"))
		order_send(o, IBV_WR_RDMA_READ, args, out);
	else if (!strcmp(order, "sent"))
		order_sent(o, args, out);
	else if (!strcmp(order, "mw"))
		order_mw(o, args, out);
	else if (!strcmp(order, "crc") || !strcmp(order, "fill") || !strcmp(order, "get") ||
		 !strcmp(order, "put"))
		order_region(o, order, args, out);
	else if (!strcmp(order, "state") && q && q->qp)
		order_state(q, out);
	else if (!strcmp(order, "end") && q) {
		ops_destroy(q);
		fprintf(out, "ok\n");
	} else
		fprintf(out, "error unknown order\n");
}

static void serve_one(struct ops *o, int fd)
{
	FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
	char line[256];

	MUST(in && out);
	ops_open(o);
	while (fgets(line, sizeof(line), in)) {
		obey(o, line, out);
		fflush(out);
	}
	for (int i = 0; i < OPS_QPS; i++)
		ops_destroy(&o->qp[i]);
	ibv_dereg_mr(o->mr);
	ibv_close_device(o->ctx);
	exit(0);
}

int ops_serve(struct ops *o, int port, bool once)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int s = socket(AF_INET6, SOCK_STREAM, 0), one = 1, status;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	MUST(s >= 0 && !bind(s, (struct sockaddr *)&a, sizeof(a)) && !listen(s, 16));
	printf("ops: listening on %d\n", port);
	for (;;) {
		struct pollfd waiting = {.fd = s, .events = POLLIN};
		int fd = poll(&waiting, 1, 200) == 1 ? accept(s, NULL, NULL) : -1;
		pid_t pid = fd < 0 ? -1 : fork();

		if (!pid) {
			close(s);
			serve_one(o, fd);
		}
		if (fd >= 0)
			close(fd);
		while (waitpid(-1, &status, once && pid > 0 ? 0 : WNOHANG) > 0) {
			if (status)
				printf("ops: a server process ended with status 0x%x\n", status);
			if (once)
				return status ? 1 : 0;
		}
	}
}
