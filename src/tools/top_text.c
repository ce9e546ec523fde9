/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sample as lines: processes by device, queue pairs (the busiest first), regions when they are
 * asked for. Rates are per second; a dash stands for what is not known yet.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/types.h"
#include "tools/top.h"

#define CELL 24

/* ---- cells */

/* Three figures and a letter. */
static const char *human(char *out, double v)
{
	static const char letters[] = " kMGTPE";
	int i = 0;

	if (v < 0)
		return "-";
	while (v >= 999.5 && letters[i + 1]) {
		v /= 1000;
		i++;
	}
	snprintf(out, CELL, "%.*f%.1s",
		 i == 0 || v >= 99.95 ? 0
		 : v >= 9.995	      ? 1
				      : 2,
		 v, i ? &letters[i] : "");
	return out;
}

static const char *of(char *out, uint64_t used, uint64_t room)
{
	char a[CELL], b[CELL];

	if (!room)
		return "-";
	snprintf(out, CELL, "%.10s/%.10s", human(a, (double)used), human(b, (double)room));
	return out;
}

static const char *age(char *out, const struct vrb_live_proc *p, uint64_t then)
{
	uint64_t s = p->now_ns > then ? (p->now_ns - then) / VRB_NS_PER_S : 0;

	if (s < 100)
		snprintf(out, CELL, "%us", (unsigned)s);
	else if (s < 100 * 60)
		snprintf(out, CELL, "%um", (unsigned)(s / 60));
	else
		snprintf(out, CELL, "%uh", (unsigned)(s / 3600 % 1000000));
	return out;
}

/* ---- processes */

static void put_device(FILE *f, const struct vrb_live_proc *p, const struct vrb_live_proc *old,
		       uint32_t i)
{
	const struct vrb_stats_device *d = &p->page.device[i];
	char a[CELL], b[CELL], c[CELL], e[CELL], g[CELL];
	struct vrb_top_rates r;

	vrb_top_device_rates(&r, p, old, i);
	fprintf(f, "%7d %-16s%-10s%6llu%6llu%6llu%10s%9s%9s%9s%9s%9llu%8llu\n", (int)p->pid,
		p->program, d->name, (unsigned long long)d->qps, (unsigned long long)d->cqs,
		(unsigned long long)d->mrs, human(a, (double)p->registered_bytes),
		human(b, r.of[VRB_SENT]), human(c, r.of[VRB_TAKEN]), human(e, r.of[VRB_TX_BYTES]),
		human(g, r.of[VRB_RX_BYTES]), (unsigned long long)(d->retransmits + d->timeouts),
		(unsigned long long)(d->rnr_naks_sent + d->rnr_naks_received));
}

static void put_processes(FILE *f, const struct vrb_top *t)
{
	fprintf(f, "%7s %-16s%-10s%6s%6s%6s%10s%9s%9s%9s%9s%9s%8s\n", "PID", "PROGRAM", "DEVICE",
		"QPS", "CQS", "MRS", "REG BYTES", "SENT/S", "TAKEN/S", "TX B/S", "RX B/S",
		"RETRIES", "RNR");
	for (uint32_t i = 0; i < t->now->n; i++) {
		const struct vrb_live_proc *p = &t->now->proc[i];

		if (p->answer != VRB_LIVE_YES)
			fprintf(f, "%7d %-16s(%s)\n", (int)p->pid, p->program,
				vrb_top_answer(p->answer));
		for (uint32_t k = 0; p->answer == VRB_LIVE_YES && k < p->page.n_devices; k++)
			if (p->page.device[k].name[0])
				put_device(f, p, t->old ? vrb_live_proc_in(t->old, p) : NULL, k);
	}
}

/* ---- queue pairs */

struct line {
	const struct vrb_live_proc *p;
	const struct vrb_row_qp *q;
	struct vrb_top_rates r;
	double load;
};

static int busiest_first(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->load != y->load)
		return x->load < y->load ? 1 : -1;
	return (x->q->qpn > y->q->qpn) - (x->q->qpn < y->q->qpn);
}

static void put_qp(FILE *f, const struct line *l)
{
	const struct vrb_row_qp *q = l->q;
	char type[CELL], state[CELL], peer[64], cq[CELL] = "-", window[CELL];
	char a[CELL], b[CELL], c[CELL], d[CELL], e[CELL], g[CELL], h[CELL];
	int fill = vrb_top_cq_fill(l->p, q);

	if (fill >= 0)
		snprintf(cq, sizeof(cq), "%d%%", fill);
	/* within the host it is the ring that holds a sender back */
	if (q->link == VRB_ROW_SAME_HOST)
		human(window, (double)q->in_flight);
	else
		snprintf(window, sizeof(window), "%s", of(h, q->in_flight, q->window));
	fprintf(f, "%7d 0x%06x %-3s %-5.5s %-8s %-16s", (int)l->p->pid, q->qpn,
		vrb_top_name(type, sizeof(type), 't', q->type),
		vrb_top_name(state, sizeof(state), 's', q->state), vrb_top_link(q),
		vrb_top_peer(peer, sizeof(peer), q));
	fprintf(f, "%7s%8s%8s%8s%10s%12s%11s", human(a, l->r.of[VRB_SENT]),
		human(b, l->r.of[VRB_TAKEN]), human(c, l->r.of[VRB_TX_BYTES]),
		human(d, l->r.of[VRB_RX_BYTES]), of(e, q->outstanding, q->send_room),
		of(g, q->recv_used, q->recv_room), window);
	fprintf(f, "%8llu%6llu%5s  %s\n", (unsigned long long)(q->retransmits + q->timeouts),
		(unsigned long long)(q->rnr_naks_sent + q->rnr_naks_received), cq,
		q->verdict[0] ? q->verdict : "-");
}

static uint32_t count_qps(const struct vrb_live *l)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n; i++)
		n += l->proc[i].answer == VRB_LIVE_YES ? l->proc[i].n_qps : 0;
	return n;
}

static void put_qps(FILE *f, const struct vrb_top *t)
{
	uint32_t n = count_qps(t->now), at = 0;
	struct line *line = n ? calloc(n, sizeof(*line)) : NULL;

	if (!line)
		return;
	for (uint32_t i = 0; i < t->now->n; i++) {
		const struct vrb_live_proc *p = &t->now->proc[i];
		const struct vrb_live_proc *old = t->old ? vrb_live_proc_in(t->old, p) : NULL;

		for (uint32_t k = 0; p->answer == VRB_LIVE_YES && k < p->n_qps; k++) {
			struct line *l = &line[at++];

			*l = (struct line){.p = p, .q = &p->qp[k]};
			vrb_top_qp_rates(&l->r, p, old, l->q);
			l->load = l->r.of[VRB_SENT] + l->r.of[VRB_TAKEN];
		}
	}
	qsort(line, n, sizeof(*line), busiest_first);
	fprintf(f, "\n%7s %-8s %-3s %-5s %-8s %-16s%7s%8s%8s%8s%10s%12s%11s%8s%6s%5s  %s\n", "PID",
		"QP", "TYP", "STATE", "LINK", "PEER", "SENT/S", "TAKEN/S", "TX B/S", "RX B/S",
		"POSTED", "RECEIVES", "WINDOW", "RETRIES", "RNR", "CQ", "LAST VERDICT");
	for (uint32_t i = 0; i < n; i++)
		put_qp(f, &line[i]);
	free(line);
}

/* ---- regions */

static void put_access(char *out, uint32_t access)
{
	static const char letters[] = "lwrabz"; /* by the bits of ibv_access_flags */

	for (int i = 0; letters[i]; i++)
		out[i] = access >> i & 1 ? letters[i] : '-';
	out[strlen(letters)] = '\0';
}

static void put_regions(FILE *f, const struct vrb_live_proc *p)
{
	struct vrb_maps *maps = vrb_maps_read(p->pid);
	char length[CELL], old[CELL], access[CELL], where[96];

	for (uint32_t i = 0; i < p->n_mrs; i++) {
		const struct vrb_row_mr *m = &p->mr[i];

		put_access(access, m->access);
		fprintf(f, "%7d 0x%08x 0x%08x %-10s%6u  0x%-14llx%8s  %-8s%6s  %s\n", (int)p->pid,
			m->lkey, m->rkey, p->page.device[m->device].name, m->pd,
			(unsigned long long)m->addr, human(length, (double)m->length), access,
			age(old, p, m->made_ns),
			vrb_maps_name(where, sizeof(where), maps, m->caller));
	}
	vrb_maps_free(maps);
}

static void put_all_regions(FILE *f, const struct vrb_top *t)
{
	fprintf(f, "\n%7s %-10s %-10s %-10s%6s  %-16s%8s  %-8s%6s  %s\n", "PID", "LKEY", "RKEY",
		"DEVICE", "PD", "ADDRESS", "BYTES", "ACCESS", "AGE", "REGISTERED BY");
	for (uint32_t i = 0; i < t->now->n; i++)
		if (t->now->proc[i].answer == VRB_LIVE_YES && t->now->proc[i].n_mrs)
			put_regions(f, &t->now->proc[i]);
}

void vrb_top_text(FILE *f, const struct vrb_top *t)
{
	time_t now = time(NULL);
	char clock[CELL] = "";
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	fprintf(f, "verbena top  %s  %u process%s, %u queue pair%s\n\n", clock, t->now->n,
		t->now->n == 1 ? "" : "es", count_qps(t->now), count_qps(t->now) == 1 ? "" : "s");
	put_processes(f, t);
	put_qps(f, t);
	if (t->regions)
		put_all_regions(f, t);
}
