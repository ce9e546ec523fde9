/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile of this process: read once, when the devices are first asked for, and the same from
 * then on. With one that is wrong devices are listed, plain, and none can be opened. Most of it is
 * limits, which the face reports and src/rules checks; what is left is asked where it matters,
 * never on a straight line.
 */
#include "hca/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "link/profile.h"

#define PLAIN(knob, most) VRB_STATIC_ASSERT(plain_##knob == (most), #knob)
#define X(name, unit, min, max, plain, meaning)                                                    \
	VRB_STATIC_ASSERT((plain) <= (max), #name);                                                \
	enum { plain_##name = (plain) };
VRB_PROFILE_KNOBS(X)
#undef X
PLAIN(max_send_sge, VRB_MAX_SGE);
PLAIN(max_recv_sge, VRB_MAX_SGE);
PLAIN(max_inline, VRB_MAX_INLINE);
PLAIN(max_qp_wr, VRB_MAX_QP_WR);
PLAIN(max_srq_wr, VRB_MAX_SRQ_WR);
PLAIN(max_cqe, VRB_MAX_CQE);
PLAIN(max_qp, VRB_MAX_QP);
PLAIN(max_cq, VRB_MAX_QP);
PLAIN(max_mr, VRB_MAX_MR);
PLAIN(max_pd, VRB_MAX_QP);
PLAIN(max_ah, VRB_MAX_MR);
PLAIN(max_rd_atomic, VRB_RD_ATOMIC_MAX);

static struct vrb_profile profile;
static struct vrb_profile_error error;
static int failed;

static void load(void)
{
	failed = vrb_profile_load(secure_getenv(VRB_PROFILE_ENV), &profile, &error);
}

const struct vrb_profile *vrb_hca_profile(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return &profile;
}

int vrb_hca_profile_check(void)
{
	struct vrb_report r = {.verdict = VRB_V_PROFILE};

	(void)vrb_hca_profile();
	if (!failed)
		return 0;
	fprintf(stderr, "verbena: profile: %s\n", error.text);
	r.val[0] = error.line;
	r.val[1] = error.column;
	vrb_hca_refuse(&r);
	return failed;
}

uint64_t vrb_hca_pinned_bytes(uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return len ? ((addr + len - 1) | (page - 1)) - (addr & ~(page - 1)) + 1 : 0;
}

bool vrb_hca_may_pin(struct vrb_engine *e, uint64_t bytes)
{
	struct vrb_report r = {.verdict = VRB_V_REG_MEMLOCK, .val = {bytes, e->pinned}};
	struct rlimit limit;

	if (!vrb_hca_profile()->memlock || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY ||
	    (e->pinned <= limit.rlim_cur && bytes <= limit.rlim_cur - e->pinned))
		return true;
	r.val[2] = limit.rlim_cur;
	vrb_hca_refuse(&r);
	return false;
}
