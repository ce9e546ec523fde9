/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts become words: with VERBENA_EXPLAIN=1 each refusal is printed to stderr as
 *     verbena: <counter>: <sentence> (QP 0x...; <clause>)
 *     verbena:   hint: ...
 * A verdict that comes again and again is printed a few times a second, then counted. Drops that
 * are the normal course of things after a loss, or while one end is quicker than the other, and
 * faults that were asked for are said only with VERBENA_EXPLAIN=2.
 */
#include "hca/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lang/lang.h"

#define PER_SECOND 5

static _Atomic int level = -1;
static struct {
	_Atomic uint64_t second;
	_Atomic uint32_t printed, hidden;
} rate[VRB_N_VERDICTS];

static int explain_level(void)
{
	int l = atomic_load_explicit(&level, memory_order_relaxed);

	if (l < 0) {
		const char *s = getenv("VERBENA_EXPLAIN");

		l = s ? atoi(s) : 0;
		if (l < 0)
			l = 0;
		atomic_store_explicit(&level, l, memory_order_relaxed);
	}
	return l;
}

bool vrb_hca_explains(void)
{
	return explain_level() > 0;
}

/* False when this verdict has been printed often enough in this second; n: how many were hidden
 * before. */
static bool may_print(enum vrb_verdict v, uint32_t *hidden)
{
	uint64_t second = vrb_clock_now() / VRB_NS_PER_S;

	*hidden = 0;
	if (atomic_exchange(&rate[v].second, second) != second) {
		*hidden = atomic_exchange(&rate[v].hidden, 0);
		atomic_store(&rate[v].printed, 0);
	}
	if (atomic_fetch_add(&rate[v].printed, 1) < PER_SECOND)
		return true;
	atomic_fetch_add(&rate[v].hidden, 1);
	return false;
}

static bool is_normal(enum vrb_verdict v)
{
	return v == VRB_V_DROP_DUPLICATE || v == VRB_V_DROP_PSN_AHEAD || v == VRB_V_DROP_READ_DUP ||
	       v == VRB_V_DROP_GHOST || v == VRB_V_DROP_STATE || v == VRB_V_DROP_UC_BROKEN ||
	       v == VRB_V_IMPLIED_NAK || v == VRB_V_FAULT_FIRED || v == VRB_V_FAULT_NAK ||
	       v == VRB_V_QP_MOVED || v == VRB_V_NAK_SENT || v == VRB_V_NAK_GOT ||
	       v == VRB_V_ACK_TIMEOUT;
}

void vrb_hca_refuse(const struct vrb_report *r)
{
	const struct vrb_verdict_info *info = vrb_verdict_info(r->verdict);
	struct vrb_engine *e = vrb_engine_current;
	char text[512], line[1024];
	uint32_t hidden;
	int n;

	if (e && e->stats && (unsigned)r->verdict < VRB_STATS_VERDICTS)
		__atomic_fetch_add(&e->stats->verdict[r->verdict], 1, __ATOMIC_RELAXED);
	if (e && r->qpn)
		vrb_story_add(e, r);
	if (vrb_likely(!explain_level()) || (explain_level() < 2 && is_normal(r->verdict)))
		return;
	if (!may_print(r->verdict, &hidden))
		return;
	vrb_verdict_format_in(text, sizeof(text), r, vrb_tr);
	n = snprintf(line, sizeof(line), "verbena: %s: %s (", info->counter, text);
	if (r->qpn)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "QP 0x%06x; ", r->qpn);
	n += snprintf(line + n, sizeof(line) - (size_t)n, vrb_tr("%s)\nverbena:   hint: %s\n"),
		      info->clause, vrb_tr(info->hint));
	if (hidden)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      vrb_tr("verbena:   (%u more of these were not printed)\n"), hidden);
	if (n > (int)sizeof(line) - 1)
		n = (int)sizeof(line) - 1;
	/* One write, so that the lines of several processes do not mix. */
	(void)syscall(SYS_write, STDERR_FILENO, line, (size_t)n);
}
