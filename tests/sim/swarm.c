/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_swarm [--seeds N] [--start S] | --seed S [--trace] [--pcap FILE] | --file FILE
 *
 * Runs seeded random schedules (app_plan.c) with all checkers. Without --seed: first the seeds of
 * the file, which have failed once, then N fresh ones. A failure prints the command that repeats
 * it. Exit 0 or 1.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "link/fault.h"
#include "link/sim.h"
#include "sim/app.h"
#include "support/pcap.h"

#define SEEDS_DEFAULT 2000ul
#define FAILURES_MAX  5u

static struct app app;
static uint64_t n_frames;

static int wrap(struct vrb_link **l, const struct app_faults *f, vrb_ns until, uint64_t seed)
{
	struct vrb_fault_conf c = {.seed = seed, .until = until};
	int err = 0;

	c.per_million = f->corrupt;
	if (f->corrupt)
		err = vrb_corrupt_open(*l, &c, l);
	c.per_million = f->loss;
	if (!err && f->loss)
		err = vrb_loss_open(*l, &c, NULL, l);
	c.per_million = f->duplicate;
	if (!err && f->duplicate)
		err = vrb_duplicate_open(*l, &c, f->spread_ns, l);
	c.per_million = f->reorder;
	if (!err && f->reorder)
		err = vrb_reorder_open(*l, &c, f->spread_ns, l);
	c.per_million = f->delay;
	if (!err && (f->delay || f->delay_ns))
		err = vrb_delay_open(*l, &c, f->delay_ns, f->spread_ns, l);
	return err;
}

static bool open_links(const struct app_plan *p, struct vrb_link *link[2])
{
	const struct vrb_sim_conf conf = {VRB_FRAME_MAX, p->queue_max, p->latency_ns,
					  p->ps_per_byte};

	if (vrb_sim_open(&conf, link))
		return false;
	for (unsigned k = 0; k < 2; k++) {
		if (wrap(&link[k], &p->faults[k], p->until, p->seed * 2 + k)) {
			vrb_link_close(link[0]);
			vrb_link_close(link[1]);
			return false;
		}
	}
	return true;
}

static bool run_seed(uint64_t seed, bool verbose)
{
	struct vrb_link *link[2];
	bool ok;

	app_plan_draw(&app.plan, seed);
	if (verbose)
		app_plan_print(&app.plan);
	if (!open_links(&app.plan, link)) {
		fprintf(stderr, "no memory\n");
		return false;
	}
	app.sn.trace = verbose;
	app_start(&app, link);
	ok = app_run(&app);
	n_frames += app.sn.n_frames;
	app.sn.n_frames = 0;
	if (!ok)
		printf("FAILED: %s\n  at %.3f us; again: sim_swarm --seed %llu --trace\n",
		       app.sn.why, (double)app.sn.now / 1000, (unsigned long long)seed);
	else if (verbose)
		printf("passed at %.3f us\n", (double)app.sn.now / 1000);
	sn_stop(&app.sn);
	return ok;
}

static unsigned run_file(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned failures = 0;
	char line[256];

	if (!f) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return 1;
	}
	while (fgets(line, sizeof(line), f)) {
		char *end;
		unsigned long long seed = strtoull(line, &end, 0);

		if (end != line)
			failures += !run_seed(seed, false);
	}
	fclose(f);
	return failures;
}

static unsigned run_fresh(uint64_t start, unsigned long n)
{
	unsigned failures = 0;

	if (!start) {
		if (getrandom(&start, sizeof(start), 0) != (ssize_t)sizeof(start))
			start = 1;
		start >>= 16; /* shorter to type */
	}
	printf("%lu seeds from %llu\n", n, (unsigned long long)start);
	for (unsigned long i = 0; i < n && failures < FAILURES_MAX; i++)
		failures += !run_seed(start + i, false);
	return failures;
}

/* What has been reached: a swarm that meets no fault proves little. */
static void print_verdicts(void)
{
	static const enum vrb_verdict shown[] = {
		VRB_V_DROP_ICRC,      VRB_V_NAK_SEQUENCE, VRB_V_NAK_RNR,
		VRB_V_DROP_DUPLICATE, VRB_V_IMPLIED_NAK,  VRB_V_DROP_UC_BROKEN,
		VRB_V_DROP_NO_RECV,   VRB_V_RETRY_EXC,	  VRB_V_RNR_RETRY_EXC,
	};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		printf("%s%s %llu", i ? ", " : "", vrb_verdict_info(shown[i])->counter,
		       (unsigned long long)(app.sn.end[0].n_verdict[shown[i]] +
					    app.sn.end[1].n_verdict[shown[i]]));
	printf("\n");
}

static void print_totals(unsigned failures)
{
	uint64_t fast[3];

	print_verdicts();
	for (unsigned i = 0; i < 3; i++)
		fast[i] = app.sn.end[0].n_fast[i] + app.sn.end[1].n_fast[i];
	printf("%u failures, %llu frames; on the straight line: %llu sends, %llu receives, "
	       "%llu ACKs\n",
	       failures, (unsigned long long)n_frames, (unsigned long long)fast[0],
	       (unsigned long long)fast[1], (unsigned long long)fast[2]);
}

struct args {
	unsigned long n;
	unsigned long long seed, start;
	const char *file, *pcap;
	bool one, trace;
};

static bool parse_args(struct args *a, int argc, char **argv)
{
	static const struct option options[] = {
		{"seeds", required_argument, NULL, 'n'},
		{"start", required_argument, NULL, 'S'},
		{"seed", required_argument, NULL, 's'},
		{"trace", no_argument, NULL, 't'},
		{"pcap", required_argument, NULL, 'p'},
		{"file", required_argument, NULL, 'f'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			a->n = strtoul(optarg, NULL, 0);
		else if (c == 'S')
			a->start = strtoull(optarg, NULL, 0);
		else if (c == 's')
			a->seed = strtoull(optarg, NULL, 0);
		else if (c == 'p')
			a->pcap = optarg;
		else if (c == 'f')
			a->file = optarg;
		else if (c != 't')
			return false;
		a->one |= c == 's';
		a->trace |= c == 't';
	}
	return optind == argc;
}

int main(int argc, char **argv)
{
	struct args a = {.n = SEEDS_DEFAULT};
	unsigned failures = 0;

	if (!parse_args(&a, argc, argv))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!sn_init(&app.sn))
		return 1;
	app.sn.pcap = a.pcap ? pcap_create(a.pcap) : NULL;
	if (a.one) {
		failures = !run_seed(a.seed, a.trace);
	} else {
		failures = a.file ? run_file(a.file) : 0;
		failures += run_fresh(a.start, a.n);
		print_totals(failures);
	}
	if (app.sn.pcap)
		fclose(app.sn.pcap);
	sn_fini(&app.sn);
	return failures ? 1 : 0;
}
