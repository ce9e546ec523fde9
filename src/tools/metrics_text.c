/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prometheus' text format: all samples of a metric stand together behind its HELP and TYPE. Names
 * of programs, devices and verdicts are printable (tools/live.h), so that in a label only quotes
 * and backslashes need care.
 */
#include <stddef.h>
#include <string.h>

#include "base/verdict.h"
#include "tools/metrics.h"
#include "tools/top.h"

struct metric {
	const char *name, *type, *help;
	size_t offset;
	bool is_wide; /* 64 bits, or 32 */
};

/* clang-format off */
#define DEV(field) offsetof(struct vrb_stats_device, field), true
static const struct metric of_device[] = {
	{"verbena_device_transmit_packets_total", "counter", "Packets and frames sent.", DEV(tx_packets)},
	{"verbena_device_transmit_bytes_total", "counter", "Bytes of payload sent.", DEV(tx_bytes)},
	{"verbena_device_receive_packets_total", "counter", "Packets and frames received.", DEV(rx_packets)},
	{"verbena_device_receive_bytes_total", "counter", "Bytes of payload received.", DEV(rx_bytes)},
	{"verbena_device_retransmits_total", "counter", "Losses that were repaired.", DEV(retransmits)},
	{"verbena_device_ack_timeouts_total", "counter", "ACK timers that ran out.", DEV(timeouts)},
	{"verbena_device_rnr_naks_sent_total", "counter", "Requests for which no receive was posted.", DEV(rnr_naks_sent)},
	{"verbena_device_rnr_naks_received_total", "counter", "Requests for which the peer had no receive.", DEV(rnr_naks_received)},
	{"verbena_device_ecn_marked_total", "counter", "Packets that came with a congestion mark.", DEV(ecn_marked)},
	{"verbena_device_queue_pairs", "gauge", "Queue pairs.", DEV(qps)},
	{"verbena_device_completion_queues", "gauge", "Completion queues.", DEV(cqs)},
	{"verbena_device_memory_regions", "gauge", "Memory regions.", DEV(mrs)},
	{"verbena_device_shared_receive_queues", "gauge", "Shared receive queues.", DEV(srqs)},
};

#define QP(field) offsetof(struct vrb_row_qp, field), sizeof(((struct vrb_row_qp *)0)->field) == 8
static const struct metric of_qp[] = {
	{"verbena_qp_sent_total", "counter", "Work requests of the send queue that have ended.", QP(sent)},
	{"verbena_qp_taken_total", "counter", "Messages of the peer that were taken.", QP(taken)},
	{"verbena_qp_transmit_bytes_total", "counter", "Bytes of payload sent.", QP(tx_bytes)},
	{"verbena_qp_receive_bytes_total", "counter", "Bytes of payload received.", QP(rx_bytes)},
	{"verbena_qp_transmit_packets_total", "counter", "Packets and frames sent.", QP(tx_packets)},
	{"verbena_qp_receive_packets_total", "counter", "Packets and frames received.", QP(rx_packets)},
	{"verbena_qp_retransmits_total", "counter", "Losses that were repaired.", QP(retransmits)},
	{"verbena_qp_ack_timeouts_total", "counter", "ACK timers that ran out.", QP(timeouts)},
	{"verbena_qp_rnr_naks_sent_total", "counter", "Requests for which no receive was posted.", QP(rnr_naks_sent)},
	{"verbena_qp_rnr_naks_received_total", "counter", "Requests for which the peer had no receive.", QP(rnr_naks_received)},
	{"verbena_qp_naks_received_total", "counter", "Other refusals by the peer.", QP(naks_received)},
	{"verbena_qp_outstanding", "gauge", "Work requests posted and not ended.", QP(outstanding)},
	{"verbena_qp_send_queue_used", "gauge", "Places of the send queue that are taken.", QP(send_used)},
	{"verbena_qp_send_queue_size", "gauge", "Places of the send queue.", QP(send_room)},
	{"verbena_qp_receives_posted", "gauge", "Receives that wait for a message.", QP(recv_used)},
	{"verbena_qp_receive_queue_size", "gauge", "Places of the receive queue.", QP(recv_room)},
	{"verbena_qp_packets_in_flight", "gauge", "Packets without an acknowledgement.", QP(in_flight)},
	{"verbena_qp_window_packets", "gauge", "Packets that may be in flight.", QP(window)},
	{"verbena_qp_reads", "gauge", "READs and atomics under way.", QP(reads)},
};

#define CQ(field) offsetof(struct vrb_row_cq, field), sizeof(((struct vrb_row_cq *)0)->field) == 8
static const struct metric of_cq[] = {
	{"verbena_cq_completions_total", "counter", "Completions that were put into the CQ.", CQ(pushed)},
	{"verbena_cq_used", "gauge", "Completions that wait to be polled.", CQ(used)},
	{"verbena_cq_size", "gauge", "Completions that the CQ holds at most.", CQ(room)},
};
/* clang-format on */
#define N(a) (sizeof(a) / sizeof((a)[0]))

static void put_head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s=\"", key);
	for (; *value; value++)
		fprintf(f, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
	fputc('"', f);
}

/* The labels of a process, left open. */
static void put_begin(FILE *f, const char *name, const struct vrb_live_proc *p)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	fprintf(f, "%s{", name);
	put_label(f, "pid", pid);
	fputc(',', f);
	put_label(f, "program", p->program);
}

static void put_more(FILE *f, const char *key, const char *value)
{
	fputc(',', f);
	put_label(f, key, value);
}

static void put_value(FILE *f, const struct metric *m, const void *row)
{
	const char *at = (const char *)row + m->offset;
	uint64_t wide;
	uint32_t narrow;

	memcpy(&wide, at, m->is_wide ? sizeof(wide) : 0);
	memcpy(&narrow, at, sizeof(narrow));
	fprintf(f, "} %llu\n", (unsigned long long)(m->is_wide ? wide : narrow));
}

static const char *device_name(const struct vrb_live_proc *p, uint32_t i)
{
	return p->page.device[i % VRB_STATS_DEVICES].name;
}

/* ---- processes */

static void put_processes(FILE *f, const struct vrb_live *l)
{
	put_head(f, "verbena_process_up", "gauge", "1: the process answers; 0: it does not.");
	for (uint32_t i = 0; i < l->n; i++) {
		put_begin(f, "verbena_process_up", &l->proc[i]);
		fprintf(f, "} %d\n", l->proc[i].answer == VRB_LIVE_YES);
	}
	put_head(f, "verbena_process_start_time_seconds", "gauge",
		 "When the process opened its first device, since the epoch.");
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->proc[i].answer != VRB_LIVE_YES)
			continue;
		put_begin(f, "verbena_process_start_time_seconds", &l->proc[i]);
		fprintf(f, "} %.3f\n", (double)l->proc[i].page.started_ns * 1e-9);
	}
	put_head(f, "verbena_process_registered_bytes", "gauge",
		 "Bytes of the pages that are registered.");
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->proc[i].answer != VRB_LIVE_YES)
			continue;
		put_begin(f, "verbena_process_registered_bytes", &l->proc[i]);
		fprintf(f, "} %llu\n", (unsigned long long)l->proc[i].registered_bytes);
	}
}

static void put_verdicts(FILE *f, const struct vrb_live *l)
{
	put_head(f, "verbena_verdicts_total", "counter",
		 "Refusals and events by reason (verbena explain says what each means).");
	for (uint32_t i = 0; i < l->n; i++) {
		const struct vrb_live_proc *p = &l->proc[i];

		if (p->answer != VRB_LIVE_YES || !p->same_version)
			continue;
		for (int v = 1; v < VRB_N_VERDICTS && v < VRB_STATS_VERDICTS; v++) {
			if (!p->page.verdict[v])
				continue;
			put_begin(f, "verbena_verdicts_total", p);
			put_more(f, "verdict", vrb_verdict_info((enum vrb_verdict)v)->counter);
			fprintf(f, "} %llu\n", (unsigned long long)p->page.verdict[v]);
		}
	}
}

/* ---- devices, queue pairs, CQs */

static void put_devices(FILE *f, const struct vrb_live *l, const struct metric *m)
{
	put_head(f, m->name, m->type, m->help);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct vrb_live_proc *p = &l->proc[i];

		for (uint32_t k = 0; p->answer == VRB_LIVE_YES && k < p->page.n_devices; k++) {
			if (!p->page.device[k].name[0])
				continue;
			put_begin(f, m->name, p);
			put_more(f, "device", device_name(p, k));
			put_value(f, m, &p->page.device[k]);
		}
	}
}

static void put_begin_qp(FILE *f, const char *name, const struct vrb_live_proc *p,
			 const struct vrb_row_qp *q)
{
	char qpn[16];

	snprintf(qpn, sizeof(qpn), "0x%06x", q->qpn);
	put_begin(f, name, p);
	put_more(f, "device", device_name(p, q->device));
	put_more(f, "qpn", qpn);
}

static void put_qps(FILE *f, const struct vrb_live *l, const struct metric *m)
{
	put_head(f, m->name, m->type, m->help);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct vrb_live_proc *p = &l->proc[i];

		for (uint32_t k = 0; p->answer == VRB_LIVE_YES && k < p->n_qps; k++) {
			put_begin_qp(f, m->name, p, &p->qp[k]);
			put_value(f, m, &p->qp[k]);
		}
	}
}

/* What is not a number. */
static void put_qp_infos(FILE *f, const struct vrb_live *l)
{
	char s[64];

	put_head(f, "verbena_qp_info", "gauge", "What the queue pair is; always 1.");
	for (uint32_t i = 0; i < l->n; i++) {
		const struct vrb_live_proc *p = &l->proc[i];

		for (uint32_t k = 0; p->answer == VRB_LIVE_YES && k < p->n_qps; k++) {
			const struct vrb_row_qp *q = &p->qp[k];

			put_begin_qp(f, "verbena_qp_info", p, q);
			put_more(f, "type", vrb_top_name(s, sizeof(s), 't', q->type));
			put_more(f, "state", vrb_top_name(s, sizeof(s), 's', q->state));
			put_more(f, "link", vrb_top_link(q));
			put_more(f, "peer", vrb_top_peer(s, sizeof(s), q));
			snprintf(s, sizeof(s), "0x%06x", q->peer_qpn);
			put_more(f, "peer_qpn", s);
			put_more(f, "last_verdict", q->verdict);
			fputs("} 1\n", f);
		}
	}
}

static void put_rtts(FILE *f, const struct vrb_live *l)
{
	put_head(f, "verbena_qp_round_trip_seconds", "gauge",
		 "Smoothed time to the peer and back, on the wire.");
	for (uint32_t i = 0; i < l->n; i++) {
		const struct vrb_live_proc *p = &l->proc[i];

		for (uint32_t k = 0; p->answer == VRB_LIVE_YES && k < p->n_qps; k++) {
			if (!p->qp[k].rtt_ns)
				continue;
			put_begin_qp(f, "verbena_qp_round_trip_seconds", p, &p->qp[k]);
			fprintf(f, "} %.9f\n", (double)p->qp[k].rtt_ns * 1e-9);
		}
	}
}

static void put_cqs(FILE *f, const struct vrb_live *l, const struct metric *m)
{
	char number[16];

	put_head(f, m->name, m->type, m->help);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct vrb_live_proc *p = &l->proc[i];

		for (uint32_t k = 0; p->answer == VRB_LIVE_YES && k < p->n_cqs; k++) {
			snprintf(number, sizeof(number), "%u", p->cq[k].number);
			put_begin(f, m->name, p);
			put_more(f, "device", device_name(p, p->cq[k].device));
			put_more(f, "cq", number);
			put_value(f, m, &p->cq[k]);
		}
	}
}

void vrb_metrics_print(FILE *f, const struct vrb_live *l, bool objects)
{
	put_processes(f, l);
	for (size_t i = 0; i < N(of_device); i++)
		put_devices(f, l, &of_device[i]);
	put_verdicts(f, l);
	for (size_t i = 0; objects && i < N(of_qp); i++)
		put_qps(f, l, &of_qp[i]);
	if (objects) {
		put_qp_infos(f, l);
		put_rtts(f, l);
	}
	for (size_t i = 0; objects && i < N(of_cq); i++)
		put_cqs(f, l, &of_cq[i]);
	put_head(f, "verbena_scrape_duration_seconds", "gauge", "How long the processes took.");
	fprintf(f, "verbena_scrape_duration_seconds %.6f\n", (double)l->took_ns * 1e-9);
}
