/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules/modify.c: every cell of the transition table against a second, independent statement of it
 * (IBA table 91 written as text rows), every attribute's range, and every verdict of the MODIFY
 * section reached.
 */
#include "rules/modify.h"
#include "rules/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define CASES(a) (sizeof(a) / sizeof((a)[0]))

enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR };
enum { RC = VRB_QPT_RC, UC = VRB_QPT_UC, UD = VRB_QPT_UD };

static const struct {
	const char *name;
	uint32_t bit;
} bits[] = {
	{"cur", VRB_QPA_CUR_STATE},
	{"notify", VRB_QPA_EN_SQD_ASYNC},
	{"access", VRB_QPA_ACCESS},
	{"pkey", VRB_QPA_PKEY_INDEX},
	{"port", VRB_QPA_PORT},
	{"qkey", VRB_QPA_QKEY},
	{"av", VRB_QPA_AV},
	{"mtu", VRB_QPA_PATH_MTU},
	{"timeout", VRB_QPA_TIMEOUT},
	{"retry", VRB_QPA_RETRY_CNT},
	{"rnr_retry", VRB_QPA_RNR_RETRY},
	{"rq_psn", VRB_QPA_RQ_PSN},
	{"rd", VRB_QPA_MAX_QP_RD_ATOMIC},
	{"alt", VRB_QPA_ALT_PATH},
	{"rnr_timer", VRB_QPA_MIN_RNR_TIMER},
	{"sq_psn", VRB_QPA_SQ_PSN},
	{"dest_rd", VRB_QPA_MAX_DEST_RD_ATOMIC},
	{"mig", VRB_QPA_PATH_MIG_STATE},
	{"dest_qpn", VRB_QPA_DEST_QPN},
};

static const struct {
	uint32_t type, from, to;
	const char *required, *optional;
} ways[] = {
	{RC, RESET, INIT, "pkey port access", ""},
	{RC, INIT, INIT, "", "pkey port access"},
	{RC, INIT, RTR, "av mtu dest_qpn rq_psn dest_rd rnr_timer", "alt access pkey"},
	{RC, RTR, RTS, "sq_psn timeout retry rnr_retry rd", "cur alt access rnr_timer mig"},
	{RC, RTS, RTS, "", "cur alt access rnr_timer mig"},
	{RC, RTS, SQD, "", "notify"},
	{RC, SQD, SQD, "",
	 "port av timeout retry rnr_retry rd dest_rd alt access pkey rnr_timer mig"},
	{RC, SQD, RTS, "", "cur alt access rnr_timer mig"},
	{UC, RESET, INIT, "pkey port access", ""},
	{UC, INIT, INIT, "", "pkey port access"},
	{UC, INIT, RTR, "av mtu dest_qpn rq_psn", "alt access pkey"},
	{UC, RTR, RTS, "sq_psn", "cur alt access mig"},
	{UC, RTS, RTS, "", "cur alt access mig"},
	{UC, RTS, SQD, "", "notify"},
	{UC, SQD, SQD, "", "av alt access pkey mig"},
	{UC, SQD, RTS, "", "cur alt access mig"},
	{UC, SQE, RTS, "", "cur access"},
	{UD, RESET, INIT, "pkey port qkey", ""},
	{UD, INIT, INIT, "", "pkey port qkey"},
	{UD, INIT, RTR, "", "pkey qkey"},
	{UD, RTR, RTS, "sq_psn", "cur qkey"},
	{UD, RTS, RTS, "", "cur qkey"},
	{UD, RTS, SQD, "", "notify"},
	{UD, SQD, SQD, "", "pkey qkey"},
	{UD, SQD, RTS, "", "cur qkey"},
	{UD, SQE, RTS, "", "cur qkey"},
};

static uint32_t mask_of(const char *words)
{
	uint32_t mask = 0;
	char copy[128], *save, *w;

	snprintf(copy, sizeof(copy), "%s", words);
	for (w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		uint32_t bit = 0;

		for (size_t i = 0; i < CASES(bits); i++)
			if (!strcmp(bits[i].name, w))
				bit = bits[i].bit;
		assert_int_not_equal(bit, 0);
		mask |= bit;
	}
	return mask;
}

static struct vrb_rules_port port(void)
{
	return (struct vrb_rules_port){
		.gid_valid = 0xd, /* 0: IPv4, 1: empty, 2: IPv6, 3: IPv4 of RoCE v1 */
		.gid_v4 = 0x9,
		.gid_v1 = 0x8,
		.n_gids = 16,
		.n_ports = 1,
		.n_pkeys = 1,
		.max_mtu = 5,
		.max_rd_atomic = 16,
	};
}

static struct vrb_gid gid4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct vrb_gid){{[10] = 0xff, [11] = 0xff, [12] = a, [13] = b, [14] = c, [15] = d}};
}

/* Attributes that are good in every transition. */
static struct vrb_qp_attr good(uint32_t to, uint32_t cur)
{
	return (struct vrb_qp_attr){
		.state = (uint8_t)to,
		.cur_state = (uint8_t)cur,
		.path_mtu = 3,
		.port = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.access = 0xf,
		.dest_qpn = 0x010003,
		.rq_psn = 0xffffff,
		.sq_psn = 1,
		.dgid = gid4(10, 0, 0, 1),
		.is_global = 1,
		.av_port = 1,
	};
}

static enum vrb_verdict ask(uint32_t type, uint32_t from, const struct vrb_qp_attr *a,
			    uint32_t mask, struct vrb_report *r)
{
	struct vrb_rules_port p = port();
	struct vrb_rules_modify m = {
		.type = type, .cur = from, .attr = a, .mask = mask, .port = &p};

	memset(r, 0, sizeof(*r));
	return vrb_rules_modify(&m, r);
}

static void every_cell(void **state)
{
	(void)state;
	for (uint32_t type = RC; type <= UD; type++)
		for (uint32_t cell = 0; cell < 49; cell++) {
			uint32_t from = cell / 7, to = cell % 7, req = 0, opt = 0;
			bool want = to == RESET || to == ERR;
			const struct vrb_rules_transition *t = vrb_rules_transition(type, from, to);

			for (size_t i = 0; i < CASES(ways); i++)
				if (ways[i].type == type && ways[i].from == from &&
				    ways[i].to == to) {
					want = true;
					req = mask_of(ways[i].required);
					opt = mask_of(ways[i].optional);
				}
			assert_non_null(t);
			assert_int_equal(t->allowed, want);
			assert_int_equal(t->required, req);
			assert_int_equal(t->optional, opt);
		}
	assert_null(vrb_rules_transition(RC, 7, 0));
	assert_null(vrb_rules_transition(RC, 0, 7));
	assert_null(vrb_rules_transition(1, 0, 0));
	assert_null(vrb_rules_transition(5, 0, 0));
}

/* In each way: all is accepted, each missing and each surplus bit is named, alone. */
static void each_bit_missing_or_surplus(void **state)
{
	const uint32_t refused_by_value = VRB_QPA_ALT_PATH;
	struct vrb_report r;

	(void)state;
	for (size_t w = 0; w < CASES(ways); w++) {
		uint32_t req = mask_of(ways[w].required), opt = mask_of(ways[w].optional);
		uint32_t full = VRB_QPA_STATE | req | (opt & ~refused_by_value);
		uint32_t from = ways[w].from, to = ways[w].to, type = ways[w].type;
		struct vrb_qp_attr a = good(to, from);

		assert_int_equal(ask(type, from, &a, full, &r), VRB_OK);
		for (size_t i = 0; i < CASES(bits); i++) {
			uint32_t b = bits[i].bit;

			if (req & b) {
				assert_int_equal(ask(type, from, &a, full & ~b, &r),
						 VRB_V_MODIFY_MISSING);
				assert_int_equal(r.val[2], b);
			} else if (!(opt & b)) {
				assert_int_equal(ask(type, from, &a, full | b, &r),
						 VRB_V_MODIFY_SURPLUS);
				assert_int_equal(r.val[2], b);
			} else {
				assert_int_equal(ask(type, from, &a, full & ~b, &r), VRB_OK);
				continue;
			}
			assert_int_equal(r.val[0], from);
			assert_int_equal(r.val[1], to);
			assert_int_equal(r.verdict == VRB_V_MODIFY_MISSING, !!(req & b));
		}
		assert_int_equal(ask(type, from, &a, full | VRB_QPA_CAP, &r), VRB_V_MODIFY_SURPLUS);
		assert_int_equal(ask(type, from, &a, full | VRB_QPA_RATE_LIMIT, &r),
				 VRB_V_MODIFY_SURPLUS);
	}
}

static void no_way(void **state)
{
	struct vrb_qp_attr a = good(RTR, RESET);
	struct vrb_report r;

	(void)state;
	assert_int_equal(ask(RC, RESET, &a, VRB_QPA_STATE, &r), VRB_V_MODIFY_TRANSITION);
	assert_int_equal(r.verdict, VRB_V_MODIFY_TRANSITION);
	assert_int_equal(r.val[0], RESET);
	assert_int_equal(r.val[1], RTR);
	a.state = 255;
	assert_int_equal(ask(RC, RTS, &a, VRB_QPA_STATE, &r), VRB_V_MODIFY_TRANSITION);
	a.state = ERR;
	assert_int_equal(ask(RC, ERR, &a, VRB_QPA_STATE, &r), VRB_OK);
	assert_int_equal(ask(RC, RTS, &a, VRB_QPA_STATE | VRB_QPA_PORT, &r), VRB_V_MODIFY_SURPLUS);
	/* without the state bit: from the state to itself */
	assert_int_equal(ask(RC, RTS, &a, VRB_QPA_MIN_RNR_TIMER, &r), VRB_OK);
	assert_int_equal(ask(RC, RTR, &a, VRB_QPA_MIN_RNR_TIMER, &r), VRB_V_MODIFY_TRANSITION);
}

static const uint32_t RTR_MASK = VRB_QPA_STATE | VRB_QPA_AV | VRB_QPA_PATH_MTU | VRB_QPA_DEST_QPN |
				 VRB_QPA_RQ_PSN | VRB_QPA_MAX_DEST_RD_ATOMIC |
				 VRB_QPA_MIN_RNR_TIMER;
static const uint32_t RTS_MASK = VRB_QPA_STATE | VRB_QPA_SQ_PSN | VRB_QPA_TIMEOUT |
				 VRB_QPA_RETRY_CNT | VRB_QPA_RNR_RETRY | VRB_QPA_MAX_QP_RD_ATOMIC;
static const uint32_t INIT_MASK =
	VRB_QPA_STATE | VRB_QPA_PKEY_INDEX | VRB_QPA_PORT | VRB_QPA_ACCESS;

/* One attribute wrong, all else good: the verdict and its first two values. */
static void ranges(void **state)
{
	struct vrb_report r;
	struct vrb_qp_attr a;

	(void)state;
#define WRONG(from, to, mask, field, value, want, v0, v1)                                          \
	do {                                                                                       \
		a = good(to, from);                                                                \
		a.field = value;                                                                   \
		assert_int_equal(ask(RC, from, &a, mask, &r), want);                               \
		assert_int_equal(r.verdict, want);                                                 \
		assert_int_equal(r.val[0], v0);                                                    \
		assert_int_equal(r.val[1], v1);                                                    \
	} while (0)
	WRONG(RESET, INIT, INIT_MASK, pkey_index, 1, VRB_V_MODIFY_PKEY_INDEX, 1, 1);
	WRONG(RESET, INIT, INIT_MASK, port, 0, VRB_V_MODIFY_PORT, 0, 1);
	WRONG(RESET, INIT, INIT_MASK, port, 2, VRB_V_MODIFY_PORT, 2, 1);
	WRONG(RESET, INIT, INIT_MASK, access, 0x100, VRB_V_MODIFY_ACCESS, 0x100, 0);
	WRONG(INIT, RTR, RTR_MASK, path_mtu, 0, VRB_V_MODIFY_PATH_MTU, 0, 5);
	WRONG(INIT, RTR, RTR_MASK, path_mtu, 6, VRB_V_MODIFY_PATH_MTU, 6, 5);
	WRONG(INIT, RTR, RTR_MASK, dest_qpn, 1u << 24, VRB_V_MODIFY_DEST_QPN, 1u << 24, 0xffffff);
	WRONG(INIT, RTR, RTR_MASK, rq_psn, 1u << 24, VRB_V_MODIFY_PSN, 1u << 24, 0xffffff);
	WRONG(INIT, RTR, RTR_MASK, max_dest_rd_atomic, 17, VRB_V_MODIFY_RD_ATOMIC, 17, 16);
	WRONG(INIT, RTR, RTR_MASK, min_rnr_timer, 32, VRB_V_MODIFY_RNR_TIMER, 32, 31);
	WRONG(INIT, RTR, RTR_MASK, is_global, 0, VRB_V_MODIFY_NO_GRH, 0, 0);
	WRONG(INIT, RTR, RTR_MASK, sgid_index, 1, VRB_V_MODIFY_SGID_INDEX, 1, 16);
	WRONG(INIT, RTR, RTR_MASK, sgid_index, 16, VRB_V_MODIFY_SGID_INDEX, 16, 16);
	WRONG(INIT, RTR, RTR_MASK, sgid_index, 255, VRB_V_MODIFY_SGID_INDEX, 255, 16);
	WRONG(INIT, RTR, RTR_MASK, sgid_index, 3, VRB_V_MODIFY_GID_V1, 3, 0);
	WRONG(INIT, RTR, RTR_MASK, sgid_index, 2, VRB_V_MODIFY_DGID, 0, 0); /* v6 source, v4 dest */
	WRONG(INIT, RTR, RTR_MASK, av_port, 0, VRB_V_MODIFY_PORT, 0, 1);
	WRONG(INIT, RTR, RTR_MASK | VRB_QPA_ALT_PATH, sl, 0, VRB_V_MODIFY_ALT_PATH, 0, 0);
	WRONG(RTR, RTS, RTS_MASK, sq_psn, 0xffffffff, VRB_V_MODIFY_PSN, 0xffffffff, 0xffffff);
	WRONG(RTR, RTS, RTS_MASK, timeout, 32, VRB_V_MODIFY_TIMEOUT, 32, 31);
	WRONG(RTR, RTS, RTS_MASK, retry_cnt, 8, VRB_V_MODIFY_RETRY, 8, 7);
	WRONG(RTR, RTS, RTS_MASK, rnr_retry, 8, VRB_V_MODIFY_RETRY, 8, 7);
	WRONG(RTR, RTS, RTS_MASK, max_rd_atomic, 17, VRB_V_MODIFY_RD_ATOMIC, 17, 16);
	WRONG(RTR, RTS, RTS_MASK | VRB_QPA_PATH_MIG_STATE, path_mig_state, 1, VRB_V_MODIFY_ALT_PATH,
	      0, 0);
	WRONG(RTR, RTS, RTS_MASK | VRB_QPA_CUR_STATE, cur_state, RTS, VRB_V_MODIFY_CUR_STATE, RTS,
	      RTR);
	WRONG(RTR, RTS, RTS_MASK | VRB_QPA_PATH_MIG_STATE, sl, 3, VRB_OK, 0, 0);
#undef WRONG
}

static void destinations(void **state)
{
	static const struct {
		struct vrb_gid gid;
		uint8_t sgid_index;
		bool unicast, multicast;
	} t[] = {
		{{{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}, 0, true, false},
		{{{[10] = 0xff, [11] = 0xff, [12] = 223, [15] = 1}}, 0, true, false},
		{{{[10] = 0xff, [11] = 0xff, [12] = 224, [15] = 1}}, 0, false, true},
		{{{[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1}}, 0, false, true},
		{{{[10] = 0xff, [11] = 0xff, [12] = 255, [15] = 255}}, 0, false, false},
		{{{[10] = 0xff, [11] = 0xff}}, 0, false, false},
		{{{0}}, 0, false, false},
		{{{0}}, 2, false, false},
		{{{[15] = 1}}, 2, true, false},
		{{{0xfe, 0x80, [15] = 1}}, 2, true, false},
		{{{0xfe, 0x80, [15] = 1}}, 0, false, false},
		{{{0xff, 0x02, [15] = 1}}, 2, false, true},
	};
	struct vrb_rules_port p = port();
	struct vrb_report r;

	(void)state;
	for (size_t i = 0; i < CASES(t); i++) {
		struct vrb_qp_attr a = good(RTR, INIT);

		a.dgid = t[i].gid;
		a.sgid_index = t[i].sgid_index;
		assert_int_equal(vrb_rules_av(&a, &p, false, &r),
				 t[i].unicast ? VRB_OK : VRB_V_MODIFY_DGID);
		assert_int_equal(vrb_rules_av(&a, &p, true, &r),
				 t[i].unicast || t[i].multicast ? VRB_OK : VRB_V_MODIFY_DGID);
	}
}

static void attaching(void **state)
{
	const struct vrb_gid group4 = gid4(239, 1, 2, 3), host4 = gid4(240, 0, 0, 1);
	const struct vrb_gid group6 = {{0xff, 0x02}}, host6 = {{0xfe, 0x80}};
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_rules_attach(UD, &group4, &r), VRB_OK);
	assert_int_equal(vrb_rules_attach(UD, &group6, &r), VRB_OK);
	assert_int_equal(vrb_rules_attach(UD, &host4, &r), VRB_V_MCAST_ATTACH);
	assert_int_equal(vrb_rules_attach(UD, &host6, &r), VRB_V_MCAST_ATTACH);
	assert_int_equal(vrb_rules_attach(RC, &group6, &r), VRB_V_MCAST_ATTACH);
	assert_int_equal(r.val[0], RC);
}

/* A device that does not reset what is in RESET. */
static void reset_to_reset(void **state)
{
	struct vrb_qp_attr a = good(VRB_QPS_RESET, VRB_QPS_RESET);
	struct vrb_rules_port p = port();
	struct vrb_rules_modify m = {
		.type = VRB_QPT_RC, .attr = &a, .mask = VRB_QPA_STATE, .port = &p};
	struct vrb_report r;

	(void)state;
	for (m.cur = VRB_QPS_RESET; m.cur < VRB_N_QP_STATES; m.cur++) {
		p.no_reset_to_reset = false;
		assert_int_equal(vrb_rules_modify(&m, &r), VRB_OK);
		p.no_reset_to_reset = true;
		assert_int_equal(vrb_rules_modify(&m, &r),
				 m.cur ? VRB_OK : VRB_V_MODIFY_TRANSITION);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reset_to_reset),
		cmocka_unit_test(every_cell),
		cmocka_unit_test(each_bit_missing_or_surplus),
		cmocka_unit_test(no_way),
		cmocka_unit_test(ranges),
		cmocka_unit_test(destinations),
		cmocka_unit_test(attaching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
