/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a channel: the process behind it ended, called exec, or was cut off; or we end. What
 * it had sent is still handled, then its queue pairs end with RETRY_EXC, after a time of grace. At
 * our own end, a receiver that has not seen our last frames gets a moment to do so.
 */
#include "hca/direct.h"
#include "hca/peer.h"
#include "hca/wire.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* How long an end waits at most for a receiver that has not seen the ring with its last frames. */
#define LINGER_US    200
#define LINGER_STEPS 1000
#define GRACE_NS     (200 * VRB_NS_PER_MS)

static void hot_del(struct vrb_engine *e, struct vrb_peer *p)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_relaxed) - 1;
	struct vrb_peer *last = atomic_load_explicit(&e->hot[n], memory_order_relaxed);

	atomic_store_explicit(&e->hot[p->hot_index], last, memory_order_release);
	last->hot_index = p->hot_index;
	atomic_store_explicit(&e->n_hot, n, memory_order_release);
}

static void close_channel(struct vrb_engine *e, struct vrb_peer *p)
{
	if (p->rx_open)
		hot_del(e, p);
	vrb_engine_ring_bells(e);
	p->tx_open = p->rx_open = false;
	vrb_peer_rx_reset(&p->rx);
	vrb_peer_tx_reset(&p->tx);
	vrb_shm_blank(&p->tx.m);
	if (!p->self)
		vrb_shm_blank(&p->rx.m);
	vrb_meet_unwatch(e, &p->tx_sock);
	vrb_meet_unwatch(e, &p->rx_sock);
	if (p->bell && !p->self) {
		munmap(p->bell, VRB_BELL_SIZE);
		close(p->bell_fd);
	}
	p->bell = NULL;
	p->bell_fd = -1;
	p->owner = 0; /* the slot's next owner is another process */
	p->direct_hung = 0;
	p->full_since = 0;
	vrb_wire_carry_forget(e, p);
	vrb_direct_detach(p);
	/* Datagrams that waited for room have nobody to go to. */
	vrb_engine_unstall_peer(e, p);
}

/*
 * How long requests to a process that has ended stay unanswered: a NIC would not know of the end
 * and try for the configured time. Programs rely on some of it: both sides stop when each has what
 * it wants, not when all is acknowledged.
 */
static vrb_ns grace_of(const struct vrb_hqp *q)
{
	vrb_ns t = q->core.timeout_ns;

	if (t == VRB_NS_NEVER || t * (q->core.attr.retry_cnt + 1u) > GRACE_NS)
		return GRACE_NS;
	return t * (q->core.attr.retry_cnt + 1u);
}

void vrb_peer_gone(struct vrb_engine *e, struct vrb_peer *p)
{
	uint32_t turns = 0;
	vrb_ns now = vrb_clock_now();

	/* What it had sent before it died counts. */
	e->gone = p;
	while (p->rx_open && vrb_shm_peek(&p->rx) && turns++ < VRB_SHM_LINES)
		vrb_engine_turn(e, vrb_clock_now());
	e->gone = NULL;
	/* It died in the middle of a direct operation, perhaps: nobody waits for its end. */
	if (p->rx_open)
		hot_del(e, p);
	p->rx_open = false;
	while (!vrb_list_empty(&p->qps)) {
		struct vrb_hqp *q = vrb_list_entry(p->qps.next, struct vrb_hqp, peer_node);

		vrb_list_del(&q->peer_node);
		vrb_engine_unstall(e, q);
		q->peer = NULL;
		q->direct_n = 0;
		vrb_direct_update(e, q);
		q->gone_slot = p->slot;
		q->gone_at = now + grace_of(q);
		vrb_engine_timer(e, q);
	}
	close_channel(e, p);
}

/* A ring with frames of ours that its receiver has not even mapped. */
static bool is_unseen(struct vrb_engine *e)
{
	bool unseen = false;

	vrb_engine_lock(e);
	for (uint32_t i = 1; i <= VRB_SLOTS && !unseen; i++) {
		struct vrb_peer *p = e->peer[i];

		/* pairs with the store in take_ring: what is attached is read to its end */
		unseen = p && p->tx_open && !p->self && p->tx.head &&
			 !atomic_load_explicit(&p->tx.m.ctl->attached, memory_order_acquire) &&
			 !vrb_meet_hung_up(p->tx_sock);
	}
	vrb_engine_unlock(e);
	return unseen;
}

void vrb_peer_linger(struct vrb_engine *e)
{
	for (int i = 0; i < LINGER_STEPS && is_unseen(e); i++)
		usleep(LINGER_US);
}

void vrb_peer_close_all(struct vrb_engine *e)
{
	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_peer *p = e->peer[i];

		if (!p)
			continue;
		close_channel(e, p);
		if (p->tx.m.ctl)
			munmap(p->tx.m.ctl, VRB_SHM_SIZE);
		if (p->rx.m.ctl && !p->self)
			munmap(p->rx.m.ctl, VRB_SHM_SIZE);
		free(p);
		e->peer[i] = NULL;
	}
}

void vrb_peer_disown(struct vrb_peer *p)
{
	int *fd[] = {&p->tx_sock, &p->rx_sock, &p->mem_fd, &p->bell_fd};

	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		if (*fd[i] >= 0 && !(p->self && fd[i] == &p->bell_fd))
			close(*fd[i]);
		*fd[i] = -1;
	}
}
