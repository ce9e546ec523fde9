/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channel to another process: opening it and attaching the ring that the other side announces;
 * its end is in peer_end.c. A channel is two independent directions: each side announces its own tx
 * ring over its own connection, so that two processes that connect at the same moment need no
 * tie-break. A frame may be pushed before the other side has attached; it finds it when it does. A
 * ring is taken only from the process that owns the slot it names, and a process that answers what
 * it has no business to say is cut off. End of file on either connection is the end.
 */
#include "hca/ask.h"
#include "hca/direct.h"
#include "hca/gsi_parts.h"
#include "hca/peer.h"
#include "hca/tap.h"
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
	vrb_list_init(&p->carry);
	vrb_list_init(&p->carry_node);
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

static struct vrb_meet_hello hello_of(const struct vrb_engine *e)
{
	return (struct vrb_meet_hello){.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = VRB_MEET_RING,
				       .slot = e->slot,
				       .pid = (uint32_t)getpid(),
				       .arg = e->tap ? e->tap->id : 0};
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
	vrb_peer_tx_reset(&p->tx);
	return fd;
}

static int open_self(struct vrb_engine *e, struct vrb_peer *p)
{
	int fd = open_tx(p);

	if (fd < 0)
		return fd;
	close(fd);
	p->rx.m = p->tx.m;
	vrb_peer_rx_reset(&p->rx);
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

/*
 * Before a queue pair is bound to a slot: the end of the former owner that nobody has looked at yet
 * must not take the new owner's queue pairs with it.
 */
int vrb_peer_bind(struct vrb_engine *e, uint32_t slot, struct vrb_peer **out)
{
	struct vrb_peer *p = slot <= VRB_SLOTS ? e->peer[slot] : NULL;

	if (p && !p->self && (vrb_meet_hung_up(p->tx_sock) || vrb_meet_hung_up(p->rx_sock)))
		vrb_peer_gone(e, p);
	return vrb_peer_get(e, slot, out);
}

void vrb_peer_all(struct vrb_engine *e)
{
	struct vrb_peer *p;

	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++)
		(void)vrb_peer_get(e, slot, &p);
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
		vrb_peer_gone(e, p);
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
	vrb_peer_rx_reset(&p->rx);
	p->rx_sock = sock;
	p->rx_open = true;
	p->tap = m->hello.arg;
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
	vrb_peer_gone(e, p);
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
		vrb_peer_gone(e, p);
	if (got == VRB_MEET_MSG)
		vrb_meet_drop(&m);
}

void vrb_peer_on_event(struct vrb_engine *e, uint32_t what, int fd)
{
	uint64_t n;

	switch (what) {
	case VRB_EV_LISTEN:
		vrb_meet_on_listen(e, what, fd);
		break;
	case VRB_EV_CLAIM:
		vrb_gsi_on_listen(e, fd);
		break;
	case VRB_EV_ACCEPTED:
		vrb_meet_on_accepted(e, fd);
		break;
	case VRB_EV_RX_SOCK:
	case VRB_EV_TX_SOCK:
		on_peer_sock(e, fd, what == VRB_EV_RX_SOCK);
		break;
	case VRB_EV_TAP:
		vrb_tap_on_event(e, fd);
		break;
	case VRB_EV_WIRE:
		vrb_wire_on_event(e, fd);
		break;
	case VRB_EV_ASK:
		vrb_ask_on_event(e, fd);
		break;
	case VRB_EV_HELD:
		vrb_moderate_on_event(e);
		break;
	default:
		(void)!read(e->bell_fd, &n, sizeof(n));
	}
}
