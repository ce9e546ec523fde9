/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser of fault plans: one function for each part of a rule. The first word that does not fit
 * ends it; a part that is missing at the end of a rule is reported there.
 */
#include "base/fault_plan.h"

#include <string.h>

#define TIME_MAX (3600 * VRB_NS_PER_S)
#define HOLD_MAX (60 * VRB_NS_PER_S)

struct parser {
	struct vrb_words w;
	const char *text;
	struct vrb_fault_plan *plan;
	struct vrb_fault_rule *rule;
	bool has_seed;
};

static void next(struct parser *c)
{
	vrb_words_next(&c->w);
}

static bool at_end(const struct parser *c)
{
	return vrb_words_at_end(&c->w);
}

static bool is(const struct parser *c, const char *s)
{
	return vrb_words_is(&c->w, s);
}

static bool skip(struct parser *c, const char *s)
{
	return vrb_words_skip(&c->w, s);
}

static bool fail(struct parser *c, const char *expected)
{
	return vrb_words_fail(&c->w, expected);
}

static bool is_percentage(const struct parser *c)
{
	return vrb_words_is_percentage(&c->w);
}

static bool is_digit(const struct parser *c)
{
	return !at_end(c) && *c->w.word >= '0' && *c->w.word <= '9';
}

/* The same at a word that has been passed. */
static bool fail_at(struct parser *c, const struct vrb_words *at, const char *expected)
{
	c->w = *at;
	return fail(c, expected);
}

/* ---- the parts of a rule */

static const char *const class_names[VRB_FAULT_CLASSES] = {
	[VRB_FAULT_ANY] = "any",
	[VRB_FAULT_REQUEST] = "request",
	[VRB_FAULT_RESPONSE] = "response",
	[VRB_FAULT_ACKS] = "ack",
	[VRB_FAULT_NAKS] = "nak",
	[VRB_FAULT_RNR_NAKS] = "rnr-nak",
	[VRB_FAULT_CNPS] = "cnp",
	[VRB_FAULT_SEND] = "send",
	[VRB_FAULT_WRITE] = "write",
	[VRB_FAULT_READ_REQUEST] = "read-request",
	[VRB_FAULT_READ_RESPONSE] = "read-response",
	[VRB_FAULT_ATOMIC] = "atomic",
	[VRB_FAULT_ATOMIC_RESPONSE] = "atomic-response",
};

static const char *const kind_names[VRB_FAULT_KINDS] = {
	[VRB_FAULT_DROP] = "drop",	     [VRB_FAULT_DUPLICATE] = "duplicate",
	[VRB_FAULT_CORRUPT] = "corrupt",     [VRB_FAULT_REORDER] = "reorder",
	[VRB_FAULT_DELAY] = "delay",	     [VRB_FAULT_BLACKHOLE] = "blackhole",
	[VRB_FAULT_RNR_NAK] = "rnr-nak",     [VRB_FAULT_NAK] = "nak",
	[VRB_FAULT_PARTITION] = "partition",
};

#define FAULT_WORDS                                                                                \
	"loss, drop, duplicate, corrupt, reorder, delay, blackhole, rnr-nak or nak with its code"

const char *vrb_fault_kind_name(enum vrb_fault_kind kind)
{
	return (unsigned)kind < VRB_FAULT_KINDS ? kind_names[kind] : "";
}

static bool qp(struct parser *c)
{
	static const char expected[] = "a QPN from 0x2 to 0xffffff";
	struct vrb_words word;
	uint64_t v;

	if (skip(c, "qp"))
		return vrb_words_number(&c->w, 1, "the number of the queue pair, counted from 1",
					&c->rule->qp);
	if (!is(c, "qpn"))
		return true;
	next(c);
	word = c->w;
	if (!vrb_words_wide(&c->w, expected, &v))
		return false;
	if (v < 2 || v > VRB_QPN_MASK)
		return fail_at(c, &word, expected);
	c->rule->qpn = (vrb_qpn)v;
	return true;
}

static bool direction(struct parser *c)
{
	if (skip(c, "tx"))
		c->rule->dirs = VRB_FAULT_TX;
	else if (skip(c, "rx"))
		c->rule->dirs = VRB_FAULT_RX;
	else if (skip(c, "both"))
		c->rule->dirs = VRB_FAULT_TX | VRB_FAULT_RX;
	else
		return fail(c, c->rule->qp || c->rule->qpn ? "tx, rx, both or partition"
							   : "tx, rx, both, qp, qpn, partition or "
							     "seed");
	return true;
}

/* The class nak and the fault nak begin alike: the fault has its code behind it. The same with
 * rnr-nak, behind which the class has another fault or a count. */
static bool begins_fault(const struct parser *c)
{
	static const char *const codes[] = {"sequence", "invalid", "access", "operational"};
	struct parser ahead = *c;

	next(&ahead);
	if (is(c, "rnr-nak"))
		return at_end(&ahead) || is_percentage(&ahead) || is(&ahead, "times") ||
		       is(&ahead, "from") || is(&ahead, "for");
	for (size_t i = 0; is(c, "nak") && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (is(&ahead, codes[i]))
			return true;
	return false;
}

static bool which(struct parser *c)
{
	struct vrb_fault_rule *r = c->rule;

	r->exact = true;
	r->times = 1;
	r->by_packet = r->class < VRB_FAULT_SEND;
	if (r->dirs == (VRB_FAULT_TX | VRB_FAULT_RX))
		return fail(c, "a fault: packets are counted in one direction, tx or rx");
	if (skip(c, "next")) {
		r->nth = 1;
		return true;
	}
	if (skip(c, "packet")) {
		r->by_packet = true;
		return vrb_words_number(&c->w, 1, "the number of the packet, counted from 1",
					&r->nth);
	}
	if (!vrb_words_number(&c->w, 1, "a number, counted from 1", &r->nth) || !is(c, "packet"))
		return r->nth != 0;
	if (r->by_packet)
		return fail(c, "a fault: packets of this class are counted one by one");
	next(c);
	if (skip(c, "last")) {
		r->packet = VRB_FAULT_PACKET_LAST;
		return true;
	}
	return vrb_words_number(&c->w, 1,
				"the number of the packet in the message, counted from 1, or last",
				&r->packet);
}

static bool packets(struct parser *c)
{
	for (unsigned i = 0; i < VRB_FAULT_CLASSES && !begins_fault(c); i++) {
		if (!skip(c, class_names[i]))
			continue;
		c->rule->class = (enum vrb_fault_class)i;
		return is(c, "next") || is(c, "packet") || is_digit(c) ? which(c) : true;
	}
	return true;
}

/* optional: without a percentage every packet is struck. */
static bool chance(struct parser *c, bool optional)
{
	struct vrb_fault_rule *r = c->rule;

	r->per_million = VRB_FAULT_PPM;
	if (r->exact && is_percentage(c))
		return fail(c, "no percentage: the rule names its packet");
	if (r->exact || (optional && !is_percentage(c)))
		return true;
	return vrb_words_percentage(&c->w, &r->per_million);
}

/* at: the fault's word, or its code. */
static bool may_be_refused(struct parser *c, const struct vrb_words *at)
{
	struct vrb_fault_rule *r = c->rule;
	bool takes_receive = r->class == VRB_FAULT_ANY || r->class == VRB_FAULT_REQUEST ||
			     r->class == VRB_FAULT_SEND || r->class == VRB_FAULT_WRITE;
	bool names_key = r->class == VRB_FAULT_WRITE || r->class == VRB_FAULT_READ_REQUEST ||
			 r->class == VRB_FAULT_ATOMIC;

	if (r->dirs != VRB_FAULT_RX)
		return fail_at(c, at, "another fault: rnr-nak and nak answer what rx receives");
	if (r->kind == VRB_FAULT_RNR_NAK && !takes_receive)
		return fail_at(c, at, "another fault: rnr-nak needs send, write, request or any");
	if (r->kind == VRB_FAULT_NAK && r->nak == VRB_FAULT_ACCESS && !names_key)
		return fail_at(c, at, "another code: access needs write, read-request or atomic");
	if (!takes_receive && !names_key)
		return fail_at(c, at, "another fault: nak answers requests");
	/* the packet that takes the receive */
	if (r->kind == VRB_FAULT_RNR_NAK && r->class == VRB_FAULT_WRITE && r->exact &&
	    !r->by_packet)
		r->packet = VRB_FAULT_PACKET_LAST;
	return true;
}

static bool nak(struct parser *c)
{
	struct vrb_fault_rule *r = c->rule;
	struct vrb_words code = c->w;

	r->kind = VRB_FAULT_NAK;
	if (is(c, "sequence"))
		r->nak = VRB_FAULT_SEQUENCE;
	else if (is(c, "invalid"))
		r->nak = VRB_FAULT_INVALID;
	else if (is(c, "access"))
		r->nak = VRB_FAULT_ACCESS;
	else if (is(c, "operational"))
		r->nak = VRB_FAULT_OPERATIONAL;
	else
		return fail(c, "sequence, invalid, access or operational");
	next(c);
	return may_be_refused(c, &code) && chance(c, false);
}

static bool delay(struct parser *c)
{
	struct vrb_fault_rule *r = c->rule;

	if (!chance(c, true) || !vrb_words_duration(&c->w, HOLD_MAX, &r->time))
		return false;
	return !skip(c, "jitter") || vrb_words_duration(&c->w, HOLD_MAX, &r->jitter);
}

static bool blackhole(struct parser *c)
{
	struct vrb_fault_rule *r = c->rule;

	r->per_million = VRB_FAULT_PPM;
	if (r->exact)
		return fail(c, "end of rule: a black hole takes no single packet");
	if (!skip(c, "above"))
		return fail(c, "above, and the bytes of the longest IP packet that passes");
	return vrb_words_number(&c->w, 1, "the bytes of the longest IP packet that passes",
				&r->above);
}

static bool fault(struct parser *c)
{
	static const char *const words[] = {"loss",    "drop",	"duplicate", "corrupt",
					    "reorder", "delay", "blackhole"};
	static const uint8_t kinds[] = {VRB_FAULT_DROP,	    VRB_FAULT_DROP,    VRB_FAULT_DUPLICATE,
					VRB_FAULT_CORRUPT,  VRB_FAULT_REORDER, VRB_FAULT_DELAY,
					VRB_FAULT_BLACKHOLE};
	struct vrb_fault_rule *r = c->rule;
	struct vrb_words word = c->w;

	if (skip(c, "rnr-nak")) {
		r->kind = VRB_FAULT_RNR_NAK;
		return may_be_refused(c, &word) && chance(c, false);
	}
	if (skip(c, "nak"))
		return nak(c);
	for (size_t i = 0; i < sizeof(kinds); i++) {
		if (!skip(c, words[i]))
			continue;
		r->kind = (enum vrb_fault_kind)kinds[i];
		if (r->kind == VRB_FAULT_BLACKHOLE)
			return blackhole(c);
		if (r->kind == VRB_FAULT_DELAY)
			return delay(c);
		return chance(c, false) && (r->kind != VRB_FAULT_REORDER ||
					    vrb_words_duration(&c->w, HOLD_MAX, &r->time));
	}
	return fail(c, r->class == VRB_FAULT_ANY ? "a class of packets (send, write, ack, ...) "
						   "or a fault: " FAULT_WORDS
						 : "a fault: " FAULT_WORDS);
}

static bool tail(struct parser *c)
{
	struct vrb_fault_rule *r = c->rule;
	bool times = false, from = false;

	while (!at_end(c)) {
		if (!times && skip(c, "times")) {
			times = true;
			if (!vrb_words_number(&c->w, 1, "how many times, from 1", &r->times))
				return false;
		} else if (!from && r->until == VRB_NS_NEVER && skip(c, "from")) {
			from = true;
			if (!vrb_words_duration(&c->w, TIME_MAX, &r->from))
				return false;
		} else if (r->until == VRB_NS_NEVER && skip(c, "for")) {
			if (!vrb_words_duration(&c->w, TIME_MAX, &r->until))
				return false;
		} else {
			return fail(c, "times, from, for (each once, from before for) or the end "
				       "of the rule");
		}
	}
	if (r->until != VRB_NS_NEVER)
		r->until += r->from;
	return true;
}

static bool seed(struct parser *c)
{
	if (c->has_seed)
		return fail(c, "a rule: the seed has been given");
	next(c);
	c->has_seed = true;
	if (!vrb_words_wide(&c->w, "a number", &c->plan->seed))
		return false;
	return at_end(c) || fail(c, "the end of the rule");
}

static bool rule(struct parser *c)
{
	const char *start = c->w.word, *end;
	struct vrb_fault_rule *r;

	if (is(c, "seed"))
		return seed(c);
	if (c->plan->n == VRB_FAULT_RULES_MAX)
		return fail(c, "the end: a plan has at most 64 rules");
	r = c->rule = &c->plan->rule[c->plan->n];
	*r = (struct vrb_fault_rule){.packet = 1, .until = VRB_NS_NEVER};
	if (!qp(c))
		return false;
	if (skip(c, "partition")) {
		r->kind = VRB_FAULT_PARTITION;
		r->dirs = VRB_FAULT_TX | VRB_FAULT_RX;
		r->per_million = VRB_FAULT_PPM;
	} else if (!direction(c) || !packets(c) || !fault(c)) {
		return false;
	}
	if (!tail(c))
		return false;
	for (end = c->w.word; vrb_words_is_blank(end[-1]); end--)
		;
	r->text = (uint32_t)(start - c->text);
	r->text_len = (uint32_t)(end - start);
	c->plan->n++;
	return true;
}

/* ---- the plan */

bool vrb_fault_plan_parse(const char *text, size_t len, struct vrb_fault_plan *out,
			  struct vrb_words_error *err)
{
	struct parser c = {.text = text, .plan = out};
	bool good = true;

	out->n = 0;
	out->seed = 1;
	vrb_words_init(&c.w, text, len);
	if (len > VRB_FAULT_TEXT_MAX)
		good = fail(&c, "a plan of at most 16384 bytes");
	while (good && vrb_words_sentence(&c.w))
		good = rule(&c);
	if (good && !out->n)
		good = fail(&c, "a rule");
	*err = c.w.error;
	return good;
}

bool vrb_fault_is_text(const char *plan)
{
	static const char one_word[] = "partition";
	size_t n = 0;

	for (; plan[n]; n++)
		if (vrb_words_is_blank(plan[n]) || plan[n] == '\n' || plan[n] == ';')
			return true;
	return n == sizeof(one_word) - 1 && !memcmp(plan, one_word, n);
}
