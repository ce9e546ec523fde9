/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Meeting other processes: claiming a slot, connecting to the owner of another, attaching the ring
 * it announces, and noticing that it is gone. A channel is two independent directions: each side
 * announces its own tx ring over its own connection, so that two processes that connect at the same
 * moment need no tie-break. A frame may be pushed before the other side has attached; it finds it
 * when it does. End of file on either connection means that the process ended or called exec: what
 * it had sent is still handled, then its queue pairs end with RETRY_EXC.
 */
#include "hca/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO_FDS     4 /* ring, bell memory, bell event, export */
#define WELCOME_FDS   3 /* bell memory, bell event, export */
#define CONNECT_TRIES 50

static socklen_t slot_name(struct sockaddr_un *sa, uint32_t slot)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, VRB_MEET_NAME, (unsigned)geteuid(),
		     (unsigned)slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void watch(struct vrb_engine *e, uint32_t what, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP,
				 .data.u64 = (uint64_t)what << 32 | (uint32_t)fd};

	epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static void rewatch(struct vrb_engine *e, uint32_t what, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP,
				 .data.u64 = (uint64_t)what << 32 | (uint32_t)fd};

	epoll_ctl(e->epoll_fd, EPOLL_CTL_MOD, fd, &ev);
}

static int send_hello(int sock, uint32_t type, uint32_t slot, const int *fds, unsigned n)
{
	struct vrb_meet_hello hello = {.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = type,
				       .slot = slot,
				       .pid = (uint32_t)getpid()};
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(HELLO_FDS * sizeof(int))];
	} c = {0};
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *h;

	if (n) {
		m.msg_control = c.buf;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(h), fds, n * sizeof(int));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(hello) ? 0 : -errno;
}

/* Reads one message. Returns the number of descriptors, -1 at end of file or on a bad message, -2
 * for a mere wake-up. */
static int recv_hello(int sock, struct vrb_meet_hello *hello, int *fds)
{
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(HELLO_FDS * sizeof(int))];
	} c;
	struct iovec iov = {hello, sizeof(*hello)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.buf,
			   .msg_controllen = sizeof(c.buf)};
	ssize_t len = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *h;
	int n = 0;

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? -2 : -1;
	for (h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(h), (size_t)n * sizeof(int));
	}
	if (len == 1)
		return -2;
	if (len != sizeof(*hello) || hello->magic != VRB_MEET_MAGIC ||
	    hello->version != VRB_MEET_VERSION) {
		while (n > 0)
			close(fds[--n]);
		return -1;
	}
	return n;
}

static int open_bell(struct vrb_engine *e)
{
	e->bell_mem_fd = memfd_create("verbena-bell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (e->bell_mem_fd < 0 || ftruncate(e->bell_mem_fd, 4096) ||
	    fcntl(e->bell_mem_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	e->bell = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, e->bell_mem_fd, 0);
	if (e->bell == MAP_FAILED) {
		e->bell = NULL;
		return -errno;
	}
	madvise(e->bell, 4096, MADV_DONTFORK);
	e->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return e->bell_fd < 0 ? -errno : 0;
}

int vrb_meet_open(struct vrb_engine *e)
{
	struct sockaddr_un sa;
	uint32_t slot;
	int err = open_bell(e);

	if (err)
		return err;
	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epoll_fd < 0)
		return -errno;
	watch(e, VRB_EV_BELL, e->bell_fd);
	e->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (e->listen_fd < 0)
		return -errno;
	for (slot = 1; slot <= VRB_SLOTS; slot++) {
		socklen_t n = slot_name(&sa, slot);

		if (!bind(e->listen_fd, (struct sockaddr *)&sa, n))
			break;
		if (errno != EADDRINUSE)
			return -errno;
	}
	if (slot > VRB_SLOTS) {
		struct vrb_report r = {.verdict = VRB_V_LINK_NO_SLOT, .val = {VRB_SLOTS}};

		vrb_hca_refuse(&r);
		return -EUSERS;
	}
	if (listen(e->listen_fd, 256))
		return -errno;
	e->slot = slot;
	watch(e, VRB_EV_LISTEN, e->listen_fd);
	return 0;
}

static bool same_user(int sock)
{
	struct ucred u;
	socklen_t n = sizeof(u);
	struct vrb_report r = {.verdict = VRB_V_LINK_STRANGER};

	if (!getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &u, &n) && u.uid == geteuid())
		return true;
	r.val[0] = u.uid;
	vrb_hca_refuse(&r);
	return false;
}

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
	atomic_store_explicit(&e->hot[n], p, memory_order_relaxed);
	atomic_store_explicit(&e->n_hot, n + 1, memory_order_release);
}

static void hot_del(struct vrb_engine *e, struct vrb_peer *p)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_relaxed) - 1;
	struct vrb_peer *last = atomic_load_explicit(&e->hot[n], memory_order_relaxed);

	atomic_store_explicit(&e->hot[p->hot_index], last, memory_order_relaxed);
	last->hot_index = p->hot_index;
	atomic_store_explicit(&e->n_hot, n, memory_order_release);
}

static void tx_reset(struct vrb_shm_tx *tx)
{
	tx->head = tx->used = tx->data_head = tx->data_used = 0;
}

static void rx_reset(struct vrb_shm_rx *rx)
{
	rx->tail = rx->published = rx->data_tail = rx->data_published = 0;
}

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

static void set_bell(struct vrb_peer *p, int mem_fd, int event_fd)
{
	struct stat st;
	void *at;

	if (!fstat(mem_fd, &st) && st.st_size == 4096 &&
	    fcntl(mem_fd, F_GET_SEALS) & F_SEAL_SHRINK && !p->bell) {
		at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd, 0);
		if (at != MAP_FAILED) {
			madvise(at, 4096, MADV_DONTFORK);
			p->bell = at;
			p->bell_fd = event_fd;
			event_fd = -1;
		}
	}
	close(mem_fd);
	if (event_fd >= 0)
		close(event_fd);
}

static int connect_slot(uint32_t slot)
{
	struct sockaddr_un sa;
	socklen_t n = slot_name(&sa, slot);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), i;

	if (fd < 0)
		return -errno;
	for (i = 0; i < CONNECT_TRIES; i++) {
		if (!connect(fd, (struct sockaddr *)&sa, n))
			return fd;
		if (errno != EAGAIN)
			break;
		usleep(1000); /* the backlog is full: its helper is slow */
	}
	i = -errno;
	close(fd);
	return i;
}

static bool open_self(struct vrb_engine *e, struct vrb_peer *p)
{
	int fd = open_tx(p);

	if (fd < 0)
		return false;
	close(fd);
	p->rx.m = p->tx.m;
	rx_reset(&p->rx);
	p->bell = e->bell;
	p->bell_fd = e->bell_fd;
	p->tx_open = p->rx_open = true;
	hot_add(e, p);
	return true;
}

struct vrb_peer *vrb_peer_get(struct vrb_engine *e, uint32_t slot)
{
	struct vrb_peer *p;
	int sock, fds[HELLO_FDS];

	if (slot == 0 || slot > VRB_SLOTS)
		return NULL;
	p = e->peer[slot];
	if (p && p->tx_open)
		return p;
	if (slot == e->slot) {
		p = peer_of_slot(e, slot);
		return p && open_self(e, p) ? p : NULL;
	}
	sock = connect_slot(slot);
	if (sock < 0)
		return NULL;
	if (!same_user(sock) || !(p = peer_of_slot(e, slot)) || (fds[0] = open_tx(p)) < 0) {
		close(sock);
		return NULL;
	}
	fds[1] = e->bell_mem_fd;
	fds[2] = e->bell_fd;
	fds[3] = e->export_fd;
	if (send_hello(sock, VRB_MEET_RING, e->slot, fds, 4)) {
		close(fds[0]);
		close(sock);
		return NULL;
	}
	close(fds[0]);
	p->tx_sock = sock;
	p->tx_open = true;
	watch(e, VRB_EV_TX_SOCK, sock);
	return p;
}

void vrb_peer_all(struct vrb_engine *e)
{
	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++)
		vrb_peer_get(e, slot);
}

/* The receiver's welcome brings its bell. */
static void on_welcome(struct vrb_peer *p, int fd, const struct vrb_meet_hello *h, int *fds)
{
	if (!p->pid)
		p->pid = h->pid;
	set_bell(p, fds[0], fds[1]);
	vrb_direct_attach(p, fds[2], fd);
	fds[0] = fds[1] = -1;
}

/*
 * We pushed a frame and have no bell yet. A receiver that has not attached finds the frame when it
 * does; one that has sent its welcome first.
 */
static void read_welcome(struct vrb_peer *p)
{
	struct vrb_meet_hello h;
	int fds[HELLO_FDS] = {-1, -1, -1, -1}, n;

	if (!atomic_load_explicit(&p->tx.m.ctl->attached, memory_order_seq_cst) || p->tx_sock < 0)
		return;
	n = recv_hello(p->tx_sock, &h, fds);
	if (n == WELCOME_FDS)
		on_welcome(p, p->tx_sock, &h, fds);
	for (int i = 0; i < HELLO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void vrb_peer_wake(struct vrb_peer *p)
{
	uint64_t one = 1;
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
	} else if (s & VRB_SLEEP_HELPER) {
		(void)!write(p->bell_fd, &one, sizeof(one));
	}
}

static void unwatch_close(struct vrb_engine *e, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	close(*fd);
	*fd = -1;
}

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
	unwatch_close(e, &p->tx_sock);
	unwatch_close(e, &p->rx_sock);
	if (p->bell && !p->self) {
		munmap(p->bell, 4096);
		close(p->bell_fd);
	}
	p->bell = NULL;
	p->bell_fd = -1;
	p->pid = 0; /* the slot's next owner is another process */
	vrb_direct_detach(p);
}

/* The process behind p ended. */
static void peer_gone(struct vrb_engine *e, struct vrb_peer *p)
{
	struct vrb_report r = {.verdict = VRB_V_PEER_GONE, .val = {p->slot}};
	uint32_t turns = 0;

	/* What it had sent before it died counts. */
	while (p->rx_open && vrb_shm_peek(&p->rx) && turns++ < VRB_SHM_LINES)
		vrb_engine_turn(e, vrb_clock_now());
	while (!vrb_list_empty(&p->qps)) {
		struct vrb_hqp *q = vrb_list_entry(p->qps.next, struct vrb_hqp, peer_node);

		vrb_list_del(&q->peer_node);
		vrb_engine_unstall(e, q);
		q->peer = NULL;
		q->direct_n = 0;
		vrb_direct_update(e, q);
		r.qpn = q->core.qpn;
		vrb_fx_reset(&e->fx);
		vrb_qp_on_peer_gone(&q->core, &r, &e->fx);
		vrb_engine_apply(e);
		vrb_engine_activate(e, q);
	}
	close_channel(e, p);
}

static bool hung_up(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return fd >= 0 && poll(&p, 1, 0) == 1;
}

/*
 * Before a queue pair is bound to a slot: the end of the former owner that nobody has looked at yet
 * must not take the new owner's queue pairs with it.
 */
struct vrb_peer *vrb_peer_bind(struct vrb_engine *e, uint32_t slot)
{
	struct vrb_peer *p = slot <= VRB_SLOTS ? e->peer[slot] : NULL;

	if (p && !p->self && (hung_up(p->tx_sock) || hung_up(p->rx_sock)))
		peer_gone(e, p);
	return vrb_peer_get(e, slot);
}

static struct vrb_peer *peer_of_sock(struct vrb_engine *e, int fd, bool rx)
{
	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_peer *p = e->peer[i];

		if (p && (rx ? p->rx_sock : p->tx_sock) == fd)
			return p;
	}
	return NULL;
}

/* A peer announces its ring towards us. False: refused, the connection is to be closed. */
static bool attach_ring(struct vrb_engine *e, int sock, const struct vrb_meet_hello *h, int *fds)
{
	struct vrb_peer *p;
	int mine[3] = {e->bell_mem_fd, e->bell_fd, e->export_fd};

	if (h->slot == 0 || h->slot > VRB_SLOTS || h->slot == e->slot ||
	    !(p = peer_of_slot(e, h->slot)))
		return false;
	/* The slot has a new owner and we have not seen the end of the former one yet. */
	if (p->rx_open || (p->tx_open && p->pid && p->pid != h->pid))
		peer_gone(e, p);
	if (vrb_shm_map(fds[0], p->rx.m.ctl, &p->rx.m))
		return false;
	rx_reset(&p->rx);
	close(fds[0]);
	fds[0] = -1;
	set_bell(p, fds[1], fds[2]);
	fds[1] = fds[2] = -1;
	vrb_direct_attach(p, fds[3], sock);
	p->pid = h->pid;
	p->rx_sock = sock;
	p->rx_open = true;
	hot_add(e, p);
	rewatch(e, VRB_EV_RX_SOCK, sock);
	send_hello(sock, VRB_MEET_RING, e->slot, mine, 3);
	/* pairs with the load in read_welcome: who sees it finds the welcome in its socket */
	atomic_store_explicit(&p->rx.m.ctl->attached, 1, memory_order_seq_cst);
	vrb_peer_get(e, h->slot); /* our own direction, for answers */
	return true;
}

static void on_accepted(struct vrb_engine *e, int fd)
{
	struct vrb_meet_hello h;
	int fds[HELLO_FDS] = {-1, -1, -1, -1}, n = recv_hello(fd, &h, fds), i;
	bool keep = n == -2;

	if (n == HELLO_FDS && h.type == VRB_MEET_RING)
		keep = attach_ring(e, fd, &h, fds);
	else if (n >= 0 && h.type == VRB_MEET_STATS)
		send_hello(fd, VRB_MEET_STATS, e->slot, &e->stats_fd, 1);
	for (i = 0; i < HELLO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (!keep)
		unwatch_close(e, &fd);
}

static void on_listen(struct vrb_engine *e)
{
	for (int i = 0; i < 64; i++) {
		int fd = accept4(e->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (same_user(fd))
			watch(e, VRB_EV_ACCEPTED, fd);
		else
			close(fd);
	}
}

static void on_peer_sock(struct vrb_engine *e, int fd, bool rx)
{
	struct vrb_peer *p = peer_of_sock(e, fd, rx);
	struct vrb_meet_hello h;
	int fds[HELLO_FDS] = {-1, -1, -1, -1}, n, i;

	if (!p)
		return;
	n = recv_hello(fd, &h, fds);
	if (n == -1) {
		peer_gone(e, p);
		return;
	}
	if (n == WELCOME_FDS && !rx)
		on_welcome(p, fd, &h, fds);
	for (i = 0; i < HELLO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void vrb_peer_on_event(struct vrb_engine *e, uint32_t what, int fd)
{
	uint64_t n;

	switch (what) {
	case VRB_EV_LISTEN:
		on_listen(e);
		break;
	case VRB_EV_ACCEPTED:
		on_accepted(e, fd);
		break;
	case VRB_EV_RX_SOCK:
	case VRB_EV_TX_SOCK:
		on_peer_sock(e, fd, what == VRB_EV_RX_SOCK);
		break;
	default:
		(void)!read(e->bell_fd, &n, sizeof(n));
	}
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
