/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/front.h"

#include <dlfcn.h>
#include <stdbool.h>

#include "send/kit.h"

struct ibv_qp *front_qp[FRONT_QPS];
struct ibv_srq *front_srq;
int front_n_qps, front_tiny_cq, front_no_srq;

static struct ibv_async_event reported;
static bool has_reported;

#pragma GCC visibility push(default)

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *);
	struct ibv_qp *qp;

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_create_qp");
	qp = real(pd, a);
	if (qp && front_n_qps < FRONT_QPS)
		front_qp[front_n_qps++] = qp;
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*real)(struct ibv_qp *);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	for (int i = 0; i < front_n_qps; i++)
		if (front_qp[i] == qp)
			front_qp[i] = NULL;
	return real(qp);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *user,
			     struct ibv_comp_channel *ch, int vector)
{
	struct ibv_cq *(*real)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_create_cq");
	return real(ctx, front_tiny_cq ? front_tiny_cq : cqe, user, ch, vector);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct ibv_srq *(*real)(struct ibv_pd *, struct ibv_srq_init_attr *);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_create_srq");
	front_srq = real(pd, a);
	return front_srq;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	int (*real)(struct ibv_context *, struct ibv_device_attr *), r;

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_query_device");
	r = real(ctx, a);
	if (front_no_srq)
		a->max_srq = 0;
	return r;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
	int (*real)(struct ibv_context *, struct ibv_async_event *);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_get_async_event");
	if (!has_reported)
		return real(ctx, ev);
	*ev = reported;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *ev)
{
	void (*real)(struct ibv_async_event *);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_ack_async_event");
	if (has_reported)
		has_reported = false;
	else
		real(ev);
}

#pragma GCC visibility pop

void front_report_srq(enum ibv_event_type type, struct ibv_srq *srq)
{
	reported.event_type = type;
	reported.element.srq = srq;
	has_reported = true;
}

void front_report(enum ibv_event_type type, struct ibv_qp *qp, int port)
{
	reported.event_type = type;
	if (qp)
		reported.element.qp = qp;
	else
		reported.element.port_num = port;
	has_reported = true;
}

void front_qp_to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
}
