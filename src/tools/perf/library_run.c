/* SPDX-License-Identifier: BSD-2-Clause */
/* The loops over libverbena: messages there and back, and as many as possible. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/latency.h"
#include "tools/perf/library.h"

#define EVENTS		16
#define SLICE_NS	(200 * (int64_t)VRB_NS_PER_MS) /* between looks at the connection */
#define SILENCE_NS	(15 * VRB_NS_PER_S)
#define ACCEPT_NS	(10 * (int64_t)VRB_NS_PER_S)
#define DRAIN_NS	(15 * (int64_t)VRB_NS_PER_S)
#define SENT_PER_STAMP	64u
#define SENT_PER_CLOCK	64u
#define TURNS_PER_CLOCK 256u

static bool fail(struct perf_library *e, const char *what)
{
	return vrb_perf_fail(e->run, "%s: %.200s", what, vrb_error_text());
}

static bool is_done(const struct perf_library *e)
{
	return atomic_load_explicit(&e->run->talk->spoken, memory_order_relaxed) ||
	       *e->run->talk->stop;
}

static void count(struct perf_library *e)
{
	struct vrb_channel_stats st;

	vrb_channel_stats(e->channel, &st);
	e->run->side.completions = st.completions;
	e->run->side.events = st.events;
	e->run->side.polls = st.polls;
	e->run->side.empty_polls = st.empty_polls;
}

static void begin(void *end)
{
	struct perf_library *e = end;

	count(e);
	vrb_perf_begin(e->run, vrb_perf_now());
}

static void finish(struct perf_library *e)
{
	if (e->channel)
		count(e);
	vrb_perf_finish(e->run);
}

static bool take_sent(struct perf_library *e, const struct vrb_event *ev)
{
	e->sent_events++;
	if (ev->cookie && e->stamp_ns) {
		uint64_t now = vrb_perf_now();

		if (e->p->mode != PERF_LAT && e->run->measuring)
			vrb_histogram_add(&e->run->r->lat, now - e->stamp_ns);
		e->stamp_ns = 0;
	}
	return ev->outcome == VRB_DONE ||
	       vrb_perf_fail(e->run, "a message ended in \"%s\"", vrb_outcome_str(ev->outcome));
}

static bool take(struct perf_library *e, const struct vrb_event *ev)
{
	if (ev->kind == VRB_EV_SENT || ev->kind == VRB_EV_MESSAGE) {
		e->heard = true;
		e->moved_ns = 0;
	}
	if (ev->kind == VRB_EV_SENT)
		return take_sent(e, ev);
	if (ev->kind == VRB_EV_MESSAGE) {
		e->run->done += !e->run->is_client;
		if (e->p->mode == PERF_LAT && !e->arrived)
			e->arrived = ev->buf;
		else
			vrb_buf_put(ev->buf);
	}
	e->closed = e->closed || ev->kind == VRB_EV_CLOSED || ev->kind == VRB_EV_BROKEN;
	return ev->kind != VRB_EV_BROKEN ||
	       vrb_perf_fail(e->run, "the channel broke: %.200s", ev->text);
}

/* A wait has brought neither a message nor the end of one. */
static bool check_silence(struct perf_library *e)
{
	uint64_t now = vrb_perf_now();

	if (e->run->posted != e->last_posted || !e->moved_ns) {
		e->last_posted = e->run->posted;
		e->moved_ns = now;
	}
	return now < e->moved_ns + SILENCE_NS || !e->run->is_client ||
	       vrb_perf_fail(e->run, "nothing has moved for 15 s");
}

static bool poll_events(struct perf_library *e, int64_t timeout_ns)
{
	struct vrb_event ev[EVENTS];
	int n = vrb_poll(e->channel, ev, EVENTS, timeout_ns);
	bool ok = n >= 0 || fail(e, "vrb_poll");

	for (int i = 0; i < n; i++)
		ok = take(e, &ev[i]) && ok;
	if (timeout_ns && !e->heard)
		ok = ok && check_silence(e);
	e->heard = false;
	return ok;
}

/* From memory that is allocated and registered for this message alone; the one before is over. */
static int send_registered(struct perf_library *e, const struct vrb_send_options *o)
{
	struct iovec iov = {.iov_len = e->p->size};
	int r;

	if (!e->each) {
		e->each_mem = iov.iov_base = malloc(e->p->size);
		if (!e->each_mem)
			return -ENOMEM;
		memset(e->each_mem, 1, e->p->size);
		r = vrb_register(e->domain, e->each_mem, e->p->size, VRB_LOCAL, &e->each);
		if (r)
			return r;
	}
	iov.iov_base = e->each_mem;
	return vrb_sendv(e->channel, &iov, 1, o);
}

/* One message by whatever way its size and pieces allow. */
static int send_message(struct perf_library *e, const struct vrb_send_options *o)
{
	const struct perf_params *p = e->p;
	struct vrb_buf *b;
	int r;

	if (p->verb == PERF_WRITE)
		return vrb_write(e->channel, e->iov, (int)p->sges, &e->peer, o);
	if (p->verb == PERF_READ)
		return vrb_read(e->channel, e->iov, (int)p->sges, &e->peer, o);
	if (p->slow_register)
		return send_registered(e, o);
	if (p->sges == 1 && p->size <= e->inline_max)
		return vrb_send(e->channel, e->mem, p->size, o);
	if (p->sges > 1 || p->size > p->recv_size)
		return vrb_sendv(e->channel, e->iov, (int)p->sges, o);
	r = vrb_buf_get(e->domain, p->size, &b);
	if (r)
		return r == -ENOMEM ? -EAGAIN : r;
	b->len = p->size;
	r = vrb_send_buf(e->channel, b, o);
	if (r)
		vrb_buf_put(b);
	return r;
}

/* Until it has been taken; false when that cannot be. */
static bool send_surely(struct perf_library *e, const struct vrb_send_options *o)
{
	int r;

	while ((r = send_message(e, o)) == -EAGAIN)
		if (!poll_events(e, SLICE_NS) || e->closed)
			return vrb_perf_fail(e->run, "the channel has ended");
	return !r || fail(e, "sending");
}

/* ---- lat */

static bool echo(struct perf_library *e)
{
	struct vrb_buf *b = e->arrived;
	int r;

	e->arrived = NULL;
	if (b->len <= e->inline_max) {
		while ((r = vrb_send(e->channel, b->data, b->len, NULL)) == -EAGAIN)
			if (!poll_events(e, SLICE_NS))
				break;
		vrb_buf_put(b);
	} else {
		while ((r = vrb_send_buf(e->channel, b, NULL)) == -EAGAIN)
			if (!poll_events(e, SLICE_NS))
				break;
		if (r)
			vrb_buf_put(b);
	}
	return !r || fail(e, "sending");
}

static bool pongs(struct perf_library *e)
{
	while (!e->closed && !is_done(e)) {
		if (!poll_events(e, SLICE_NS))
			return is_done(e);
		if (e->arrived && !echo(e))
			return is_done(e);
		if (!e->run->measuring && e->run->done >= e->p->warmup)
			begin(e);
	}
	return true;
}

static bool ping(void *end, uint64_t i)
{
	static const struct vrb_send_options plain;
	struct perf_library *e = end;
	bool answer = e->p->verb == PERF_SEND, told = !answer || e->p->slow_register;
	uint64_t wanted = e->sent_events + 1;

	(void)i;
	if (!send_surely(e, &plain))
		return false;
	while ((answer && !e->arrived) || (told && e->sent_events < wanted))
		if (!poll_events(e, SLICE_NS) || e->closed)
			return vrb_perf_fail(e->run, "the channel has ended");
	if (e->arrived)
		vrb_buf_put(e->arrived);
	e->arrived = NULL;
	vrb_perf_library_drop(e);
	return true;
}

/* ---- bw, rate */

/* The batch of one doorbell. A message in sixty-four has its time taken. */
static bool send_batch(struct perf_library *e)
{
	struct perf_run *run = e->run;
	struct vrb_send_options o = {.flow = (uint32_t)(run->posted / e->p->batch)};

	for (uint32_t i = 0; i < e->p->batch; i++) {
		if (e->p->iterations && run->measuring &&
		    run->posted - run->base_done >= e->p->iterations)
			return !vrb_flush(e->channel) || fail(e, "vrb_flush");
		o.flags = i + 1 < e->p->batch ? VRB_MORE : 0;
		o.cookie = NULL;
		if (run->measuring && !e->stamp_ns && run->posted % SENT_PER_STAMP == 0) {
			o.cookie = e;
			e->stamp_ns = vrb_perf_now();
		}
		if (!send_surely(e, &o))
			return false;
		run->posted++;
	}
	return true;
}

/* WRITE and READ tell of each end; a SEND is over when it has been taken, until the last of them:
 * the channel's end says that all have arrived. */
static void update_done(struct perf_run *run, const struct perf_library *e)
{
	run->done = e->p->verb == PERF_SEND ? run->posted : e->sent_events;
}

static bool drain(struct perf_library *e)
{
	struct vrb_channel *ch = e->channel;

	while (e->p->verb != PERF_SEND && e->sent_events < e->run->posted)
		if (!poll_events(e, SLICE_NS) || e->closed)
			return vrb_perf_fail(e->run, "the channel has ended");
	if (e->stamp_ns && !poll_events(e, 0))
		return false;
	count(e);
	e->channel = NULL;
	return !vrb_disconnect(ch, DRAIN_NS) || fail(e, "vrb_disconnect");
}

/* Begins with empty queues: one message more is waited for, and each that tells of its end. */
static bool settle(struct perf_library *e)
{
	static const struct vrb_send_options told = {.flags = VRB_REPORT};
	uint64_t wanted = e->sent_events + 1;

	if (!send_surely(e, &told))
		return false;
	e->run->posted++;
	if (e->p->verb != PERF_SEND)
		wanted = e->run->posted;
	while (e->sent_events < wanted)
		if (!poll_events(e, SLICE_NS) || e->closed)
			return vrb_perf_fail(e->run, "the channel has ended");
	update_done(e->run, e);
	begin(e);
	return true;
}

static bool stream(struct perf_library *e)
{
	struct perf_run *run = e->run;
	uint64_t now = vrb_perf_now(), looked = 0, polled = 0;
	bool ok = true;

	for (uint32_t turns = 1; ok && !vrb_perf_is_over(run, now); turns++) {
		if (e->p->pace)
			now = vrb_perf_pace(run, vrb_perf_now(), e->p->batch);
		ok = send_batch(e);
		if (ok && run->posted - polled >= 2 * e->p->signal) {
			polled = run->posted;
			ok = poll_events(e, 0);
		}
		if (run->posted - looked < SENT_PER_CLOCK && turns % TURNS_PER_CLOCK)
			continue;
		looked = run->posted;
		now = vrb_perf_now();
		update_done(run, e);
		if (run->measuring)
			vrb_perf_tick(run, now);
		else if (run->done >= e->p->warmup)
			ok = ok && settle(e);
	}
	ok = ok && drain(e);
	update_done(run, e);
	finish(e);
	return ok;
}

static bool sink(struct perf_library *e)
{
	struct perf_run *run = e->run;

	while (!e->closed) {
		if (!poll_events(e, SLICE_NS))
			return is_done(e);
		if (*run->talk->stop || atomic_load(&run->talk->gone))
			return true;
		if (!run->measuring && run->done >= e->p->warmup)
			begin(e);
	}
	return true;
}

bool vrb_perf_library_run(struct perf_library *e)
{
	struct vrb_channel_info info;
	bool ok;

	if (e->run->is_client && e->p->mode != PERF_LAT)
		return stream(e);
	if (e->run->is_client) {
		ok = vrb_perf_pings(e->run, e, begin, ping);
		finish(e);
		return ok;
	}
	if (vrb_accept(e->listener, ACCEPT_NS, &e->channel))
		return is_done(e) || fail(e, "vrb_accept");
	vrb_channel_info(e->channel, &info);
	e->inline_max = info.inline_bytes > 16 ? info.inline_bytes - 16 : 0;
	ok = e->p->mode == PERF_LAT ? pongs(e) : sink(e);
	e->run->posted = e->run->done;
	finish(e);
	vrb_perf_watch_wait(e->run->talk, 0);
	return ok;
}
