/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp done wrong: every required attribute left out of every transition, an attribute too
 * many, transitions that do not exist, values out of range. The rows are made from three short
 * tables before main; each refused call must leave the QP in the state it was in.
 */
#include "kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CASES 160
static struct k_case cases[MAX_CASES];
static char names[MAX_CASES][96];

static const char *const state_names[] = {"reset", "init", "rtr", "rts", "sqd", "sqe", "err"};

static const struct attr_name {
	int bit;
	const char *name;
} attr_names[] = {
	{IBV_QP_PKEY_INDEX, "pkey_index"},
	{IBV_QP_PORT, "port"},
	{IBV_QP_ACCESS_FLAGS, "access_flags"},
	{IBV_QP_QKEY, "qkey"},
	{IBV_QP_AV, "av"},
	{IBV_QP_PATH_MTU, "path_mtu"},
	{IBV_QP_DEST_QPN, "dest_qpn"},
	{IBV_QP_RQ_PSN, "rq_psn"},
	{IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic"},
	{IBV_QP_MIN_RNR_TIMER, "min_rnr_timer"},
	{IBV_QP_SQ_PSN, "sq_psn"},
	{IBV_QP_TIMEOUT, "timeout"},
	{IBV_QP_RETRY_CNT, "retry_cnt"},
	{IBV_QP_RNR_RETRY, "rnr_retry"},
	{IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic"},
};
#define N_ATTRS (int)(sizeof(attr_names) / sizeof(attr_names[0]))

/* c->i = type * 16 + target state. A pair whose A stands one state before it. */
static void stand_before(struct k_pair *p, int i)
{
	struct k_opts o = {.type = (enum ibv_qp_type)(i / 16), .stop = K_STAY};
	struct k_opts ob = {.type = o.type, .stop = K_STAY};

	if (i % 16 > IBV_QPS_INIT)
		o.stop = (enum ibv_qp_state)(i % 16 - 1);
	k_pair(p, &o, &ob);
}

static void want_refused(struct k_pair *p, struct ibv_qp_attr *attr, int mask, const char *said,
			 const char *text)
{
	enum ibv_qp_state was = k_state(&p->a);

	K_WANT_INT(ibv_modify_qp(p->a.qp, attr, mask),
		   mask & IBV_QP_ALT_PATH ? EOPNOTSUPP : EINVAL);
	K_WANT_INT(k_state(&p->a), was);
	K_WANT_SAID(&p->a, said, text);
}

/* The name by which the explanation must call a bit of attr_mask. */
static const char *bit_name(int bit)
{
	static const char *const name[] = {
		"IBV_QP_STATE",
		"IBV_QP_CUR_STATE",
		"IBV_QP_EN_SQD_ASYNC_NOTIFY",
		"IBV_QP_ACCESS_FLAGS",
		"IBV_QP_PKEY_INDEX",
		"IBV_QP_PORT",
		"IBV_QP_QKEY",
		"IBV_QP_AV",
		"IBV_QP_PATH_MTU",
		"IBV_QP_TIMEOUT",
		"IBV_QP_RETRY_CNT",
		"IBV_QP_RNR_RETRY",
		"IBV_QP_RQ_PSN",
		"IBV_QP_MAX_QP_RD_ATOMIC",
		"IBV_QP_ALT_PATH",
		"IBV_QP_MIN_RNR_TIMER",
		"IBV_QP_SQ_PSN",
		"IBV_QP_MAX_DEST_RD_ATOMIC",
		"IBV_QP_PATH_MIG_STATE",
		"IBV_QP_CAP",
		"IBV_QP_DEST_QPN",
	};
	unsigned i = (unsigned)__builtin_ctz((unsigned)bit);

	return i < sizeof(name) / sizeof(name[0]) ? name[i] : "?";
}

static void missing(const struct k_case *c)
{
	struct k_pair p;
	struct ibv_qp_attr attr;
	int mask;

	stand_before(&p, c->i);
	mask = k_attr(&p.a, (enum ibv_qp_state)(c->i % 16), &attr);
	want_refused(&p, &attr, mask & ~c->j, "modify_missing", bit_name(c->j));
	K_WANT_INT(ibv_modify_qp(p.a.qp, &attr, mask), 0);
	K_WANT_INT(k_state(&p.a), c->i % 16);
}

static void surplus(const struct k_case *c)
{
	struct k_pair p;
	struct ibv_qp_attr attr;
	int mask;

	stand_before(&p, c->i);
	mask = k_attr(&p.a, (enum ibv_qp_state)(c->i % 16), &attr);
	want_refused(&p, &attr, mask | c->j, "modify_surplus", bit_name(c->j));
}

static void no_way(const struct k_case *c)
{
	enum ibv_qp_state from = (enum ibv_qp_state)c->i, to = (enum ibv_qp_state)c->j;
	struct k_opts o = {.stop = from == IBV_QPS_RESET ? K_STAY : from};
	struct k_pair p;
	struct ibv_qp_attr attr;
	int mask;

	if (from > IBV_QPS_RTS)
		o.stop = IBV_QPS_RTS;
	k_pair(&p, &o, NULL);
	if (from > IBV_QPS_RTS)
		K_WANT_INT(k_modify(&p.a, from), 0);
	mask = k_attr(&p.a, to, &attr);
	want_refused(&p, &attr, mask, "modify_transition", NULL);
}

static const struct bad_value {
	const char *name;
	enum ibv_qp_state to;
	const char *said;
} bad_values[] = {
	{"port_2", IBV_QPS_INIT, "modify_port"},
	{"port_0", IBV_QPS_INIT, "modify_port"},
	{"pkey_index_9", IBV_QPS_INIT, "modify_pkey_index"},
	{"access_unknown", IBV_QPS_INIT, "modify_access"},
	{"not_global", IBV_QPS_RTR, "modify_no_grh"},
	{"sgid_index_200", IBV_QPS_RTR, "modify_sgid_index"},
	{"dgid_zero", IBV_QPS_RTR, "modify_dgid"},
	{"dgid_multicast", IBV_QPS_RTR, "modify_dgid"},
	{"path_mtu_0", IBV_QPS_RTR, "modify_path_mtu"},
	{"path_mtu_6", IBV_QPS_RTR, "modify_path_mtu"},
	{"dest_qpn_25_bits", IBV_QPS_RTR, "modify_dest_qpn"},
	{"rq_psn_25_bits", IBV_QPS_RTR, "modify_psn"},
	{"dest_rd_atomic_255", IBV_QPS_RTR, "modify_rd_atomic"},
	{"min_rnr_timer_32", IBV_QPS_RTR, "modify_rnr_timer"},
	{"sq_psn_25_bits", IBV_QPS_RTS, "modify_psn"},
	{"rd_atomic_255", IBV_QPS_RTS, "modify_rd_atomic"},
	{"timeout_32", IBV_QPS_RTS, "modify_timeout"},
	{"retry_cnt_8", IBV_QPS_RTS, "modify_retry"},
	{"rnr_retry_8", IBV_QPS_RTS, "modify_retry"},
	{"cur_state_wrong", IBV_QPS_RTS, "modify_cur_state"},
	{"alt_path", IBV_QPS_RTS, "modify_alt_path"},
};
#define N_BAD_VALUES (int)(sizeof(bad_values) / sizeof(bad_values[0]))

static void spoil_init(const char *name, struct ibv_qp_attr *a)
{
	if (!strcmp(name, "port_2"))
		a->port_num = 2;
	else if (!strcmp(name, "port_0"))
		a->port_num = 0;
	else if (!strcmp(name, "pkey_index_9"))
		a->pkey_index = 9;
	else if (!strcmp(name, "access_unknown"))
		a->qp_access_flags |= 1u << 30;
}

static void spoil_rtr(const char *name, struct ibv_qp_attr *a)
{
	if (!strcmp(name, "not_global"))
		a->ah_attr.is_global = 0;
	else if (!strcmp(name, "sgid_index_200"))
		a->ah_attr.grh.sgid_index = 200;
	else if (!strcmp(name, "dgid_zero"))
		memset(&a->ah_attr.grh.dgid, 0, sizeof(union ibv_gid));
	else if (!strcmp(name, "dgid_multicast"))
		a->ah_attr.grh.dgid.raw[12] = 239; /* ::ffff:239.x.y.z */
	else if (!strcmp(name, "path_mtu_0"))
		a->path_mtu = (enum ibv_mtu)0;
	else if (!strcmp(name, "path_mtu_6"))
		a->path_mtu = (enum ibv_mtu)6;
	else if (!strcmp(name, "dest_qpn_25_bits"))
		a->dest_qp_num |= 1u << 24;
	else if (!strcmp(name, "rq_psn_25_bits"))
		a->rq_psn = 1u << 24;
	else if (!strcmp(name, "dest_rd_atomic_255"))
		a->max_dest_rd_atomic = 255;
	else if (!strcmp(name, "min_rnr_timer_32"))
		a->min_rnr_timer = 32;
}

static int spoil_rts(const char *name, struct ibv_qp_attr *a)
{
	if (!strcmp(name, "sq_psn_25_bits"))
		a->sq_psn = 1u << 24;
	else if (!strcmp(name, "rd_atomic_255"))
		a->max_rd_atomic = 255;
	else if (!strcmp(name, "timeout_32"))
		a->timeout = 32;
	else if (!strcmp(name, "retry_cnt_8"))
		a->retry_cnt = 8;
	else if (!strcmp(name, "rnr_retry_8"))
		a->rnr_retry = 8;
	else if (!strcmp(name, "cur_state_wrong"))
		a->cur_qp_state = IBV_QPS_INIT;
	if (!strcmp(name, "cur_state_wrong"))
		return IBV_QP_CUR_STATE;
	return strcmp(name, "alt_path") ? 0 : IBV_QP_ALT_PATH;
}

static void value(const struct k_case *c)
{
	const struct bad_value *v = &bad_values[c->i];
	struct k_pair p;
	struct ibv_qp_attr attr;
	int mask;

	stand_before(&p, IBV_QPT_RC * 16 + (int)v->to);
	mask = k_attr(&p.a, v->to, &attr);
	if (v->to == IBV_QPS_INIT)
		spoil_init(v->name, &attr);
	else if (v->to == IBV_QPS_RTR)
		spoil_rtr(v->name, &attr);
	else
		mask |= spoil_rts(v->name, &attr);
	want_refused(&p, &attr, mask, v->said, NULL);
}

/* A destination that is not of this host, when there shall be no wire. */
static void unreachable(const struct k_case *c)
{
	struct k_pair p;
	struct ibv_qp_attr attr;
	int mask;

	(void)c;
	stand_before(&p, IBV_QPT_RC * 16 + IBV_QPS_RTR);
	mask = k_attr(&p.a, IBV_QPS_RTR, &attr);
	memset(&attr.ah_attr.grh.dgid, 0, 16);
	memset(&attr.ah_attr.grh.dgid.raw[10], 0xff, 2);
	memcpy(&attr.ah_attr.grh.dgid.raw[12], "\300\000\002\001", 4); /* 192.0.2.1 */
	setenv("VERBENA_LINK", "shm", 1);
	K_CHECK(ibv_modify_qp(p.a.qp, &attr, mask) != 0);
	unsetenv("VERBENA_LINK");
	K_WANT_INT(k_state(&p.a), IBV_QPS_INIT);
	K_WANT_SAID(&p.a, "modify_unreachable", NULL);
}

/* ---- building the table */

static int n_cases;

static void add(void (*run)(const struct k_case *), int i, int j, const char *name)
{
	struct k_case *c = &cases[n_cases];

	if (n_cases == MAX_CASES)
		return;
	snprintf(names[n_cases], sizeof(names[0]), "%s", name);
	*c = (struct k_case){.name = names[n_cases], .run = run, .i = i, .j = j, .local = true};
	n_cases++;
}

static void add_missing(int type, const char *type_name, int to)
{
	struct k_end e = {.opts = {.type = (enum ibv_qp_type)type}};
	struct ibv_qp_attr attr;
	int mask = k_attr(&e, (enum ibv_qp_state)to, &attr) & ~IBV_QP_STATE;
	char name[96];

	for (int a = 0; a < N_ATTRS; a++) {
		if (!(mask & attr_names[a].bit))
			continue;
		snprintf(name, sizeof(name), "%s_to_%s_without_%s", type_name, state_names[to],
			 attr_names[a].name);
		add(missing, type * 16 + to, attr_names[a].bit, name);
	}
	snprintf(name, sizeof(name), "%s_to_%s_with_surplus", type_name, state_names[to]);
	add(surplus, type * 16 + to, to == IBV_QPS_INIT ? IBV_QP_DEST_QPN : IBV_QP_PORT, name);
}

__attribute__((constructor)) static void build(void)
{
	static const struct {
		int from, to;
	} none[] = {
		{0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 3}, {1, 4}, {1, 5}, {2, 1}, {2, 2}, {2, 4},
		{2, 5}, {3, 1}, {3, 2}, {4, 1}, {4, 2}, {6, 1}, {6, 2}, {6, 3}, {6, 4}, {6, 5},
	};
	char name[96];

	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
		add_missing(IBV_QPT_RC, "rc", to);
		add_missing(IBV_QPT_UC, "uc", to);
		add_missing(IBV_QPT_UD, "ud", to);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		snprintf(name, sizeof(name), "no_way_from_%s_to_%s", state_names[none[i].from],
			 state_names[none[i].to]);
		add(no_way, none[i].from, none[i].to, name);
	}
	for (int i = 0; i < N_BAD_VALUES; i++)
		add(value, i, 0, bad_values[i].name);
	add(unreachable, 0, 0, "dgid_unreachable");
}

const struct k_group k_modify_group = {"modify", cases, MAX_CASES};
