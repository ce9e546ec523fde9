/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All 2^12 ways to lose some of the first 12 frames, both directions counted together, for SEND,
 * WRITE, READ and CmpSwap, with a fixed window and with the one that measures and probes
 * (core/window.h): every run must end with everything done exactly once.
 *
 * sim_exhaustive [OP MASK [probes]] repeats one run with its trace.
 */
#include <stdlib.h>
#include <string.h>

#include "link/fault.h"
#include "link/sim.h"
#include "sim/app.h"

#define N_FRAMES 12u

static const struct {
	const char *name;
	enum vrb_wr_op op;
	uint32_t n_msgs, len; /* twelve frames without loss: requests and their answers */
} cases[] = {
	{"SEND", VRB_WR_SEND, 3, 700},
	{"WRITE", VRB_WR_WRITE, 3, 700},
	{"READ", VRB_WR_READ, 3, 700},
	{"CAS", VRB_WR_CMP_SWAP, 6, 8},
};

static struct app app;

static void plan(unsigned which, bool probes)
{
	struct app_plan *p = &app.plan;

	*p = (struct app_plan){.seed = which + 1,
			       .n_qp = 1,
			       .n_msgs = {cases[which].n_msgs, 0},
			       .len_fixed = true,
			       .ordered = true,
			       .ops = 1u << cases[which].op,
			       .len_max = cases[which].len,
			       .latency_ns = 1000,
			       .ps_per_byte = 80,
			       .queue_max = 256,
			       .tx_burst = {8, 8}};
	p->qp[0] = (struct sn_qp_conf){.type = VRB_QPT_RC,
				       .mtu_code = 1,
				       .window_max = 64,
				       .adapts = probes,
				       .psn = {0xfffffa, 0x7ffffc},
				       .sq_cap = 16,
				       .rq_cap = 16,
				       .timeout = probes ? 13 : 8, /* room for probes before it */
				       .retry_cnt = 7,
				       .rnr_retry = 7,
				       .min_rnr_timer = 1,
				       .rd_atomic = 16};
}

static bool run(unsigned which, bool probes, uint32_t mask, bool trace)
{
	const struct vrb_sim_conf conf = {VRB_FRAME_MAX, 256, 1000, 80};
	const struct vrb_fault_conf quiet = {0};
	struct vrb_loss_script script = {.mask = mask, .n = N_FRAMES};
	struct vrb_link *link[2];
	bool ok;

	if (vrb_sim_open(&conf, link) || vrb_loss_open(link[0], &quiet, &script, &link[0]) ||
	    vrb_loss_open(link[1], &quiet, &script, &link[1])) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
	plan(which, probes);
	app.sn.trace = trace;
	app_start(&app, link);
	ok = app_run(&app);
	if (ok && script.seen < N_FRAMES)
		sn_fail(&app.sn, "only %u frames were on the wire", script.seen);
	if (app.sn.failed)
		printf("FAILED: %s; again: sim_exhaustive %s 0x%x%s\n", app.sn.why,
		       cases[which].name, mask, probes ? " probes" : "");
	sn_stop(&app.sn);
	return !app.sn.failed;
}

int main(int argc, char **argv)
{
	unsigned failures = 0;

	if (!sn_init(&app.sn))
		return 1;
	for (unsigned which = 0; which < sizeof(cases) / sizeof(cases[0]); which++) {
		if (argc >= 3) {
			if (!strcmp(argv[1], cases[which].name))
				failures += !run(which, argc > 3,
						 (uint32_t)strtoul(argv[2], NULL, 0), true);
			continue;
		}
		for (uint32_t mask = 0; mask < 2u << N_FRAMES && failures < 5; mask++)
			failures +=
				!run(which, mask >> N_FRAMES, mask & ((1u << N_FRAMES) - 1), false);
		printf("%s: all masks of the first %u frames, %u failures\n", cases[which].name,
		       N_FRAMES, failures);
	}
	sn_fini(&app.sn);
	return failures ? 1 : 0;
}
