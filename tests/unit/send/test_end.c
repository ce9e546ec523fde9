/* SPDX-License-Identifier: BSD-2-Clause */
/* An adapter that refuses what it had granted, and a peer that breaks the rules: the channel ends.
 */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <verbena/error.h>

#include "send/channel.h"

static int refuse_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return EINVAL;
}

struct rig {
	struct ibv_context ctx;
	struct ibv_qp qp;
	struct vrb_domain d;
	struct vrb_channel ch;
	struct vrb_lane l;
	struct vrb_sent sent[4];
	struct vrb_event ring[64];
	void *mem;
	int tcp[2];
};

/* A lane that its channel does not know of, so that nothing touches the queue pair that is none. */
static int set_up(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));

	g->ctx.ops.post_send = refuse_post;
	g->qp.context = &g->ctx;
	g->l.ch = &g->ch;
	g->l.qp = &g->qp;
	g->l.sent = g->sent;
	g->l.sent_mask = 3;
	vrb_sq_init(&g->l.sq, 4, 2);
	vrb_credit_init(&g->l.credit, 4, 4);
	g->ch.d = &g->d;
	g->ch.ring = g->ring;
	g->ch.ring_mask = 63;
	g->ch.inline_max = 64;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, g->tcp), 0);
	g->ch.tcp = g->tcp[0];
	assert_int_equal(posix_memalign(&g->mem, VRB_PAGE, 1 << 20), 0);
	assert_int_equal(vrb_pool_init(&g->d.pool, g->mem, 1 << 20, 0), 0);
	*state = g;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *g = *state;

	vrb_pool_fini(&g->d.pool);
	close(g->tcp[0]);
	close(g->tcp[1]);
	free(g->mem);
	free(g);
	return 0;
}

static void test_adapter_refuses(void **state)
{
	struct rig *g = *state;
	struct vrb_frame f = {.kind = VRB_FRAME_TAKEN};
	struct vrb_note n;

	assert_int_equal(vrb_post_control(&g->l, &f, NULL, 0), 0); /* taken, and flushed */
	assert_int_equal(g->l.sq.head, g->l.sq.tail);
	assert_string_equal(vrb_error_name(), "send_post");
	assert_int_equal(g->ch.state, VRB_ENDING);
	assert_non_null(strstr(g->ch.text, "send_post"));
	assert_int_equal(read(g->tcp[1], &n, sizeof(n)), sizeof(n));
	assert_int_equal(le32toh(n.kind), VRB_NOTE_BROKEN);
}

static void receive(struct rig *g, const struct vrb_frame *f, uint32_t len)
{
	struct vrb_buf *b = vrb_pool_get(&g->d.pool, 4096, NULL);
	struct vrb_pool_stats s;

	memset(b->data, 0xff, 64);
	if (len >= sizeof(*f))
		vrb_frame_emit((uint8_t *)b->data + len - sizeof(*f), f);
	vrb_on_receive(&g->l, b, len);
	assert_int_equal(g->ch.state, VRB_ENDING);
	assert_non_null(strstr(g->ch.text, "send_protocol"));
	vrb_large_settle(&g->l);
	vrb_pool_count(&g->d.pool, &s);
	assert_int_equal(s.outside, 0);
	g->ch.state = VRB_UP;
	g->l.n_answers = 0;
	vrb_credit_init(&g->l.credit, 4, 4);
}

static void test_rules(void **state)
{
	struct rig *g = *state;

	receive(g, &(struct vrb_frame){.kind = VRB_FRAME_MESSAGE, .len = 5}, 16 + 4);
	receive(g, &(struct vrb_frame){.kind = VRB_FRAME_MESSAGE}, 15);
	receive(g, &(struct vrb_frame){.kind = 77}, 16);
	receive(g, &(struct vrb_frame){.kind = VRB_FRAME_TAKEN}, 16 + 8); /* of nothing */
	receive(g, &(struct vrb_frame){.kind = VRB_FRAME_TAKEN}, 16);
	receive(g, &(struct vrb_frame){.kind = VRB_FRAME_OFFER, .len = 10}, 16 + 8);
	receive(g, &(struct vrb_frame){.kind = VRB_FRAME_OFFER, .len = 10}, 16 + 24);
	receive(g, &(struct vrb_frame){.kind = VRB_FRAME_MESSAGE, .flags = 0xf0}, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_adapter_refuses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rules, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
