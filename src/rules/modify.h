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
	uint64_t gid_v1;	    /* bit i: it is of type RoCE v1, which is not sent */
	bool gid_beyond_empty;	    /* the entry asked for, from VRB_RULES_GIDS_MAX on, is empty */
	bool no_reset_to_reset;
	bool infiniband; /* the link layer: without a GRH there, LIDs lead the way */
	uint32_t n_gids; /* entries of the table
			  */
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

/* All that is wrong with m, in the order in which it is best mended: up to max reports; returns how
 * many. */
uint32_t vrb_rules_modify_all(const struct vrb_rules_modify *m, struct vrb_report *r, uint32_t max);

/* What a numeric attribute may be. */
struct vrb_rules_range {
	uint32_t bit; /* of the attribute mask */
	uint32_t value, min, max;
};
#define VRB_RULES_RANGES 12
/* The numeric attributes that m sets, with their ranges; returns how many. */
uint32_t vrb_rules_modify_ranges(const struct vrb_rules_modify *m,
				 struct vrb_rules_range out[VRB_RULES_RANGES]);

/* The state the QP has after m (when it is legal). */
uint32_t vrb_rules_modify_target(const struct vrb_rules_modify *m);

/* The address vector of attr alone, as ibv_create_ah needs it: there a multicast group is a
 * destination too. */
enum vrb_verdict vrb_rules_av(const struct vrb_qp_attr *attr, const struct vrb_rules_port *port,
			      bool multicast_ok, struct vrb_report *r);

/* Multicast: UD only, and the GID is a group's. */
enum vrb_verdict vrb_rules_attach(uint32_t type, const struct vrb_gid *group, struct vrb_report *r);

#endif
