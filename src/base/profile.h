/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles: the manners of other devices, put on by the software HCA so that a program meets them
 * before its users do (VERBENA_PROFILE). One table of knobs; the parser, the help of `verbena run`
 * and the messages come from it. A profile is text of `knob = value` lines, # begins a comment;
 * what it does not name is as in the profile `plain`, which is the device without a profile.
 */
#ifndef VRB_BASE_PROFILE_H
#define VRB_BASE_PROFILE_H

#include "base/words.h"

#define VRB_PROFILE_ENV	     "VERBENA_PROFILE"
#define VRB_PROFILE_TEXT_MAX 8192u /* bytes of a file */
#define VRB_PROFILE_NAME_MAX 64

#define VRB_PROFILE_ANY_SIZE 1073741824u /* of max_mr_size: no limit */

/* clang-format off */
/* knob, unit, smallest, largest, in `plain`, what it says */
#define VRB_PROFILE_KNOBS(X) \
	X(max_send_sge,   ENTRIES, 1, 32, 32, "largest SGE list of a send request") \
	X(max_recv_sge,   ENTRIES, 1, 32, 32, "largest SGE list of a receive, also of an SRQ") \
	X(max_inline,     BYTES, 0, 1024, 1024, "most inline data of a request") \
	X(inline_round,   BYTES, 1, 256, 1, "granted inline data is a multiple of this, up to max_inline") \
	X(max_qp_wr,      ENTRIES, 1, 16384, 16384, "largest send or receive queue") \
	X(max_srq_wr,     ENTRIES, 1, 32768, 32768, "largest shared receive queue") \
	X(max_cqe,        ENTRIES, 1, 4194304, 4194304, "largest completion queue") \
	X(max_qp,         ENTRIES, 1, 65535, 65535, "most queue pairs of a process") \
	X(max_cq,         ENTRIES, 1, 65535, 65535, "most completion queues of a process") \
	X(max_mr,         ENTRIES, 1, 4194304, 4194304, "most memory regions of a process") \
	X(max_pd,         ENTRIES, 1, 65535, 65535, "most protection domains of a process") \
	X(max_ah,         ENTRIES, 1, 4194304, 4194304, "most address handles of a process") \
	X(max_mr_size,    BYTES, 1, 1073741824, 1073741824, "largest memory region; the most is no limit") \
	X(max_rd_atomic,  ENTRIES, 1, 128, 128, "most READs and atomics outstanding on a queue pair") \
	X(cq_timestamps,  YESNO, 0, 1, 1, "extended CQs with completion timestamps, and their clock") \
	X(cq_moderation,  YESNO, 0, 1, 1, "CQ moderation by ibv_modify_cq") \
	X(minus_one,      YESNO, 0, 1, 0, "calls that would return an errno return -1 and set it") \
	X(reset_to_reset, YESNO, 0, 1, 1, "a queue pair in RESET may be reset") \
	X(post_in_err,    YESNO, 0, 1, 1, "posts to a queue pair in ERR are taken, and flushed") \
	X(last_wqe_event, YESNO, 0, 1, 1, "a queue pair on an SRQ that fails says when it takes no more") \
	X(roce_v1_gids,   YESNO, 0, 1, 0, "each address has a RoCE v1 entry in front of its v2 entry") \
	X(gid_gap,        ENTRIES, 0, 3, 0, "empty GID entries in front of those of each address") \
	X(memlock,        YESNO, 0, 1, 0, "registered memory counts against RLIMIT_MEMLOCK, for root too")
/* clang-format on */

enum vrb_knob_unit { VRB_KNOB_ENTRIES, VRB_KNOB_BYTES, VRB_KNOB_YESNO };

struct vrb_profile {
	char name[VRB_PROFILE_NAME_MAX]; /* of the profile, or the end of its file's path */
#define X(name, unit, min, max, plain, meaning) uint32_t name;
	VRB_PROFILE_KNOBS(X)
#undef X
};

struct vrb_knob {
	const char *name, *meaning;
	const char *expected; /* "a number from 1 to 32", "yes or no" */
	enum vrb_knob_unit unit;
	uint32_t min, max, plain;
	uint32_t offset; /* of its uint32_t in struct vrb_profile */
};
extern const struct vrb_knob vrb_profile_knobs[];
extern const uint32_t vrb_profile_n_knobs;

struct vrb_profile_builtin {
	const char *name, *summary, *text;
};
extern const struct vrb_profile_builtin vrb_profile_builtins[];
extern const uint32_t vrb_profile_n_builtins;

/* NULL: there is none of that name. */
const struct vrb_profile_builtin *vrb_profile_builtin(const char *name);

void vrb_profile_plain(struct vrb_profile *out);
/* True and the profile (name is the caller's), or false and why. */
bool vrb_profile_parse(const char *text, size_t len, struct vrb_profile *out,
		       struct vrb_words_error *err);
uint32_t vrb_profile_value(const struct vrb_profile *p, const struct vrb_knob *k);

/* Where the n-th address of a device stands in the GID table, from 0; its RoCE v1 entry, if there
 * is one, is right before. */
uint32_t vrb_profile_gid_index(const struct vrb_profile *p, uint32_t n);

#endif
