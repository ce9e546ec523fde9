/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * At exit: CQs that are left are judged, objects that are left are leaks, told by the place where
 * they were made. A program that ends with an error is not asked to tidy up. At fork: are
 * registered regions safe in the two processes?
 */
#include "check/end.h"
#include "check/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MAX 64

static const struct {
	enum vrb_object object;
	struct vrb_chk_table *table;
} kinds[] = {
	{VRB_OBJ_CONTEXT, &vrb_chk_ctxs},     {VRB_OBJ_PD, &vrb_chk_pds},
	{VRB_OBJ_MR, &vrb_chk_mrs},	      {VRB_OBJ_AH, &vrb_chk_ahs},
	{VRB_OBJ_CHANNEL, &vrb_chk_channels}, {VRB_OBJ_CQ, &vrb_chk_cqs},
	{VRB_OBJ_SRQ, &vrb_chk_srqs},	      {VRB_OBJ_QP, &vrb_chk_qps},
};

/* Objects of one kind, counted by the place that made them. */
static void leaks(enum vrb_object object, struct vrb_chk_table *t)
{
	struct {
		const struct vrb_chk_site *site;
		uint64_t n;
	} place[PLACES_MAX];
	struct vrb_chk_each e = {0};
	uint32_t n = 0, i;
	struct vrb_chk_obj *o;

	while ((o = vrb_chk_next(t, &e)) != NULL) {
		for (i = 0; i < n && place[i].site->pc[0] != o->site.pc[0]; i++)
			;
		if (i == n && n == PLACES_MAX)
			continue;
		if (i == n) {
			place[n].site = &o->site;
			place[n++].n = 0;
		}
		place[i].n++;
	}
	for (i = 0; i < n; i++) {
		struct vrb_chk_finding f = {
			.r = {.verdict = VRB_V_LEAK, .val = {place[i].n, object}},
			.call = "exit",
			.pc = place[i].site->pc[0],
			.made = place[i].site,
			.made_what = VRB_TR("made"),
		};

		vrb_chk_report(&f);
	}
}

static void at_exit(int status, void *unused)
{
	struct vrb_chk_each e = {0};
	struct vrb_chk_cq *c;

	(void)unused;
	if (vrb_chk_off())
		return;
	vrb_chk_depth++;
	while ((c = vrb_chk_next(&vrb_chk_cqs, &e)) != NULL)
		vrb_chk_cq_judge(c);
	for (size_t i = 0; !status && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		leaks(kinds[i].object, kinds[i].table);
	vrb_chk_report_rest();
	vrb_chk_depth--;
}

/* ---- fork */

static void shared_pages(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct vrb_chk_each e = {0};
	struct vrb_chk_region *m;

	while ((m = vrb_chk_next(&vrb_chk_regions, &e)) != NULL) {
		struct vrb_chk_finding f = {
			.r = {.verdict = VRB_V_FORK_PAGE, .val = {m->addr, m->mem.len}},
			.call = "fork",
			.made = &m->obj.site,
			.made_what = VRB_TR("registered"),
		};

		if (m->addr % page || m->mem.len % page)
			vrb_chk_report(&f);
	}
}

static void before_fork(void)
{
	enum ibv_fork_status (*status)(void);
	uint32_t n;

	if (vrb_chk_off())
		return;
	n = vrb_chk_count(&vrb_chk_regions);
	if (!n)
		return;
	vrb_chk_depth++;
	status = VRB_REAL(ibv_is_fork_initialized);
	if (status && status() == IBV_FORK_DISABLED)
		VRB_CHK_NOTE("fork", 0, VRB_V_FORK_UNSAFE, n, 0, 0);
	else if (status && status() == IBV_FORK_ENABLED)
		shared_pages();
	vrb_chk_depth--;
}

static void in_child(void)
{
	bool had = vrb_chk_count(&vrb_chk_ctxs) > 0;

	vrb_chk_report_forget();
	/* A child that has nothing of its parent's is a program like any other. */
	if (had)
		atomic_store(&vrb_chk_in_child, true);
}

void vrb_chk_end_watch(void)
{
	on_exit(at_exit, NULL);
	pthread_atfork(before_fork, NULL, in_child);
}
