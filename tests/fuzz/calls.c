/* SPDX-License-Identifier: BSD-2-Clause */
/* See calls.h. */
#include "fuzz/calls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

bool fz_live;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static long receive(struct mmsghdr *m, unsigned int n)
{
	unsigned int got = fz_receive(m, n);

	if (got)
		return got;
	errno = EAGAIN;
	return -1;
}

static long receive_one(struct msghdr *h)
{
	struct mmsghdr m = {.msg_hdr = *h};
	long got = receive(&m, 1);

	*h = m.msg_hdr;
	return got < 0 ? got : (long)m.msg_len;
}

/* What the socket has been told, or the message says. */
static uint32_t segment(int fd, const struct msghdr *m)
{
	socklen_t size = sizeof(int);
	int v = 0;

	(void)getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &v, &size);
	for (struct cmsghdr *h = m ? CMSG_FIRSTHDR(m) : NULL; h;
	     h = CMSG_NXTHDR((struct msghdr *)(uintptr_t)m, h)) {
		uint16_t said;

		if (h->cmsg_level != IPPROTO_UDP || h->cmsg_type != UDP_SEGMENT)
			continue;
		memcpy(&said, CMSG_DATA(h), sizeof(said));
		v = said;
	}
	return (uint32_t)v;
}

static long sent(const struct fz_out *out)
{
	struct fz_out o = *out;

	o.seg_len = o.seg_len ? o.seg_len : o.len;
	fz_sent(&o);
	return (long)o.len;
}

/* Six arguments are taken, whatever the number was given: more than there are is no fault. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
	const struct msghdr *m;
	va_list ap;
	long a[6];

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (fz_live && number == SYS_recvmmsg)
		return receive((void *)a[1], (unsigned int)a[2]);
	if (fz_live && number == SYS_recvmsg && a[2] & MSG_ERRQUEUE) {
		errno = EAGAIN;
		return -1;
	}
	if (fz_live && number == SYS_recvmsg)
		return receive_one((void *)a[1]);
	if (fz_live && number == SYS_sendto)
		return sent(&(struct fz_out){(int)a[0], (void *)a[4], (void *)a[1], (uint32_t)a[2],
					     segment((int)a[0], NULL)});
	if (fz_live && number == SYS_sendmsg) {
		m = (void *)a[1];
		return sent(&(struct fz_out){(int)a[0], m->msg_name, m->msg_iov->iov_base,
					     (uint32_t)m->msg_iov->iov_len, segment((int)a[0], m)});
	}
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
