/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As much HTTP/1.0 as a scrape needs: one request by a connection, its head read up to HEAD_MAX,
 * one answer, the end. Nothing here waits for a client: a slow one has SECONDS for all of it, and
 * of more than CLIENTS the oldest goes.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "tools/metrics.h"

#define CLIENTS	 32u
#define HEAD_MAX 8192u
#define SECONDS	 10
#define FRESH_NS (100 * VRB_NS_PER_MS)
#define TYPE	 "text/plain; version=0.0.4; charset=utf-8"
#define PLAIN	 "text/plain; charset=utf-8"

struct client {
	int fd;
	vrb_ns until;
	char head[HEAD_MAX];
	size_t n; /* of head */
	char *out;
	size_t size, sent; /* of out; size 0: the request is still to come */
	bool closing;	   /* our half is; what still comes is thrown away */
};

struct server {
	const struct vrb_http *h;
	struct client *client[CLIENTS]; /* oldest first */
	uint32_t n;
	char *text; /* the last metrics */
	size_t text_size;
	vrb_ns made_at;
};

static vrb_ns now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vrb_ns)t.tv_sec * VRB_NS_PER_S + (vrb_ns)t.tv_nsec;
}

/* ---- answers */

static bool refresh(struct server *s)
{
	size_t size = 0;
	char *text = NULL;
	bool made;
	FILE *f;

	if (s->text && now_ns() - s->made_at < FRESH_NS)
		return true;
	f = open_memstream(&text, &size);
	if (!f)
		return false;
	made = s->h->make(f, s->h->arg);
	if (fclose(f) || !made) {
		free(text);
		return false;
	}
	free(s->text);
	s->text = text;
	s->text_size = size;
	s->made_at = now_ns();
	return true;
}

struct answer {
	const char *status, *type, *more, *body;
	size_t size;
	bool head_only;
};

static void put_answer(struct client *c, const struct answer *a)
{
	FILE *f = open_memstream(&c->out, &c->size);

	if (!f)
		return;
	fprintf(f,
		"HTTP/1.0 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"%sConnection: close\r\n\r\n",
		a->status, a->type, a->size, a->more ? a->more : "");
	if (!a->head_only)
		fwrite(a->body, 1, a->size, f);
	if (fclose(f)) {
		free(c->out);
		c->out = NULL;
		c->size = 0;
	}
}

static void put_words(struct client *c, const char *status, const char *more, const char *words)
{
	put_answer(c, &(struct answer){.status = status,
				       .type = PLAIN,
				       .more = more,
				       .body = words,
				       .size = strlen(words)});
}

/* The first line of the head: method, path and version, cut off at blanks. */
static bool split(char *head, char **method, char **path)
{
	char *save = NULL, *version, *end = strpbrk(head, "\r\n");

	if (end)
		*end = '\0';
	*method = strtok_r(head, " ", &save);
	*path = strtok_r(NULL, " ", &save);
	version = strtok_r(NULL, " ", &save);
	if (!*method || !*path || !version || strncmp(version, "HTTP/1.", 7))
		return false;
	(*path)[strcspn(*path, "?#")] = '\0';
	return true;
}

static void answer(struct server *s, struct client *c)
{
	char *method, *path;
	bool head_only;

	if (!split(c->head, &method, &path)) {
		put_words(c, "400 Bad Request", NULL, "that is no HTTP request\n");
		return;
	}
	head_only = !strcmp(method, "HEAD");
	if (strcmp(method, "GET") && !head_only)
		put_words(c, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET only\n");
	else if (!strcmp(path, "/"))
		put_words(c, "200 OK", NULL, "verbena metrics: GET /metrics\n");
	else if (strcmp(path, "/metrics"))
		put_words(c, "404 Not Found", NULL, "only /metrics is here\n");
	else if (!refresh(s))
		put_words(c, "503 Service Unavailable", NULL, "no memory\n");
	else
		put_answer(c, &(struct answer){.status = "200 OK",
					       .type = TYPE,
					       .body = s->text,
					       .size = s->text_size,
					       .head_only = head_only});
}

/* ---- clients */

static void drop(struct server *s, uint32_t i)
{
	struct client *c = s->client[i];

	close(c->fd);
	free(c->out);
	free(c);
	s->n--;
	memmove(&s->client[i], &s->client[i + 1], (s->n - i) * sizeof(s->client[0]));
}

static void take(struct server *s)
{
	int fd = accept4(s->h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (s->n == CLIENTS)
		drop(s, 0);
	c->fd = fd;
	c->until = now_ns() + SECONDS * VRB_NS_PER_S;
	s->client[s->n++] = c;
}

static bool head_is_whole(const struct client *c)
{
	return strstr(c->head, "\r\n\r\n") || strstr(c->head, "\n\n");
}

/* False: the client is done with, or gone. */
static bool hear(struct server *s, struct client *c)
{
	ssize_t got = recv(c->fd, c->head + c->n, sizeof(c->head) - 1 - c->n, 0);

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	c->n += (size_t)got;
	c->head[c->n] = '\0';
	if (head_is_whole(c))
		answer(s, c);
	else if (c->n == sizeof(c->head) - 1)
		put_words(c, "431 Request Header Fields Too Large", NULL,
			  "the request is too long\n");
	else
		return true;
	return c->size > 0;
}

static bool say(struct client *c)
{
	ssize_t n = send(c->fd, c->out + c->sent, c->size - c->sent, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->sent += (size_t)n;
	if (c->sent == c->size) {
		/* a close with bytes unread would be a reset, and might overtake the answer */
		shutdown(c->fd, SHUT_WR);
		c->closing = true;
	}
	return true;
}

static bool throw_away(struct client *c)
{
	char rest[1024];
	ssize_t n = recv(c->fd, rest, sizeof(rest), 0);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool step(struct server *s, struct client *c)
{
	if (c->closing)
		return throw_away(c);
	return c->size ? say(c) : hear(s, c);
}

/* ---- the loop */

static void wait_for(struct server *s, struct pollfd *p)
{
	const struct timespec t = {.tv_sec = 1};
	vrb_ns now;

	p[0] = (struct pollfd){.fd = s->h->fd, .events = POLLIN};
	for (uint32_t i = 0; i < s->n; i++) {
		const struct client *c = s->client[i];

		p[i + 1] = (struct pollfd){.fd = c->fd,
					   .events = c->size && !c->closing ? POLLOUT : POLLIN};
	}
	if (ppoll(p, s->n + 1, s->n ? &t : NULL, s->h->open) < 0)
		for (uint32_t i = 0; i <= s->n; i++)
			p[i].revents = 0;
	now = now_ns();
	/* from the end, since places move */
	for (uint32_t i = s->n; i-- > 0;)
		if ((p[i + 1].revents && !step(s, s->client[i])) || now >= s->client[i]->until)
			drop(s, i);
	if (p[0].revents)
		take(s);
}

int vrb_http_serve(const struct vrb_http *h)
{
	struct server *s = calloc(1, sizeof(*s));
	struct pollfd p[CLIENTS + 1];

	if (!s)
		return -ENOMEM;
	s->h = h;
	while (!*h->stop)
		wait_for(s, p);
	while (s->n)
		drop(s, 0);
	free(s->text);
	free(s);
	return 0;
}
