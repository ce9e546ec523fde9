/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/doctor_netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define WAIT_SECONDS  2
#define ANSWER_BYTES  (64 * 1024) /* the kernel makes no larger ones for a dump */
#define REQUEST_BYTES 256
#define DATAGRAMS_MAX 65536

int vrb_nl_open(int family)
{
	struct timeval wait = {.tv_sec = WAIT_SECONDS};
	struct sockaddr_nl self = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family), err;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (!bind(fd, (struct sockaddr *)&self, sizeof(self)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int send_question(int fd, const struct vrb_nl_question *ask)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct {
		struct nlmsghdr h;
		uint8_t body[REQUEST_BYTES];
	} q = {.h = {.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + ask->body.left),
		     .nlmsg_type = (uint16_t)ask->type,
		     .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | ask->flags)}};

	if (ask->body.left > sizeof(q.body))
		return -EMSGSIZE;
	memcpy(q.body, ask->body.at, ask->body.left);
	if (sendto(fd, &q, q.h.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

/* What one datagram holds: 1 when more will come. */
static int take(const uint8_t *at, size_t left, vrb_nl_heard f, void *arg)
{
	bool more = false;
	struct nlmsghdr h;

	while (left >= sizeof(h)) {
		int err = 0;

		memcpy(&h, at, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > left)
			return -EBADMSG;
		if (h.nlmsg_type == NLMSG_DONE)
			return 0;
		if (h.nlmsg_type == NLMSG_ERROR) {
			if (h.nlmsg_len >= NLMSG_HDRLEN + sizeof(err))
				memcpy(&err, at + NLMSG_HDRLEN, sizeof(err));
			return err;
		}
		f(arg, (struct vrb_nl_part){at + NLMSG_HDRLEN, h.nlmsg_len - NLMSG_HDRLEN});
		more = h.nlmsg_flags & NLM_F_MULTI;
		if (NLMSG_ALIGN(h.nlmsg_len) >= left)
			break;
		at += NLMSG_ALIGN(h.nlmsg_len);
		left -= NLMSG_ALIGN(h.nlmsg_len);
	}
	return more;
}

int vrb_nl_ask(int fd, const struct vrb_nl_question *q, vrb_nl_heard f, void *arg)
{
	uint8_t answer[ANSWER_BYTES] __attribute__((aligned(8)));
	int more = send_question(fd, q);

	if (more)
		return more;
	more = 1;
	for (int i = 0; i < DATAGRAMS_MAX && more > 0; i++) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		if (n < 0)
			return -errno;
		more = take(answer, (size_t)n, f, arg);
	}
	return more < 0 ? more : 0;
}

bool vrb_nl_next(struct vrb_nl_part *part, struct vrb_nl_attr *out)
{
	struct nlattr a;
	size_t whole;

	if (part->left < sizeof(a))
		return false;
	memcpy(&a, part->at, sizeof(a));
	if (a.nla_len < sizeof(a) || a.nla_len > part->left)
		return false;
	out->type = a.nla_type & NLA_TYPE_MASK;
	out->data = part->at + NLA_HDRLEN;
	out->len = (size_t)a.nla_len - NLA_HDRLEN;
	whole = NLA_ALIGN(a.nla_len);
	if (whole > part->left)
		whole = part->left;
	part->at += whole;
	part->left -= whole;
	return true;
}

struct vrb_nl_part vrb_nl_nested(const struct vrb_nl_attr *a)
{
	return (struct vrb_nl_part){a->data, a->len};
}

uint64_t vrb_nl_number(const struct vrb_nl_attr *a)
{
	uint64_t n = 0;

	/* host order; both orders are found by the width */
	if (a->len == 1) {
		n = a->data[0];
	} else if (a->len == 2) {
		uint16_t v;

		memcpy(&v, a->data, 2);
		n = v;
	} else if (a->len == 4) {
		uint32_t v;

		memcpy(&v, a->data, 4);
		n = v;
	} else if (a->len == 8) {
		memcpy(&n, a->data, 8);
	}
	return n;
}
