/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the kernel by netlink, for what no file says. Each has a time limit and a bound;
 * what comes back is checked before it is looked at, though it is the kernel's.
 */
#ifndef VRB_TOOLS_DOCTOR_NETLINK_H
#define VRB_TOOLS_DOCTOR_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vrb_nl_attr {
	unsigned type; /* without the flags of the kernel */
	const uint8_t *data;
	size_t len;
};

/* A part of a message in which attributes follow each other. */
struct vrb_nl_part {
	const uint8_t *at;
	size_t left;
};

struct vrb_nl_question {
	unsigned type, flags; /* NLM_F_DUMP or none */
	struct vrb_nl_part body;
};

typedef void (*vrb_nl_heard)(void *arg, struct vrb_nl_part body);

/* A socket of this netlink family, to be closed; or -errno. */
int vrb_nl_open(int family);
/* Calls f with what stands behind the header of each message that answers; 0 or -errno. */
int vrb_nl_ask(int fd, const struct vrb_nl_question *q, vrb_nl_heard f, void *arg);
/* The next attribute of a part; false after the last, or where the rest is none. */
bool vrb_nl_next(struct vrb_nl_part *part, struct vrb_nl_attr *out);
struct vrb_nl_part vrb_nl_nested(const struct vrb_nl_attr *a);
/* Numbers of one to eight bytes, 0 for others. */
uint64_t vrb_nl_number(const struct vrb_nl_attr *a);

#endif
