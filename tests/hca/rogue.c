/* SPDX-License-Identifier: BSD-2-Clause */
/* See kit.h: a process that speaks the meeting protocol by hand. */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hca/direct.h"

static socklen_t name_of(struct sockaddr_un *sa, uint32_t slot)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, VRB_MEET_NAME, (unsigned)geteuid(),
		     (unsigned)slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

bool rogue_try_claim(struct rogue *r)
{
	struct sockaddr_un sa;

	*r = (struct rogue){.to = -1, .from = -1};
	r->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	MUST(r->listen >= 0);
	for (r->slot = VRB_SLOTS; r->slot > 0; r->slot--) {
		socklen_t n = name_of(&sa, r->slot);

		if (!bind(r->listen, (struct sockaddr *)&sa, n))
			break;
	}
	if (!r->slot)
		close(r->listen);
	return r->slot && !listen(r->listen, 16);
}

void rogue_claim(struct rogue *r)
{
	MUST(rogue_try_claim(r));
}

int rogue_connect(uint32_t slot)
{
	struct sockaddr_un sa;
	socklen_t n = name_of(&sa, slot);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&sa, n));
	return fd;
}

struct vrb_meet_hello rogue_hello(const struct rogue *r)
{
	return (struct vrb_meet_hello){.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = VRB_MEET_RING,
				       .slot = r->slot,
				       .pid = (uint32_t)getpid()};
}

int rogue_say(int sock, const struct vrb_meet_hello *h, const int *fds, unsigned n)
{
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(16 * sizeof(int))];
	} c = {0};
	struct iovec iov = {(void *)(uintptr_t)h, sizeof(*h)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *ch;

	if (n) {
		m.msg_control = c.buf;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		ch = CMSG_FIRSTHDR(&m);
		ch->cmsg_level = SOL_SOCKET;
		ch->cmsg_type = SCM_RIGHTS;
		ch->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(ch), fds, n * sizeof(int));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int sealed(size_t size)
{
	int fd = memfd_create("rogue", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, (off_t)size));
	MUST(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	return fd;
}

void rogue_make(struct rogue *r)
{
	r->tx_fd = vrb_shm_create("rogue");
	MUST(r->tx_fd >= 0 && !vrb_shm_map(r->tx_fd, NULL, &r->tx));
	r->bell_mem = sealed(VRB_BELL_SIZE);
	r->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->export = sealed(sizeof(struct vrb_export));
	MUST(r->bell >= 0);
}

/* The hello on a connection that was made to our name: true when it is the victim's, and mapped. */
static bool hear(struct rogue *r, uint32_t victim)
{
	struct vrb_meet_hello h;
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(8 * sizeof(int))];
	} c;
	struct iovec iov = {&h, sizeof(h)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.buf,
			   .msg_controllen = sizeof(c.buf)};
	bool ours;
	int fd[4];

	if (recvmsg(r->from, &m, MSG_CMSG_CLOEXEC) != sizeof(h) || !CMSG_FIRSTHDR(&m) ||
	    CMSG_FIRSTHDR(&m)->cmsg_len != CMSG_LEN(sizeof(fd)))
		return false;
	memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	ours = h.slot == victim && !vrb_shm_map(fd[0], NULL, &r->rx);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	return ours;
}

void rogue_accept(struct rogue *r, uint32_t victim)
{
	/* Others of the user may connect as well: who sends to a group tries every slot. */
	for (;;) {
		r->from = accept4(r->listen, NULL, NULL, SOCK_CLOEXEC);
		MUST(r->from >= 0);
		if (hear(r, victim))
			return;
		close(r->from);
	}
}

void rogue_join(struct rogue *r, uint32_t victim)
{
	struct vrb_meet_hello h = rogue_hello(r);
	int fds[4];

	rogue_make(r);
	fds[0] = r->tx_fd;
	fds[1] = r->bell_mem;
	fds[2] = r->bell;
	fds[3] = r->export;
	r->to = rogue_connect(victim);
	MUST(!rogue_say(r->to, &h, fds, 4));
	rogue_accept(r, victim);
	MUST(!rogue_say(r->from, &h, fds + 1, 3));
	while (!atomic_load(&r->tx.ctl->attached))
		usleep(100);
}

bool rogue_heard_end(int sock, int ms)
{
	struct pollfd p = {.fd = sock, .events = POLLRDHUP};

	return poll(&p, 1, ms) == 1;
}

void rogue_write(struct rogue *r, const struct rogue_line *l)
{
	struct vrb_shm_line *line = &r->tx.line[r->head % VRB_SHM_LINES];

	line->ack = l->ack;
	memset(line->body, 0, VRB_SHM_BODY);
	if (l->body_len)
		memcpy(line->body, l->body, l->body_len);
	atomic_store(&line->word,
		     vrb_shm_word(r->head, l->op, l->index, vrb_psn(l->psn), l->flags));
	r->head++;
}
