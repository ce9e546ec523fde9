/* SPDX-License-Identifier: BSD-2-Clause */
/* See talk.h. A frame: "VPRF", version (2 bytes), length (2 bytes), both in network order, JSON. */
#include "tools/perf/talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

#define HEAD_BYTES  8
#define FRAME_MAX   65535u
#define NO_DEADLINE 0
static const char magic[4] = {'V', 'P', 'R', 'F'};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool refuse(struct perf_talk *t, const char *what)
{
	snprintf(t->why, sizeof(t->why), "%s", what);
	return false;
}

static void tune(int fd)
{
	int one = 1, idle = 5, every = 2, probes = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static int act_listen(int fd, const struct addrinfo *a)
{
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 8);
}

static int act_connect(int fd, const struct addrinfo *a)
{
	return connect(fd, a->ai_addr, a->ai_addrlen);
}

/* The first address on which act succeeds. */
static int try_all(const char *host, const char *port, int (*act)(int, const struct addrinfo *),
		   char why[PERF_WHY_BYTES])
{
	struct addrinfo hints = {.ai_flags = host ? 0 : AI_PASSIVE, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	int r = getaddrinfo(host, port, &hints, &list), fd = -1, err = 0;

	if (r) {
		snprintf(why, PERF_WHY_BYTES, "%s port %s: %s", host ? host : "*", port,
			 gai_strerror(r));
		return -1;
	}
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd < 0 || !act(fd, a))
			continue;
		err = errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		snprintf(why, PERF_WHY_BYTES, "cannot %s %s port %s: %s%s",
			 act == act_connect ? "connect to" : "listen on", host ? host : "*", port,
			 strerror(err ? err : errno),
			 err == ECONNREFUSED ? " (is `verbena perf ... --server` running there?)"
					     : "");
	return fd;
}

int vrb_perf_tcp_listen(const char *host, const char *port, char why[PERF_WHY_BYTES])
{
	return try_all(host, port, act_listen, why);
}

int vrb_perf_tcp_connect(const char *host, const char *port, char why[PERF_WHY_BYTES])
{
	int fd = try_all(host, port, act_connect, why);

	if (fd >= 0)
		tune(fd);
	return fd;
}

int vrb_perf_tcp_accept(int listener, volatile sig_atomic_t *stop, char why[PERF_WHY_BYTES])
{
	int fd;

	do
		fd = *stop ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (fd < 0 && !*stop && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		snprintf(why, PERF_WHY_BYTES, "%s", *stop ? "interrupted" : strerror(errno));
	else
		tune(fd);
	return fd;
}

int vrb_perf_tcp_port(int fd)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &len);
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
					     : ((struct sockaddr_in *)&a)->sin_port);
}

void vrb_perf_tcp_peer(int fd, char *out, size_t size)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(a);

	if (getpeername(fd, (struct sockaddr *)&a, &len) ||
	    getnameinfo((struct sockaddr *)&a, len, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST))
		snprintf(out, size, "?");
}

bool vrb_perf_tell(struct perf_talk *t, json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT), *at;
	size_t len = text ? strlen(text) : FRAME_MAX + 1, left;
	bool ok = len <= FRAME_MAX;

	json_decref(message);
	at = ok ? malloc(HEAD_BYTES + len) : NULL;
	if (!at) {
		free(text);
		return refuse(t, "a message does not fit into a frame");
	}
	memcpy(at, magic, sizeof(magic));
	vrb_put_be16((uint8_t *)at + 4, PERF_PROTOCOL);
	vrb_put_be16((uint8_t *)at + 6, (uint32_t)len);
	memcpy(at + HEAD_BYTES, text, len);
	free(text);
	left = HEAD_BYTES + len;
	for (text = at; left && ok;) {
		ssize_t n = send(t->fd, text, left, MSG_NOSIGNAL);

		ok = n > 0 || (n < 0 && errno == EINTR);
		text += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	free(at);
	return ok || refuse(t, "the other end has closed the connection");
}

/* Waits for bytes, the wake-up, or the deadline. */
static bool wait_bytes(struct perf_talk *t, int64_t deadline_ms)
{
	struct pollfd p[2] = {{.fd = t->fd, .events = POLLIN},
			      {.fd = t->watching ? t->wake_fd : -1, .events = POLLIN}};

	for (;;) {
		int64_t left = deadline_ms == NO_DEADLINE ? -1 : deadline_ms - now_ms();
		int r;

		if (deadline_ms != NO_DEADLINE && left <= 0)
			return refuse(t, "the other end does not answer");
		r = poll(p, 2, (int)left);
		if (r > 0)
			return p[0].revents || refuse(t, "the watch has ended");
		if (r < 0 && errno != EINTR)
			return refuse(t, strerror(errno));
		if (t->stop && *t->stop && !t->watching)
			return refuse(t, "interrupted");
	}
}

static bool get(struct perf_talk *t, void *to, size_t len, int64_t deadline_ms)
{
	char *at = to;

	while (len) {
		ssize_t n;

		if (!wait_bytes(t, deadline_ms))
			return false;
		n = recv(t->fd, at, len, 0);
		if (n == 0)
			return refuse(t, "the other end has closed the connection");
		if (n < 0 && errno != EINTR)
			return refuse(t, strerror(errno));
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

json_t *vrb_perf_hear(struct perf_talk *t, unsigned seconds)
{
	int64_t deadline = seconds ? now_ms() + (int64_t)seconds * 1000 : NO_DEADLINE;
	uint8_t head[HEAD_BYTES];
	json_t *message = NULL;
	uint16_t version;
	size_t len;
	char *text;

	if (!get(t, head, sizeof(head), deadline))
		return NULL;
	version = vrb_get_be16(head + 4);
	if (memcmp(head, magic, sizeof(magic))) {
		refuse(t, "the other end is no `verbena perf`");
		return NULL;
	}
	if (version != PERF_PROTOCOL) {
		snprintf(t->why, sizeof(t->why),
			 "the other end is a `verbena perf` of another version: it speaks protocol "
			 "%u, this one %u; use the same on both hosts",
			 version, PERF_PROTOCOL);
		return NULL;
	}
	len = vrb_get_be16(head + 6);
	text = malloc(len + 1);
	if (text && get(t, text, len, deadline)) {
		message = json_loadb(text, len, 0, NULL);
		if (!message || !json_is_object(message)) {
			json_decref(message);
			message = NULL;
			refuse(t, "the other end says what is no JSON object");
		}
	}
	free(text);
	return message;
}

/* ---- the watch */

static void *watch(void *arg)
{
	struct perf_talk *t = arg, own = {.fd = t->fd, .wake_fd = t->wake_fd, .watching = true};

	t->said = vrb_perf_hear(&own, 0);
	memcpy(t->gone_why, own.why, sizeof(t->gone_why));
	if (!t->said && atomic_load(&t->ending))
		return NULL;
	if (!t->said || json_object_get(t->said, "failed")) {
		atomic_store(&t->gone, true);
		if (t->on_gone)
			t->on_gone(t->arg);
	}
	atomic_store(&t->spoken, true);
	return NULL;
}

bool vrb_perf_watch(struct perf_talk *t, void (*on_gone)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	t->said = NULL;
	t->on_gone = on_gone;
	t->arg = arg;
	atomic_store(&t->spoken, false);
	atomic_store(&t->gone, false);
	atomic_store(&t->ending, false);
	t->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (t->wake_fd < 0)
		return refuse(t, strerror(errno));
	t->watching = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t->thread, NULL, watch, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		return true;
	t->watching = false;
	close(t->wake_fd);
	return refuse(t, strerror(err));
}

void vrb_perf_watch_wait(struct perf_talk *t, unsigned seconds)
{
	struct timespec nap = {.tv_nsec = 5000000};
	int64_t until = now_ms() + (int64_t)seconds * 1000;

	while (!atomic_load(&t->spoken) && !(t->stop && *t->stop) && (!seconds || now_ms() < until))
		nanosleep(&nap, NULL);
}

json_t *vrb_perf_watch_end(struct perf_talk *t)
{
	uint64_t one = 1;

	if (!t->watching)
		return NULL;
	atomic_store(&t->ending, true);
	while (write(t->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(t->thread, NULL);
	t->watching = false;
	close(t->wake_fd);
	return t->said;
}
