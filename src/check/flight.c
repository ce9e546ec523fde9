/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is under way: work requests that were posted and whose completion has not been polled, of
 * queue pairs that can still touch memory. Looked through when memory or a region goes away, so
 * that posting and polling count nothing.
 */
#include "check/check.h"

#include <sys/uio.h>
#include <unistd.h>

static bool touches(const struct vrb_chk_flight *f, const struct ibv_sge *s)
{
	if (f->ctx)
		return s->lkey == f->lkey && s->length;
	return s->addr < f->addr + f->len && f->addr < s->addr + s->length;
}

/* Memory that is gone is said once: whoever gets it next may free it. */
static void look(struct vrb_chk_flight *f, const struct vrb_chk_ring *r, vrb_qpn qpn)
{
	for (uint32_t i = r->head; i != r->tail; i++) {
		struct vrb_chk_wr *w = vrb_chk_ring_at(r, i);
		const struct ibv_sge *s = vrb_chk_ring_sges(r, i);
		uint32_t n = 0;

		while (n < w->n_sge && !touches(f, &s[n]))
			n++;
		if (n == w->n_sge || w->flags & VRB_CHK_DONE)
			continue;
		if (!f->n++) {
			f->wr_id = w->wr_id;
			f->pc = w->pc;
			f->qpn = qpn;
		}
		if (!f->ctx)
			w->n_sge = 0;
	}
}

void vrb_chk_flight_find(struct vrb_chk_flight *f)
{
	struct vrb_chk_each e = {0};
	struct vrb_chk_qp *q;
	struct vrb_chk_srq *s;

	f->n = 0;
	while ((q = vrb_chk_next(&vrb_chk_qps, &e)) != NULL) {
		uint32_t state = atomic_load(&q->state);

		if (state < VRB_QPS_RTR || state == VRB_QPS_ERR ||
		    !vrb_chk_enter(&q->obj, &q->lock))
			continue;
		if (!f->ctx || q->ctx->id == f->ctx) {
			look(f, &q->sq, q->qpn);
			look(f, &q->rq, q->qpn);
		}
		vrb_chk_unlock(&q->lock);
	}
	e = (struct vrb_chk_each){0};
	while ((s = vrb_chk_next(&vrb_chk_srqs, &e)) != NULL) {
		if (!atomic_load(&s->n_qps) || !vrb_chk_enter(&s->obj, &s->lock))
			continue;
		if (!f->ctx || s->ctx->id == f->ctx)
			look(f, &s->rq, 0);
		vrb_chk_unlock(&s->lock);
	}
}

/* ---- the bytes themselves, for --check=data. Read by the kernel: they may be unmapped by now. */

#define PIECE 4096u

static uint64_t mix(uint64_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 0x100000001b3ull;
	return sum;
}

uint64_t vrb_chk_sum(const struct ibv_sge *sge, uint32_t n)
{
	uint64_t sum = 0xcbf29ce484222325ull;
	uint8_t piece[PIECE];

	for (uint32_t i = 0; i < n; i++) {
		for (uint64_t at = 0; at < sge[i].length; at += PIECE) {
			size_t len = sge[i].length - at < PIECE ? sge[i].length - at : PIECE;
			struct iovec to = {piece, len};
			struct iovec from = {(void *)(uintptr_t)(sge[i].addr + at), len};
			ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

			sum = mix(sum, piece, got > 0 ? (size_t)got : 0);
		}
	}
	return sum;
}
