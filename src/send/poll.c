/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one call that moves a channel on: completions, receives to post again, credits, notes from
 * the peer, and the three ways to wait. Sleeping is arm, look once more, sleep: what came between
 * the last look and the arming is seen by the second look, what comes later wakes.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "send/async.h"
#include "send/channel.h"
#include "send/cq.h"
#include "send/fail.h"
#include "send/file.h"
#include "send/probes.h"
#include "send/send.h"

#define CQES	    16
#define TICK_POLLS  32u
#define TICK_NS	    VRB_NS_PER_MS
#define ACK_EVENTS  32u
#define SPIN_MOST   (50 * VRB_NS_PER_US) /* waiting that takes longer is slept through */
#define LONG_SLEEP  (100 * VRB_NS_PER_MS)
#define SPINS	    8u
#define FIRST_SPINS 64u
/* For our own adapter to say more about it than the peer, which it will where work is under way. */
#define BROKE_IDLE (20 * VRB_NS_PER_MS)
#define BROKE_BUSY VRB_NS_PER_S

uint64_t vrb_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * VRB_NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

void vrb_emit(struct vrb_channel *ch, const struct vrb_event *e)
{
	struct vrb_event *to;

	if (vrb_likely(ch->out_n < ch->out_max && ch->ring_head == ch->ring_tail))
		to = &ch->out[ch->out_n++];
	else
		to = &ch->ring[ch->ring_tail++ & ch->ring_mask];
	*to = *e;
	to->time_ns = ch->wc_ns;
}

static void drain_ring(struct vrb_channel *ch)
{
	while (ch->ring_head != ch->ring_tail && ch->out_n < ch->out_max)
		ch->out[ch->out_n++] = ch->ring[ch->ring_head++ & ch->ring_mask];
}

/*
 * Only wr_id, status, qp_num and vendor_err mean something here. Silence and a flush are never the
 * cause: a peer that has said good-bye, broke, or died is a better reason, and what the adapter
 * has to say.
 */
static void on_error(struct vrb_lane *l, const struct ibv_wc *wc)
{
	struct vrb_channel *ch = l->ch;

	if (ch->state != VRB_UP || l->state == VRB_LANE_FAILING)
		return;
	if (wc->status == IBV_WC_WR_FLUSH_ERR || wc->status == IBV_WC_RETRY_EXC_ERR)
		vrb_notes_read(ch);
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		vrb_async_look(ch);
	if (ch->peer_bye && ch->state == VRB_UP)
		vrb_channel_closed(ch);
	else if (ch->peer_broke && wc->status == IBV_WC_RETRY_EXC_ERR)
		vrb_channel_break(ch, VRB_V_SEND_PEER_BROKE, 0, 0, 0);
	else
		vrb_lane_break(l, VRB_V_SEND_FAILED, wc->qp_num, wc->status, wc->vendor_err);
}

static void on_completion(struct vrb_channel *ch, const struct ibv_wc *wc)
{
	struct vrb_lane *l = ch->lane[wc->wr_id >> 1 & (VRB_LANES_MAX - 1)];
	enum vrb_outcome outcome = VRB_DONE;
	bool sent = wc->wr_id & 1;
	struct vrb_buf *b = NULL;

	VRB_PROBE(completion, ch, wc->wr_id, wc->status);
	if (!sent)
		b = vrb_likely(!ch->shared) ? l->rq[l->rq_head++ & l->rq_mask]
					    : vrb_shared_take(ch, wc, &l);
	if (vrb_unlikely(wc->status != IBV_WC_SUCCESS)) {
		if (l)
			on_error(l, wc);
		outcome = wc->status == IBV_WC_WR_FLUSH_ERR ? VRB_FLUSHED : VRB_FAILED;
	}
	if (sent)
		vrb_lane_retire(l, (uint32_t)(wc->wr_id >> 8), outcome);
	else if (vrb_likely(l && outcome == VRB_DONE))
		vrb_on_receive(l, b, wc->byte_len);
	else
		vrb_shared_wasted(l, b);
}

static void after_completions(struct vrb_channel *ch, bool all)
{
	if (vrb_unlikely(ch->shared != NULL) && ch->state == VRB_UP)
		(void)vrb_shared_refill(ch, all);
	for (uint32_t i = 0; i < ch->n_lanes && ch->state == VRB_UP; i++) {
		struct vrb_lane *l = ch->lane[i];

		if (vrb_unlikely(l->state != VRB_LANE_UP))
			continue;
		if (l->missing + l->bare && vrb_likely(!ch->shared))
			(void)vrb_lane_refill(l, all);
		if (l->credit.owed && vrb_lane_is_up(l))
			vrb_lane_tell(l);
		if (vrb_unlikely(l->rdma != NULL) && vrb_lane_is_up(l))
			vrb_rdma_move(l);
		if (l->n_fetching | l->n_answers)
			vrb_large_move(l);
	}
	if (ch->file)
		vrb_file_move(ch);
}

/* Whether all that came by a lane has been handed out. */
static bool has_all(const struct vrb_channel *ch, uint32_t i)
{
	const struct vrb_lane *l = ch->lane[i];

	if (l->state == VRB_LANE_FAILING)
		return l->over;
	return l->state != VRB_LANE_UP || (l->got_count == ch->bye_count[i] && !l->held_first);
}

static void check_bye(struct vrb_channel *ch)
{
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (!has_all(ch, i))
			return;
	vrb_channel_closed(ch);
}

/* The peer's word that it broke may overtake the refusal that its adapter has sent. Counted in
 * time, not in looks: a connection that has ended wakes whoever waits on it, again and again. */
static void look_broke(struct vrb_channel *ch, uint64_t now)
{
	bool busy = false;

	if (!ch->broke_ns)
		ch->broke_ns = now;
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		busy |= ch->lane[i]->sq.head != ch->lane[i]->sq.tail;
	if (now - ch->broke_ns >= (busy ? BROKE_BUSY : BROKE_IDLE))
		vrb_channel_break(ch, VRB_V_SEND_PEER_BROKE, 0, 0, 0);
}

static void tick(struct vrb_channel *ch, uint64_t now)
{
	ch->tick_ns = now;
	vrb_async_look(ch);
	vrb_notes_read(ch);
	vrb_keepalive(ch, now);
	if (vrb_unlikely(ch->peer_broke))
		look_broke(ch, now);
	if (ch->n_deadlines)
		vrb_deadlines(ch, now);
	after_completions(ch, true);
	vrb_repair_move(ch, now);
	ch->freed = true;
}

/* Once for what was lacking, when it is there. What the unsignaled tail of a queue holds back is
 * made to come. */
static void tell_room(struct vrb_channel *ch)
{
	static const struct vrb_event room = {.kind = VRB_EV_ROOM};
	bool wants = false, has = false;

	ch->freed = false;
	for (uint32_t i = 0; i < ch->n_lanes; i++) {
		struct vrb_lane *l = ch->lane[i];

		if (!l->want.wrs)
			continue;
		if (vrb_lane_has_room(l)) {
			l->want.wrs = 0;
			has = true;
			continue;
		}
		wants = true;
		if (l->want.wrs > 1 || l->want.memory)
			vrb_lane_prompt(l);
	}
	ch->want_room = wants;
	if (has)
		vrb_emit(ch, &room);
}

/* One look at everything; events go to ch->out, and to the ring when that is full. False: nothing
 * was there. */
bool vrb_progress(struct vrb_channel *ch)
{
	struct ibv_wc wc[CQES];
	uint64_t ns[CQES];
	int n;

	drain_ring(ch);
	if ((ch->ring_head != ch->ring_tail && !ch->draining) || ch->state == VRB_DOWN)
		return true;
	if (vrb_unlikely(ch->state == VRB_AWAY)) {
		vrb_away_move(ch, vrb_now());
		return ch->out_n > 0;
	}
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i]->n_batch)
			(void)vrb_lane_flush(ch->lane[i]);
	ch->st.polls++;
	n = vrb_cq_poll(ch, wc, ns, CQES);
	for (int i = 0; i < n; i++) {
		if (vrb_unlikely(ch->cq_ex != NULL))
			ch->wc_ns = ns[i];
		on_completion(ch, &wc[i]);
	}
	ch->wc_ns = 0;
	if (n > 0) {
		ch->st.completions += (uint64_t)n;
		after_completions(ch, false);
		if (vrb_unlikely(ch->repairing))
			vrb_repair_move(ch, vrb_now());
	} else {
		ch->st.empty_polls++;
		if (vrb_unlikely(ch->shared != NULL))
			vrb_shared_polled(ch);
		if (vrb_unlikely(n < 0)) {
			vrb_channel_break(ch, VRB_V_SEND_CQ_ERROR, 0, 0, 0);
			ch->cq_dead = true;
		}
	}
	if (vrb_unlikely(++ch->idle_polls % TICK_POLLS == 0)) {
		uint64_t now = vrb_now();

		if (now - ch->tick_ns >= TICK_NS)
			tick(ch, now);
	}
	if (vrb_unlikely(ch->state != VRB_UP)) {
		if (ch->state == VRB_ENDING && n <= 0)
			vrb_channel_ending(ch);
		return n > 0;
	}
	if (vrb_unlikely(ch->peer_bye))
		check_bye(ch);
	if (vrb_unlikely(ch->want_room && ch->freed))
		tell_room(ch);
	return n > 0;
}

/* ---- waiting */

static int arm(struct vrb_channel *ch)
{
	int r = ch->armed ? 0 : vrb_verbs_errno(ibv_req_notify_cq(ch->cq, ch->opt.solicited_only));

	ch->armed = !r;
	return r;
}

static void take_cq_events(struct vrb_channel *ch)
{
	struct ibv_cq *cq;
	void *user;

	while (!ibv_get_cq_event(ch->comp, &cq, &user)) {
		ch->armed = false;
		VRB_PROBE(event, ch, ch->unacked, 0);
		ch->st.events++;
		if (++ch->unacked == ACK_EVENTS) {
			ibv_ack_cq_events(ch->cq, ACK_EVENTS);
			ch->unacked = 0;
		}
	}
}

/* How long nothing of the channel's own needs a look. */
static uint64_t may_sleep(const struct vrb_channel *ch)
{
	uint64_t most = LONG_SLEEP;

	if (ch->n_deadlines || ch->want_room || ch->file || ch->opt.solicited_only ||
	    ch->state != VRB_UP || ch->peer_broke || ch->repairing)
		most = TICK_NS;
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i]->n_fetching | ch->lane[i]->missing)
			most = TICK_NS;
	return most;
}

static int sleep_on(struct vrb_channel *ch, struct epoll_event *ev, int n, uint64_t ns)
{
	const struct timespec t = {.tv_sec = (time_t)(ns / VRB_NS_PER_S),
				   .tv_nsec = (long)(ns % VRB_NS_PER_S)};

	return epoll_pwait2(ch->epoll, ev, n, &t, NULL);
}

/* The CQ is not armed: only what is no completion ends it early. */
static void nap(struct vrb_channel *ch, uint64_t most)
{
	uint64_t ns = vrb_cq_nap(ch);
	struct epoll_event ev[4];

	if (vrb_likely(!ns))
		return;
	ch->st.naps++;
	ch->napped = true;
	ch->nap_from = ch->st.completions;
	if (sleep_on(ch, ev, 4, ns < most ? ns : most) > 0)
		tick(ch, vrb_now());
}

static void sleep_once(struct vrb_channel *ch, uint64_t most)
{
	struct epoll_event ev[4];
	uint64_t may;
	int n;

	if (vrb_unlikely(ch->napped))
		vrb_cq_learn(ch);

	after_completions(ch, true);
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		vrb_lane_prompt(ch->lane[i]);
	if (arm(ch))
		return;
	if (vrb_progress(ch) || ch->out_n)
		return; /* and look again: there may be more than one look takes */
	may = may_sleep(ch);
	may = may < most ? may : most;
	ch->st.sleeps++;
	n = sleep_on(ch, ev, 4, may);
	if (n < 0)
		return; /* a signal: the caller's loop looks at the time */
	if (ch->state == VRB_AWAY)
		return;
	take_cq_events(ch);
	if (n != 1 || ev[0].data.fd != ch->comp->fd)
		tick(ch, vrb_now());
	else
		nap(ch, most);
}

/* As the engine does it, but a busy one lets others have a look in. */
void vrb_wait_once(struct vrb_channel *ch, uint64_t most_ns)
{
	if (ch->opt.engine != VRB_BUSY)
		sleep_once(ch, most_ns);
	else
		relax();
}

/* Spinning pays when waiting has lately been short; a long wait is forgotten as quickly as a short
 * one. */
static uint64_t spin_time(const struct vrb_channel *ch)
{
	if (ch->opt.engine == VRB_BUSY)
		return VRB_NS_NEVER;
	if (ch->opt.engine == VRB_SLEEPY || ch->wait_ns > SPIN_MOST)
		return 0;
	return 2 * ch->wait_ns + 5 * VRB_NS_PER_US;
}

static void learn(struct vrb_channel *ch, uint64_t waited)
{
	if (waited > 4 * SPIN_MOST)
		waited = 4 * SPIN_MOST;
	ch->wait_ns = (7 * ch->wait_ns + waited) / 8;
}

/* What comes within the first looks costs no reading of the clock. */
static bool comes_at_once(struct vrb_channel *ch)
{
	uint32_t looks = ch->opt.engine == VRB_SLEEPY ? SPINS : FIRST_SPINS;

	for (uint32_t i = 0; i < looks && !ch->out_n && ch->state != VRB_DOWN; i++)
		(void)vrb_progress(ch);
	return ch->out_n > 0;
}

static void wait_for(struct vrb_channel *ch, int64_t timeout_ns)
{
	uint64_t start, now, spin, limit;

	if (comes_at_once(ch)) {
		learn(ch, 0);
		return;
	}
	start = now = vrb_now();
	spin = spin_time(ch);
	limit = timeout_ns < 0 ? VRB_NS_NEVER - start : (uint64_t)timeout_ns;
	while (!ch->out_n && ch->state != VRB_DOWN) {
		for (uint32_t i = 0; i < SPINS && !ch->out_n; i++)
			(void)vrb_progress(ch);
		relax();
		now = vrb_now();
		if (ch->out_n || now - start >= limit)
			break;
		if (now - start >= spin)
			sleep_once(ch, limit - (now - start));
	}
	learn(ch, now - start);
}

int vrb_poll(struct vrb_channel *ch, struct vrb_event *events, int n, int64_t timeout_ns)
{
	if (vrb_unlikely(n <= 0))
		return 0;
	ch->out = events;
	ch->out_n = 0;
	ch->out_max = n;
	(void)vrb_progress(ch);
	if (!ch->out_n && timeout_ns && ch->state != VRB_DOWN)
		wait_for(ch, timeout_ns);
	ch->out_max = 0;
	if (vrb_unlikely(!ch->out_n && ch->state == VRB_DOWN))
		return vrb_fail(ENOTCONN, VRB_V_SEND_ENDED, 0, 0, 0);
	return ch->out_n;
}

int vrb_fd(struct vrb_channel *ch)
{
	return ch->epoll;
}

int vrb_arm(struct vrb_channel *ch)
{
	int r;

	take_cq_events(ch);
	after_completions(ch, true);
	r = arm(ch);
	if (r)
		return vrb_fail(r, VRB_V_SEND_CREATE, 5 /* channel */, (uint64_t)r, 0);
	ch->out_n = 0;
	vrb_notes_read(ch);
	if (vrb_progress(ch))
		return 1;
	return ch->ring_head != ch->ring_tail || ch->state == VRB_DOWN;
}

int vrb_set_engine(struct vrb_channel *ch, enum vrb_engine engine)
{
	if ((unsigned)engine > VRB_SLEEPY)
		return vrb_fail(EINVAL, VRB_V_SEND_OPTION, engine, VRB_ADAPTIVE, VRB_SLEEPY);
	ch->opt.engine = engine;
	return 0;
}
