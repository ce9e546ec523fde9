/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions and answers by a connected UDP socket. Who answers is not trusted with more than his
 * numbers. */
#include "tools/doctor_probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

#define TOS	     (26 << 2 | 2) /* the usual class of RoCE, ECN-capable */
#define BUFFER_BYTES (1 << 20)
#define STRANGERS    64 /* datagrams of no meaning that one wait looks at */

static int set_up(int fd, int family)
{
	bool v6 = family == AF_INET6;
	int probe = v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE, tos = TOS, bytes = BUFFER_BYTES;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos,
			 sizeof(tos));
	return setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
			  v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe, sizeof(probe));
}

int vrb_probe_open(struct vrb_probe *p, const struct sockaddr *to, socklen_t len)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->family = to->sa_family;
	p->fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -errno;
	if (!set_up(p->fd, to->sa_family) && !connect(p->fd, to, len)) {
		vrb_probe_session(p);
		return 0;
	}
	err = -errno;
	close(p->fd);
	return err;
}

void vrb_probe_session(struct vrb_probe *p)
{
	if (getrandom(&p->session, sizeof(p->session), GRND_NONBLOCK) < 0)
		p->session += (uint32_t)getpid();
	p->seq = 0;
}

int vrb_probe_ask(struct vrb_probe *p, int bytes)
{
	uint8_t q[VRB_PROBE_BYTES_MAX] = {0};
	int pending;
	socklen_t len = sizeof(pending);

	/* what an earlier question met is not this one's error */
	(void)getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &pending, &len);
	vrb_put_be32(q, VRB_PROBE_MAGIC);
	q[4] = VRB_PROBE_QUESTION;
	vrb_put_be32(q + 8, p->session);
	vrb_put_be32(q + 12, ++p->seq);
	return send(p->fd, q, (size_t)bytes, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static bool parse(const struct vrb_probe *p, const uint8_t *q, ssize_t n, struct vrb_answer *a)
{
	if (n < VRB_PROBE_BYTES || vrb_get_be32(q) != VRB_PROBE_MAGIC || q[4] != VRB_PROBE_ANSWER ||
	    vrb_get_be32(q + 8) != p->session)
		return false;
	a->tos = q[5];
	a->seq = vrb_get_be32(q + 12);
	a->arrived = vrb_get_be32(q + 16);
	a->reordered = vrb_get_be32(q + 20);
	return a->seq && a->seq <= p->seq && a->arrived <= p->seq && a->reordered <= p->seq;
}

int vrb_probe_hear(struct vrb_probe *p, struct vrb_answer *a, int wait_ms)
{
	uint8_t q[VRB_PROBE_BYTES_MAX];

	for (int i = 0; i < STRANGERS; i++) {
		struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
		ssize_t n;

		if (poll(&pfd, 1, wait_ms) <= 0)
			return 0;
		n = recv(p->fd, q, sizeof(q), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (parse(p, q, n, a))
			return 1;
	}
	return 0;
}

int vrb_probe_once(struct vrb_probe *p, struct vrb_answer *a, int bytes, int tries)
{
	int got = 0;

	for (int i = 0; i < tries && got <= 0; i++) {
		got = vrb_probe_ask(p, bytes);
		if (got)
			return got;
		/* a late answer to an earlier try of the same size counts, too */
		got = vrb_probe_hear(p, a, p->wait_ms);
	}
	return got;
}
