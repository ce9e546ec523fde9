/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	send_clock offered|absent
 *
 * Moderation of events and times of completions: by the adapter where it offers them; else the
 * library moderates, and says that there are no times. Nothing is lost by either, and nobody is
 * left asleep.
 */
#include "send/kit.h"

#include <unistd.h>

#include "support/cases.h"

#define BURST	 40u
#define ROUNDS	 50u
#define ENOUGH_S 40

static enum vrb_by moderates, stamps;

/* ---- moderation: bursts, each asked for by a message, so that both ends sleep between them */

static void bursts(struct end *e)
{
	for (;;) {
		struct vrb_event ev = next_event(e);

		if (ev.kind == VRB_EV_CLOSED)
			return;
		if (ev.kind != VRB_EV_MESSAGE)
			continue;
		vrb_buf_put(ev.buf);
		for (uint32_t i = 0; i < BURST; i++)
			send_all(e, &i, sizeof(i), NULL);
	}
}

static void ask_for_burst(struct end *e)
{
	send_all(e, "x", 1, NULL);
	for (uint32_t i = 0; i < BURST; i++) {
		struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);

		CHECK(!memcmp(ev.buf->data, &i, sizeof(i)) && !ev.time_ns);
		vrb_buf_put(ev.buf);
	}
}

static void want_moderation(struct end *e, enum vrb_by by)
{
	struct vrb_channel_info info;

	vrb_channel_info(e->ch, &info);
	CHECK(info.moderation == by && info.timestamps == VRB_ABSENT);
}

static void is_moderated(struct end *e)
{
	uint64_t start = now_ns(), naps;
	struct vrb_channel_stats st;

	want_moderation(e, moderates);
	do {
		for (uint32_t i = 0; i < ROUNDS; i++)
			ask_for_burst(e);
		vrb_channel_stats(e->ch, &st);
		CHECK(now_ns() - start < ENOUGH_S * S);
	} while (moderates == VRB_BY_LIBRARY && !st.naps);
	CHECK(moderates == VRB_BY_LIBRARY || !st.naps);
	CHECK(!vrb_moderate(e->ch, 0, 0));
	want_moderation(e, VRB_ABSENT);
	naps = st.naps;
	ask_for_burst(e);
	vrb_channel_stats(e->ch, &st);
	CHECK(st.naps == naps);
	CHECK(!vrb_moderate(e->ch, 4, 100));
	want_moderation(e, moderates);
	CHECK(vrb_moderate(e->ch, 4, 0) == -EINVAL && !strcmp(vrb_error_name(), "send_option"));
	CHECK(vrb_moderate(e->ch, 0, 4) == -EINVAL);
	want_moderation(e, moderates);
	ask_for_burst(e);
}

/* ---- times: between two readings of the clock, in order */

static void stamped(struct end *e)
{
	struct vrb_send_options o = {.cookie = e};
	struct vrb_channel_info info;
	uint64_t before, after, last = 0;

	vrb_channel_info(e->ch, &info);
	CHECK(info.timestamps == stamps);
	if (stamps == VRB_ABSENT) {
		CHECK(vrb_channel_clock(e->ch, &before) == -EOPNOTSUPP);
		CHECK(!strcmp(vrb_error_name(), "send_no_clock"));
		ask_for_burst(e); /* and looks that there are no times */
		return;
	}
	CHECK(!vrb_channel_clock(e->ch, &before) && before);
	last = before;
	CHECK(!vrb_send(e->ch, "x", 1, &o));
	for (uint32_t got = 0; got < BURST + 1;) {
		struct vrb_event ev = next_event(e);

		if (ev.kind == VRB_EV_ROOM)
			continue;
		CHECK(ev.kind == VRB_EV_MESSAGE || ev.kind == VRB_EV_SENT);
		CHECK(!vrb_channel_clock(e->ch, &after));
		CHECK(ev.time_ns >= last && ev.time_ns <= after);
		last = ev.time_ns;
		if (ev.buf)
			vrb_buf_put(ev.buf);
		got++;
	}
}

/* A second is a second: the rate of the clock is the right one. */
static void ticks_right(struct end *e)
{
	uint64_t own = now_ns(), clock, later;

	if (stamps == VRB_ABSENT)
		return;
	CHECK(!vrb_channel_clock(e->ch, &clock));
	usleep(50000);
	CHECK(!vrb_channel_clock(e->ch, &later));
	CHECK(later - clock >= 45 * MS && later - clock <= now_ns() - own + 5 * MS);
}

static void has_times(struct end *e)
{
	stamped(e);
	ticks_right(e);
}

static void run_both(void)
{
	const struct vrb_channel_options plain = {.qps = 1, .engine = VRB_SLEEPY};
	struct vrb_channel_options o = plain;

	o.moderate_count = 16;
	o.moderate_us = 2000;
	run_pair(&(struct pair){.server = &plain, .client = &o}, bursts, is_moderated);
	o = plain;
	o.timestamps = true;
	run_pair(&(struct pair){.server = &plain, .client = &o}, bursts, has_times);
}

static void case_offered(void)
{
	moderates = stamps = VRB_BY_ADAPTER;
	run_both();
}

static void case_absent(void)
{
	moderates = VRB_BY_LIBRARY;
	stamps = VRB_ABSENT;
	run_both();
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"offered", case_offered},
		{"absent", case_absent},
	};

	CHECK(argc == 2);
	return kit_main(argc, argv, tests, 2);
}
