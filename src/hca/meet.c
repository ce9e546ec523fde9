/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How processes find each other: connecting to the owner of a slot (slots.c: which), taking
 * connections, and the one kind of message that goes over them. A connection that has not said what
 * it wants is kept for PENDING_NS, and not more than VRB_PENDING_MAX of them; when descriptors run
 * out, the spare one is given up to take a connection and close it, so that whoever connects hears
 * of it.
 */
#include "hca/ask.h"
#include "hca/gsi_parts.h"
#include "hca/peer.h"
#include "hca/rows.h"
#include "hca/story.h"
#include "hca/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_TRIES 50
#define ACCEPTS	      64 /* connections taken at once */
#define PENDING_NS    (2 * VRB_NS_PER_S)
#define MUTED_NS      (20 * VRB_NS_PER_MS)

int vrb_meet_watch_for(struct vrb_engine *e, int op, uint32_t what, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = (uint64_t)what << 32 | (uint32_t)fd};

	return epoll_ctl(e->epoll_fd, op, fd, &ev) ? -errno : 0;
}

int vrb_meet_watch(struct vrb_engine *e, uint32_t what, int fd)
{
	return vrb_meet_watch_for(e, EPOLL_CTL_ADD, what, fd, EPOLLIN | EPOLLRDHUP);
}

int vrb_meet_rewatch(struct vrb_engine *e, uint32_t what, int fd)
{
	return vrb_meet_watch_for(e, EPOLL_CTL_MOD, what, fd, EPOLLIN | EPOLLRDHUP);
}

void vrb_meet_unwatch(struct vrb_engine *e, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	close(*fd);
	*fd = -1;
}

/* ---- messages */

union control_buf {
	struct cmsghdr h;
	char buf[CMSG_SPACE(VRB_HELLO_FDS * sizeof(int))];
};

int vrb_meet_send(int sock, const struct vrb_meet_hello *hello, const int *fds, uint32_t n)
{
	union control_buf c = {0};
	struct iovec iov = {(void *)(uintptr_t)hello, sizeof(*hello)};
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
	return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(*hello) ? 0 : -errno;
}

void vrb_meet_drop(struct vrb_meet_msg *m)
{
	for (int i = 0; i < VRB_HELLO_FDS; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
		m->fd[i] = -1;
	}
	m->n_fds = 0;
}

static void take_fds(struct vrb_meet_msg *out, struct msghdr *m)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		uint32_t n = (uint32_t)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS ||
		    n > VRB_HELLO_FDS - out->n_fds)
			continue;
		memcpy(out->fd + out->n_fds, CMSG_DATA(h), n * sizeof(int));
		out->n_fds += n;
	}
}

enum vrb_meet_got vrb_meet_recv(int sock, struct vrb_meet_msg *out)
{
	union control_buf c;
	struct iovec iov[] = {{&out->hello, sizeof(out->hello)}, {out->body, sizeof(out->body)}};
	struct msghdr m = {.msg_iov = iov,
			   .msg_iovlen = 2,
			   .msg_control = c.buf,
			   .msg_controllen = sizeof(c.buf)};
	ssize_t len = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	out->n_fds = out->n_body = 0;
	for (int i = 0; i < VRB_HELLO_FDS; i++)
		out->fd[i] = -1;
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? VRB_MEET_NOTHING : VRB_MEET_END;
	take_fds(out, &m);
	/* MSG_CTRUNC: more descriptors than any message has, or than we may have */
	if (len >= (ssize_t)sizeof(out->hello) && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    out->hello.magic == VRB_MEET_MAGIC && out->hello.version == VRB_MEET_VERSION) {
		out->n_body = (uint32_t)(len - (ssize_t)sizeof(out->hello));
		if (!out->n_body || out->hello.type == VRB_MEET_MAD)
			return VRB_MEET_MSG;
	}
	vrb_meet_drop(out);
	return VRB_MEET_END;
}

/* ---- who is there */

static bool same_user(int sock)
{
	struct ucred u = {.uid = (uid_t)-1};
	socklen_t n = sizeof(u);
	struct vrb_report r = {.verdict = VRB_V_LINK_STRANGER};

	if (!getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &u, &n) && u.uid == geteuid())
		return true;
	r.val[0] = u.uid;
	vrb_hca_refuse(&r);
	return false;
}

int vrb_meet_pid(int sock)
{
	struct ucred u = {0};
	socklen_t n = sizeof(u);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &u, &n) ? 0 : (int)u.pid;
}

bool vrb_meet_hung_up(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLRDHUP};

	return sock >= 0 && poll(&p, 1, 0) == 1;
}

int vrb_meet_call(const struct sockaddr_un *sa, uint32_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)sa, len) ? -errno : 0;
	if (!err && !same_user(fd))
		err = -ECONNREFUSED;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int vrb_meet_connect(uint32_t slot)
{
	struct sockaddr_un sa;
	socklen_t n = vrb_slot_name(&sa, slot);
	int fd = vrb_meet_call(&sa, n);

	for (int i = 1; fd == -EAGAIN && i < CONNECT_TRIES; i++) {
		usleep(1000); /* the backlog is full: its helper is slow */
		fd = vrb_meet_call(&sa, n);
	}
	return fd;
}

/* ---- taking connections */

static void forget_pending(struct vrb_engine *e, uint32_t i)
{
	e->n_pending--;
	memmove(&e->pending[i], &e->pending[i + 1], (e->n_pending - i) * sizeof(e->pending[0]));
}

/* Closes those that have been silent for too long, the oldest in any case when all places are
 * taken. */
static void expire_pending(struct vrb_engine *e, vrb_ns now)
{
	while (e->n_pending > 0 &&
	       (e->n_pending == VRB_PENDING_MAX || now - e->pending[0].since > PENDING_NS)) {
		vrb_meet_unwatch(e, &e->pending[0].fd);
		forget_pending(e, 0);
	}
}

/* what: where it came from. Who brings a request to a claim has sent it already: many at once are
 * not to use up the places of those that have not spoken. */
static void take(struct vrb_engine *e, int fd, uint32_t what, vrb_ns now)
{
	if (!same_user(fd)) {
		close(fd);
		return;
	}
	expire_pending(e, now);
	if (vrb_meet_watch(e, VRB_EV_ACCEPTED, fd)) {
		close(fd);
		return;
	}
	e->pending[e->n_pending++] = (struct vrb_pending){.fd = fd, .since = now};
	if (what == VRB_EV_CLAIM)
		vrb_meet_on_accepted(e, fd);
}

static int accept_one(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* No descriptor is left for a connection that waits. False: not even the spare one. */
static bool turn_away(struct vrb_engine *e, int listen_fd, int err)
{
	struct vrb_report r = {.verdict = VRB_V_LINK_SYSTEM, .val = {(uint64_t)-err}};
	int fd;

	vrb_hca_refuse(&r);
	if (e->spare_fd < 0)
		e->spare_fd = fcntl(e->epoll_fd, F_DUPFD_CLOEXEC, 0);
	if (e->spare_fd < 0)
		return false;
	close(e->spare_fd);
	fd = accept_one(listen_fd);
	if (fd >= 0)
		close(fd);
	e->spare_fd = fcntl(e->epoll_fd, F_DUPFD_CLOEXEC, 0);
	return fd >= 0;
}

void vrb_meet_on_listen(struct vrb_engine *e, uint32_t what, int listen_fd)
{
	vrb_ns now = vrb_clock_now();

	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept_one(listen_fd);

		if (fd >= 0)
			take(e, fd, what, now);
		else if (fd == -EAGAIN)
			return;
		else if (fd != -EINTR && fd != -ECONNABORTED && !turn_away(e, listen_fd, fd))
			break;
		else
			continue;
	}
	if (e->spare_fd >= 0)
		return;
	/* What cannot be taken must not wake the helper again and again. */
	if (!vrb_meet_watch_for(e, EPOLL_CTL_MOD, what, listen_fd, 0))
		e->muted_until = now + MUTED_NS;
}

void vrb_meet_tick(struct vrb_engine *e, vrb_ns now)
{
	if (vrb_unlikely(e->muted_until) && now >= e->muted_until &&
	    !vrb_meet_rewatch(e, VRB_EV_LISTEN, e->listen_fd)) {
		vrb_gsi_rewatch(e);
		e->muted_until = 0;
	}
}

void vrb_meet_on_accepted(struct vrb_engine *e, int sock)
{
	struct vrb_meet_msg m;
	enum vrb_meet_got got;
	struct vrb_meet_hello mine = {.magic = VRB_MEET_MAGIC,
				      .version = VRB_MEET_VERSION,
				      .type = VRB_MEET_STATS,
				      .slot = e->slot,
				      .pid = (uint32_t)getpid()};
	uint32_t i = 0;

	/* An event of a moment ago may be about a descriptor that is another's by now. */
	while (i < e->n_pending && e->pending[i].fd != sock)
		i++;
	if (i == e->n_pending)
		return;
	got = vrb_meet_recv(sock, &m);
	if (got == VRB_MEET_NOTHING)
		return;
	forget_pending(e, i);
	if (got == VRB_MEET_MSG && m.hello.type == VRB_MEET_RING && vrb_peer_attach(e, sock, &m)) {
		vrb_meet_drop(&m);
		return;
	}
	if (got == VRB_MEET_MSG && m.hello.type == VRB_MEET_CAPTURE && vrb_tap_attach(e, sock, &m))
		return;
	if (got == VRB_MEET_MSG && m.hello.type == VRB_MEET_STATS) {
		vrb_stats_fold(e);
		vrb_meet_send(sock, &mine, &e->stats_fd, 1);
	}
	if (got == VRB_MEET_MSG && m.hello.type == VRB_MEET_STORY)
		vrb_story_tell(e, sock, m.hello.arg);
	if (got == VRB_MEET_MSG && m.hello.type == VRB_MEET_ROWS)
		vrb_rows_tell(e, sock, m.hello.arg);
	if (got == VRB_MEET_MSG && m.hello.type == VRB_MEET_ASK)
		vrb_ask_on_hello(e, sock, &m.hello);
	if (got == VRB_MEET_MSG && m.hello.type == VRB_MEET_MAD)
		(void)vrb_wire_carried(e, m.body, m.n_body);
	vrb_meet_drop(&m);
	vrb_meet_unwatch(e, &sock);
}

/* ---- our own slot */

static int open_bell(struct vrb_engine *e)
{
	e->bell_mem_fd = memfd_create("verbena-bell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (e->bell_mem_fd < 0 || ftruncate(e->bell_mem_fd, VRB_BELL_SIZE) ||
	    fcntl(e->bell_mem_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	e->bell = mmap(NULL, VRB_BELL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, e->bell_mem_fd, 0);
	if (e->bell == MAP_FAILED) {
		e->bell = NULL;
		return -errno;
	}
	madvise(e->bell, VRB_BELL_SIZE, MADV_DONTFORK);
	e->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return e->bell_fd < 0 ? -errno : vrb_meet_watch(e, VRB_EV_BELL, e->bell_fd);
}

/* The first free slot; the kernel frees the name when we end. */
static int claim_slot(struct vrb_engine *e)
{
	int err = vrb_slot_claim(&e->slot, &e->listen_fd);

	if (!err && listen(e->listen_fd, 256))
		err = -errno;
	return err ? err : vrb_meet_watch(e, VRB_EV_LISTEN, e->listen_fd);
}

int vrb_meet_open(struct vrb_engine *e)
{
	int err;

	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epoll_fd < 0)
		return -errno;
	err = open_bell(e);
	if (err)
		return err;
	e->spare_fd = fcntl(e->epoll_fd, F_DUPFD_CLOEXEC, 0);
	return e->spare_fd < 0 ? -errno : claim_slot(e);
}

void vrb_meet_close(struct vrb_engine *e, bool in_child)
{
	int *fd[] = {&e->listen_fd, &e->epoll_fd, &e->spare_fd, &e->bell_fd, &e->bell_mem_fd};

	vrb_event_close_watch(e);
	for (; e->n_pending > 0; e->n_pending--)
		close(e->pending[e->n_pending - 1].fd);
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		if (*fd[i] >= 0)
			close(*fd[i]);
		*fd[i] = -1;
	}
	/* A child did not inherit the mapping. */
	if (e->bell && !in_child)
		munmap(e->bell, VRB_BELL_SIZE);
	e->bell = NULL;
}
