/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a legal ibv_modify_qp is: the transitions, the attributes each needs and allows (IBA table
 * 91) and the range of each attribute. Pure functions over plain values; the device is described by
 * struct vrb_rules_port. On refusal the report names the rule and its values (qpn is the caller's).
 */
#ifndef VRB_RULES_MODIFY_H
#define VRB_RULES_MODIFY_H

#include "base/verdict.h"
#include "rules/attr.h"

#define VRB_RULES_GIDS_MAX 64

/* What the checks need to know of the device and its port. */
struct vrb_rules_port {
	uint64_t gid_valid, gid_v4; /* bit i: entry i is usable; it is an IPv4-mapped address */
	uint32_t n_gids;	    /* entries of the table, at most VRB_RULES_GIDS_MAX */
	uint32_t n_ports, n_pkeys;
	uint8_t max_mtu; /* code */
	uint8_t max_rd_atomic;
};

/* One transition of one QP type. */
struct vrb_rules_transition {
	bool allowed;
	uint32_t required, optional; /* masks without VRB_QPA_STATE, which is always allowed */
};

/* NULL for a type or state that is not known. */
const struct vrb_rules_transition *vrb_rules_transition(uint32_t type, uint32_t from, uint32_t to);

/* One ibv_modify_qp of a QP in state cur. */
struct vrb_rules_modify {
	uint32_t type, cur;
	const struct vrb_qp_attr *attr;
	uint32_t mask;
	const struct vrb_rules_port *port;
};

/* VRB_OK, or the verdict with r filled in. */
enum vrb_verdict vrb_rules_modify(const struct vrb_rules_modify *m, struct vrb_report *r);

/* The state the QP has after m (when it is legal). */
uint32_t vrb_rules_modify_target(const struct vrb_rules_modify *m);

/* The address vector of attr alone, as ibv_create_ah needs it: there a multicast group is a
 * destination too. */
enum vrb_verdict vrb_rules_av(const struct vrb_qp_attr *attr, const struct vrb_rules_port *port,
			      bool multicast_ok, struct vrb_report *r);

/* Multicast: UD only, and the GID is a group's. */
enum vrb_verdict vrb_rules_attach(uint32_t type, const struct vrb_gid *group, struct vrb_report *r);

#endif
