/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp: the table of transitions with the attributes each requires and allows (IBA table
 * 91), and the range of every attribute. To RESET and to ERR leads a way from everywhere, without
 * attributes. A call without IBV_QP_STATE is the transition from the current state to itself.
 * Alternate paths stand in the table, as the specification has them, and are refused by value: this
 * device does not migrate.
 */
#include "rules/modify.h"
#include "rules/object.h"

#define N_TYPES 3

#define ALT    VRB_QPA_ALT_PATH
#define MIG    VRB_QPA_PATH_MIG_STATE
#define ACCESS VRB_QPA_ACCESS
#define PKEY   VRB_QPA_PKEY_INDEX
#define PORT   VRB_QPA_PORT
#define QKEY   VRB_QPA_QKEY
#define CUR    VRB_QPA_CUR_STATE
#define AV     VRB_QPA_AV
#define MTU    VRB_QPA_PATH_MTU
#define DQPN   VRB_QPA_DEST_QPN
#define RNR    VRB_QPA_MIN_RNR_TIMER
#define RD     VRB_QPA_MAX_QP_RD_ATOMIC
#define DRD    VRB_QPA_MAX_DEST_RD_ATOMIC
#define RETRY  (VRB_QPA_TIMEOUT | VRB_QPA_RETRY_CNT | VRB_QPA_RNR_RETRY)
#define NOTIFY VRB_QPA_EN_SQD_ASYNC

/* clang-format off */
#define WAY(required, optional) {true, required, optional}

/* IBA table 91. Rows that are left out are no transition. */
static const struct vrb_rules_transition table[N_TYPES][VRB_N_QP_STATES][VRB_N_QP_STATES] = {
	[0] = { /* RC */
		[VRB_QPS_RESET][VRB_QPS_INIT] = WAY(PKEY | PORT | ACCESS, 0),
		[VRB_QPS_INIT][VRB_QPS_INIT]  = WAY(0, PKEY | PORT | ACCESS),
		[VRB_QPS_INIT][VRB_QPS_RTR]   = WAY(AV | MTU | DQPN | VRB_QPA_RQ_PSN | DRD | RNR,
						    ALT | ACCESS | PKEY),
		[VRB_QPS_RTR][VRB_QPS_RTS]    = WAY(VRB_QPA_SQ_PSN | RETRY | RD,
						    CUR | ALT | ACCESS | RNR | MIG),
		[VRB_QPS_RTS][VRB_QPS_RTS]    = WAY(0, CUR | ALT | ACCESS | RNR | MIG),
		[VRB_QPS_RTS][VRB_QPS_SQD]    = WAY(0, NOTIFY),
		[VRB_QPS_SQD][VRB_QPS_SQD]    = WAY(0, PORT | AV | RETRY | RD | DRD | ALT | ACCESS |
						    PKEY | RNR | MIG),
		[VRB_QPS_SQD][VRB_QPS_RTS]    = WAY(0, CUR | ALT | ACCESS | RNR | MIG),
	},
	[1] = { /* UC */
		[VRB_QPS_RESET][VRB_QPS_INIT] = WAY(PKEY | PORT | ACCESS, 0),
		[VRB_QPS_INIT][VRB_QPS_INIT]  = WAY(0, PKEY | PORT | ACCESS),
		[VRB_QPS_INIT][VRB_QPS_RTR]   = WAY(AV | MTU | DQPN | VRB_QPA_RQ_PSN,
						    ALT | ACCESS | PKEY),
		[VRB_QPS_RTR][VRB_QPS_RTS]    = WAY(VRB_QPA_SQ_PSN, CUR | ALT | ACCESS | MIG),
		[VRB_QPS_RTS][VRB_QPS_RTS]    = WAY(0, CUR | ALT | ACCESS | MIG),
		[VRB_QPS_RTS][VRB_QPS_SQD]    = WAY(0, NOTIFY),
		[VRB_QPS_SQD][VRB_QPS_SQD]    = WAY(0, AV | ALT | ACCESS | PKEY | MIG),
		[VRB_QPS_SQD][VRB_QPS_RTS]    = WAY(0, CUR | ALT | ACCESS | MIG),
		[VRB_QPS_SQE][VRB_QPS_RTS]    = WAY(0, CUR | ACCESS),
	},
	[2] = { /* UD */
		[VRB_QPS_RESET][VRB_QPS_INIT] = WAY(PKEY | PORT | QKEY, 0),
		[VRB_QPS_INIT][VRB_QPS_INIT]  = WAY(0, PKEY | PORT | QKEY),
		[VRB_QPS_INIT][VRB_QPS_RTR]   = WAY(0, PKEY | QKEY),
		[VRB_QPS_RTR][VRB_QPS_RTS]    = WAY(VRB_QPA_SQ_PSN, CUR | QKEY),
		[VRB_QPS_RTS][VRB_QPS_RTS]    = WAY(0, CUR | QKEY),
		[VRB_QPS_RTS][VRB_QPS_SQD]    = WAY(0, NOTIFY),
		[VRB_QPS_SQD][VRB_QPS_SQD]    = WAY(0, PKEY | QKEY),
		[VRB_QPS_SQD][VRB_QPS_RTS]    = WAY(0, CUR | QKEY),
		[VRB_QPS_SQE][VRB_QPS_RTS]    = WAY(0, CUR | QKEY),
	},
};
/* clang-format on */

static const struct vrb_rules_transition from_everywhere = {true, 0, 0};

static enum vrb_verdict refuse(struct vrb_report *r, enum vrb_verdict v, uint64_t a, uint64_t b,
			       uint64_t c)
{
	*r = (struct vrb_report){.verdict = v, .val = {a, b, c}};
	return v;
}

const struct vrb_rules_transition *vrb_rules_transition(uint32_t type, uint32_t from, uint32_t to)
{
	if (type < VRB_QPT_RC || type > VRB_QPT_UD || from >= VRB_N_QP_STATES ||
	    to >= VRB_N_QP_STATES)
		return NULL;
	if (to == VRB_QPS_RESET || to == VRB_QPS_ERR)
		return &from_everywhere;
	return &table[type - VRB_QPT_RC][from][to];
}

uint32_t vrb_rules_modify_target(const struct vrb_rules_modify *m)
{
	return m->mask & VRB_QPA_STATE ? m->attr->state : m->cur;
}

static bool is_v4(const struct vrb_gid *g)
{
	for (unsigned i = 0; i < 10; i++)
		if (g->raw[i])
			return false;
	return g->raw[10] == 0xff && g->raw[11] == 0xff;
}

static bool is_zero(const uint8_t *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* RoCEv2 A17.4.5: the destination is an IP address as a GID, of the version of the source. */
static bool dgid_usable(const struct vrb_gid *g, bool sgid_is_v4, bool multicast_ok)
{
	if (is_v4(g) != sgid_is_v4)
		return false;
	if (!sgid_is_v4)
		return !is_zero(g->raw, 16) && (multicast_ok || g->raw[0] != 0xff);
	if (g->raw[12] >= 224)
		return multicast_ok && g->raw[12] < 240;
	return !is_zero(g->raw + 12, 4);
}

enum vrb_verdict vrb_rules_av(const struct vrb_qp_attr *attr, const struct vrb_rules_port *port,
			      bool multicast_ok, struct vrb_report *r)
{
	uint32_t i = attr->sgid_index;

	if (attr->av_port < 1 || attr->av_port > port->n_ports)
		return refuse(r, VRB_V_MODIFY_PORT, attr->av_port, port->n_ports, 0);
	if (!attr->is_global && port->infiniband)
		return VRB_OK;
	if (!attr->is_global) /* RoCEv2 A17.4.3: no LIDs, every packet is global */
		return refuse(r, VRB_V_MODIFY_NO_GRH, 0, 0, 0);
	if (i >= port->n_gids ||
	    (i < VRB_RULES_GIDS_MAX ? !(port->gid_valid >> i & 1) : port->gid_beyond_empty))
		return refuse(r, VRB_V_MODIFY_SGID_INDEX, i, port->n_gids, 0);
	if (i >= VRB_RULES_GIDS_MAX || port->infiniband)
		return VRB_OK;
	if (port->gid_v1 >> i & 1)
		return refuse(r, VRB_V_MODIFY_GID_V1, i, 0, 0);
	if (!dgid_usable(&attr->dgid, port->gid_v4 >> i & 1, multicast_ok))
		return refuse(r, VRB_V_MODIFY_DGID, 0, 0, 0);
	return VRB_OK;
}

/* Reports of one call. */
struct sink {
	struct vrb_report *r;
	uint32_t n, max;
};

static void add(struct sink *s, enum vrb_verdict v, uint64_t a, uint64_t b, uint64_t c)
{
	if (s->n < s->max)
		refuse(&s->r[s->n++], v, a, b, c);
}

static void check_path(const struct vrb_rules_modify *m, struct sink *s)
{
	const struct vrb_qp_attr *a = m->attr;
	struct vrb_report r;

	if (m->mask & VRB_QPA_ALT_PATH || (m->mask & MIG && a->path_mig_state != 0))
		add(s, VRB_V_MODIFY_ALT_PATH, 0, 0, 0);
	if (m->mask & VRB_QPA_ACCESS && a->access & ~VRB_RULES_ACCESS_ALL)
		add(s, VRB_V_MODIFY_ACCESS, a->access, 0, 0);
	if (m->mask & VRB_QPA_AV && vrb_rules_av(a, m->port, false, &r) != VRB_OK)
		add(s, r.verdict, r.val[0], r.val[1], r.val[2]);
}

uint32_t vrb_rules_modify_ranges(const struct vrb_rules_modify *m,
				 struct vrb_rules_range out[VRB_RULES_RANGES])
{
	const struct vrb_qp_attr *a = m->attr;
	const struct vrb_rules_port *p = m->port;
	const struct vrb_rules_range all[VRB_RULES_RANGES] = {
		{VRB_QPA_PORT, a->port, 1, p->n_ports},
		{VRB_QPA_PKEY_INDEX, a->pkey_index, 0, p->n_pkeys - 1},
		{VRB_QPA_PATH_MTU, a->path_mtu, 1, p->max_mtu},
		{VRB_QPA_DEST_QPN, a->dest_qpn, 0, VRB_QPN_MASK},
		{VRB_QPA_RQ_PSN, a->rq_psn, 0, 0xffffff},
		{VRB_QPA_SQ_PSN, a->sq_psn, 0, 0xffffff},
		{RD, a->max_rd_atomic, 0, p->max_rd_atomic},
		{DRD, a->max_dest_rd_atomic, 0, p->max_rd_atomic},
		{VRB_QPA_TIMEOUT, a->timeout, 0, 31},
		{VRB_QPA_RETRY_CNT, a->retry_cnt, 0, 7},
		{VRB_QPA_RNR_RETRY, a->rnr_retry, 0, 7},
		{RNR, a->min_rnr_timer, 0, 31},
	};
	uint32_t n = 0;

	for (uint32_t i = 0; i < VRB_RULES_RANGES; i++)
		if (m->mask & all[i].bit)
			out[n++] = all[i];
	return n;
}

static enum vrb_verdict range_verdict(uint32_t bit)
{
	static const struct {
		uint32_t bits;
		enum vrb_verdict v;
	} of[] = {
		{VRB_QPA_PORT, VRB_V_MODIFY_PORT},
		{VRB_QPA_PKEY_INDEX, VRB_V_MODIFY_PKEY_INDEX},
		{VRB_QPA_PATH_MTU, VRB_V_MODIFY_PATH_MTU},
		{VRB_QPA_DEST_QPN, VRB_V_MODIFY_DEST_QPN},
		{VRB_QPA_RQ_PSN | VRB_QPA_SQ_PSN, VRB_V_MODIFY_PSN},
		{RD | DRD, VRB_V_MODIFY_RD_ATOMIC},
		{VRB_QPA_TIMEOUT, VRB_V_MODIFY_TIMEOUT},
		{VRB_QPA_RETRY_CNT | VRB_QPA_RNR_RETRY, VRB_V_MODIFY_RETRY},
	};

	for (uint32_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (of[i].bits & bit)
			return of[i].v;
	return VRB_V_MODIFY_RNR_TIMER;
}

static void check_numbers(const struct vrb_rules_modify *m, struct sink *s)
{
	struct vrb_rules_range range[VRB_RULES_RANGES];
	uint32_t n = vrb_rules_modify_ranges(m, range);

	for (uint32_t i = 0; i < n; i++) {
		const struct vrb_rules_range *g = &range[i];
		uint32_t limit = g->bit == VRB_QPA_PKEY_INDEX ? m->port->n_pkeys : g->max;

		if (g->value < g->min || g->value > g->max)
			add(s, range_verdict(g->bit), g->value, limit, 0);
	}
}

uint32_t vrb_rules_modify_all(const struct vrb_rules_modify *m, struct vrb_report *r, uint32_t max)
{
	uint32_t to = vrb_rules_modify_target(m);
	uint32_t given = m->mask & ~(uint32_t)VRB_QPA_STATE;
	const struct vrb_rules_transition *t = vrb_rules_transition(m->type, m->cur, to);
	struct sink s = {.r = r, .max = max};

	if (!t || !t->allowed ||
	    (m->port->no_reset_to_reset && m->cur == VRB_QPS_RESET && to == VRB_QPS_RESET)) {
		add(&s, VRB_V_MODIFY_TRANSITION, m->cur, to, 0);
		return s.n;
	}
	if (t->required & ~given)
		add(&s, VRB_V_MODIFY_MISSING, m->cur, to, t->required & ~given);
	if (given & ~(t->required | t->optional))
		add(&s, VRB_V_MODIFY_SURPLUS, m->cur, to, given & ~(t->required | t->optional));
	/* IBA 11.2.5.2: the caller may say which state it believes the QP to be in */
	if (given & VRB_QPA_CUR_STATE && m->attr->cur_state != m->cur)
		add(&s, VRB_V_MODIFY_CUR_STATE, m->attr->cur_state, m->cur, 0);
	check_path(m, &s);
	check_numbers(m, &s);
	return s.n;
}

enum vrb_verdict vrb_rules_modify(const struct vrb_rules_modify *m, struct vrb_report *r)
{
	return vrb_rules_modify_all(m, r, 1) ? r->verdict : VRB_OK;
}

enum vrb_verdict vrb_rules_attach(uint32_t type, const struct vrb_gid *group, struct vrb_report *r)
{
	bool is_group = is_v4(group) ? (group->raw[12] & 0xf0) == 0xe0 : group->raw[0] == 0xff;

	if (type == VRB_QPT_UD && is_group)
		return VRB_OK;
	return refuse(r, VRB_V_MCAST_ATTACH, type, 0, 0);
}
