/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Getting stories and printing them. What comes from a file or another process may be anything: a
 * line that is no story is passed over, what lacks a member is printed without it.
 */
#include "tools/explain_story.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/meet.h"
#include "base/verdict.h"
#include "lang/lang.h"
#include "tools/slot.h"
#include "tools/tools.h"

#define LINE_MAX_BYTES (64u << 10)
#define STORIES_MAX    4096u
#define ANSWER_S       3 /* the process may be busy, or stopped */

/* ---- which word is what */

bool vrb_story_is_qpn(const char *word, vrb_qpn *qpn)
{
	char *end;
	unsigned long v = strtoul(word, &end, 0);

	/* the upper byte is never 0; smaller numbers are statuses */
	if (*end || v <= VRB_QPN_INDEX_MASK || v > VRB_QPN_MASK || *word == '-')
		return false;
	*qpn = (vrb_qpn)v;
	return true;
}

bool vrb_story_is_file(const char *word)
{
	struct stat st;

	return !stat(word, &st) && S_ISREG(st.st_mode);
}

/* ---- lines */

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "?";
}

static bool same_qp(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "pid"), json_object_get(b, "pid")) &&
	       json_equal(json_object_get(a, "qpn"), json_object_get(b, "qpn"));
}

/* In the place of an older one of the same queue pair. */
static void add(json_t *all, json_t *story)
{
	for (size_t i = 0; i < json_array_size(all); i++) {
		if (!same_qp(json_array_get(all, i), story))
			continue;
		json_array_set_new(all, i, story);
		return;
	}
	if (json_array_size(all) < STORIES_MAX)
		json_array_append_new(all, story);
	else
		json_decref(story);
}

static json_t *read_lines(FILE *f)
{
	static char line[LINE_MAX_BYTES];
	json_t *all = json_array(), *story;

	while (fgets(line, sizeof(line), f)) {
		story = json_loads(line, 0, NULL);
		if (json_is_array(json_object_get(story, "events")))
			add(all, story);
		else
			json_decref(story);
	}
	return all;
}

json_t *vrb_story_read(const char *path)
{
	FILE *f = fopen(path, "re");
	json_t *all;

	if (!f) {
		vrb_complain("cannot read %s: %s", path, strerror(errno));
		return NULL;
	}
	all = read_lines(f);
	fclose(f);
	if (json_array_size(all))
		return all;
	vrb_complain("%s holds no story of a queue pair; VERBENA_STORY=%s or `verbena run --story "
		     "%s` makes one, when a queue pair ends or a call is refused",
		     path, path, path);
	json_decref(all);
	return NULL;
}

/* ---- asking the process */

/* The descriptor that comes with the answer, or -1. */
static int hear(int sock)
{
	struct vrb_meet_hello h;
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(sizeof(int))];
	} c = {0};
	struct iovec iov = {&h, sizeof(h)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.buf,
			   .msg_controllen = sizeof(c.buf)};
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(h))
		return -1;
	if (CMSG_FIRSTHDR(&m) && c.h.cmsg_type == SCM_RIGHTS &&
	    c.h.cmsg_len >= CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(&c.h), sizeof(fd));
	if (fd >= 0 && h.magic == VRB_MEET_MAGIC && h.type == VRB_MEET_STORY)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

json_t *vrb_story_ask(vrb_qpn qpn)
{
	const struct vrb_meet_hello ask = {.magic = VRB_MEET_MAGIC,
					   .version = VRB_MEET_VERSION,
					   .type = VRB_MEET_STORY,
					   .pid = (uint32_t)getpid(),
					   .arg = qpn};
	const struct timeval patience = {.tv_sec = ANSWER_S};
	int sock = vrb_slot_connect(qpn >> VRB_QPN_INDEX_BITS, 0, patience), fd = -1;
	json_t *all = NULL;
	FILE *f;

	if (sock < 0) {
		vrb_complain("no process of this user, in this network namespace, owns QP 0x%06x; "
			     "one that has ended leaves its stories in the file that VERBENA_STORY "
			     "named",
			     qpn);
		return NULL;
	}
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(sock, &ask, sizeof(ask), MSG_NOSIGNAL) == (ssize_t)sizeof(ask))
		fd = hear(sock);
	close(sock);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		vrb_complain("the process that owns QP 0x%06x does not answer; is it stopped, or "
			     "has it an older Verbena?",
			     qpn);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	rewind(f);
	all = read_lines(f);
	fclose(f);
	if (json_array_size(all))
		return all;
	vrb_complain("the process has no QP 0x%06x, and has not had one lately that failed", qpn);
	json_decref(all);
	return NULL;
}

/* ---- printing */

static double ms_of(const json_t *event)
{
	return json_number_value(json_object_get(event, "ms"));
}

static const struct vrb_verdict_info *info_of(const json_t *event)
{
	const char *counter = text_of(event, "verdict");

	for (int v = 1; v < VRB_N_VERDICTS; v++)
		if (!strcmp(vrb_verdict_info((enum vrb_verdict)v)->counter, counter))
			return vrb_verdict_info((enum vrb_verdict)v);
	return NULL;
}

/* The sentence in the user's language; as it was recorded where the values are missing, or the
 * verdict is of another version. */
static void print_sentence(const json_t *event)
{
	const struct vrb_verdict_info *info = info_of(event);
	const json_t *values = json_object_get(event, "values");
	struct vrb_report r = {0};
	char text[512];

	if (!info || json_array_size(values) != sizeof(r.val) / sizeof(r.val[0]) ||
	    vrb_tr(info->sentence) == info->sentence) {
		printf("%s: %s\n", text_of(event, "verdict"), text_of(event, "text"));
		return;
	}
	while (vrb_verdict_info(r.verdict) != info)
		r.verdict++;
	for (size_t i = 0; i < json_array_size(values); i++)
		r.val[i] = (uint64_t)json_integer_value(json_array_get(values, i));
	vrb_verdict_format_in(text, sizeof(text), &r, vrb_tr);
	printf("%s: %s\n", info->counter, text);
}

static void print_event(const json_t *event)
{
	json_int_t n = json_integer_value(json_object_get(event, "n"));

	printf("  %12.3f ms  ", ms_of(event));
	print_sentence(event);
	if (n > 1)
		printf(vrb_tr("  %12s     %lld times, the last at %.3f ms\n"), "", (long long)n,
		       json_number_value(json_object_get(event, "to_ms")));
}

/* What is known of the reason behind the end: a later verdict of its family says more. */
static const json_t *reason_of(const json_t *story)
{
	const json_t *end = json_object_get(story, "end"), *event, *found = end;
	size_t i;

	if (strcmp(text_of(end, "verdict"), "retry_exc"))
		return found;
	json_array_foreach(json_object_get(story, "events"), i, event)
	{
		const struct vrb_verdict_info *info = info_of(event);

		if (info && info->kind == VRB_KIND_REMOTE && ms_of(event) >= ms_of(end) &&
		    strcmp(info->counter, "retry_exc"))
			found = event;
	}
	return found;
}

static void print_end(const json_t *story)
{
	const json_t *end = json_object_get(story, "end"), *why;
	const struct vrb_verdict_info *info;

	if (!end) {
		puts(vrb_tr("  Nothing has ended it."));
		return;
	}
	why = reason_of(story);
	printf(vrb_tr("  What ended it, at %.3f ms:\n    "), ms_of(end));
	print_sentence(end);
	if (why != end) {
		fputs(vrb_tr("  The reason:\n    "), stdout);
		print_sentence(why);
	}
	info = info_of(why);
	if (info && strcmp(info->hint, "-"))
		printf(vrb_tr("  What to do:\n    %s\n"), vrb_tr(info->hint));
}

void vrb_story_print(const json_t *story)
{
	const json_t *events = json_object_get(story, "events"), *event;
	json_int_t ever = json_integer_value(json_object_get(story, "events_ever"));
	size_t i, n = json_array_size(events);

	printf(vrb_tr("QP %s (%s, peer %s) of %s, process %lld: %s\n"), text_of(story, "qpn"),
	       text_of(story, "type"), text_of(story, "peer_qpn"), text_of(story, "program"),
	       (long long)json_integer_value(json_object_get(story, "pid")),
	       text_of(story, "state"));
	print_end(story);
	fputs(vrb_tr("  What happened, counted from when it was made"), stdout);
	if (ever > (json_int_t)n)
		printf(vrb_tr(" (the last %zu of %lld)"), n, (long long)ever);
	puts(":");
	json_array_foreach(events, i, event)
	{
		print_event(event);
	}
}
