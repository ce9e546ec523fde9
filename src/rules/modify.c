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
	if (!attr->is_global) /* RoCEv2 A17.4.3: no LIDs, every packet is global */
		return refuse(r, VRB_V_MODIFY_NO_GRH, 0, 0, 0);
	if (i >= port->n_gids || i >= VRB_RULES_GIDS_MAX || !(port->gid_valid >> i & 1))
		return refuse(r, VRB_V_MODIFY_SGID_INDEX, i, port->n_gids, 0);
	if (!dgid_usable(&attr->dgid, port->gid_v4 >> i & 1, multicast_ok))
		return refuse(r, VRB_V_MODIFY_DGID, 0, 0, 0);
	return VRB_OK;
}

static enum vrb_verdict check_path(const struct vrb_rules_modify *m, struct vrb_report *r)
{
	const struct vrb_qp_attr *a = m->attr;
	const struct vrb_rules_port *p = m->port;

	if (m->mask & VRB_QPA_ALT_PATH || (m->mask & MIG && a->path_mig_state != 0))
		return refuse(r, VRB_V_MODIFY_ALT_PATH, 0, 0, 0);
	if (m->mask & VRB_QPA_PORT && (a->port < 1 || a->port > p->n_ports))
		return refuse(r, VRB_V_MODIFY_PORT, a->port, p->n_ports, 0);
	if (m->mask & VRB_QPA_PKEY_INDEX && a->pkey_index >= p->n_pkeys)
		return refuse(r, VRB_V_MODIFY_PKEY_INDEX, a->pkey_index, p->n_pkeys, 0);
	if (m->mask & VRB_QPA_PATH_MTU && (a->path_mtu < 1 || a->path_mtu > p->max_mtu))
		return refuse(r, VRB_V_MODIFY_PATH_MTU, a->path_mtu, p->max_mtu, 0);
	if (m->mask & VRB_QPA_ACCESS && a->access & ~VRB_RULES_ACCESS_ALL)
		return refuse(r, VRB_V_MODIFY_ACCESS, a->access, 0, 0);
	return m->mask & VRB_QPA_AV ? vrb_rules_av(a, p, false, r) : VRB_OK;
}

static enum vrb_verdict check_numbers(const struct vrb_rules_modify *m, struct vrb_report *r)
{
	const struct vrb_qp_attr *a = m->attr;
	const struct {
		uint32_t bit, value, max;
		enum vrb_verdict v;
	} range[] = {
		{VRB_QPA_DEST_QPN, a->dest_qpn, VRB_QPN_MASK, VRB_V_MODIFY_DEST_QPN},
		{VRB_QPA_RQ_PSN, a->rq_psn, 0xffffff, VRB_V_MODIFY_PSN},
		{VRB_QPA_SQ_PSN, a->sq_psn, 0xffffff, VRB_V_MODIFY_PSN},
		{RD, a->max_rd_atomic, m->port->max_rd_atomic, VRB_V_MODIFY_RD_ATOMIC},
		{DRD, a->max_dest_rd_atomic, m->port->max_rd_atomic, VRB_V_MODIFY_RD_ATOMIC},
		{VRB_QPA_TIMEOUT, a->timeout, 31, VRB_V_MODIFY_TIMEOUT},
		{VRB_QPA_RETRY_CNT, a->retry_cnt, 7, VRB_V_MODIFY_RETRY},
		{VRB_QPA_RNR_RETRY, a->rnr_retry, 7, VRB_V_MODIFY_RETRY},
		{RNR, a->min_rnr_timer, 31, VRB_V_MODIFY_RNR_TIMER},
	};

	for (unsigned i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		if (m->mask & range[i].bit && range[i].value > range[i].max)
			return refuse(r, range[i].v, range[i].value, range[i].max, 0);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_modify(const struct vrb_rules_modify *m, struct vrb_report *r)
{
	uint32_t to = vrb_rules_modify_target(m);
	uint32_t given = m->mask & ~(uint32_t)VRB_QPA_STATE;
	const struct vrb_rules_transition *t = vrb_rules_transition(m->type, m->cur, to);
	enum vrb_verdict v;

	if (!t || !t->allowed)
		return refuse(r, VRB_V_MODIFY_TRANSITION, m->cur, to, 0);
	if (t->required & ~given)
		return refuse(r, VRB_V_MODIFY_MISSING, m->cur, to, t->required & ~given);
	if (given & ~(t->required | t->optional))
		return refuse(r, VRB_V_MODIFY_SURPLUS, m->cur, to,
			      given & ~(t->required | t->optional));
	/* IBA 11.2.5.2: the caller may say which state it believes the QP to be in */
	if (given & VRB_QPA_CUR_STATE && m->attr->cur_state != m->cur)
		return refuse(r, VRB_V_MODIFY_CUR_STATE, m->attr->cur_state, m->cur, 0);
	v = check_path(m, r);
	return v != VRB_OK ? v : check_numbers(m, r);
}

enum vrb_verdict vrb_rules_attach(uint32_t type, const struct vrb_gid *group, struct vrb_report *r)
{
	bool is_group = is_v4(group) ? (group->raw[12] & 0xf0) == 0xe0 : group->raw[0] == 0xff;

	if (type == VRB_QPT_UD && is_group)
		return VRB_OK;
	return refuse(r, VRB_V_MCAST_ATTACH, type, 0, 0);
}
