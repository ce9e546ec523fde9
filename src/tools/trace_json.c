/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace in the trace event format of Chrome, which Perfetto reads. A process is one there, too; a
 * queue pair is a thread of it, with its packets as instants; a work request is a slice from its
 * post to its poll, cut into what it waited for: "queued" until it is fetched, "under way" until
 * the peer has answered, "answered" until its completion is there, "in the CQ" until it is polled.
 * A request without a completion ends with its answer, or with its last packet where there is none.
 */
#include "tools/trace_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "wire/opcode.h"

#define PLACES 32768u /* more than a queue holds */
#define HEADS  1024u

enum stage { NONE, QUEUED, UNDER_WAY, ANSWERED, IN_CQ };
static const char *const stage_name[] = {"", "queued", "under way", "answered", "in the CQ"};
static const char *const recv_name[] = {"", "posted", "arriving", "arriving", "in the CQ"};

/* One of the two queues of a queue pair. */
struct queue {
	struct queue *next;
	uint32_t pid, qpn;
	bool recv, has_answers;
	struct place {
		uint8_t stage, signaled, op;
		uint32_t len;
	} at[PLACES];
};

struct json {
	FILE *f;
	uint64_t first_ns;
	bool any;
	struct queue *head[HEADS];
};

/* ---- events */

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void separate(struct json *j)
{
	fputs(j->any ? ",\n" : "\n", j->f);
	j->any = true;
}

/* All that events have in common; the caller adds to it and closes it. */
static void begin(struct json *j, const char *phase, const char *name, uint32_t pid,
		  const struct vrb_trace_rec *r)
{
	uint64_t t = r->time_ns - j->first_ns;

	separate(j);
	fprintf(j->f,
		"{\"ph\":\"%s\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03u",
		phase, name, pid, r->qpn, t / 1000, (unsigned)(t % 1000));
}

static void put_id(struct json *j, uint32_t pid, const struct vrb_trace_rec *r)
{
	fprintf(j->f, ",\"cat\":\"work request\",\"id\":\"%u.0x%06x.%s%u\"", pid, r->qpn,
		r->flags & VRB_TRACE_RECV ? "recv" : "send", r->index);
}

static void name_thread(struct json *j, uint32_t pid, const struct vrb_trace_rec *r)
{
	separate(j);
	fprintf(j->f,
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,"
		"\"args\":{\"name\":\"QP 0x%06x %s\"}}",
		pid, r->qpn, r->qpn, vrb_trace_name('t', r->op));
}

static void name_process(struct json *j, const struct vrb_trace_part *p)
{
	separate(j);
	fprintf(j->f, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":",
		p->head.pid);
	put_string(j->f, p->head.comm);
	fprintf(j->f, ",\"records\":%zu,\"lost\":%" PRIu64 "}}", p->n, p->head.n_lost);
}

/* ---- lives */

static struct queue *find(struct json *j, uint32_t pid, const struct vrb_trace_rec *r, bool recv)
{
	struct queue **head = &j->head[(pid * 31 + r->qpn * 2 + recv) % HEADS], *q;

	for (q = *head; q; q = q->next)
		if (q->pid == pid && q->qpn == r->qpn && q->recv == recv)
			return q;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	*q = (struct queue){.next = *head, .pid = pid, .qpn = r->qpn, .recv = recv};
	q->has_answers = true;
	*head = q;
	return q;
}

static void end_stage(struct json *j, const struct queue *q, const struct vrb_trace_rec *r)
{
	uint8_t old = q->at[r->index % PLACES].stage;

	begin(j, "e", (q->recv ? recv_name : stage_name)[old], q->pid, r);
	put_id(j, q->pid, r);
	fputs("}", j->f);
}

static void go_to(struct json *j, struct queue *q, const struct vrb_trace_rec *r, enum stage stage)
{
	uint8_t *now = &q->at[r->index % PLACES].stage;

	if (*now == NONE || *now >= stage)
		return;
	end_stage(j, q, r);
	*now = (uint8_t)stage;
	begin(j, "b", (q->recv ? recv_name : stage_name)[stage], q->pid, r);
	put_id(j, q->pid, r);
	fputs("}", j->f);
}

static void begin_life(struct json *j, const char *phase, const struct queue *q,
		       const struct vrb_trace_rec *r)
{
	const struct place *at = &q->at[r->index % PLACES];
	char name[64];

	snprintf(name, sizeof(name), "%s %u", q->recv ? "RECV" : vrb_trace_name('o', at->op),
		 at->len);
	begin(j, phase, name, q->pid, r);
	put_id(j, q->pid, r);
}

static void post(struct json *j, struct queue *q, const struct vrb_trace_rec *r)
{
	q->at[r->index % PLACES] =
		(struct place){.stage = QUEUED,
			       .signaled = r->flags & (VRB_TRACE_SIGNALED | VRB_TRACE_RECV),
			       .op = r->op,
			       .len = r->len};
	begin_life(j, "b", q, r);
	fprintf(j->f, ",\"args\":{\"wr_id\":%" PRIu64 ",\"len\":%u,\"signaled\":%s}}", r->wr_id,
		r->len, r->flags & VRB_TRACE_SIGNALED ? "true" : "false");
	begin(j, "b", (q->recv ? recv_name : stage_name)[QUEUED], q->pid, r);
	put_id(j, q->pid, r);
	fputs("}", j->f);
}

/* status: of its completion, or NULL */
static void end(struct json *j, struct queue *q, const struct vrb_trace_rec *r, const char *status)
{
	uint8_t *now = &q->at[r->index % PLACES].stage;

	if (*now == NONE)
		return;
	end_stage(j, q, r);
	*now = NONE;
	begin_life(j, "e", q, r);
	if (status)
		fprintf(j->f, ",\"args\":{\"status\":\"%s\"}", status);
	fputs("}", j->f);
}

static void on_sent(struct json *j, struct queue *q, const struct vrb_trace_rec *r)
{
	struct vrb_opcode op = {r->op};

	if (!q->recv && !q->has_answers && vrb_op_has(op, VRB_OPF_LAST) &&
	    !q->at[r->index % PLACES].signaled)
		end(j, q, r, NULL);
}

static void live(struct json *j, struct queue *q, const struct vrb_trace_rec *r)
{
	switch ((enum vrb_trace_kind)r->kind) {
	case VRB_TRACE_POST:
		post(j, q, r);
		break;
	case VRB_TRACE_FETCH:
		go_to(j, q, r, UNDER_WAY);
		break;
	case VRB_TRACE_GOT:
		if (q->recv)
			go_to(j, q, r, UNDER_WAY);
		break;
	case VRB_TRACE_SENT:
		on_sent(j, q, r);
		break;
	case VRB_TRACE_ACK:
		if (q->at[r->index % PLACES].signaled)
			go_to(j, q, r, ANSWERED);
		else
			end(j, q, r, NULL);
		break;
	case VRB_TRACE_CQE:
		go_to(j, q, r, IN_CQ);
		break;
	case VRB_TRACE_POLL:
		end(j, q, r, vrb_trace_status_name(r));
		break;
	case VRB_TRACE_NONE:
	case VRB_TRACE_QP:
	case VRB_TRACE_STATE:
	case VRB_TRACE_VERDICT:
		break;
	}
}

/* ---- instants */

static void instant(struct json *j, uint32_t pid, const struct vrb_trace_rec *r, const char *name)
{
	begin(j, "i", name, pid, r);
	fprintf(j->f, ",\"s\":\"t\",\"args\":{\"event\":\"%s\"", vrb_trace_kind_name(r));
	if (r->kind == VRB_TRACE_SENT || r->kind == VRB_TRACE_GOT)
		fprintf(j->f, ",\"psn\":%u,\"len\":%u,\"by\":\"%s\",\"again\":%s", r->psn, r->len,
			r->flags & VRB_TRACE_WIRE  ? "wire"
			: r->flags & VRB_TRACE_SHM ? "shm"
						   : "",
			r->flags & VRB_TRACE_AGAIN ? "true" : "false");
	if (r->code >> 5 && r->kind != VRB_TRACE_STATE)
		fprintf(j->f, ",\"nak\":\"%s\"", vrb_trace_name('n', r->code));
	if (r->flags & VRB_TRACE_HAS_WR)
		fprintf(j->f, ",\"wr_id\":%" PRIu64, r->wr_id);
	fputs("}}", j->f);
}

static void put(struct json *j, uint32_t pid, const struct vrb_trace_rec *r)
{
	bool recv = r->flags & VRB_TRACE_RECV;
	struct queue *q = find(j, pid, r, recv);
	bool has_life = q && r->flags & VRB_TRACE_HAS_WR && r->index != VRB_TRACE_NO_INDEX;

	if (r->kind == VRB_TRACE_QP) {
		name_thread(j, pid, r);
		if (q)
			q->has_answers = r->op == 2; /* RC */
	} else if (r->kind == VRB_TRACE_SENT || r->kind == VRB_TRACE_GOT) {
		instant(j, pid, r, vrb_trace_packet_name(r));
	} else if (r->kind == VRB_TRACE_VERDICT) {
		instant(j, pid, r, vrb_trace_name('r', r->arg));
	} else if (r->kind == VRB_TRACE_STATE) {
		instant(j, pid, r, vrb_trace_name('s', r->code));
	} else if (!has_life) {
		instant(j, pid, r, vrb_trace_op_name(r));
	}
	if (has_life)
		live(j, q, r);
}

void vrb_trace_write_json(struct vrb_trace_set *s, FILE *f)
{
	struct json *j = calloc(1, sizeof(*j));
	const struct vrb_trace_rec *r;
	struct vrb_trace_part *p;

	if (!j)
		return;
	j->f = f;
	j->first_ns = s->first_ns;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", f);
	for (size_t i = 0; i < s->n_parts; i++)
		name_process(j, &s->part[i]);
	while ((r = vrb_trace_next(s, &p)))
		put(j, p->head.pid, r);
	fprintf(f, "\n],\"otherData\":{\"records\":%" PRIu64 ",\"lost\":%" PRIu64 "}}\n",
		s->n_records, s->n_lost);
	for (size_t i = 0; i < HEADS; i++)
		while (j->head[i]) {
			struct queue *next = j->head[i]->next;

			free(j->head[i]);
			j->head[i] = next;
		}
	free(j);
}
