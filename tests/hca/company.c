/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small messages on the wire wait for company only while earlier ones are on their way: a lone one
 * leaves at once, what waits leaves with the next poll, or with the helper's tick when nobody
 * polls.
 */
#include "hca/wire.h"
#include "kit.h"

#define TRIES	400u
#define LEN	64u
#define WAIT_US 200u
#define WAITS	50000u

static bool is_held(struct vrb_engine *e)
{
	bool held;

	vrb_engine_lock(e);
	held = vrb_wire_is_held(e);
	vrb_engine_unlock(e);
	return held;
}

static bool has_begun(struct vrb_engine *e)
{
	bool begun;

	vrb_engine_lock(e);
	begun = vrb_wire_has_begun(e);
	vrb_engine_unlock(e);
	return begun;
}

static void take(struct node *n, unsigned count)
{
	struct vrb_wc wc;

	while (count--)
		MUST(node_has_wc(n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
}

/* The helper may acknowledge the first before the second is posted: then that is a lone one, too.
 */
static void pairs(bool poll)
{
	struct vrb_hqp *a, *b;
	struct vrb_engine *e;
	uint32_t seen = 0;
	struct node n;

	setenv("VERBENA_LINK", "udp", 1);
	kit_own_network();
	node_open(&n, false);
	e = n.ctx->e;
	a = node_qp(&n, VRB_QPT_RC);
	b = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(b, a->core.qpn) && !node_connect(a, b->core.qpn));
	for (uint32_t i = 0; i < TRIES; i++) {
		uint32_t waits = 0;

		node_recv(&n, b, 1);
		node_recv(&n, b, 2);
		node_send(&n, a, 11, LEN);
		MUST(!has_begun(e));
		node_send(&n, a, 12, LEN);
		seen += is_held(e);
		while (!poll && is_held(e) && waits++ < WAITS)
			usleep(WAIT_US);
		MUST(waits < WAITS);
		take(&n, 4);
		MUST(!is_held(e));
	}
	MUST(seen > 0);
}

static void by_poll(void)
{
	pairs(true);
}

static void by_tick(void)
{
	pairs(false);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"by_poll", by_poll},
		{"by_tick", by_tick},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
