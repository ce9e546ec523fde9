/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP side of making a channel: addresses, connections, reads and writes with a deadline. */
#ifndef VRB_SEND_TCP_H
#define VRB_SEND_TCP_H

#include <sys/socket.h>

#include "base/types.h"

/* All return a descriptor, or -errno with the reason. Sockets never block. */
int vrb_tcp_listen(const char *host, const char *port);
int vrb_tcp_connect(const char *host, const char *port, uint64_t deadline_ns);
int vrb_tcp_accept(int listener, uint64_t deadline_ns); /* -ETIMEDOUT: nobody came */

int vrb_tcp_port(int fd);
/* Our own address of a connection, as a GID carries it. */
void vrb_tcp_address(int fd, struct vrb_gid *gid);

/* Without waiting: a connection begins, stands (0) or does not yet (-EAGAIN). */
int vrb_tcp_start(const struct sockaddr *to, socklen_t len);
int vrb_tcp_started(int fd);

/* More of len bytes, of which *got are there: 0 when that is all, -EAGAIN, or -errno. */
int vrb_tcp_more(int fd, void *bytes, size_t len, uint32_t *got);

/* All of it, or -errno with the reason; step is named in that. */
int vrb_tcp_put(int fd, const void *bytes, size_t len, int step);
int vrb_tcp_get(int fd, void *bytes, size_t len, uint64_t deadline_ns, int step);

#endif
