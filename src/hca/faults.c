/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of a process: read once, when it first opens the device, and applied where packets leave
 * for the sockets' batch and where they come from the sockets with a good ICRC. A packet damaged on
 * its way out gets a wrong bit after its ICRC; one damaged on its way in is put to the ICRC check
 * once more. rnr-nak and nak change no packet: the responder is told to refuse the request.
 */
#include "hca/faults_parts.h"
#include "hca/tap.h"
#include "hca/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_TRIES    100u
#define EXIT_PAUSE_US 1000u

static struct vrb_faults *faults; /* guarded by the engine's life lock */

/* ---- reading */

static int read_file(const char *path, struct vrb_faults *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	ssize_t n = fd < 0 ? -1 : 1;

	/* a pipe gives it in parts */
	for (f->text_len = 0; n > 0 && f->text_len < sizeof(f->text); f->text_len += (size_t)n) {
		n = read(fd, f->text + f->text_len, sizeof(f->text) - f->text_len);
		if (n < 0)
			break;
	}
	err = errno;
	if (fd >= 0)
		close(fd);
	if (n >= 0)
		return 0;
	fprintf(stderr, "verbena: fault plan %s: %s\n", path, strerror(err));
	return -err;
}

static int read_plan(const char *plan, struct vrb_faults *f)
{
	struct vrb_report r = {.verdict = VRB_V_FAULT_PLAN};
	struct vrb_words_error error;
	char text[512];
	int err = 0;

	f->text_len = strlen(plan);
	if (!vrb_fault_is_text(plan))
		err = read_file(plan, f);
	else if (f->text_len < sizeof(f->text))
		memcpy(f->text, plan, f->text_len);
	if (err || vrb_fault_plan_parse(f->text, f->text_len, &f->plan, &error))
		return err;
	vrb_words_error_format(text, sizeof(text), &error);
	fprintf(stderr, "verbena: fault plan: %s\n", text);
	r.val[0] = error.line;
	r.val[1] = error.column;
	vrb_hca_refuse(&r);
	return -EINVAL;
}

static int create(const char *plan, struct vrb_faults **out)
{
	struct vrb_faults *f = calloc(1, sizeof(*f));
	struct vrb_prng seeds;
	int err = f ? 0 : -ENOMEM;

	if (!err)
		err = read_plan(plan, f);
	if (!err && !vrb_faults_hold_open(f))
		err = -ENOMEM;
	if (err) {
		free(f);
		return err;
	}
	f->pid = getpid();
	f->start = vrb_clock_now();
	seeds = vrb_prng_seed(f->plan.seed);
	for (uint32_t i = 0; i < f->plan.n; i++)
		f->state[i].rng = vrb_prng_seed(vrb_prng_next(&seeds));
	vrb_faults_log_open(f);
	*out = f;
	return 0;
}

int vrb_faults_open(struct vrb_faults **out)
{
	const char *plan = secure_getenv(VRB_FAULT_ENV);
	int err = 0;

	if (faults && faults->pid != getpid()) { /* the parent's */
		free(faults->slots);
		free(faults);
		faults = NULL;
	}
	if (!faults && plan && *plan)
		err = create(plan, &faults);
	*out = faults;
	return err;
}

bool vrb_faults_are_on(void)
{
	return faults != NULL;
}

/* Other threads may still be at work; one that has been stopped with the lock does not hold up the
 * end for long. */
static bool lock_at_exit(struct vrb_engine *e)
{
	for (uint32_t i = 0; i < EXIT_TRIES; i++) {
		if (vrb_engine_trylock(e))
			return true;
		usleep(EXIT_PAUSE_US);
	}
	return false;
}

/* After that of the engine, which still sends what is owed. */
__attribute__((destructor(101))) static void at_exit(void)
{
	struct vrb_engine *e = vrb_engine_current;
	struct vrb_faults *f = faults;

	if (!f || f->pid != getpid() || (e && !lock_at_exit(e)))
		return;
	vrb_faults_log_close(f);
	if (e)
		vrb_engine_unlock(e);
}

void vrb_faults_name(struct vrb_faults *f, struct vrb_hqp *q)
{
	q->fault_number = ++f->n_qps;
	vrb_faults_log_name(f, q);
}

/* As a capture says it. */
static struct vrb_report fired(const struct vrb_fault_view *v, uint32_t rule)
{
	return (struct vrb_report){
		.verdict = VRB_V_FAULT_FIRED, .qpn = v->q->core.qpn, .val = {rule, v->pkt->psn.v}};
}

/* ---- out */

static uint32_t length_on_wire(const struct vrb_wire_addr *a, const struct vrb_pkt *pkt)
{
	return (a->udp->v4 ? VRB_IPV4_LEN : VRB_IPV6_LEN) + VRB_UDP_LEN + VRB_BTH_LEN +
	       vrb_opcode_table[pkt->op.v].header_len + pkt->len + vrb_pkt_pad(pkt->len) +
	       VRB_ICRC_LEN;
}

bool vrb_faults_tx(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_faults_out *out)
{
	const struct vrb_fault_view v = {.q = q,
					 .pkt = out->pkt,
					 .dir = VRB_FAULT_TX,
					 .ip_len = length_on_wire(out->addr, out->pkt),
					 .now = vrb_clock_now()};
	struct vrb_fault_hit h;
	struct vrb_report why;

	vrb_faults_release_tx(e, v.now); /* they were first */
	if (!vrb_faults_judge(e->faults, &v, &h))
		return false;
	for (uint32_t i = 0; !h.drop && i < h.copies; i++) {
		if (h.due > v.now) {
			vrb_faults_hold_tx(e, out, &h);
			continue;
		}
		vrb_udp_push(&e->wire->batch, out->addr->udp, out->flow, out->pkt, out->seg);
		if (h.corrupt)
			vrb_udp_damage(&e->wire->batch, h.random);
	}
	why = fired(&v, h.rule);
	if (vrb_unlikely(e->tap))
		vrb_tap_wire_out(e, q, out->addr->udp, out->flow, &why);
	return true;
}

/* ---- in */

/* The packet with one bit wrong: what the check of its ICRC says. */
static void check_damaged(const struct vrb_udp_packet *p, uint64_t random)
{
	uint8_t net[VRB_NET_MAX], bytes[VRB_ROCE_PACKET_MAX];
	uint32_t len = p->len + VRB_ICRC_LEN, bit = (uint32_t)(random % (len * 8));
	size_t net_len = vrb_net_emit(&p->net, len, net);
	struct vrb_report why = {.verdict = VRB_V_DROP_ICRC};

	if (len <= sizeof(bytes)) {
		memcpy(bytes, p->bytes, p->len);
		vrb_icrc_store(vrb_icrc_start(net, net_len, bytes, p->len), bytes + p->len);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		(void)vrb_icrc_check(net, net_len, bytes, len, &why);
	}
	vrb_hca_refuse(&why);
}

/* It goes into a capture all the same. */
static void tap(struct vrb_engine *e, const struct vrb_fault_view *v, uint32_t rule)
{
	const struct vrb_report why = fired(v, rule);

	vrb_tap_stray(e, &why, false);
}

uint32_t vrb_faults_rx(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_faults_in *in)
{
	const struct vrb_udp_packet *p = in->p;
	const struct vrb_fault_view v = {.q = q,
					 .pkt = in->pkt,
					 .dir = VRB_FAULT_RX,
					 .ip_len = length_on_wire(in->addr, in->pkt),
					 .now = vrb_clock_now()};
	struct vrb_fault_hit h;

	vrb_faults_release_rx(e, v.now);
	if (vrb_unlikely(e->tap))
		vrb_tap_arrival(e, p); /* again, those were others */
	/* left by one that never came to the responder */
	q->core.refuse_next = 0;
	if (!vrb_faults_judge(e->faults, &v, &h))
		return 1;
	if (h.drop || h.corrupt) {
		if (h.corrupt && !h.drop)
			check_damaged(p, h.random);
		if (vrb_unlikely(e->tap))
			tap(e, &v, h.rule);
		return 0;
	}
	q->core.refuse_next = h.refuse;
	if (h.due <= v.now || h.refuse)
		return h.copies;
	for (uint32_t i = 0; i < h.copies; i++)
		if (!vrb_faults_hold_rx(e, in, h.due))
			return h.copies;
	return 0;
}

/* ---- time */

void vrb_faults_run(struct vrb_engine *e, vrb_ns now)
{
	vrb_ns due;

	if (!e->wire)
		return;
	vrb_faults_release_rx(e, now);
	vrb_faults_release_tx(e, now);
	vrb_wire_flush(e);
	due = vrb_faults_next_due(e->faults);
	if (due != VRB_NS_NEVER)
		vrb_work_look_at(e, due);
}

void vrb_faults_close(struct vrb_engine *e)
{
	if (!e->faults || !e->wire)
		return;
	vrb_faults_release_tx(e, VRB_NS_NEVER);
	vrb_wire_flush(e);
	vrb_faults_hold_forget(e->faults);
}
