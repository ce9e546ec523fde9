/* SPDX-License-Identifier: BSD-2-Clause */
/* See kit.h. */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define QKEY 0x1234u

static int ear = -1, real_err;

static uint32_t or_default(uint32_t v, uint32_t d)
{
	return v ? v : d;
}

static int find_gid(struct lab *l, union ibv_gid *gid)
{
	struct ibv_gid_entry e;

	for (int i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(l->ctx, 1, (uint32_t)i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		*gid = e.gid;
		return i;
	}
	die("no RoCE v2 GID");
}

static void make_qp(struct lab *l, int i)
{
	struct ibv_qp_init_attr a = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.qp_type = l->o.type,
		.cap = {l->o.send_wr, l->o.recv_wr, l->o.sges, l->o.sges, l->o.inl},
	};

	l->qp[i] = ibv_create_qp(l->pd, &a);
	MUST(l->qp[i]);
	l->cap = a.cap;
}

static void lab_qps_to(struct lab *l, int state)
{
	make_qp(l, 0);
	make_qp(l, 1);
	for (int to = IBV_QPS_INIT; to <= state; to++)
		for (int i = 0; i < 2; i++)
			MUST(!lab_to(l, i, (enum ibv_qp_state)to));
}

void lab_qps(struct lab *l)
{
	lab_qps_to(l, IBV_QPS_RTS);
}

void lab_open(struct lab *l, const struct opt *o)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	heard_start();
	memset(l, 0, sizeof(*l));
	l->o = o ? *o : (struct opt){0};
	l->o.type = l->o.type ? l->o.type : IBV_QPT_RC;
	l->o.send_wr = or_default(l->o.send_wr, 16);
	l->o.recv_wr = or_default(l->o.recv_wr, 16);
	l->o.sges = or_default(l->o.sges, 2);
	l->o.inl = or_default(l->o.inl, 64);
	l->o.mtu = l->o.mtu ? l->o.mtu : IBV_MTU_1024;
	l->o.mtu_b = l->o.mtu_b ? l->o.mtu_b : l->o.mtu;
	l->o.stop = l->o.stop == STAY ? IBV_QPS_RESET : l->o.stop ? l->o.stop : IBV_QPS_RTS;
	l->ctx = end_device();
	MUST((l->pd = ibv_alloc_pd(l->ctx)) != NULL);
	MUST((l->pd2 = ibv_alloc_pd(l->ctx)) != NULL);
	if (l->o.channel)
		MUST((l->ch = ibv_create_comp_channel(l->ctx)) != NULL);
	l->cq = ibv_create_cq(l->ctx, (int)or_default((uint32_t)l->o.cqe, 64), NULL, l->ch, 0);
	MUST(l->cq);
	l->buf = aligned_alloc(4096, LAB_LEN);
	MUST(l->buf);
	memset(l->buf, 1, LAB_LEN);
	MUST((l->mr = ibv_reg_mr(l->pd, l->buf, LAB_LEN, all)) != NULL);
	l->path = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	l->path.grh.sgid_index = (uint8_t)find_gid(l, &l->path.grh.dgid);
	lab_qps_to(l, l->o.stop);
	if (l->o.type == IBV_QPT_UD)
		MUST((l->ah = ibv_create_ah(l->pd, &l->path)) != NULL);
}

int lab_attr(struct lab *l, int i, enum ibv_qp_state to, struct ibv_qp_attr *a)
{
	bool rc = l->o.type == IBV_QPT_RC, ud = l->o.type == IBV_QPT_UD;

	*a = (struct ibv_qp_attr){
		.qp_state = to,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.path_mtu = i ? l->o.mtu_b : l->o.mtu,
		.dest_qp_num = l->qp[!i]->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = l->path,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	if (to == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (to == IBV_QPS_RTR && ud)
		return IBV_QP_STATE;
	if (to == IBV_QPS_RTR)
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (to == IBV_QPS_RTS)
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_MAX_QP_RD_ATOMIC
			   : 0);
	return IBV_QP_STATE;
}

int lab_to(struct lab *l, int i, enum ibv_qp_state to)
{
	struct ibv_qp_attr a;
	int mask = lab_attr(l, i, to, &a);

	return ibv_modify_qp(l->qp[i], &a, mask);
}

void lab_close(struct lab *l)
{
	if (l->ah)
		MUST(!ibv_destroy_ah(l->ah));
	for (int i = 0; i < 2; i++)
		if (l->qp[i])
			MUST(!ibv_destroy_qp(l->qp[i]));
	if (l->cq)
		MUST(!ibv_destroy_cq(l->cq));
	if (l->ch)
		MUST(!ibv_destroy_comp_channel(l->ch));
	if (l->mr)
		MUST(!ibv_dereg_mr(l->mr));
	MUST(!ibv_dealloc_pd(l->pd));
	MUST(!ibv_dealloc_pd(l->pd2));
	MUST(!ibv_close_device(l->ctx));
	free(l->buf);
}

struct ibv_sge lab_sge(struct lab *l)
{
	return (struct ibv_sge){(uintptr_t)l->buf, 64, l->mr->lkey};
}

int lab_send(struct lab *l, struct ibv_sge *sge, int n, unsigned int flags)
{
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = sge,
				 .num_sge = n,
				 .opcode = IBV_WR_SEND,
				 .send_flags = flags};
	struct ibv_send_wr *bad;

	if (l->ah) {
		wr.wr.ud.ah = l->ah;
		wr.wr.ud.remote_qpn = l->qp[1]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	return ibv_post_send(l->qp[0], &wr, &bad);
}

int lab_recv(struct lab *l, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = {.wr_id = 70, .sg_list = sge, .num_sge = n}, *bad;

	return ibv_post_recv(l->qp[1], &wr, &bad);
}

void lab_poll(struct lab *l, int n, struct ibv_wc *last)
{
	double until = now_s() + WAIT_MS / 1e3;
	struct ibv_wc wc;

	while (n) {
		int got = ibv_poll_cq(l->cq, 1, &wc);

		MUST(got >= 0 && now_s() < until);
		if (got && last)
			*last = wc;
		n -= got;
	}
}

/* ---- what was said */

static char text[1 << 16];
static size_t seen;

void heard_start(void)
{
	if (ear >= 0 || getenv("VRB_TEST_DEAF"))
		return;
	real_err = dup(2);
	ear = memfd_create("heard", MFD_CLOEXEC);
	MUST(ear >= 0);
	fcntl(ear, F_SETFL, O_APPEND);
	dup2(ear, 2);
}

const char *heard_text(void)
{
	ssize_t n = pread(ear, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Lines "verbena: counter: ..." since the last look; those of the device's own explanations, whose
 * text names no call, are not switched on here. */
const char *heard(void)
{
	static char out[2048];
	const char *at = heard_text() + seen;
	size_t n = 0;

	out[0] = '\0';
	for (; (at = strstr(at, "verbena: ")) != NULL; at++) {
		const char *name = at + 9, *end = strchr(name, ':');

		if ((at > text && at[-1] != '\n') || *name == ' ' || !end)
			continue;
		if (n + (size_t)(end - name) + 2 < sizeof(out))
			n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s", n ? " " : "",
					      (int)(end - name), name);
	}
	seen = strlen(text);
	return out;
}

static void fail(const char *what, const char *wanted, const char *got)
{
	dprintf(real_err, "    wanted %s \"%s\", was \"%s\"; all of it:\n%s", what, wanted, got,
		heard_text());
	_exit(1);
}

void want(const char *counters)
{
	const char *got = ear < 0 ? counters : heard();

	if (strcmp(got, counters))
		fail("findings", counters, got);
}

void want_text(const char *part)
{
	if (ear >= 0 && !strstr(heard_text(), part))
		fail("the text", part, "not there");
}
