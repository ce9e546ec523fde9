/* SPDX-License-Identifier: BSD-2-Clause */
/* Why nobody answered; see cause.h. The order of the questions is that of what excludes what. */
#include "core/cause.h"

#include "rules/attr.h"

static struct vrb_report say(const struct vrb_facts *f, enum vrb_verdict v, uint64_t a, uint64_t b)
{
	return (struct vrb_report){.verdict = v, .qpn = f->qpn, .val = {a, b}};
}

static struct vrb_report nobody(const struct vrb_facts *f)
{
	if (f->heard)
		return say(f, VRB_V_PEER_GONE, f->dqpn >> VRB_QPN_INDEX_BITS, 0);
	return say(f, VRB_V_PEER_ABSENT, f->dqpn, 0);
}

static struct vrb_report unanswered(const struct vrb_facts *f)
{
	if (f->way == VRB_WAY_BROKEN)
		return say(f, VRB_V_RETRY_NO_HOST, (uint64_t)f->way_errno, 0);
	if (f->way == VRB_WAY_REFUSED && !f->by_name && !f->heard)
		return say(f, VRB_V_RETRY_NO_LISTENER, f->dqpn, 0);
	if (f->way == VRB_WAY_REFUSED)
		return nobody(f);
	if (f->by_name)
		return say(f, VRB_V_RETRY_STOPPED, f->dqpn >> VRB_QPN_INDEX_BITS, 0);
	return say(f, f->heard ? VRB_V_RETRY_SILENCE : VRB_V_RETRY_UNTOLD, f->dqpn, 0);
}

/* The verdict with that counter; 0 none that this version knows. */
static uint64_t by_name(const char *counter)
{
	for (unsigned v = 1; v < VRB_N_VERDICTS; v++) {
		const char *c = vrb_verdict_info((enum vrb_verdict)v)->counter;
		size_t i = 0;

		while (i < VRB_ASK_NAME_SIZE - 1 && c[i] && c[i] == counter[i])
			i++;
		if ((!c[i] || i == VRB_ASK_NAME_SIZE - 1) && !counter[i])
			return v;
	}
	return 0;
}

/* The peer's queue pair works and is ours: what came through? */
static struct vrb_report lost(const struct vrb_facts *f)
{
	struct vrb_psn epsn = f->answer.epsn;
	int32_t got = vrb_psn_diff(epsn, f->una), out = vrb_psn_diff(f->sent, f->una);

	if (got < 0 || got > out)
		return say(f, VRB_V_RETRY_PSN, f->first.v, epsn.v);
	if (f->big && !f->big_answered)
		return say(f, VRB_V_RETRY_MTU, f->big, 0);
	if (got > 0)
		return say(f, VRB_V_RETRY_ACKS_LOST, f->una.v, vrb_psn_sub(epsn, 1).v);
	/* shared memory loses nothing */
	return f->by_wire ? say(f, VRB_V_RETRY_LOST, f->una.v, 0)
			  : say(f, VRB_V_RETRY_UNTOLD, f->dqpn, 0);
}

struct vrb_report vrb_cause(const struct vrb_facts *f)
{
	const struct vrb_ask *a = &f->answer;
	struct vrb_report r;

	if (!f->answered)
		return unanswered(f);
	if (a->what == VRB_ASK_NO_OWNER)
		return nobody(f);
	if (a->what == VRB_ASK_NO_QP)
		return say(f, VRB_V_RETRY_NO_QP, f->dqpn, 0);
	if (a->type != f->type) {
		r = say(f, VRB_V_RETRY_TYPE, f->dqpn, a->type);
		r.val[2] = f->type;
		return r;
	}
	if (a->what == VRB_ASK_OTHER)
		return say(f, VRB_V_RETRY_OTHER_PEER, f->dqpn, 0);
	if (a->state == VRB_QPS_ERR)
		return say(f, VRB_V_RETRY_QP_ERROR, f->dqpn, by_name(a->name));
	if (a->state < VRB_QPS_RTR)
		return say(f, VRB_V_RETRY_NOT_READY, f->dqpn, a->state);
	return lost(f);
}
