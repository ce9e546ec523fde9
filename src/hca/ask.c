/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions under way; see ask.h. By the wire two are asked together when the packet in vain is a
 * long one: a short one, and one as long as it. They are repeated a few times, since the way may
 * lose them like everything else. Within the host the peer's helper thread answers by the socket of
 * its slot, whatever its program does.
 */
#include "hca/ask.h"
#include "hca/faults.h"
#include "hca/story.h"
#include "hca/work.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ASKS	  32u /* under way, or with an answer that may be wanted yet */
#define ASK_NS	  (300 * VRB_NS_PER_MS)
#define AGAIN_NS  (40 * VRB_NS_PER_MS)
#define SENDS	  4u
#define STALE_NS  (10 * VRB_NS_PER_S)
#define LINGER_US 1000u
#define LINGER_MS 700u
#define OVERHEAD  (VRB_BTH_LEN + VRB_ICRC_LEN)
#define BIG	  256u /* bytes of payload from which on the length may matter */

struct inquiry {
	bool is_here;	      /* the destination is an address of this host */
	bool used, done, due; /* due: status 12 has come, the reason has not been said */
	struct vrb_facts facts;
	uint32_t fault_number, head; /* bytes of the IP and UDP headers */
	uint32_t big_len, n_sent;
	uint8_t flags;
	int fd;
	uint32_t ifindex; /* and dst: by the wire */
	struct vrb_gid dst;
	uint64_t nonce; /* of the short question; the long one has the next */
	vrb_ns began, send_at;
};

struct vrb_asks {
	uint32_t n_open; /* neither done nor unused */
	_Atomic uint32_t n_due;
	struct inquiry in[ASKS];
};

struct vrb_asks *vrb_asks_create(void)
{
	return calloc(1, sizeof(struct vrb_asks));
}

/* ---- ending */

static void finish(struct vrb_engine *e, struct inquiry *in)
{
	if (in->done)
		return;
	in->done = true;
	e->asks->n_open--;
	vrb_meet_unwatch(e, &in->fd);
}

static void say_if_known(struct vrb_engine *e, struct inquiry *in)
{
	struct vrb_report r;

	if (!in->due || !in->done)
		return;
	in->due = false;
	r = vrb_cause(&in->facts);
	vrb_hca_refuse(&r);
	in->used = false;
	if (e->story_due)
		vrb_story_flush(e, false);
	atomic_fetch_sub_explicit(&e->asks->n_due, 1, memory_order_release);
}

static bool is_complete(const struct inquiry *in)
{
	const struct vrb_facts *f = &in->facts;

	return f->way != VRB_WAY_OPEN || (f->answered && (!f->big || f->big_answered));
}

/* ---- sending */

static bool is_struck(struct vrb_engine *e, const struct inquiry *in, uint32_t dir, uint32_t len)
{
	return e->faults && vrb_faults_aside(e->faults, &(struct vrb_faults_aside){
								in->facts.qpn, in->fault_number,
								dir, in->head + len});
}

static void broken(struct inquiry *in, int err)
{
	struct vrb_facts *f = &in->facts;

	if (err == EMSGSIZE || err == EAGAIN || err == ENOBUFS)
		return;
	f->way = err == ECONNREFUSED ? VRB_WAY_REFUSED : VRB_WAY_BROKEN;
	f->way_errno = err;
}

static void send_one(struct vrb_engine *e, struct inquiry *in, bool big)
{
	struct vrb_ask a = {.qpn = in->facts.dqpn,
			    .from = in->facts.qpn,
			    .flags = big ? in->flags : 0,
			    .nonce = in->nonce + big};
	uint32_t len = big ? in->big_len : VRB_ASK_LEN;
	uint8_t bytes[VRB_ASK_LEN];
	int err;

	if (is_struck(e, in, VRB_FAULT_TX, len))
		return;
	vrb_ask_emit(&a, bytes);
	err = vrb_udp_ask_send(in->fd, bytes, len);
	if (err)
		broken(in, -err);
}

static void send_all(struct vrb_engine *e, struct inquiry *in, vrb_ns now)
{
	if (!in->facts.answered)
		send_one(e, in, false);
	if (in->facts.big && !in->facts.big_answered)
		send_one(e, in, true);
	in->n_sent++;
	in->send_at = now + AGAIN_NS * in->n_sent;
}

/* ---- beginning */

/* The packet at una, before it is forgotten. */
static void measure(struct inquiry *in, const struct vrb_hqp *q, struct vrb_psn una)
{
	const struct vrb_qp *c = &q->core;
	const struct vrb_swqe *w = vrb_wq_entry(&c->sq, c->sq_una);
	uint32_t off, len;

	if (c->sq_una == c->sq.tail || !vrb_psn_eq(c->una_psn, una))
		return;
	off = ((una.v - w->first.v) & VRB_PSN_MASK) * c->mtu;
	len = off < w->len ? w->len - off : 0;
	len = len < c->mtu ? len : c->mtu;
	if (w->op == VRB_WR_READ)
		in->flags = VRB_ASK_LONG_ANSWER;
	if (len < BIG)
		return;
	in->big_len =
		len + OVERHEAD + (w->op == VRB_WR_SEND || w->op == VRB_WR_READ ? 0 : VRB_RETH_LEN);
	in->facts.big = in->head + in->big_len;
}

static void begin_wire(struct vrb_engine *e, struct inquiry *in, const struct vrb_hqp *q,
		       struct vrb_psn una)
{
	const struct vrb_udp *u = q->wire.addr->udp;

	in->facts.by_wire = true;
	in->is_here = vrb_gid_is_local(&q->wire.dst);
	in->head = (u->v4 ? VRB_IPV4_LEN : VRB_IPV6_LEN) + VRB_UDP_LEN;
	in->ifindex = u->ifindex;
	in->dst = q->wire.dst;
	measure(in, q, una);
	in->fd = vrb_udp_ask_open(u, &q->wire.dst);
	if (in->fd < 0 || vrb_meet_watch(e, VRB_EV_ASK, in->fd)) {
		if (in->fd < 0)
			broken(in, -in->fd);
		return;
	}
	send_all(e, in, in->began);
}

/* Like vrb_meet_connect, but one whose queue of callers is full is not waited for. */
int vrb_ask_call(uint32_t slot)
{
	struct sockaddr_un sa;
	socklen_t n = vrb_slot_name(&sa, slot);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&sa, n))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void begin_local(struct vrb_engine *e, struct inquiry *in)
{
	struct vrb_facts *f = &in->facts;
	uint32_t slot = f->dqpn >> VRB_QPN_INDEX_BITS;
	const struct vrb_meet_hello h = {.magic = VRB_MEET_MAGIC,
					 .version = VRB_MEET_VERSION,
					 .type = VRB_MEET_ASK,
					 .slot = e->slot,
					 .pid = (uint32_t)getpid(),
					 .arg = f->dqpn,
					 .reserved = {f->qpn}};

	f->by_name = true;
	in->send_at = 0;
	if (slot == e->slot) {
		f->answer = (struct vrb_ask){.qpn = f->dqpn, .from = f->qpn};
		vrb_ask_answer(e, NULL, &f->answer);
		f->answered = true;
		return;
	}
	in->fd = slot ? vrb_ask_call(slot) : -ECONNREFUSED;
	if (in->fd == -ECONNREFUSED)
		f->way = VRB_WAY_REFUSED;
	if (in->fd < 0 || vrb_meet_watch(e, VRB_EV_ASK, in->fd) ||
	    vrb_meet_send(in->fd, &h, NULL, 0))
		finish(e, in);
}

/* Within this host a process may not have opened its port yet, or be stopped: the registry knows.
 * Elsewhere there may be no host, which the kernel tells sockets only after seconds. */
static void give_up(struct vrb_engine *e, struct inquiry *in, vrb_ns now)
{
	struct vrb_facts *f = &in->facts;

	if (f->answered || f->by_name || !in->is_here) {
		if (!f->answered && !f->by_name && vrb_udp_no_neighbour(&in->dst, in->ifindex))
			broken(in, EHOSTUNREACH);
		finish(e, in);
		return;
	}
	vrb_meet_unwatch(e, &in->fd);
	in->began = now;
	f->big = 0;
	begin_local(e, in);
}

static struct inquiry *place(struct vrb_engine *e)
{
	struct inquiry *oldest = NULL;

	for (uint32_t i = 0; i < ASKS; i++) {
		struct inquiry *in = &e->asks->in[i];

		if (!in->used)
			return in;
		if (in->done && !in->due && (!oldest || in->began < oldest->began))
			oldest = in;
	}
	return oldest; /* NULL: all are under way */
}

static struct inquiry *find(struct vrb_engine *e, vrb_qpn qpn)
{
	for (uint32_t i = 0; i < ASKS; i++)
		if (e->asks->in[i].used && e->asks->in[i].facts.qpn == qpn)
			return &e->asks->in[i];
	return NULL;
}

static struct inquiry *begin(struct vrb_engine *e, const struct vrb_hqp *q, struct vrb_psn una)
{
	const struct vrb_qp *c = &q->core;
	struct inquiry *in = place(e);

	if (!in)
		return NULL;
	*in = (struct inquiry){.used = true, .fd = -1, .began = vrb_clock_now()};
	in->fault_number = q->fault_number;
	in->facts = (struct vrb_facts){.qpn = c->qpn,
				       .dqpn = c->dqpn,
				       .type = c->type,
				       .first = vrb_psn(c->attr.sq_psn),
				       .una = una,
				       .sent = c->rewound ? c->high_psn : c->next_psn};
	in->facts.heard = !vrb_psn_eq(una, in->facts.first);
	e->asks->n_open++;
	if (getrandom(&in->nonce, sizeof(in->nonce), GRND_NONBLOCK) != sizeof(in->nonce))
		in->nonce = in->began;
	if (q->wire.addr)
		begin_wire(e, in, q, una);
	else
		begin_local(e, in);
	if (is_complete(in))
		finish(e, in);
	else
		vrb_work_look_at(e, in->send_at ? in->send_at : in->began + ASK_NS);
	return in;
}

void vrb_ask_on_timeout(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_psn una)
{
	struct inquiry *in = find(e, q->core.qpn);

	if (in && (!in->done ||
		   (vrb_psn_eq(in->facts.una, una) && vrb_clock_now() - in->began < STALE_NS)))
		return;
	if (in)
		in->used = false;
	(void)begin(e, q, una);
}

void vrb_ask_on_end(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_psn una)
{
	struct inquiry *in = find(e, q->core.qpn);

	if (in && !in->due && !vrb_psn_eq(in->facts.una, una)) {
		finish(e, in);
		in->used = false;
		in = NULL;
	}
	if (!in)
		in = begin(e, q, una);
	if (!in || in->due)
		return;
	in->due = true;
	atomic_fetch_add_explicit(&e->asks->n_due, 1, memory_order_relaxed);
	say_if_known(e, in);
}

/* ---- answers and time */

static void hear(struct vrb_engine *e, struct inquiry *in)
{
	struct vrb_facts *f = &in->facts;
	uint8_t bytes[VRB_ROCE_PACKET_MAX];
	long n = syscall(SYS_recvfrom, in->fd, bytes, sizeof(bytes), MSG_DONTWAIT, NULL, NULL);
	struct vrb_ask a;
	bool big;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		broken(in, errno);
	if (f->by_name && (n == 0 || f->way == VRB_WAY_BROKEN))
		f->way = VRB_WAY_REFUSED; /* it has ended in this moment */
	if (n < 0 && !f->by_name)
		vrb_udp_ask_drain(in->fd);
	if (n <= 0 || !vrb_ask_parse(bytes, (size_t)n, &a) || !a.is_answer || a.qpn != f->dqpn)
		return;
	if (!f->by_name && (a.nonce - in->nonce > 1 || is_struck(e, in, VRB_FAULT_RX, (uint32_t)n)))
		return;
	big = !f->by_name && a.nonce != in->nonce;
	if (big)
		f->big_answered = true;
	else
		f->answered = true;
	if (!big || !f->answered)
		f->answer = a;
}

void vrb_ask_on_event(struct vrb_engine *e, int fd)
{
	for (uint32_t i = 0; i < ASKS; i++) {
		struct inquiry *in = &e->asks->in[i];

		if (!in->used || in->done || in->fd != fd)
			continue;
		hear(e, in);
		if (!in->done && is_complete(in))
			finish(e, in);
		say_if_known(e, in);
		return;
	}
}

void vrb_ask_run(struct vrb_engine *e, vrb_ns now)
{
	if (vrb_likely(!e->asks->n_open))
		return;
	for (uint32_t i = 0; i < ASKS; i++) {
		struct inquiry *in = &e->asks->in[i];

		if (!in->used || in->done)
			continue;
		if (now >= in->began + ASK_NS)
			give_up(e, in, now);
		else if (in->send_at && in->n_sent < SENDS && now >= in->send_at)
			send_all(e, in, now);
		if (!in->done && is_complete(in))
			finish(e, in);
		say_if_known(e, in);
		if (!in->done)
			vrb_work_look_at(e, in->send_at && in->n_sent < SENDS ? in->send_at
									      : in->began + ASK_NS);
	}
}

void vrb_ask_linger(struct vrb_engine *e)
{
	if (!e->asks || (!vrb_hca_explains() && !vrb_story_is_kept(e)))
		return;
	for (uint32_t i = 0; i < LINGER_MS; i++) {
		if (!atomic_load_explicit(&e->asks->n_due, memory_order_acquire))
			return;
		usleep(LINGER_US);
	}
}

void vrb_asks_close(struct vrb_engine *e, bool in_child)
{
	struct vrb_asks *a = e->asks;

	for (uint32_t i = 0; a && i < ASKS; i++)
		if (a->in[i].used && !a->in[i].done && a->in[i].fd >= 0)
			close(a->in[i].fd);
	if (a && !in_child) {
		free(a);
		e->asks = NULL;
	}
}
