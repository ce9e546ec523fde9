/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops [-1] serve PORT | drive HOST PORT [rc|rc-lossy|uc|ud|all] | gids   with -d DEVICE -g
 * GID-INDEX -m PATH-MTU -t TIMEOUT-CODE. See ops.h.
 */
#include "ops.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void ops_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "ops: FAILED: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

static struct ibv_context *open_device(const char *want)
{
	struct ibv_context *ctx = NULL;
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && !ctx; i++)
		if (!want || !strcmp(want, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!ctx) {
		fprintf(stderr, "ops: no RDMA device %s\n", want ? want : "at all");
		exit(77);
	}
	return ctx;
}

/* "DEVICE INDEX GID" of everything there is. */
static int print_gids(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	union ibv_gid gid, none = {{0}};
	char text[64];

	for (int i = 0; list && list[i]; i++) {
		struct ibv_context *ctx = ibv_open_device(list[i]);

		for (int k = 0; ctx && k < 16; k++) {
			if (ibv_query_gid(ctx, 1, k, &gid) || !memcmp(&gid, &none, sizeof(gid)))
				continue;
			ops_gid_print(&gid, text);
			printf("%s %d %s\n", ibv_get_device_name(list[i]), k, text);
		}
		if (ctx)
			ibv_close_device(ctx);
	}
	return 0;
}

void ops_open(struct ops *o)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

	o->ctx = open_device(o->device);
	MUST(!ibv_query_gid(o->ctx, 1, o->gid_index, &o->gid));
	MUST((o->pd = ibv_alloc_pd(o->ctx)));
	MUST((o->send_cq = ibv_create_cq(o->ctx, OPS_QPS * OPS_DEPTH, NULL, NULL, 0)));
	MUST((o->recv_cq = ibv_create_cq(o->ctx, OPS_QPS * OPS_DEPTH, NULL, NULL, 0)));
	o->buf = mmap(NULL, 2 * OPS_HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	MUST(o->buf != MAP_FAILED);
	MUST((o->mr = ibv_reg_mr(o->pd, o->buf, 2 * OPS_HALF, access)));
}

void ops_create(struct ops *o, struct ops_qp *q, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.send_cq = o->send_cq, .recv_cq = o->recv_cq};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	memset(q, 0, sizeof(*q));
	init.qp_type = type;
	init.cap.max_send_wr = init.cap.max_recv_wr = OPS_DEPTH;
	init.cap.max_send_sge = init.cap.max_recv_sge = 2;
	MUST((q->qp = ibv_create_qp(o->pd, &init)));
	q->type = type;
	q->mtu = o->mtu;
	/* Every other one goes over the edge of the PSNs. */
	q->psn = (uint32_t)(getpid() * 2654435761u + q->qp->qp_num) & 0xffffff;
	if (q->qp->qp_num & 1)
		q->psn = 0xfffff0 | (q->psn & 15);
	if (type == IBV_QPT_UD) {
		a.qkey = OPS_QKEY;
		mask |= IBV_QP_QKEY;
	} else {
		a.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		if (type == IBV_QPT_UC)
			a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	MUST(!ibv_modify_qp(q->qp, &a, mask));
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 128u << code < bytes)
		code++;
	return code;
}

static int to_rtr(struct ops *o, struct ops_qp *q, const struct ibv_ah_attr *ah, uint32_t psn)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .ah_attr = *ah};
	int mask = IBV_QP_STATE;

	if (q->type == IBV_QPT_UD) {
		q->ah = ibv_create_ah(o->pd, &a.ah_attr);
		return q->ah ? ibv_modify_qp(q->qp, &a, mask) : errno;
	}
	a.path_mtu = mtu_code(q->mtu);
	a.dest_qp_num = q->remote_qpn;
	a.rq_psn = psn;
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (q->type == IBV_QPT_RC) {
		a.max_dest_rd_atomic = 8;
		a.min_rnr_timer = 12;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return ibv_modify_qp(q->qp, &a, mask);
}

int ops_connect(struct ops *o, struct ops_qp *q, const union ibv_gid *gid, uint32_t qpn,
		uint32_t psn)
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .sq_psn = q->psn};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, err;

	ah.grh.dgid = *gid;
	ah.grh.sgid_index = (uint8_t)o->gid_index;
	ah.grh.hop_limit = 64;
	q->remote_qpn = qpn;
	err = to_rtr(o, q, &ah, psn);
	if (err)
		return err;
	if (q->type == IBV_QPT_RC) {
		a.timeout = (uint8_t)o->timeout;
		a.retry_cnt = 7;
		a.rnr_retry = 7;
		a.max_rd_atomic = 8;
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	return ibv_modify_qp(q->qp, &a, mask);
}

void ops_destroy(struct ops_qp *q)
{
	if (q->ah)
		ibv_destroy_ah(q->ah);
	if (q->qp)
		ibv_destroy_qp(q->qp);
	memset(q, 0, sizeof(*q));
}

int ops_recv(struct ops *o, struct ops_qp *q, uint32_t n, uint32_t size)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slots = OPS_HALF / (size ? size : 1);
		uint64_t off = OPS_HALF + (uint64_t)(q->n_recv % slots) * size;
		struct ibv_sge sge = {(uintptr_t)o->buf + off, size, o->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = off, .sg_list = &sge, .num_sge = 1}, *bad;
		int err = ibv_post_recv(q->qp, &wr, &bad);

		if (err)
			return err;
		q->n_recv++;
	}
	return 0;
}

uint8_t *ops_recv_data(const struct ops *o, uint64_t wr_id)
{
	return o->buf + wr_id;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool ops_wc(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	int64_t end = now_ms() + ms;

	do {
		int n = ibv_poll_cq(cq, 1, wc);

		MUST(n >= 0);
		if (n)
			return true;
		sched_yield();
	} while (now_ms() < end);
	return false;
}

enum ibv_qp_type ops_type(const char *name)
{
	return !strcmp(name, "ud") ? IBV_QPT_UD : !strcmp(name, "uc") ? IBV_QPT_UC : IBV_QPT_RC;
}

const char *ops_type_name(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? "ud" : type == IBV_QPT_UC ? "uc" : "rc";
}

bool ops_gid_parse(const char *text, union ibv_gid *gid)
{
	return inet_pton(AF_INET6, text, gid) == 1;
}

void ops_gid_print(const union ibv_gid *gid, char out[64])
{
	inet_ntop(AF_INET6, gid, out, 64);
}

void ops_fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed * 131 + i * 7 + (i >> 8) * 3);
}

uint32_t ops_crc32(const void *p, size_t n)
{
	const uint8_t *b = p;
	static uint32_t table[256];
	uint32_t crc = 0xffffffff;

	for (uint32_t i = 0; !table[255] && i < 256; i++) {
		table[i] = i;
		for (int k = 0; k < 8; k++)
			table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
	for (size_t i = 0; i < n; i++)
		crc = (crc >> 8) ^ table[(crc ^ b[i]) & 255];
	return ~crc;
}

int main(int argc, char **argv)
{
	struct ops o = {.mtu = 1024, .timeout = 14};
	bool once = false;
	int opt;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "d:g:m:t:1")) != -1) {
		if (opt == 'd')
			o.device = optarg;
		else if (opt == 'g')
			o.gid_index = atoi(optarg);
		else if (opt == 'm')
			o.mtu = (uint32_t)atoi(optarg);
		else if (opt == '1')
			once = true;
		else if (opt == 't')
			o.timeout = atoi(optarg);
	}
	if (argc - optind >= 2 && !strcmp(argv[optind], "serve"))
		return ops_serve(&o, atoi(argv[optind + 1]), once);
	if (argc - optind >= 3 && !strcmp(argv[optind], "drive"))
		return ops_drive(&o, argv[optind + 1], atoi(argv[optind + 2]),
				 argc - optind > 3 ? argv[optind + 3] : "all");
	if (argc - optind >= 1 && !strcmp(argv[optind], "gids"))
		return print_gids();
	fprintf(stderr,
		"usage: ops [-d DEVICE] [-g GID-INDEX] [-m MTU] [-t TIMEOUT] [-1] serve PORT | "
		"drive HOST PORT [rc|rc-lossy|uc|ud|all] | gids\n");
	return 2;
}
