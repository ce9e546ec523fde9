/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channel to another process: opening it, attaching the ring that the other side announces, and
 * noticing that it is gone. A channel is two independent directions: each side announces its own tx
 * ring over its own connection, so that two processes that connect at the same moment need no
 * tie-break. A frame may be pushed before the other side has attached; it finds it when it does. A
 * ring is taken only from the process that owns the slot it names, and a process that answers what
 * it has no business to say is cut off. End of file on either connection means that the process
 * ended, called exec, or was cut off: what it had sent is still handled, then its queue pairs end
 * with RETRY_EXC.
 */
#include "hca/direct.h"
#include "hca/peer.h"
#include "hca/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long an end waits at most for a receiver that has not seen the ring with its last frames. */
#define LINGER_US    200
#define LINGER_STEPS 1000
#define GRACE_NS     (200 * VRB_NS_PER_MS)

static struct vrb_peer *peer_of_slot(struct vrb_engine *e, uint32_t slot)
{
	struct vrb_peer *p = e->peer[slot];

	if (p)
		return p;
	p = aligned_alloc(64, (sizeof(*p) + 63) & ~(size_t)63);
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->slot = (uint8_t)slot;
	p->self = slot == e->slot;
	p->tx_sock = p->rx_sock = p->bell_fd = p->mem_fd = -1;
	vrb_list_init(&p->qps);
	vrb_list_init(&p->stalled);
	e->peer[slot] = p;
	return p;
}

static void hot_add(struct vrb_engine *e, struct vrb_peer *p)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_relaxed);

	p->hot_index = n;
	/* pairs with the acquire in vrb_engine_has_work: p's mapping is set. (n_hot alone would not
	 * do: who has read an older, larger one may look at this place.) */
	atomic_store_explicit(&e->hot[n], p, memory_order_release);
	atomic_store_explicit(&e->n_hot, n + 1, memory_order_release);
}

static void hot_del(struct vrb_engine *e, struct vrb_peer *p)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_relaxed) - 1;
	struct vrb_peer *last = atomic_load_explicit(&e->hot[n], memory_order_relaxed);

	atomic_store_explicit(&e->hot[p->hot_index], last, memory_order_release);
	last->hot_index = p->hot_index;
	atomic_store_explicit(&e->n_hot, n, memory_order_release);
}

static void tx_reset(struct vrb_shm_tx *tx)
{
	tx->head = tx->used = tx->data_head = tx->data_used = 0;
}

static void rx_reset(struct vrb_shm_rx *rx)
{
	vrb_poke(&rx->tail, 0);
	rx->published = rx->data_tail = rx->data_published = 0;
}

static struct vrb_meet_hello hello_of(const struct vrb_engine *e)
{
	return (struct vrb_meet_hello){.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = VRB_MEET_RING,
				       .slot = e->slot,
				       .pid = (uint32_t)getpid()};
}

/* ---- bells */

/* Something that takes eight bytes without blocking. (Whoever made it can fill it up; then we do
 * not wake him.) */
static bool is_event_fd(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == 0 && fcntl(fd, F_GETFL) & O_NONBLOCK;
}

/* Keeps the two descriptors' objects when there is no bell yet. */
static bool set_bell(struct vrb_peer *p, struct vrb_meet_msg *m, uint32_t first)
{
	void *at;

	if (p->bell)
		return true;
	if (!vrb_shm_is_sealed(m->fd[first], VRB_BELL_SIZE) || !is_event_fd(m->fd[first + 1]))
		return false;
	at = mmap(NULL, VRB_BELL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd[first], 0);
	if (at == MAP_FAILED)
		return false;
	madvise(at, VRB_BELL_SIZE, MADV_DONTFORK);
	p->bell = at;
	p->bell_fd = m->fd[first + 1];
	m->fd[first + 1] = -1;
	return true;
}

/* The channel is given up: the end of file that this makes is found by the helper. */
void vrb_peer_cut(struct vrb_peer *p)
{
	if (p->tx_sock >= 0)
		shutdown(p->tx_sock, SHUT_RDWR);
	if (p->rx_sock >= 0)
		shutdown(p->rx_sock, SHUT_RDWR);
}

/* The receiver's welcome brings its bell, once. */
static bool take_welcome(struct vrb_peer *p, struct vrb_meet_msg *m)
{
	if (p->welcomed || m->hello.type != VRB_MEET_RING || m->hello.slot != p->slot ||
	    m->n_fds != VRB_WELCOME_FDS || !set_bell(p, m, 0))
		return false;
	p->welcomed = true;
	vrb_direct_attach(p, m->fd[2], p->tx_sock);
	return true;
}

/*
 * We pushed a frame and have no bell yet. A receiver that has not attached finds the frame when it
 * does; one that has sent its welcome first.
 */
static void read_welcome(struct vrb_peer *p)
{
	struct vrb_meet_msg m;
	int old;

	if (!atomic_load_explicit(&p->tx.m.ctl->attached, memory_order_seq_cst) || p->tx_sock < 0)
		return;
	old = vrb_cancel_off();
	if (vrb_meet_recv(p->tx_sock, &m) == VRB_MEET_MSG) {
		if (!take_welcome(p, &m))
			vrb_peer_cut(p);
		vrb_meet_drop(&m);
	}
	vrb_cancel_restore(old);
}

void vrb_peer_wake(struct vrb_peer *p)
{
	uint32_t s;

	if (vrb_unlikely(!p->bell))
		read_welcome(p);
	if (vrb_unlikely(!p->bell))
		return;
	if (vrb_likely(!atomic_load_explicit(&p->bell->sleepers, memory_order_relaxed)))
		return;
	s = atomic_exchange_explicit(&p->bell->sleepers, 0, memory_order_seq_cst);
	if (s & VRB_SLEEP_FUTEX) {
		atomic_fetch_add_explicit(&p->bell->seq, 1, memory_order_seq_cst);
		syscall(SYS_futex, &p->bell->seq, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	}
	/* A bit may outlive its sleeper, so one wake-up does not stand for the other. */
	if (s & VRB_SLEEP_HELPER)
		(void)vrb_event_fd_add(p->bell_fd, 1);
}

/* ---- opening */

/* Makes our ring towards p and maps it. Returns the memfd. */
static int open_tx(struct vrb_peer *p)
{
	int fd = vrb_shm_create("verbena-ring"), err;

	if (fd < 0)
		return fd;
	err = vrb_shm_map(fd, p->tx.m.ctl, &p->tx.m);
	if (err) {
		close(fd);
		return err;
	}
	tx_reset(&p->tx);
	return fd;
}

static int open_self(struct vrb_engine *e, struct vrb_peer *p)
{
	int fd = open_tx(p);

	if (fd < 0)
		return fd;
	close(fd);
	p->rx.m = p->tx.m;
	rx_reset(&p->rx);
	p->bell = e->bell;
	p->bell_fd = e->bell_fd;
	p->tx_open = p->rx_open = true;
	hot_add(e, p);
	return 0;
}

/* Announces our ring over sock, which p keeps from then on. */
static int announce(struct vrb_engine *e, struct vrb_peer *p, int sock)
{
	int fds[VRB_HELLO_FDS] = {open_tx(p), e->bell_mem_fd, e->bell_fd, e->export_fd};
	struct vrb_meet_hello hello = hello_of(e);
	int err;

	if (fds[0] < 0)
		return fds[0];
	err = vrb_meet_watch(e, VRB_EV_TX_SOCK, sock);
	if (!err)
		err = vrb_meet_send(sock, &hello, fds, VRB_HELLO_FDS);
	close(fds[0]);
	if (err)
		return err;
	p->tx_sock = sock;
	p->owner = vrb_meet_pid(sock);
	p->tx_open = true;
	p->welcomed = false;
	return 0;
}

static int open_channel(struct vrb_engine *e, struct vrb_peer *p)
{
	int sock, err;

	if (p->self)
		return open_self(e, p);
	sock = vrb_meet_connect(p->slot);
	if (sock < 0)
		return sock;
	err = announce(e, p, sock);
	if (err)
		vrb_meet_unwatch(e, &sock);
	return err;
}

int vrb_peer_get(struct vrb_engine *e, uint32_t slot, struct vrb_peer **out)
{
	struct vrb_peer *p;
	int err, old;

	if (slot == 0 || slot > VRB_SLOTS)
		return -ECONNREFUSED;
	p = peer_of_slot(e, slot);
	if (!p)
		return -ENOMEM;
	if (!p->tx_open) {
		old = vrb_cancel_off();
		err = open_channel(e, p);
		vrb_cancel_restore(old);
		if (err)
			return err;
	}
	*out = p;
	return 0;
}

void vrb_peer_all(struct vrb_engine *e)
{
	struct vrb_peer *p;

	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++)
		(void)vrb_peer_get(e, slot, &p);
}

/* ---- closing */

static void close_channel(struct vrb_engine *e, struct vrb_peer *p)
{
	if (p->rx_open)
		hot_del(e, p);
	vrb_engine_ring_bells(e);
	p->tx_open = p->rx_open = false;
	rx_reset(&p->rx);
	tx_reset(&p->tx);
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
	p->stuck_at = 0;
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

/* The process behind p ended. */
static void peer_gone(struct vrb_engine *e, struct vrb_peer *p)
{
	uint32_t turns = 0;
	vrb_ns now = vrb_clock_now();

	/* What it had sent before it died counts. */
	e->in_a_hurry = true;
	while (p->rx_open && vrb_shm_peek(&p->rx) && turns++ < VRB_SHM_LINES)
		vrb_engine_turn(e, vrb_clock_now());
	e->in_a_hurry = false;
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

/*
 * Before a queue pair is bound to a slot: the end of the former owner that nobody has looked at yet
 * must not take the new owner's queue pairs with it.
 */
int vrb_peer_bind(struct vrb_engine *e, uint32_t slot, struct vrb_peer **out)
{
	struct vrb_peer *p = slot <= VRB_SLOTS ? e->peer[slot] : NULL;

	if (p && !p->self && (vrb_meet_hung_up(p->tx_sock) || vrb_meet_hung_up(p->rx_sock)))
		peer_gone(e, p);
	return vrb_peer_get(e, slot, out);
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

/* ---- what comes in */

static struct vrb_peer *peer_of_sock(struct vrb_engine *e, int fd, bool rx)
{
	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_peer *p = e->peer[i];

		if (p && (rx ? p->rx_sock : p->tx_sock) == fd)
			return p;
	}
	return NULL;
}

/* The slot's name leads to the process `pid` now. */
static bool owns_slot(uint32_t slot, int pid)
{
	int sock = vrb_meet_connect(slot), owner;

	if (sock < 0)
		return false;
	owner = vrb_meet_pid(sock);
	close(sock);
	return owner == pid;
}

/*
 * Who announces a ring for `slot` on sock, with our own direction open, for answers; or NULL. The
 * end of the slot's former owner may not have been seen yet; a process that does not own the slot,
 * or that has announced a ring before, is refused.
 */
static struct vrb_peer *announcer(struct vrb_engine *e, int sock, uint32_t slot)
{
	struct vrb_report r = {.verdict = VRB_V_LINK_BAD_HELLO, .val = {slot}};
	int pid = vrb_meet_pid(sock);
	struct vrb_peer *p = NULL;
	int err = -EINVAL;

	if (slot > 0 && slot <= VRB_SLOTS && slot != e->slot)
		err = vrb_peer_bind(e, slot, &p);
	if (!err && p->owner != pid && owns_slot(slot, pid)) {
		peer_gone(e, p);
		err = vrb_peer_get(e, slot, &p);
	}
	if (!err && p->owner == pid && !p->rx_open)
		return p;
	r.val[1] = (uint64_t)pid;
	r.val[2] = (uint64_t)-err;
	vrb_hca_refuse(&r);
	return NULL;
}

static bool take_ring(struct vrb_engine *e, struct vrb_peer *p, int sock, struct vrb_meet_msg *m)
{
	int mine[VRB_WELCOME_FDS] = {e->bell_mem_fd, e->bell_fd, e->export_fd};
	struct vrb_meet_hello hello = hello_of(e);

	if (vrb_shm_map(m->fd[0], p->rx.m.ctl, &p->rx.m) || !set_bell(p, m, 1) ||
	    vrb_meet_send(sock, &hello, mine, VRB_WELCOME_FDS) ||
	    vrb_meet_rewatch(e, VRB_EV_RX_SOCK, sock))
		return false;
	vrb_direct_attach(p, m->fd[3], sock);
	rx_reset(&p->rx);
	p->rx_sock = sock;
	p->rx_open = true;
	hot_add(e, p);
	/* pairs with the load in read_welcome: who sees it finds the welcome in its socket */
	atomic_store_explicit(&p->rx.m.ctl->attached, 1, memory_order_seq_cst);
	/* Whoever looks at the ring next finds what was pushed before that load. */
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

bool vrb_peer_attach(struct vrb_engine *e, int sock, struct vrb_meet_msg *m)
{
	struct vrb_peer *p = NULL;

	if (m->n_fds == VRB_HELLO_FDS)
		p = announcer(e, sock, m->hello.slot);
	if (!p)
		return false;
	if (take_ring(e, p, sock, m))
		return true;
	peer_gone(e, p);
	return false;
}

/* On our own connection one welcome comes; everything else, and anything on the other, is the end.
 */
static void on_peer_sock(struct vrb_engine *e, int fd, bool rx)
{
	struct vrb_peer *p = peer_of_sock(e, fd, rx);
	struct vrb_meet_msg m;
	enum vrb_meet_got got;

	if (!p)
		return;
	got = vrb_meet_recv(fd, &m);
	if (got == VRB_MEET_NOTHING)
		return;
	if (got != VRB_MEET_MSG || rx || !take_welcome(p, &m))
		peer_gone(e, p);
	if (got == VRB_MEET_MSG)
		vrb_meet_drop(&m);
}

void vrb_peer_on_event(struct vrb_engine *e, uint32_t what, int fd)
{
	uint64_t n;

	switch (what) {
	case VRB_EV_LISTEN:
		vrb_meet_on_listen(e);
		break;
	case VRB_EV_ACCEPTED:
		vrb_meet_on_accepted(e, fd);
		break;
	case VRB_EV_RX_SOCK:
	case VRB_EV_TX_SOCK:
		on_peer_sock(e, fd, what == VRB_EV_RX_SOCK);
		break;
	case VRB_EV_WIRE:
		vrb_wire_on_event(e, fd);
		break;
	default:
		(void)!read(e->bell_fd, &n, sizeof(n));
	}
}
