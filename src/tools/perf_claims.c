/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena perf --claims`. Each sample is a pair of processes of its own, so that a variable of the
 * environment counts and nothing is left over from the one before.
 */
#include "tools/perf_claims.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/out.h"
#include "tools/perf/claims.h"
#include "tools/perf/nodes.h"
#include "tools/perf_ends.h"
#include "tools/tools.h"

#define SAMPLE_LIMIT_S 60

/* What a sample's process leaves. */
struct sample {
	bool ok;
	char why[PERF_WHY_BYTES];
	double figure[PERF_FIGURES];
	char device[64];
};

struct cell {
	unsigned n; /* samples; the i-th of each variant are of one round */
	double figure[PERF_FIGURES][PERF_ROUNDS_MAX];
	char why[PERF_WHY_BYTES]; /* why there are none */
};

static void measure(const struct perf_claims_job *j, const struct perf_params *p, const int *cpu,
		    struct sample *s)
{
	struct perf_result *r = malloc(sizeof(*r));
	struct perf_session session = {.talk = {.stop = j->stop}, .host = "127.0.0.1"};
	pid_t pid = vrb_perf_fork_server(p, cpu, j->stop, &session.talk.fd);

	if (!r || pid < 0)
		return;
	s->ok = vrb_perf_measure(&session, p, r);
	memcpy(s->why, session.why, sizeof(s->why));
	s->ok = s->ok && vrb_perf_is_plausible(r, s->why) && !r->interrupted && !r->note[0];
	for (unsigned i = 0; i < PERF_FIGURES; i++)
		s->figure[i] = vrb_perf_figure(r, (enum perf_figure)i);
	memcpy(s->device, r->params.device, sizeof(s->device));
	vrb_perf_tell(&session.talk, json_pack("{s:b}", "bye", 1));
	close(session.talk.fd);
	vrb_perf_collect(pid);
	free(r);
}

/* Where the two ends run. */
static bool choose_cpus(const struct perf_claims_job *j, const struct perf_claim *c, unsigned v,
			int cpu[2], char why[PERF_WHY_BYTES])
{
	cpu_set_t set;

	memcpy(cpu, j->cpu, 2 * sizeof(*cpu));
	return !c->by_node || (!sched_getaffinity(0, sizeof(set), &set) &&
			       vrb_perf_nodes_pick("", &set, v > 0, cpu, why));
}

static void run_sample(const struct perf_claims_job *j, const struct perf_claim *c, unsigned v,
		       struct sample *s)
{
	struct perf_params p = *j->params;
	int cpu[2];
	pid_t pid;

	memset(s, 0, sizeof(*s));
	if (!vrb_perf_variant_params(c, v, &p, s->why) || !choose_cpus(j, c, v, cpu, s->why))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(SAMPLE_LIMIT_S);
		if (c->variable && c->variant[v].environment)
			setenv(c->variable, c->variant[v].environment, 1);
		measure(j, &p, cpu, s);
		exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (c->device && s->ok && strncmp(s->device, c->device, strlen(c->device)) != 0) {
		s->ok = false;
		snprintf(s->why, sizeof(s->why), "not on %s", s->device);
	}
}

/* One round of one claim; its samples count only when all variants that can be have one. */
static void run_round(const struct perf_claims_job *j, const struct perf_claim *c,
		      struct cell *cells, struct sample *s)
{
	unsigned n = vrb_perf_n_variants(c), got = 0;
	double figure[PERF_VARIANTS_MAX][PERF_FIGURES];
	bool ok[PERF_VARIANTS_MAX] = {false};

	for (unsigned v = 0; v < n && !*j->stop; v++) {
		if (cells[v].why[0])
			continue;
		run_sample(j, c, v, s);
		ok[v] = s->ok;
		got += s->ok;
		memcpy(figure[v], s->figure, sizeof(figure[v]));
		if (!s->ok && !*j->stop)
			memcpy(cells[v].why, s->why, sizeof(s->why));
	}
	for (unsigned v = 0; v < n && got && !*j->stop; v++) {
		struct cell *at = &cells[v];

		for (unsigned i = 0; i < PERF_FIGURES && ok[v]; i++)
			at->figure[i][at->n] = figure[v][i];
		at->n += ok[v];
	}
}

/* The largest of the variants' medians: one of them at least never sleeps. */
static double client_cpu(const struct perf_claim *c, const struct cell *cells)
{
	double most = 0;

	for (unsigned v = 0; v < vrb_perf_n_variants(c); v++) {
		struct perf_quartiles q =
			vrb_perf_quartiles(cells[v].figure[FIGURE_CLIENT_CPU], cells[v].n);

		most = q.median > most ? q.median : most;
	}
	return most;
}

static json_t *verdict_json(const struct perf_claim *c, const struct cell *cells,
			    const struct perf_quartiles *q, unsigned n)
{
	enum perf_verdict verdict = vrb_perf_judge(q, n, c->less_is_better);
	double cpu = client_cpu(c, cells);

	if (!n)
		return json_sprintf("%s here", vrb_perf_verdict_text(VERDICT_UNKNOWN));
	if (cpu < PERF_CPU_ENOUGH)
		return json_sprintf(
			"%s: others have the CPUs, a client that spins got %.0f %% of one",
			vrb_perf_verdict_text(VERDICT_UNKNOWN), cpu);
	if (verdict == VERDICT_UNKNOWN)
		return json_sprintf("%s: too few rounds", vrb_perf_verdict_text(verdict));
	return json_string(vrb_perf_verdict_text(verdict));
}

static json_t *variant_json(const struct perf_claim *c, const struct cell *cells, unsigned v)
{
	json_t *o = json_object();
	double ratio[PERF_ROUNDS_MAX];
	unsigned n = cells[v].n < cells[0].n ? cells[v].n : cells[0].n;
	struct perf_quartiles q;

	json_object_set_new(o, "variant", json_string(c->variant[v].label));
	json_object_set_new(o, "samples", json_integer(cells[v].n));
	if (cells[v].why[0])
		json_object_set_new(o, "why", json_string(cells[v].why));
	for (unsigned i = 0; i < PERF_FIGURES && cells[v].n; i++) {
		q = vrb_perf_quartiles(cells[v].figure[i], cells[v].n);
		json_object_set_new(o, vrb_perf_figure_name((enum perf_figure)i),
				    json_real(q.median));
	}
	for (unsigned i = 0; i < n; i++)
		ratio[i] = cells[0].figure[c->figure][i] > 0
				   ? cells[v].figure[c->figure][i] / cells[0].figure[c->figure][i]
				   : 1;
	q = vrb_perf_quartiles(ratio, n);
	if (n)
		json_object_set_new(o, "to_first", json_pack("[f, f, f]", q.low, q.median, q.high));
	if (v == c->claimed)
		json_object_set_new(o, "verdict", verdict_json(c, cells, &q, n));
	return o;
}

static json_t *claim_json(const struct perf_claim *c, const struct cell *cells)
{
	json_t *o = json_object(), *variants = json_array(), *verdict;

	for (unsigned v = 0; v < vrb_perf_n_variants(c); v++)
		json_array_append_new(variants, variant_json(c, cells, v));
	verdict = json_object_get(json_array_get(variants, c->claimed), "verdict");
	json_object_set_new(o, "claim", json_string(c->name));
	json_object_set_new(o, "sentence", json_string(c->sentence));
	json_object_set_new(o, "figure", json_string(vrb_perf_figure_name(c->figure)));
	json_object_set(o, "verdict", verdict);
	json_object_set_new(o, "variants", variants);
	return o;
}

json_t *vrb_perf_claims_run(const struct perf_claims_job *j)
{
	struct sample *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cell(*cells)[PERF_VARIANTS_MAX] = calloc(vrb_perf_n_claims, sizeof(*cells));
	json_t *all = json_array();

	for (unsigned r = 0; r < j->rounds && !*j->stop && cells && s != MAP_FAILED; r++)
		for (unsigned c = 0; c < vrb_perf_n_claims && !*j->stop; c++) {
			if (j->only && strcmp(j->only, vrb_perf_claims[c].name) != 0)
				continue;
			if (j->progress)
				fprintf(stderr, "\r\033[Kround %u of %u: %s", r + 1, j->rounds,
					vrb_perf_claims[c].name);
			run_round(j, &vrb_perf_claims[c], cells[c], s);
		}
	if (j->progress)
		fputs("\r\033[K", stderr);
	for (unsigned c = 0; c < vrb_perf_n_claims && cells; c++)
		if (!j->only || !strcmp(j->only, vrb_perf_claims[c].name))
			json_array_append_new(all, claim_json(&vrb_perf_claims[c], cells[c]));
	free(cells);
	if (s != MAP_FAILED)
		munmap(s, sizeof(*s));
	if (json_array_size(all))
		return all;
	json_decref(all);
	return NULL;
}

static json_t *row_of(const json_t *v)
{
	json_t *row = json_object(), *ratio = json_object_get(v, "to_first");

	json_object_set(row, "variant", json_object_get(v, "variant"));
	for (unsigned i = 0; i < PERF_FIGURES; i++) {
		const char *name = vrb_perf_figure_name((enum perf_figure)i);
		json_t *figure = json_object_get(v, name);

		if (i == FIGURE_EVENTS || !figure)
			json_object_set_new(row, name,
					    figure ? json_incref(figure) : json_string("-"));
		else
			json_object_set_new(
				row, name,
				json_integer((json_int_t)(json_real_value(figure) + 0.5)));
	}
	json_object_set_new(row, "to first (quartiles)",
			    ratio ? json_sprintf("%.2f (%.2f to %.2f)",
						 json_real_value(json_array_get(ratio, 1)),
						 json_real_value(json_array_get(ratio, 0)),
						 json_real_value(json_array_get(ratio, 2)))
				  : json_string("-"));
	return row;
}

void vrb_perf_claims_print(FILE *f, const json_t *claims)
{
	const json_t *c, *v;
	size_t i, k;

	json_array_foreach(claims, i, c)
	{
		json_t *rows = json_array();

		fprintf(f, "%s%s: %s (%s)\n", i ? "\n" : "",
			json_string_value(json_object_get(c, "claim")),
			json_string_value(json_object_get(c, "sentence")),
			json_string_value(json_object_get(c, "figure")));
		json_array_foreach(json_object_get(c, "variants"), k, v)
		{
			json_array_append_new(rows, row_of(v));
		}
		vrb_out_table(f, rows);
		json_decref(rows);
		json_array_foreach(json_object_get(c, "variants"), k, v)
		{
			const char *why = json_string_value(json_object_get(v, "why"));

			if (why)
				fprintf(f, "%s: not measured: %s\n",
					json_string_value(json_object_get(v, "variant")), why);
		}
		fprintf(f, "-> %s\n", json_string_value(json_object_get(c, "verdict")));
	}
}
