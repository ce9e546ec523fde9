/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `doctor --watch SECONDS`: what the counters of each port did in that time, and which of them
 * names the bottleneck. The causes are tried in the order of the table: what loses packets before
 * what only slows them down, and the end that cannot take more before the fabric that suffers from
 * it. In a recorded tree the second look is at its folder `later`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/doctor_cache.h"
#include "tools/doctor_counters.h"

#define CAUSE_COUNTERS	12
#define FULL		0.9
#define WAIT_PER_PACKET 10

static const struct cause {
	enum vrb_finding_id id;
	const char *counters[CAUSE_COUNTERS];
} causes[] = {
	{VRB_F_SLOW_HOST,
	 {"rx_discards_phy", "rx_discards", "rx_prio*_discards", "tx_pause_storm_warning_events",
	  "tx_pause_ctrl_phy", "tx_prio*_pause"}},
	{VRB_F_SLOW_RECEIVES,
	 {"rnr_nak_retry_err", "out_of_buffer", "rcvd_rnr_err", "send_rnr_err"}},
	{VRB_F_SLOW_LOSS,
	 {"out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err",
	  "out_of_seq_request", "rcvd_seq_err", "symbol_error", "port_rcv_errors",
	  "rx_icrc_encapsulated", "port_xmit_discards", "completer_retry_err",
	  "duplicate_request"}},
	{VRB_F_SLOW_HELD, {"rx_pause_ctrl_phy", "rx_prio*_pause", "port_xmit_wait"}},
	{VRB_F_SLOW_CONGESTION, {"rp_cnp_handled", "np_cnp_sent", "np_ecn_marked_roce_packets"}},
};
#define N_CAUSES (sizeof(causes) / sizeof(causes[0]))

struct later {
	char root[4096], record[4096];
};

static void look_at(struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port)
{
	if (d->n_samples < VRB_DOC_SAMPLES)
		vrb_port_sample(d, dev, port, &d->samples[d->n_samples++]);
}

static long long grown(long long before, long long after)
{
	return after > before ? after - before : 0;
}

/* b becomes what has come since a. */
static void subtract(struct vrb_port_sample *b, const struct vrb_port_sample *a)
{
	b->packets_out = grown(a->packets_out, b->packets_out);
	b->packets_in = grown(a->packets_in, b->packets_in);
	b->bytes_out = grown(a->bytes_out, b->bytes_out);
	b->bytes_in = grown(a->bytes_in, b->bytes_in);
	for (unsigned i = 0; i < VRB_DOC_COUNTERS; i++)
		b->value[i] = grown(a->value[i], b->value[i]);
}

/* The counter of a cause that grew most; NULL: none did. */
static const char *worst_of(const struct cause *c, const struct vrb_port_sample *s)
{
	const char *worst = NULL;
	long long most = 0;

	for (unsigned i = 0; i < CAUSE_COUNTERS && c->counters[i]; i++) {
		long long n = vrb_port_value(s, c->counters[i]);

		if (!strcmp(c->counters[i], "port_xmit_wait") &&
		    n < s->packets_out * WAIT_PER_PACKET)
			continue;
		if (n <= most)
			continue;
		most = n;
		worst = c->counters[i];
	}
	return worst;
}

static void name_bottleneck(struct vrb_doc *d, const struct vrb_port_sample *s, double gbps)
{
	char much[48];

	for (unsigned i = 0; i < N_CAUSES; i++) {
		const char *counter = worst_of(&causes[i], s);

		if (!counter)
			continue;
		vrb_doc_add(d, causes[i].id, "{s:s, s:s, s:s, s:I, s:s}", "device", s->device,
			    "port", s->port, "counter", counter, "count",
			    (json_int_t)vrb_port_value(s, counter), "netdev", s->netdev);
		return;
	}
	if (gbps > 0)
		snprintf(much, sizeof(much), "%.1f Gb/s", gbps);
	else
		snprintf(much, sizeof(much), "%lld packets/s",
			 (s->packets_out + s->packets_in) / d->watch);
	if (!s->packets_out && !s->packets_in)
		vrb_doc_add(d, VRB_F_WATCH_IDLE, "{s:s, s:s, s:i}", "device", s->device, "port",
			    s->port, "seconds", d->watch);
	else
		vrb_doc_add(d,
			    s->rate > 0 && gbps >= FULL * s->rate ? VRB_F_SLOW_LINK
								  : VRB_F_SLOW_PROGRAM,
			    "{s:s, s:s, s:s}", "device", s->device, "port", s->port, "much", much);
}

static void judge(struct vrb_doc *d, const struct vrb_port_sample *s)
{
	double t = d->watch, out = (double)s->bytes_out * 8 / t / 1e9;
	double in = (double)s->bytes_in * 8 / t / 1e9;
	char rate[32];

	snprintf(rate, sizeof(rate), "%g", s->rate);
	if ((s->packets_out || s->packets_in) && out + in <= 0)
		vrb_doc_add(d, VRB_F_WATCH_PACKETS, "{s:s, s:s, s:I, s:I}", "device", s->device,
			    "port", s->port, "packets_out", (json_int_t)(s->packets_out / d->watch),
			    "packets_in", (json_int_t)(s->packets_in / d->watch));
	else if (s->packets_out || s->packets_in)
		vrb_doc_add(d, VRB_F_WATCH_RATE, "{s:s, s:s, s:f, s:f, s:I, s:I, s:s}", "device",
			    s->device, "port", s->port, "out", out, "in", in, "packets_out",
			    (json_int_t)(s->packets_out / d->watch), "packets_in",
			    (json_int_t)(s->packets_in / d->watch), "rate", rate);
	vrb_port_judge(d, s, d->watch);
	name_bottleneck(d, s, out > in ? out : in);
}

/* The second look, and what is recorded of it, have folders of their own. */
static bool wait_for_later(struct vrb_doc *d, struct later *later)
{
	struct timespec t = {.tv_sec = d->watch};

	if (d->record) {
		snprintf(later->record, sizeof(later->record), "%s/later", d->record);
		d->record = later->record;
	}
	if (!d->root[0])
		return !nanosleep(&t, NULL);
	snprintf(later->root, sizeof(later->root), "%s/later", d->root);
	d->root = later->root;
	return true;
}

void vrb_check_watch(struct vrb_doc *d)
{
	struct vrb_port_sample *first = calloc(VRB_DOC_SAMPLES, sizeof(*first));
	struct vrb_port_sample *second = calloc(VRB_DOC_SAMPLES, sizeof(*second));
	const char *root = d->root, *record = d->record;
	struct vrb_cache_watch cache;
	struct later later;
	unsigned n;

	if (!first || !second)
		goto out;
	d->samples = first;
	vrb_doc_each_port(d, look_at);
	n = d->n_samples;
	d->n_samples = 0;
	d->samples = second;
	if (!n)
		vrb_doc_add(d, VRB_F_RDMA_NONE, "{s:s}", "file", "/sys/class/infiniband");
	/* a process on the software adapter has no device of the kernel's */
	if ((vrb_cache_begin(d, &cache) || n) && wait_for_later(d, &later)) {
		vrb_doc_each_port(d, look_at);
		vrb_cache_end(d, &cache);
	}
	for (unsigned i = 0; i < n && i < d->n_samples; i++) {
		subtract(&second[i], &first[i]);
		judge(d, &second[i]);
	}
	d->root = root;
	d->record = record;
	d->samples = NULL;
out:
	free(first);
	free(second);
}
