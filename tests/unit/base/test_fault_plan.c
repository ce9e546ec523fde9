/* SPDX-License-Identifier: BSD-2-Clause */
/* Fault plans: what each form of a rule means, and where and why a text is no plan. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault_plan.h"

static struct vrb_fault_plan plan;
static struct vrb_words_error error;

static bool parse(const char *text)
{
	/* a copy without a terminator, so that a sanitizer sees who reads beyond the end */
	size_t len = strlen(text);
	char *copy = malloc(len + !len);
	bool good;

	memcpy(copy, text, len);
	good = vrb_fault_plan_parse(copy, len, &plan, &error);
	free(copy);
	return good;
}

static const struct vrb_fault_rule *one(const char *text)
{
	if (!parse(text))
		fail_msg("%s: column %u: expected %s", text, error.column, error.expected);
	assert_int_equal(plan.n, 1);
	assert_int_equal(plan.rule[0].text_len, strlen(text));
	return &plan.rule[0];
}

static void test_chance(void **state)
{
	const struct vrb_fault_rule *r;

	(void)state;
	r = one("tx loss 1%");
	assert_int_equal(r->kind, VRB_FAULT_DROP);
	assert_int_equal(r->class, VRB_FAULT_ANY);
	assert_int_equal(r->dirs, VRB_FAULT_TX);
	assert_int_equal(r->per_million, 10000);
	assert_false(r->exact);
	assert_int_equal(r->times, 0);
	assert_int_equal(r->from, 0);
	assert_true(r->until == VRB_NS_NEVER);
	r = one("rx corrupt 0.1%");
	assert_int_equal(r->kind, VRB_FAULT_CORRUPT);
	assert_int_equal(r->dirs, VRB_FAULT_RX);
	assert_int_equal(r->per_million, 1000);
	r = one("both read-response drop 100%");
	assert_int_equal(r->dirs, VRB_FAULT_TX | VRB_FAULT_RX);
	assert_int_equal(r->class, VRB_FAULT_READ_RESPONSE);
	assert_int_equal(r->per_million, VRB_FAULT_PPM);
	assert_int_equal(one("qp 2 tx duplicate 0.0001%")->per_million, 1);
	assert_int_equal(plan.rule[0].qp, 2);
	assert_int_equal(one("qpn 0xabc rx nak loss 5%")->qpn, 0xabc);
	assert_int_equal(plan.rule[0].class, VRB_FAULT_NAKS);
	assert_int_equal(plan.rule[0].kind, VRB_FAULT_DROP);
	assert_int_equal(one("rx rnr-nak 5%")->kind, VRB_FAULT_RNR_NAK);
	assert_int_equal(one("rx rnr-nak loss 5%")->class, VRB_FAULT_RNR_NAKS);
	assert_int_equal(one("rx send nak sequence 1%")->nak, VRB_FAULT_SEQUENCE);
	assert_int_equal(one("rx nak operational 1%")->kind, VRB_FAULT_NAK);
}

static void test_times(void **state)
{
	const struct vrb_fault_rule *r;

	(void)state;
	r = one("tx reorder 2% 200us times 3");
	assert_int_equal(r->kind, VRB_FAULT_REORDER);
	assert_int_equal(r->time, 200000);
	assert_int_equal(r->times, 3);
	r = one("tx delay 1ms jitter 0.25ms");
	assert_int_equal(r->per_million, VRB_FAULT_PPM);
	assert_int_equal(r->time, 1000000);
	assert_int_equal(r->jitter, 250000);
	assert_int_equal(one("tx delay 10% 17ns")->time, 17);
	assert_int_equal(plan.rule[0].per_million, 100000);
	r = one("partition from 2s for 500ms");
	assert_int_equal(r->kind, VRB_FAULT_PARTITION);
	assert_int_equal(r->dirs, VRB_FAULT_TX | VRB_FAULT_RX);
	assert_true(r->from == 2 * VRB_NS_PER_S);
	assert_true(r->until == 2500 * VRB_NS_PER_MS);
	assert_true(one("qp 1 partition")->until == VRB_NS_NEVER);
	assert_true(one("tx loss 1% for 3600s")->until == 3600 * VRB_NS_PER_S);
	assert_int_equal(one("tx blackhole above 1500")->above, 1500);
}

static void test_exact(void **state)
{
	const struct vrb_fault_rule *r;

	(void)state;
	r = one("qp 3 rx send 5 rnr-nak times 2");
	assert_true(r->exact && !r->by_packet);
	assert_int_equal(r->qp, 3);
	assert_int_equal(r->class, VRB_FAULT_SEND);
	assert_int_equal(r->nth, 5);
	assert_int_equal(r->packet, 1);
	assert_int_equal(r->kind, VRB_FAULT_RNR_NAK);
	assert_int_equal(r->times, 2);
	r = one("qp 3 tx ack next drop");
	assert_true(r->exact && r->by_packet);
	assert_int_equal(r->class, VRB_FAULT_ACKS);
	assert_int_equal(r->nth, 1);
	assert_int_equal(r->times, 1);
	r = one("qp 1 tx read-response 2 packet 3 corrupt");
	assert_int_equal(r->packet, 3);
	assert_int_equal(r->kind, VRB_FAULT_CORRUPT);
	assert_int_equal(one("tx write 1 packet last drop")->packet, VRB_FAULT_PACKET_LAST);
	r = one("tx write packet 9 drop");
	assert_true(r->by_packet);
	assert_int_equal(r->nth, 9);
	assert_int_equal(one("rx write 2 rnr-nak")->packet, VRB_FAULT_PACKET_LAST);
	assert_int_equal(one("rx nak 2 drop")->class, VRB_FAULT_NAKS);
	assert_int_equal(one("rx atomic 1 nak access")->nak, VRB_FAULT_ACCESS);
	assert_int_equal(one("tx any 7 delay 1ms")->time, 1000000);
}

static void test_plan(void **state)
{
	static const char text[] = "# two rules\nseed 0x2A ; tx loss 1% # of all\n\n"
				   "\t rx  loss\t2% ;; \r\n;";

	(void)state;
	assert_true(parse(text));
	assert_int_equal(plan.seed, 42);
	assert_int_equal(plan.n, 2);
	assert_int_equal(plan.rule[0].text_len, strlen("tx loss 1%"));
	assert_memory_equal(text + plan.rule[0].text, "tx loss 1%", 10);
	assert_memory_equal(text + plan.rule[1].text, "rx  loss\t2%", 11);
	assert_true(parse("tx loss 1%"));
	assert_int_equal(plan.seed, 1);
	assert_true(vrb_fault_is_text("tx loss 1%") && vrb_fault_is_text("x\n"));
	assert_true(vrb_fault_is_text("partition") && vrb_fault_is_text("partition;"));
	assert_false(vrb_fault_is_text("plan.txt") || vrb_fault_is_text(""));
	assert_false(vrb_fault_is_text("partition.txt"));
	assert_string_equal(vrb_fault_kind_name(VRB_FAULT_DELAY), "delay");
	assert_string_equal(vrb_fault_kind_name(VRB_FAULT_KINDS), "");
}

/* Each way to be wrong: where, and a word of what is expected there. */
static const struct {
	const char *text;
	uint32_t line, column;
	const char *expected;
} wrong[] = {
	{"", 1, 1, "a rule"},
	{" # nothing\n", 2, 1, "a rule"},
	{"seed 1", 1, 7, "a rule"},
	{"seed", 1, 5, "a number"},
	{"seed 1x", 1, 6, "a number"},
	{"seed 0x", 1, 6, "a number"},
	{"seed 99999999999999999999", 1, 6, "a number"},
	{"seed 1 2", 1, 8, "end of the rule"},
	{"seed 1\nseed 2", 2, 1, "the seed has been given"},
	{"lose 1%", 1, 1, "tx, rx, both, qp"},
	{"tx loss 1%; ty loss 1%", 1, 13, "tx, rx, both, qp"},
	{"qp 1 loss", 1, 6, "partition"},
	{"qp", 1, 3, "number of the queue pair"},
	{"qp 0 tx loss 1%", 1, 4, "counted from 1"},
	{"qp 4294967296 tx loss 1%", 1, 4, "counted from 1"},
	{"qpn 0x1 tx loss 1%", 1, 5, "a QPN"},
	{"qpn 0x1000000 tx loss 1%", 1, 5, "a QPN"},
	{"qpn abc tx loss 1%", 1, 5, "a QPN"},
	{"tx", 1, 3, "a class of packets"},
	{"tx losss 5%", 1, 4, "a class of packets"},
	{"tx send", 1, 8, "a fault: loss"},
	{"tx send 5", 1, 10, "a fault: loss"},
	{"tx send 0 drop", 1, 9, "counted from 1"},
	{"tx send 5x drop", 1, 9, "counted from 1"},
	{"tx send packet drop", 1, 16, "number of the packet"},
	{"tx send 5 packet drop", 1, 18, "or last"},
	{"tx ack 5 packet 2 drop", 1, 10, "one by one"},
	{"both send 5 drop", 1, 11, "one direction"},
	{"tx loss", 1, 8, "a percentage"},
	{"tx loss 5", 1, 9, "a percentage"},
	{"tx loss 101%", 1, 9, "0.0001% to 100%"},
	{"tx loss 0%", 1, 9, "0.0001% to 100%"},
	{"tx loss x%", 1, 9, "0.0001% to 100%"},
	{"tx loss 1.%", 1, 9, "0.0001% to 100%"},
	{"tx send 5 drop 1%", 1, 16, "no percentage"},
	{"tx reorder 1%", 1, 14, "a time"},
	{"tx reorder 1% 5", 1, 15, "a time with its unit"},
	{"tx delay 5min", 1, 10, "a time with its unit"},
	{"tx delay 61s", 1, 10, "a shorter time"},
	{"tx delay 1ms jitter", 1, 20, "a time"},
	{"tx blackhole 1500", 1, 14, "above"},
	{"tx blackhole above", 1, 19, "bytes"},
	{"tx send 1 blackhole above 9", 1, 21, "no single packet"},
	{"tx rnr-nak 5%", 1, 4, "what rx receives"},
	{"tx send nak invalid 5%", 1, 13, "what rx receives"},
	{"rx atomic rnr-nak 5%", 1, 11, "rnr-nak needs"},
	{"rx send nak access 1%", 1, 13, "access needs"},
	{"rx ack nak invalid 1%", 1, 12, "answers requests"},
	{"rx send nak 1%", 1, 13, "sequence, invalid"},
	{"tx loss 1% 2", 1, 12, "times, from, for"},
	{"tx loss 1% times 0", 1, 18, "how many times"},
	{"tx loss 1% times 1 times 1", 1, 20, "times, from, for"},
	{"tx loss 1% for 1s from 1s", 1, 19, "times, from, for"},
	{"tx loss 1% from 3601s", 1, 17, "a shorter time"},
	{"tx loss 1% for 1s for 1s", 1, 19, "times, from, for"},
	{"tx loss 1% from", 1, 16, "a time"},
};

static void test_wrong(void **state)
{
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(parse(wrong[i].text));
		if (error.line != wrong[i].line || error.column != wrong[i].column ||
		    !strstr(error.expected, wrong[i].expected))
			fail_msg("%s: line %u, column %u: expected %s", wrong[i].text, error.line,
				 error.column, error.expected);
	}
	assert_false(vrb_fault_plan_parse("tx lo\1ss", 8, &plan, &error));
	vrb_words_error_format(text, sizeof(text), &error);
	assert_memory_equal(text, "line 1, column 4: `lo?ss`, but expected a class", 46);
	assert_false(vrb_fault_plan_parse("tx loss", 7, &plan, &error));
	vrb_words_error_format(text, sizeof(text), &error);
	assert_string_equal(text, "line 1, column 8: the line ends, but expected a percentage, "
				  "such as 0.5%");
	/* a zero byte is no end */
	assert_false(vrb_fault_plan_parse("tx\0loss 1%", 10, &plan, &error));
	assert_int_equal(error.column, 1);
}

static void test_limits(void **state)
{
	static char text[VRB_FAULT_TEXT_MAX + 1];
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < VRB_FAULT_RULES_MAX; i++)
		n += (size_t)sprintf(text + n, "tx loss 1%%\n");
	assert_true(parse(text));
	assert_int_equal(plan.n, VRB_FAULT_RULES_MAX);
	strcpy(text + n, "tx loss 1%");
	assert_false(parse(text));
	assert_int_equal(error.line, VRB_FAULT_RULES_MAX + 1);
	assert_non_null(strstr(error.expected, "at most 64 rules"));
	memset(text, ' ', sizeof(text));
	assert_false(vrb_fault_plan_parse(text, sizeof(text), &plan, &error));
	assert_non_null(strstr(error.expected, "at most 16384 bytes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chance), cmocka_unit_test(test_times),
		cmocka_unit_test(test_exact),  cmocka_unit_test(test_plan),
		cmocka_unit_test(test_wrong),  cmocka_unit_test(test_limits),
	};

	return VRB_RUN_TESTS(tests);
}
