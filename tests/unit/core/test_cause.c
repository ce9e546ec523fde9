/* SPDX-License-Identifier: BSD-2-Clause */
/* Which reason of status 12 follows from which facts, and that answers survive the wire. */
#include "support/test.h"

#include <string.h>

#include "core/cause.h"
#include "rules/attr.h"

static const struct vrb_facts base = {.by_wire = true,
				      .type = 2,
				      .qpn = 0x010002,
				      .dqpn = 0x020003,
				      .first = {5},
				      .una = {5},
				      .sent = {9}};

static const struct vrb_ask good = {
	.is_answer = true, .what = VRB_ASK_YOURS, .state = VRB_QPS_RTS, .type = 2, .epsn = {5}};

static void want(const struct vrb_facts *f, enum vrb_verdict v)
{
	const struct vrb_report r = vrb_cause(f);

	assert_string_equal(vrb_verdict_info(r.verdict)->name, vrb_verdict_info(v)->name);
	assert_int_equal(r.qpn, f->qpn);
}

static void test_unanswered(void **state)
{
	struct vrb_facts f = base;

	(void)state;
	want(&f, VRB_V_RETRY_UNTOLD);
	f.way = VRB_WAY_REFUSED;
	want(&f, VRB_V_RETRY_NO_LISTENER);
	f.heard = true;
	want(&f, VRB_V_PEER_GONE);
	f.way = VRB_WAY_OPEN;
	want(&f, VRB_V_RETRY_SILENCE);
	f.way = VRB_WAY_BROKEN;
	f.way_errno = 113;
	want(&f, VRB_V_RETRY_NO_HOST);
	assert_int_equal(vrb_cause(&f).val[0], 113);
	f.way = VRB_WAY_OPEN;
	f.by_name = true;
	want(&f, VRB_V_RETRY_STOPPED);
	f.way = VRB_WAY_REFUSED;
	want(&f, VRB_V_PEER_GONE);
	f.heard = false;
	want(&f, VRB_V_PEER_ABSENT);
}

static void test_answered(void **state)
{
	struct vrb_facts f = base;

	(void)state;
	f.answered = true;
	f.answer = good;
	want(&f, VRB_V_RETRY_LOST);
	f.big = 1100;
	want(&f, VRB_V_RETRY_MTU);
	f.big_answered = true;
	f.answer.epsn.v = 7;
	want(&f, VRB_V_RETRY_ACKS_LOST);
	assert_int_equal(vrb_cause(&f).val[1], 6);
	f.answer.epsn.v = 10;
	want(&f, VRB_V_RETRY_PSN);
	f.answer.epsn.v = 4;
	want(&f, VRB_V_RETRY_PSN);
	f.answer.state = VRB_QPS_INIT;
	want(&f, VRB_V_RETRY_NOT_READY);
	f.answer.state = VRB_QPS_ERR;
	strcpy(f.answer.name, "lkey_stale");
	want(&f, VRB_V_RETRY_QP_ERROR);
	assert_int_equal(vrb_cause(&f).val[1], VRB_V_LKEY_STALE);
	strcpy(f.answer.name, "lkey_stal");
	assert_int_equal(vrb_cause(&f).val[1], 0);
	f.answer.what = VRB_ASK_OTHER;
	want(&f, VRB_V_RETRY_OTHER_PEER);
	f.answer.type = 3;
	want(&f, VRB_V_RETRY_TYPE);
	f.answer.what = VRB_ASK_NO_QP;
	want(&f, VRB_V_RETRY_NO_QP);
	f.answer.what = VRB_ASK_NO_OWNER;
	want(&f, VRB_V_PEER_ABSENT);
}

static void test_bytes(void **state)
{
	struct vrb_ask a = good, b;
	uint8_t bytes[VRB_ASK_LEN + 1];

	(void)state;
	a.qpn = 0x123456;
	a.from = 0x654321;
	a.nonce = 0x1122334455667788;
	memset(a.name, 'x', sizeof(a.name) - 1);
	vrb_ask_emit(&a, bytes);
	assert_true(vrb_ask_parse(bytes, VRB_ASK_LEN, &b));
	assert_int_equal(b.qpn, a.qpn);
	assert_int_equal(b.from, a.from);
	assert_true(b.nonce == a.nonce && b.epsn.v == a.epsn.v && b.is_answer);
	assert_int_equal(b.what, a.what);
	assert_string_equal(b.name, a.name);
	for (uint32_t at = 0; at < 5; at++) {
		bytes[at] ^= 0x40;
		assert_false(vrb_ask_parse(bytes, VRB_ASK_LEN, &b));
		bytes[at] ^= 0x40;
	}
	assert_false(vrb_ask_parse(bytes, VRB_ASK_LEN - 1, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unanswered),
		cmocka_unit_test(test_answered),
		cmocka_unit_test(test_bytes),
	};

	return VRB_RUN_TESTS(tests);
}
