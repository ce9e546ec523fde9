/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of SENDs with credits: the receiver says with an empty SEND that it has posted another
 * batch of receives, and the sender never sends more than it was granted. Without that a sender
 * that is quicker than the receiver runs into RNR.
 */
#include "tools/demo.h"

#include <string.h>

#define POLLS_PER_CLOCK 65536u
#define LIMIT_NS	(2ull * DEMO_WAIT_S * 1000000000ull)
#define CREDITS_POSTED	64u /* receives that the sender keeps for credits */
#define CREDITS_FLYING	32u /* sends of the receiver that are not completed yet */

struct stream {
	uint32_t size, n, list;
	uint32_t granted; /* receives that the receiver has posted in all */
	uint32_t sent, done;
	uint32_t credits_left; /* receives for credits still to be posted */
	uint32_t flying;
	uint32_t polls;
	uint64_t until;
};

static uint32_t first_grant(uint32_t n)
{
	return n < DEMO_RQ_DEPTH ? n : DEMO_RQ_DEPTH;
}

/* Takes what has completed; -1 with d->why set when that is a failure or took too long. */
static int poll_some(struct demo *d, struct ibv_cq *cq, struct stream *s)
{
	struct ibv_wc wc[DEMO_BATCH];
	int k = ibv_poll_cq(cq, DEMO_BATCH, wc);

	if (k < 0 || (++s->polls % POLLS_PER_CLOCK == 0 && vrb_demo_now_ns() > s->until)) {
		vrb_demo_fail(d, "the stream stands still: %u sent, %u done of %u", s->sent,
			      s->done, s->n);
		return -1;
	}
	for (int i = 0; i < k; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			continue;
		vrb_demo_fail(d, "in a stream: %s", ibv_wc_status_str(wc[i].status));
		return -1;
	}
	return k;
}

/* Posts list sends, the last one signaled at the end of a batch. */
static bool post_list(struct demo *d, struct stream *s)
{
	struct ibv_send_wr wr[DEMO_LIST] = {{0}};
	struct ibv_sge sge = vrb_demo_sge(d, 0, s->size);

	for (uint32_t i = 0; i < s->list; i++) {
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].send_flags = s->size <= d->max_inline ? IBV_SEND_INLINE : 0;
		wr[i].next = i + 1 < s->list ? &wr[i + 1] : NULL;
	}
	s->sent += s->list;
	if (s->list == 1 || s->sent % DEMO_BATCH == 0)
		wr[s->list - 1].send_flags |= IBV_SEND_SIGNALED;
	return vrb_demo_post_send(d, wr);
}

static bool stream_out(struct demo *d, struct stream *s)
{
	uint32_t step = s->list == 1 ? 1 : DEMO_BATCH;
	uint32_t window = s->list == 1 ? DEMO_BATCH / 2 : DEMO_SQ_DEPTH;
	int k;

	while (s->done < s->n) {
		bool may_send = s->sent < s->n && s->sent + s->list - s->done <= window &&
				s->sent + s->list <= s->granted;

		if (may_send) {
			if (!post_list(d, s))
				return false;
			continue;
		}
		k = poll_some(d, d->send_cq, s);
		if (k < 0)
			return false;
		s->done += (uint32_t)k * step;
		k = s->granted < s->n ? poll_some(d, d->recv_cq, s) : 0;
		if (k < 0)
			return false;
		for (; k > 0; k--) {
			s->granted += DEMO_BATCH;
			if (s->credits_left && !vrb_demo_post_recv(d, 0, DEMO_RECV_OFFSET, 0))
				return false;
			s->credits_left -= s->credits_left ? 1 : 0;
		}
	}
	return true;
}

static bool post_batch(struct demo *d, uint32_t size)
{
	struct ibv_sge sge = vrb_demo_sge(d, DEMO_RECV_OFFSET, size);
	struct ibv_recv_wr wr[DEMO_BATCH] = {{0}}, *bad;

	for (uint32_t i = 0; i < DEMO_BATCH; i++) {
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].next = i + 1 < DEMO_BATCH ? &wr[i + 1] : NULL;
	}
	if (ibv_post_recv(d->qp, wr, &bad))
		return vrb_demo_fail(d, "ibv_post_recv failed");
	return true;
}

static bool send_credit(struct demo *d, struct stream *s)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	s->flying++;
	return vrb_demo_post_send(d, &wr);
}

static bool stream_in(struct demo *d, struct stream *s)
{
	while (s->done < s->n || s->flying) {
		int k = s->done < s->n ? poll_some(d, d->recv_cq, s) : 0;

		if (k < 0)
			return false;
		s->done += (uint32_t)k;
		while (s->granted < s->n && s->granted + DEMO_BATCH <= s->done + DEMO_RQ_DEPTH &&
		       s->flying < CREDITS_FLYING) {
			if (!post_batch(d, s->size) || !send_credit(d, s))
				return false;
			s->granted += DEMO_BATCH;
		}
		k = s->flying ? poll_some(d, d->send_cq, s) : 0;
		if (k < 0)
			return false;
		s->flying -= (uint32_t)k;
	}
	return true;
}

/* The receives that stand before the stream begins. */
static bool prepare(struct demo *d, struct stream *s)
{
	s->granted = first_grant(s->n);
	if (!d->is_sender) {
		for (uint32_t i = 0; i < s->granted; i += DEMO_BATCH)
			if (!post_batch(d, s->size))
				return false;
		return vrb_demo_sync(d);
	}
	s->credits_left = (s->n - s->granted) / DEMO_BATCH;
	for (uint32_t i = 0; i < CREDITS_POSTED && s->credits_left; i++) {
		if (!vrb_demo_post_recv(d, 0, DEMO_RECV_OFFSET, 0))
			return false;
		s->credits_left--;
	}
	return vrb_demo_sync(d);
}

bool vrb_demo_stream(struct demo *d, uint32_t size, uint32_t n, uint32_t list, uint64_t *ns)
{
	struct stream s = {.size = size, .n = n, .list = list};
	uint64_t start;

	if (!prepare(d, &s))
		return false;
	start = vrb_demo_now_ns();
	s.until = start + LIMIT_NS;
	if (!(d->is_sender ? stream_out(d, &s) : stream_in(d, &s)))
		return false;
	*ns = vrb_demo_now_ns() - start;
	return vrb_demo_sync(d);
}
