/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives that several queue pairs share: the limit, what the adapter reports, and what it lacks.
 */
#include "send/kit.h"

#include <poll.h>
#include <unistd.h>

#include "send/front.h"
#include "send/storm.h"
#include "support/cases.h"

#define QPS 4u

static const struct vrb_channel_options shared = {
	.qps = QPS, .recv_depth = 64, .shared_receives = true};

/* ---- credits of all lanes are used up while nobody posts: the limit is told, and nothing is lost
 */

static int spent[2]; /* how many messages there are */

static void fills(struct end *e)
{
	uint32_t n = 0, full = 0;

	for (uint32_t flow = 0; full < 1000; flow++) {
		struct vrb_send_options o = {.flow = flow};
		int r = vrb_send(e->ch, &n, sizeof(n), &o);

		CHECK(!r || r == -EAGAIN);
		n += !r;
		full = r ? full + 1 : 0;
	}
	CHECK(n == 64); /* not for each queue pair */
	CHECK(write(spent[1], &n, sizeof(n)) == sizeof(n));
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

static void is_filled_up(struct end *e)
{
	struct pollfd p = {.fd = vrb_async_fd(e->d), .events = POLLIN};
	struct vrb_channel_stats st;
	struct vrb_channel_info info;
	uint32_t n;

	CHECK(read(spent[0], &n, sizeof(n)) == sizeof(n));
	CHECK(poll(&p, 1, 50000) == 1);
	for (uint32_t i = 0; i < n; i++)
		vrb_buf_put(want_event(e, VRB_EV_MESSAGE).buf);
	do {
		struct vrb_event ev;

		CHECK(!vrb_poll(e->ch, &ev, 1, MS));
		vrb_channel_stats(e->ch, &st);
	} while (!st.srq_limits);
	vrb_channel_info(e->ch, &info);
	CHECK(info.shared_receives && info.recv_depth == 64 && info.qps == QPS);
}

static void case_limit(void)
{
	CHECK(!pipe(spent));
	run_pair(&(struct pair){.server = &shared, .client = &shared}, is_filled_up, fills);
}

/* ---- both ends by all ways, with queue pairs that fail */

static struct storm here, there;
static struct books books;

static void at_server(struct end *e)
{
	storm(e, &here, &books);
}

static void at_client(struct end *e)
{
	child_pid = 0;
	storm(e, &there, &books);
}

static void case_storm(void)
{
	here = there = (struct storm){.n = 4000};
	run_pair(&(struct pair){.server = &shared, .client = &shared}, at_server, at_client);
	CHECK(books.done == 4000);
}

static void qp_to_error(struct end *e)
{
	(void)e;
	front_qp_to_error(front_qp[front_n_qps - 1]);
}

static void case_error(void)
{
	here = (struct storm){
		.n = 4000, .trouble = qp_to_error, .trouble_at = 500, .may_end = true};
	there = (struct storm){.n = 4000, .may_end = true};
	run_pair(&(struct pair){.server = &shared, .client = &shared}, at_server, at_client);
	CHECK(strstr(books.why, "send_"));
}

/* ---- it fails */

static void waits_for_end(struct end *e)
{
	struct vrb_event ev;

	do
		ev = next_event(e);
	while (ev.kind != VRB_EV_BROKEN);
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
}

static void srq_fails(struct end *e)
{
	struct vrb_event ev;

	front_report_srq(IBV_EVENT_SRQ_ERR, front_srq);
	ev = want_event(e, VRB_EV_BROKEN);
	CHECK(strstr(ev.text, "send_srq_error"));
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
}

static void case_fails(void)
{
	run_pair(&(struct pair){.server = &shared, .client = &shared}, waits_for_end, srq_fails);
}

/* ---- there is none */

static void case_refused(void)
{
	struct vrb_listener *l;
	struct vrb_channel *ch;
	struct vrb_domain *d;
	char port[16];

	front_no_srq = 1;
	CHECK(!vrb_open(NULL, &d));
	CHECK(!vrb_listen(d, "127.0.0.1", "0", NULL, &l));
	snprintf(port, sizeof(port), "%d", vrb_listener_port(l));
	CHECK(vrb_connect(d, "127.0.0.1", port, &shared, &ch) == -EOPNOTSUPP);
	CHECK(!strcmp(vrb_error_name(), "send_create") && strstr(vrb_error_text(), "0 SRQs"));
	vrb_unlisten(l);
	CHECK(!vrb_close(d));
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"limit", case_limit}, {"storm", case_storm},	  {"error", case_error},
		{"fails", case_fails}, {"refused", case_refused},
	};

	return kit_main(argc, argv, tests, 5);
}
