/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A story as a line of JSON, and where it goes: the file that VERBENA_STORY names, appended by one
 * write so that several processes may share it, or a memfd for a tool that asks. Times are
 * milliseconds since the queue pair was made. Sentences are ours and hold nothing to escape but
 * quotes and backslashes; the process's name is the program's.
 */
#include "hca/story.h"
#include "hca/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/names.h"

#define LINE_MAX_BYTES (48u << 10)
#define TOLD_MAX       (8u << 20) /* bytes that one question gets */
#define MODE	       0600

/* ---- the line */

static void put_string(struct vrb_text *t, const char *s)
{
	vrb_text_char(t, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			vrb_text_char(t, '\\');
		vrb_text_char(t, (unsigned char)*s < ' ' || *s & 0x80 ? '?' : *s);
	}
	vrb_text_char(t, '"');
}

static void put_ms(struct vrb_text *t, const char *key, vrb_ns ns)
{
	uint64_t us = ns / VRB_NS_PER_US;

	vrb_text_str(t, key);
	vrb_text_dec(t, us / 1000);
	vrb_text_char(t, '.');
	for (uint64_t unit = 100; unit; unit /= 10)
		vrb_text_char(t, (char)('0' + us / unit % 10));
}

/* As the signed number that readers of JSON keep whole. */
static void put_value(struct vrb_text *t, uint64_t v)
{
	if (v > INT64_MAX) {
		vrb_text_char(t, '-');
		v = -v;
	}
	vrb_text_dec(t, v);
}

static void put_event(struct vrb_text *t, const struct vrb_story *s, const struct vrb_event *ev)
{
	char text[512];

	vrb_verdict_format(text, sizeof(text), &ev->report);
	put_ms(t, "{\"ms\":", ev->first - s->made);
	put_ms(t, ",\"to_ms\":", ev->last - s->made);
	vrb_text_str(t, ",\"n\":");
	vrb_text_dec(t, ev->n);
	vrb_text_str(t, ",\"verdict\":");
	put_string(t, vrb_verdict_info(ev->report.verdict)->counter);
	vrb_text_str(t, ",\"text\":");
	put_string(t, text);
	/* for who tells it in another language */
	vrb_text_str(t, ",\"values\":[");
	for (unsigned i = 0; i < sizeof(ev->report.val) / sizeof(ev->report.val[0]); i++) {
		if (i)
			vrb_text_char(t, ',');
		put_value(t, ev->report.val[i]);
	}
	vrb_text_str(t, "]}");
}

static void put_head(struct vrb_text *t, const struct vrb_engine *e, const struct vrb_story *s)
{
	char comm[sizeof(e->stats->comm) + 1] = "";

	memcpy(comm, e->stats->comm, sizeof(e->stats->comm));
	vrb_text_str(t, "{\"verbena\":");
	put_string(t, VRB_VERSION);
	vrb_text_str(t, ",\"pid\":");
	vrb_text_dec(t, (uint64_t)getpid());
	vrb_text_str(t, ",\"program\":");
	put_string(t, comm);
	vrb_text_str(t, ",\"qpn\":\"");
	vrb_text_hex(t, s->qpn, 6);
	vrb_text_str(t, "\",\"peer_qpn\":\"");
	vrb_text_hex(t, s->dqpn, 6);
	vrb_text_str(t, "\",\"type\":\"");
	(void)vrb_name_put(t, 't', s->type);
	vrb_text_str(t, "\",\"state\":\"");
	(void)vrb_name_put(t, 's', s->state);
	vrb_text_str(t, "\",\"events_ever\":");
	vrb_text_dec(t, s->n);
}

/* The whole line with its newline; 0: it does not fit, which no story reaches. */
static size_t put_line(char *out, const struct vrb_engine *e, struct vrb_story *s)
{
	uint32_t first = s->n > VRB_STORY_EVENTS ? s->n - VRB_STORY_EVENTS : 0;
	struct vrb_text t;

	vrb_text_init(&t, out, LINE_MAX_BYTES);
	put_head(&t, e, s);
	if (s->ended) {
		vrb_text_str(&t, ",\"end\":");
		put_event(&t, s, &s->end);
	}
	vrb_text_str(&t, ",\"events\":[");
	for (uint32_t i = first; i < s->n; i++) {
		if (i > first)
			vrb_text_char(&t, ',');
		put_event(&t, s, &s->event[i % VRB_STORY_EVENTS]);
	}
	vrb_text_str(&t, "]}\n");
	return t.len + 1 < LINE_MAX_BYTES ? t.len : 0;
}

/* ---- where it goes */

struct sink {
	int fd;
	bool all;	/* also what has ended nothing */
	bool is_answer; /* to a tool: the file still wants it */
	bool failed;	/* it takes no more */
	size_t left;
};

static void write_one(struct vrb_engine *e, struct vrb_story *s, const struct vrb_hqp *q,
		      struct sink *to)
{
	static char line[LINE_MAX_BYTES]; /* under the lock */
	size_t n;

	if (q) {
		s->dqpn = q->core.dqpn;
		s->state = q->core.state;
	}
	vrb_story_lock(s);
	s->to_write = to->is_answer && s->to_write;
	n = put_line(line, e, s);
	vrb_story_unlock(s);
	to->failed = to->failed || n > to->left ||
		     vrb_tap_append(to->fd, (const uint8_t *)line, n) != (long)n;
	to->left -= to->failed ? 0 : n;
}

bool vrb_story_is_kept(const struct vrb_engine *e)
{
	return e->story_fd >= 0;
}

static void flush_one(struct vrb_engine *e, struct vrb_story *s, const struct vrb_hqp *q,
		      struct sink *to)
{
	bool due;

	if (!s)
		return;
	vrb_story_lock(s);
	due = s->to_write && (to->all || s->ended);
	vrb_story_unlock(s);
	if (due)
		write_one(e, s, q, to);
}

void vrb_story_flush(struct vrb_engine *e, bool all)
{
	struct sink to = {.fd = e->story_fd, .all = all, .left = SIZE_MAX};

	e->story_due = false;
	if (to.fd < 0)
		return;
	for (uint32_t i = 0; i <= VRB_QPN_INDEX_MASK; i++)
		if (e->qp[i])
			flush_one(e, e->qp[i]->story, e->qp[i], &to);
	for (uint32_t i = 0; i < VRB_BURIED; i++)
		flush_one(e, e->buried[i], NULL, &to);
	if (!to.failed)
		return;
	/* a full disk, or beyond a limit: the program goes on without */
	close(e->story_fd);
	e->story_fd = -1;
}

void vrb_story_open(struct vrb_engine *e)
{
	/* secure: a set-uid program writes to no file that its caller names */
	const char *path = secure_getenv("VERBENA_STORY");
	struct vrb_report r = {.verdict = VRB_V_STORY_FILE};
	struct stat st;
	int fd;

	if (!path || !*path)
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, MODE);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		e->story_fd = fd;
		return;
	}
	r.val[0] = fd < 0 ? (uint64_t)errno : EINVAL;
	vrb_hca_refuse(&r);
	if (fd >= 0)
		close(fd);
}

/* Of a queue pair that is no more, or that lives. */
static void tell_one(struct vrb_engine *e, struct vrb_story *s, const struct vrb_hqp *q,
		     struct sink *to, vrb_qpn qpn)
{
	if (s && (qpn ? s->qpn == qpn : s->n > 0))
		write_one(e, s, q, to);
}

void vrb_story_tell(struct vrb_engine *e, int sock, vrb_qpn qpn)
{
	const struct vrb_meet_hello h = {.magic = VRB_MEET_MAGIC,
					 .version = VRB_MEET_VERSION,
					 .type = VRB_MEET_STORY,
					 .slot = e->slot,
					 .pid = (uint32_t)getpid()};
	struct sink to = {.fd = memfd_create("verbena-story", MFD_CLOEXEC),
			  .is_answer = true,
			  .left = TOLD_MAX};

	if (to.fd < 0)
		return;
	for (uint32_t i = 0; i < VRB_BURIED; i++)
		tell_one(e, e->buried[i], NULL, &to, qpn);
	for (uint32_t i = 0; i <= VRB_QPN_INDEX_MASK; i++)
		if (e->qp[i])
			tell_one(e, e->qp[i]->story, e->qp[i], &to, qpn);
	(void)vrb_meet_send(sock, &h, &to.fd, 1);
	close(to.fd);
}

void vrb_story_close(struct vrb_engine *e)
{
	if (e->story_fd >= 0) {
		vrb_story_flush(e, true);
		if (e->story_fd >= 0)
			close(e->story_fd);
	}
	e->story_fd = -1;
	for (uint32_t i = 0; i < VRB_BURIED; i++) {
		free(e->buried[i]);
		e->buried[i] = NULL;
	}
}
