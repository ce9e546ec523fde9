/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a fault plan: either rules whose values are in their ranges and whose texts lie in
 * the plan, or an error that points into it and can be said. */
#include "fuzz/fuzz.h"

#include "base/fault_plan.h"

static void check_rule(const struct vrb_fault_rule *r, size_t size)
{
	FZ_CHECK(r->text_len > 0 && r->text <= size && r->text_len <= size - r->text);
	FZ_CHECK(r->kind < VRB_FAULT_KINDS && r->class < VRB_FAULT_CLASSES);
	FZ_CHECK(r->dirs >= 1 && r->dirs <= 3);
	FZ_CHECK(r->per_million >= 1 && r->per_million <= VRB_FAULT_PPM);
	FZ_CHECK(r->qpn <= VRB_QPN_MASK && r->packet >= 1);
	FZ_CHECK(r->from < r->until || r->until == r->from);
	if (r->exact)
		FZ_CHECK(r->nth >= 1 && r->times >= 1 && r->dirs < 3);
	if (r->kind == VRB_FAULT_RNR_NAK || r->kind == VRB_FAULT_NAK)
		FZ_CHECK(r->dirs == VRB_FAULT_RX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vrb_fault_plan plan;
	struct vrb_words_error e;
	char text[256];
	size_t n;

	if (vrb_fault_plan_parse((const char *)data, size, &plan, &e)) {
		FZ_CHECK(plan.n >= 1 && plan.n <= VRB_FAULT_RULES_MAX);
		for (uint32_t i = 0; i < plan.n; i++)
			check_rule(&plan.rule[i], size);
		return 0;
	}
	FZ_CHECK(e.line >= 1 && e.column >= 1 && e.expected);
	FZ_CHECK(e.at >= (const char *)data && e.at + e.at_len <= (const char *)data + size);
	n = vrb_words_error_format(text, sizeof(text), &e);
	FZ_CHECK(n > 0 && n < sizeof(text));
	return 0;
}
