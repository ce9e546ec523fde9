/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of things in a run, at both ends. See session.h. */
#include "tools/perf/session.h"

#include <string.h>

#include "tools/perf/counters.h"

#define ANSWER_S 30u
#define RESULT_S 15u

static const struct perf_face *face_of(const struct perf_params *p)
{
	return p->api == PERF_LIBRARY ? &vrb_perf_library : &vrb_perf_raw;
}

static bool fail(struct perf_session *s, const char *who, const char *what)
{
	snprintf(s->why, sizeof(s->why), "%s%.*s", who, PERF_WHY_BYTES - 32, what);
	return false;
}

static void abort_end(void *arg)
{
	struct perf_run *run = arg;

	face_of(run->p)->abort(run->end);
}

/* The face's run under watch, with the device's counters before and after. */
static bool run_watched(struct perf_run *run, void *end)
{
	struct perf_counters before, after;
	bool ok;

	run->end = end;
	if (!vrb_perf_watch(run->talk, abort_end, run))
		return vrb_perf_fail(run, "%s", run->talk->why);
	vrb_perf_counters_read(&before, run->device, run->ib_port);
	ok = face_of(run->p)->run(end);
	vrb_perf_counters_read(&after, run->device, run->ib_port);
	run->side.retries = vrb_perf_counter_diff(before.retries, after.retries);
	run->side.rnr_naks = vrb_perf_counter_diff(before.rnr_naks, after.rnr_naks);
	return ok;
}

/* ---- the server */

static json_t *serve_open(struct perf_session *s, struct perf_run *run, const json_t *m, void **end)
{
	json_t *address = NULL;

	*end = face_of(run->p)->open(run, json_object_get(m, "end"), &address);
	if (!*end)
		return json_pack("{s:s}", "failed", s->why);
	return json_pack("{s:o}", "end", address);
}

/* One run. False: the connection is of no use any more. */
static bool serve_run(struct perf_session *s, const json_t *m, const struct perf_params *local)
{
	struct perf_params p = *local;
	struct perf_run run = {.p = &p, .talk = &s->talk, .why = s->why};
	json_t *answer, *said;
	void *end = NULL;
	bool ok;

	s->why[0] = '\0';
	if (!vrb_perf_params_read(&p, json_object_get(m, "run"), s->why) ||
	    !vrb_perf_settle(&p, s->why))
		answer = json_pack("{s:s}", "failed", s->why);
	else
		answer = serve_open(s, &run, m, &end);
	if (!vrb_perf_tell(&s->talk, answer)) {
		if (end)
			face_of(&p)->close(end);
		return fail(s, "", s->talk.why);
	}
	if (!end)
		return true;
	ok = run_watched(&run, end);
	said = vrb_perf_watch_end(&s->talk);
	if (*s->talk.stop)
		ok = vrb_perf_fail(&run, "interrupted");
	answer = ok ? json_pack("{s:o}", "result", vrb_perf_side_json(&run.side))
		    : json_pack("{s:s}", "failed", s->why);
	if (!vrb_perf_tell(&s->talk, answer) || !said)
		ok = vrb_perf_fail(&run, "the client has ended in the middle of a run");
	json_decref(said);
	face_of(&p)->close(end);
	return ok;
}

int vrb_perf_serve(struct perf_session *s, const struct perf_params *local)
{
	for (;;) {
		json_t *m = vrb_perf_hear(&s->talk, 0);
		bool ok = false, bye = m && json_object_get(m, "bye");

		if (!m)
			fail(s, "", s->talk.why);
		else if (!bye)
			ok = serve_run(s, m, local);
		json_decref(m);
		if (bye)
			return 0;
		if (!ok)
			return -1;
	}
}

/* ---- the client */

/* Asks for the run and reads the server's address; NULL with a sentence. */
static json_t *ask(struct perf_session *s, const struct perf_params *p, json_t *address)
{
	json_t *answer, *end;
	const char *failed;

	if (!vrb_perf_tell(&s->talk, json_pack("{s:o, s:o}", "run", vrb_perf_params_json(p, false),
					       "end", address))) {
		fail(s, "", s->talk.why);
		return NULL;
	}
	answer = vrb_perf_hear(&s->talk, ANSWER_S);
	if (!answer) {
		fail(s, "", s->talk.why);
		return NULL;
	}
	failed = json_string_value(json_object_get(answer, "failed"));
	end = json_incref(json_object_get(answer, "end"));
	if (failed || !end)
		fail(s, "the server: ", failed ? failed : "it says nothing of its end");
	json_decref(answer);
	return end;
}

/* What the server has said after the run: its account, or why there is none. */
static void read_result(struct perf_session *s, struct perf_result *r, json_t *said)
{
	const json_t *result = json_object_get(said, "result");
	const char *failed = json_string_value(json_object_get(said, "failed"));

	r->server_known = result;
	if (result)
		vrb_perf_side_read(&r->server, result);
	else
		snprintf(r->note, sizeof(r->note), "the server ended: %.*s", PERF_WHY_BYTES - 32,
			 failed		       ? failed
			 : s->talk.gone_why[0] ? s->talk.gone_why
					       : "it does not answer");
	json_decref(said);
}

/* Both ends stand. */
static bool measure(struct perf_session *s, struct perf_run *run, void *end)
{
	struct perf_result *r = run->r;
	bool ok = run_watched(run, end), heard;

	heard = vrb_perf_tell(&s->talk, ok ? json_pack("{s:b}", "done", 1)
					   : json_pack("{s:s}", "failed", s->why));
	if (heard)
		vrb_perf_watch_wait(&s->talk, RESULT_S);
	read_result(s, r, vrb_perf_watch_end(&s->talk));
	r->client = run->side;
	r->interrupted = *s->talk.stop;
	snprintf(r->params.device, sizeof(r->params.device), "%s", run->device);
	r->params.ib_port = run->ib_port;
	if (ok)
		return true;
	if (r->note[0] && atomic_load(&s->talk.gone) && r->client.messages) {
		r->client.posted = r->client.completed; /* the rest is lost, as it must be */
		return true;
	}
	if (r->note[0] && atomic_load(&s->talk.gone))
		return fail(s, "", r->note);
	return false;
}

bool vrb_perf_measure(struct perf_session *s, const struct perf_params *p, struct perf_result *r)
{
	struct perf_run run = {.p = p,
			       .talk = &s->talk,
			       .r = r,
			       .is_client = true,
			       .why = s->why,
			       .progress = s->progress};
	const struct perf_face *face = face_of(p);
	json_t *address = NULL, *peer;
	bool ok = false;
	void *end;

	memset(r, 0, sizeof(*r));
	r->params = *p;
	s->why[0] = '\0';
	end = face->open(&run, NULL, &address);
	if (!end)
		return false;
	peer = ask(s, p, address);
	if (peer) {
		if (face->connect(end, s->host, peer))
			ok = measure(s, &run, end);
		else
			vrb_perf_tell(&s->talk, json_pack("{s:s}", "failed", s->why));
	}
	json_decref(peer);
	face->close(end);
	return ok;
}
