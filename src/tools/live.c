/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking. All slots are connected to first, which never waits; then whatever answers come are read,
 * until all are there or the time is over. A process with many queue pairs is asked again for the
 * rest, by a connection each.
 */
#include "tools/live.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/meet.h"
#include "tools/slot.h"

#define PATIENCE_NS VRB_NS_PER_S /* for all of them together */
#define ROUNDS_MAX  160u	 /* questions to one process; 65,535 queue pairs need 128 */
#define ANSWER_FDS  2

struct question {
	int sock; /* -1: answered, or given up */
	uint32_t rounds;
};

static vrb_ns now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vrb_ns)t.tv_sec * VRB_NS_PER_S + (vrb_ns)t.tv_nsec;
}

/* Of one that says nothing itself. */
static void read_name(struct vrb_live_proc *p)
{
	char path[48];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)p->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(p->program, sizeof(p->program), f))
		p->program[0] = '\0';
	p->program[strcspn(p->program, "\n")] = '\0';
	vrb_live_clean(p->program, sizeof(p->program));
	fclose(f);
}

/* A stopped process would keep everybody waiting. */
static bool is_stopped(pid_t pid)
{
	char path[48], line[256], *after;
	bool stopped = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	/* pid (name) state; the name may hold anything */
	if (fgets(line, sizeof(line), f) && (after = strrchr(line, ')')) && after[1] == ' ')
		stopped = after[2] == 'T' || after[2] == 't';
	fclose(f);
	return stopped;
}

static bool ask(int sock, uint32_t from)
{
	const struct vrb_meet_hello h = {.magic = VRB_MEET_MAGIC,
					 .version = VRB_MEET_VERSION,
					 .type = VRB_MEET_ROWS,
					 .pid = (uint32_t)getpid(),
					 .arg = from};

	return send(sock, &h, sizeof(h), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(h);
}

/* Both descriptors of an answer; false: it is none, and nothing is open. */
static bool hear(int sock, int *fds)
{
	struct vrb_meet_hello h;
	int n = vrb_slot_hear(sock, &h, fds, ANSWER_FDS, MSG_DONTWAIT);

	if (n == ANSWER_FDS && h.magic == VRB_MEET_MAGIC && h.type == VRB_MEET_ROWS)
		return true;
	while (n)
		close(fds[--n]);
	return false;
}

/* ---- one process */

static void settle(struct vrb_live_proc *p, struct question *q, enum vrb_live_answer answer)
{
	if (q->sock >= 0)
		close(q->sock);
	q->sock = -1;
	p->answer = answer;
}

/* The owner of a slot, if there is one that we want; false: none. */
static bool begin(struct vrb_live_proc *p, struct question *q, uint32_t slot, pid_t only)
{
	pid_t owner = 0;

	*p = (struct vrb_live_proc){.slot = slot, .answer = VRB_LIVE_BUSY};
	*q = (struct question){.sock = vrb_slot_call(slot, &owner)};
	if ((q->sock < 0 && q->sock != -EAGAIN) || (only && owner != only)) {
		if (q->sock >= 0)
			close(q->sock);
		return false;
	}
	p->pid = owner;
	if (q->sock < 0) /* its backlog is full: it has not looked for long */
		settle(p, q, VRB_LIVE_BUSY);
	else if (is_stopped(owner))
		settle(p, q, VRB_LIVE_STOPPED);
	else if (!ask(q->sock, 0))
		settle(p, q, VRB_LIVE_OTHER);
	return true;
}

/* The next rows of the same process. */
static void go_on(struct vrb_live_proc *p, struct question *q, uint32_t from)
{
	pid_t owner = 0;

	close(q->sock);
	q->sock = vrb_slot_call(p->slot, &owner);
	if (q->sock < 0 || owner != p->pid || ++q->rounds > ROUNDS_MAX || !ask(q->sock, from))
		settle(p, q, VRB_LIVE_YES); /* with what there is */
}

static void on_answer(struct vrb_live_proc *p, struct question *q)
{
	uint32_t next = 0;
	int fds[ANSWER_FDS];

	if (!hear(q->sock, fds)) {
		settle(p, q, q->rounds ? VRB_LIVE_YES : VRB_LIVE_OTHER);
		return;
	}
	if (!vrb_live_read(p, fds[0], fds[1], &next))
		settle(p, q, VRB_LIVE_OTHER);
	else if (next)
		go_on(p, q, next);
	else
		settle(p, q, VRB_LIVE_YES);
	close(fds[0]);
	close(fds[1]);
}

/* ---- all of them */

/* Until all have answered, or the time is over. */
static void collect(struct vrb_live *l, struct question *q, vrb_ns until)
{
	struct pollfd poll_for[VRB_SLOTS];
	uint32_t at[VRB_SLOTS];

	for (;;) {
		vrb_ns now = now_ns();
		nfds_t n = 0;

		for (uint32_t i = 0; i < l->n; i++) {
			if (q[i].sock < 0)
				continue;
			at[n] = i;
			poll_for[n++] = (struct pollfd){.fd = q[i].sock, .events = POLLIN};
		}
		if (!n || now >= until ||
		    poll(poll_for, n, (int)((until - now) / VRB_NS_PER_MS + 1)) < 0)
			return;
		for (nfds_t k = 0; k < n; k++)
			if (poll_for[k].revents)
				on_answer(&l->proc[at[k]], &q[at[k]]);
	}
}

bool vrb_live_ask(struct vrb_live *l, pid_t pid)
{
	struct question *q = calloc(VRB_SLOTS, sizeof(*q));
	vrb_ns begun = now_ns();

	*l = (struct vrb_live){.proc = calloc(VRB_SLOTS, sizeof(*l->proc))};
	if (!q || !l->proc) {
		free(q);
		vrb_live_free(l);
		return false;
	}
	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++)
		l->n += begin(&l->proc[l->n], &q[l->n], slot, pid);
	collect(l, q, begun + PATIENCE_NS);
	for (uint32_t i = 0; i < l->n; i++) {
		/* of many queue pairs some have come, which is no picture */
		if (q[i].sock >= 0)
			settle(&l->proc[i], &q[i], VRB_LIVE_BUSY);
		if (l->proc[i].answer != VRB_LIVE_YES)
			read_name(&l->proc[i]);
		vrb_live_sort(&l->proc[i]);
	}
	l->took_ns = now_ns() - begun;
	free(q);
	return true;
}

void vrb_live_free(struct vrb_live *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		free(l->proc[i].qp);
		free(l->proc[i].cq);
		free(l->proc[i].mr);
	}
	free(l->proc);
	*l = (struct vrb_live){0};
}
