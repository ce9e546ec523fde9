/* SPDX-License-Identifier: BSD-2-Clause */
/* A sample as JSON: totals as they are, rates as numbers per second or null. */
#include <string.h>
#include <time.h>

#include "base/verdict.h"
#include "tools/top.h"

#define INT(v) json_integer((json_int_t)(v))

static void put(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v);
}

static json_t *rate(double v)
{
	return v < 0 ? json_null() : json_real(v);
}

static json_t *hex(uint64_t v, int digits)
{
	char s[24];

	snprintf(s, sizeof(s), "0x%0*llx", digits, (unsigned long long)v);
	return json_string(s);
}

static void put_rates(json_t *o, const struct vrb_top_rates *r)
{
	static const char *const keys[VRB_N_RATES] = {"sent_per_s", "taken_per_s", "tx_bytes_per_s",
						      "rx_bytes_per_s"};

	for (int i = 0; i < VRB_N_RATES; i++)
		put(o, keys[i], rate(r->of[i]));
}

static double age_s(const struct vrb_live_proc *p, uint64_t then)
{
	return p->now_ns > then ? (double)(p->now_ns - then) * 1e-9 : 0;
}

static json_t *device_name(const struct vrb_live_proc *p, uint32_t device)
{
	return json_string(p->page.device[device % VRB_STATS_DEVICES].name);
}

/* clang-format off */
static json_t *qp_json(const struct vrb_live_proc *p, const struct vrb_live_proc *old,
		       const struct vrb_row_qp *q)
{
	struct vrb_top_rates r;
	json_t *o = json_object();
	char s[64];

	put(o, "qpn", hex(q->qpn, 6));
	put(o, "type", json_string(vrb_top_name(s, sizeof(s), 't', q->type)));
	put(o, "state", json_string(vrb_top_name(s, sizeof(s), 's', q->state)));
	put(o, "device", device_name(p, q->device));
	put(o, "link", json_string(vrb_top_link(q)));
	put(o, "peer_qpn", hex(q->peer_qpn, 6));
	put(o, "peer", json_string(vrb_top_peer(s, sizeof(s), q)));
	put(o, "age_s", json_real(age_s(p, q->made_ns)));
	put(o, "sent", INT(q->sent));
	put(o, "taken", INT(q->taken));
	put(o, "tx_bytes", INT(q->tx_bytes));
	put(o, "rx_bytes", INT(q->rx_bytes));
	put(o, "tx_packets", INT(q->tx_packets));
	put(o, "rx_packets", INT(q->rx_packets));
	vrb_top_qp_rates(&r, p, old, q);
	put_rates(o, &r);
	put(o, "outstanding", INT(q->outstanding));
	put(o, "send_used", INT(q->send_used));
	put(o, "send_room", INT(q->send_room));
	put(o, "recv_used", INT(q->recv_used));
	put(o, "recv_room", INT(q->recv_room));
	put(o, "srq", json_boolean(q->srq_used));
	put(o, "in_flight", INT(q->in_flight));
	put(o, "window", INT(q->window));
	put(o, "reads", INT(q->reads));
	put(o, "rtt_us", q->rtt_ns ? json_real((double)q->rtt_ns * 1e-3) : json_null());
	put(o, "retransmits", INT(q->retransmits));
	put(o, "timeouts", INT(q->timeouts));
	put(o, "rnr_naks_sent", INT(q->rnr_naks_sent));
	put(o, "rnr_naks_received", INT(q->rnr_naks_received));
	put(o, "naks_received", INT(q->naks_received));
	put(o, "send_cq", INT(q->send_cq));
	put(o, "recv_cq", INT(q->recv_cq));
	put(o, "events", INT(q->events));
	put(o, "verdict", q->verdict[0] ? json_string(q->verdict) : json_null());
	put(o, "verdict_age_s", q->verdict[0] ? json_real(age_s(p, q->verdict_ns)) : json_null());
	return o;
}

static json_t *cq_json(const struct vrb_live_proc *p, const struct vrb_live_proc *old,
		       const struct vrb_row_cq *q)
{
	const struct vrb_row_cq *was = vrb_live_cq_in(old, q);
	json_t *o = json_object();

	put(o, "number", INT(q->number));
	put(o, "device", device_name(p, q->device));
	put(o, "used", INT(q->used));
	put(o, "room", INT(q->room));
	put(o, "queues", INT(q->refs));
	put(o, "completions", INT(q->pushed));
	put(o, "completions_per_s",
	    rate(was ? vrb_top_rate(p, old, q->pushed, was->pushed) : VRB_NO_RATE));
	put(o, "armed", json_boolean(q->is_armed));
	put(o, "channel", json_boolean(q->has_channel));
	put(o, "overrun", json_boolean(q->is_dead));
	return o;
}

static json_t *mr_json(const struct vrb_live_proc *p, const struct vrb_maps *maps,
		       const struct vrb_row_mr *m)
{
	json_t *o = json_object();
	char s[96];

	put(o, "lkey", hex(m->lkey, 8));
	put(o, "rkey", hex(m->rkey, 8));
	put(o, "device", device_name(p, m->device));
	put(o, "pd", INT(m->pd));
	put(o, "addr", hex(m->addr, 1));
	put(o, "length", INT(m->length));
	put(o, "access", hex(m->access, 1));
	put(o, "age_s", json_real(age_s(p, m->made_ns)));
	put(o, "caller", json_string(vrb_maps_name(s, sizeof(s), maps, m->caller)));
	return o;
}

static json_t *device_json(const struct vrb_live_proc *p, const struct vrb_live_proc *old,
			   uint32_t i)
{
	const struct vrb_stats_device *d = &p->page.device[i];
	struct vrb_top_rates r;
	json_t *o = json_object();

	put(o, "device", json_string(d->name));
	put(o, "qps", INT(d->qps));
	put(o, "cqs", INT(d->cqs));
	put(o, "mrs", INT(d->mrs));
	put(o, "srqs", INT(d->srqs));
	put(o, "tx_packets", INT(d->tx_packets));
	put(o, "tx_bytes", INT(d->tx_bytes));
	put(o, "rx_packets", INT(d->rx_packets));
	put(o, "rx_bytes", INT(d->rx_bytes));
	put(o, "retransmits", INT(d->retransmits));
	put(o, "timeouts", INT(d->timeouts));
	put(o, "rnr_naks_sent", INT(d->rnr_naks_sent));
	put(o, "rnr_naks_received", INT(d->rnr_naks_received));
	vrb_top_device_rates(&r, p, old, i);
	put_rates(o, &r);
	return o;
}
/* clang-format on */

static json_t *verdicts_json(const struct vrb_live_proc *p)
{
	json_t *o = json_object();

	for (int v = 1; p->same_version && v < VRB_N_VERDICTS && v < VRB_STATS_VERDICTS; v++)
		if (p->page.verdict[v])
			put(o, vrb_verdict_info((enum vrb_verdict)v)->counter,
			    INT(p->page.verdict[v]));
	return o;
}

static json_t *proc_json(const struct vrb_live_proc *p, const struct vrb_live_proc *old)
{
	json_t *o = json_object(), *devices = json_array(), *qps = json_array();
	json_t *cqs = json_array(), *mrs = json_array();
	struct vrb_maps *maps = p->n_mrs ? vrb_maps_read(p->pid) : NULL;

	put(o, "pid", INT(p->pid));
	put(o, "program", json_string(p->program));
	put(o, "slot", INT(p->slot));
	put(o, "answers", json_string(vrb_top_answer(p->answer)));
	put(o, "started_s", json_real((double)p->page.started_ns * 1e-9));
	put(o, "registered_bytes", INT(p->registered_bytes));
	for (uint32_t i = 0; i < p->page.n_devices; i++)
		if (p->page.device[i].name[0])
			json_array_append_new(devices, device_json(p, old, i));
	for (uint32_t i = 0; i < p->n_qps; i++)
		json_array_append_new(qps, qp_json(p, old, &p->qp[i]));
	for (uint32_t i = 0; i < p->n_cqs; i++)
		json_array_append_new(cqs, cq_json(p, old, &p->cq[i]));
	for (uint32_t i = 0; i < p->n_mrs; i++)
		json_array_append_new(mrs, mr_json(p, maps, &p->mr[i]));
	vrb_maps_free(maps);
	put(o, "devices", devices);
	put(o, "qps", qps);
	put(o, "cqs", cqs);
	put(o, "mrs", mrs);
	put(o, "verdicts", verdicts_json(p));
	return o;
}

json_t *vrb_top_json(const struct vrb_top *t)
{
	json_t *o = json_object(), *all = json_array();
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	put(o, "time_s", json_real((double)now.tv_sec + (double)now.tv_nsec * 1e-9));
	for (uint32_t i = 0; i < t->now->n; i++) {
		const struct vrb_live_proc *p = &t->now->proc[i];

		json_array_append_new(all,
				      proc_json(p, t->old ? vrb_live_proc_in(t->old, p) : NULL));
	}
	put(o, "processes", all);
	return o;
}
