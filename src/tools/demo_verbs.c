/* SPDX-License-Identifier: BSD-2-Clause */
/* The few verbs calls that all steps of the demo share, with their failures put into words. */
#include "tools/demo.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define POLLS_PER_CLOCK 4096u

bool vrb_demo_fail(struct demo *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->why, sizeof(d->why), fmt, ap);
	va_end(ap);
	return false;
}

uint64_t vrb_demo_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

struct ibv_sge vrb_demo_sge(const struct demo *d, uint32_t offset, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)d->buf + offset, .length = len, .lkey = d->mr->lkey};
}

bool vrb_demo_post_send(struct demo *d, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(d->qp, wr, &bad);

	return err ? vrb_demo_fail(d, "ibv_post_send: %s", strerror(err)) : true;
}

bool vrb_demo_post_recv(struct demo *d, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct ibv_sge sge = vrb_demo_sge(d, offset, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = len ? 1 : 0}, *bad;
	int err = ibv_post_recv(d->qp, &wr, &bad);

	return err ? vrb_demo_fail(d, "ibv_post_recv: %s", strerror(err)) : true;
}

bool vrb_demo_wait_any(struct demo *d, struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t until = vrb_demo_now_ns() + DEMO_WAIT_S * 1000000000ull;
	int n;

	do {
		for (unsigned i = 0; i < POLLS_PER_CLOCK; i++) {
			n = ibv_poll_cq(cq, 1, wc);
			if (n == 1)
				return true;
			if (n < 0)
				return vrb_demo_fail(d, "ibv_poll_cq failed: %d", n);
		}
	} while (vrb_demo_now_ns() < until);
	return vrb_demo_fail(d, "no completion within %d s", DEMO_WAIT_S);
}

bool vrb_demo_wait(struct demo *d, struct ibv_cq *cq, struct ibv_wc *wc)
{
	if (!vrb_demo_wait_any(d, cq, wc))
		return false;
	if (wc->status == IBV_WC_SUCCESS)
		return true;
	return vrb_demo_fail(d, "completion %llu: %s", (unsigned long long)wc->wr_id,
			     ibv_wc_status_str(wc->status));
}
