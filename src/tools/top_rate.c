/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates and names that text and JSON share. */
#include <arpa/inet.h>
#include <string.h>

#include "base/names.h"
#include "tools/top.h"

double vrb_top_rate(const struct vrb_live_proc *p, const struct vrb_live_proc *old, uint64_t now,
		    uint64_t then)
{
	if (!old || p->now_ns <= old->now_ns || now < then)
		return VRB_NO_RATE;
	return (double)(now - then) * (double)VRB_NS_PER_S / (double)(p->now_ns - old->now_ns);
}

void vrb_top_qp_rates(struct vrb_top_rates *r, const struct vrb_live_proc *p,
		      const struct vrb_live_proc *old, const struct vrb_row_qp *q)
{
	static const struct vrb_row_qp none;
	const struct vrb_row_qp *o = vrb_live_qp_in(old, q);

	/* one that was made meanwhile began with nothing */
	if (!o && old && q->made_ns > old->now_ns)
		o = &none;
	if (!o) {
		for (int i = 0; i < VRB_N_RATES; i++)
			r->of[i] = VRB_NO_RATE;
		return;
	}
	r->of[VRB_SENT] = vrb_top_rate(p, old, q->sent, o->sent);
	r->of[VRB_TAKEN] = vrb_top_rate(p, old, q->taken, o->taken);
	r->of[VRB_TX_BYTES] = vrb_top_rate(p, old, q->tx_bytes, o->tx_bytes);
	r->of[VRB_RX_BYTES] = vrb_top_rate(p, old, q->rx_bytes, o->rx_bytes);
}

void vrb_top_device_rates(struct vrb_top_rates *r, const struct vrb_live_proc *p,
			  const struct vrb_live_proc *old, uint32_t device)
{
	struct vrb_top_rates one;

	for (int i = 0; i < VRB_N_RATES; i++)
		r->of[i] = old ? 0 : VRB_NO_RATE;
	for (uint32_t k = 0; old && k < p->n_qps; k++) {
		if (p->qp[k].device != device)
			continue;
		vrb_top_qp_rates(&one, p, old, &p->qp[k]);
		for (int i = 0; i < VRB_N_RATES; i++)
			r->of[i] += one.of[i] < 0 ? 0 : one.of[i];
	}
}

static int fill_of(const struct vrb_live_proc *p, uint32_t number)
{
	const struct vrb_row_cq *q = vrb_live_cq_in(p, &(struct vrb_row_cq){.number = number});

	if (!q || !q->room)
		return -1;
	return (int)((uint64_t)q->used * 100 / q->room);
}

int vrb_top_cq_fill(const struct vrb_live_proc *p, const struct vrb_row_qp *q)
{
	int a = fill_of(p, q->send_cq), b = fill_of(p, q->recv_cq);

	return a > b ? a : b;
}

const char *vrb_top_answer(enum vrb_live_answer a)
{
	static const char *const words[] = {
		[VRB_LIVE_YES] = "yes",
		[VRB_LIVE_BUSY] = "does not answer",
		[VRB_LIVE_STOPPED] = "stopped",
		[VRB_LIVE_OTHER] = "another version",
	};

	return words[a];
}

const char *vrb_top_name(char *out, size_t size, char kind, uint32_t v)
{
	struct vrb_text t;

	vrb_text_init(&t, out, size);
	(void)vrb_name_put(&t, kind, v);
	return out;
}

const char *vrb_top_link(const struct vrb_row_qp *q)
{
	if (q->link == VRB_ROW_WIRE)
		return "wire";
	return q->link == VRB_ROW_SAME_HOST ? "memory" : "-";
}

const char *vrb_top_peer(char *out, size_t size, const struct vrb_row_qp *q)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *gid = q->peer_gid;
	bool is_v4 = !memcmp(gid, v4, sizeof(v4));

	if (q->link == VRB_ROW_SAME_HOST && q->peer_pid)
		snprintf(out, size, "process %u", (unsigned)q->peer_pid);
	else if (q->link != VRB_ROW_WIRE ||
		 !inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? gid + 12 : gid, out,
			    (socklen_t)size))
		snprintf(out, size, "-");
	return out;
}
