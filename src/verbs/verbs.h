/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the public structs of verbs.h. Each begins with the struct that the program
 * sees, so a pointer of the program is a pointer to ours; what follows is private. Every call of
 * the face checks its arguments with src/rules, translates and calls the device (hca/hca.h); the
 * data path (post, poll, arm, the ibv_wr_ builders) is in data.c.
 *
 * Counts of events: the program acknowledges events into *_events_completed of the public struct
 * (under its mutex, signalling its cond); the counts of events handed out are ours, and destroy
 * waits until they agree.
 */
#ifndef VRB_VERBS_VERBS_H
#define VRB_VERBS_VERBS_H

#include "hca/hca.h"
#include "rules/modify.h"
#include "rules/object.h"
#include "rules/post.h"

/* The library is built with hidden symbols: what the public header declares is what we export. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop
#undef ibv_query_port /* we define what these macros wrap */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* For exported symbols that the public header does not declare. */
#define VV_EXPORT __attribute__((visibility("default")))

/* What the device reports besides the limits of hca.h. */
#define VV_PORTS	1
#define VV_PKEYS	1
#define VV_PKEY		0xffff /* full member of the default partition */
#define VV_COMP_VECTORS 1
#define VV_CQ_HOLD_MAX	UINT16_MAX /* moderation: completions, and microseconds */

struct vv_device {
	struct ibv_device ibv;
	/* Provider libraries read the word behind ibv_device to see whether a device is theirs. */
	const void *no_provider;
	struct vrb_hdev *h;
};

struct vv_context {
	struct verbs_context vctx; /* its last member is the program's ibv_context */
	struct vrb_hctx *h;
	struct vrb_hdev *dev;
	_Atomic uint32_t n_objects[VRB_N_OBJECTS]; /* of those that are counted */
};

uint64_t vv_max_mr_size(void);

/* One more object of a kind, or the errno of a refusal; then it is counted until vv_count_out. */
int vv_count_in(struct ibv_context *ctx, enum vrb_object kind);
void vv_count_out(struct ibv_context *ctx, enum vrb_object kind);
/* What the program has left in a context that closes. */
void vv_count_close(struct ibv_context *ctx);

struct vv_pd {
	struct ibv_pd pd;
	struct vrb_hpd *h;
};

struct vv_mr {
	struct ibv_mr mr;
	struct vrb_hmr *h;
};

struct vv_mw {
	struct ibv_mw mw;
	struct vrb_hmw *h;
	bool by_verb; /* ibv_bind_mw is posting: a type 1 window is allowed in a BIND_MW request */
};

struct vv_ah {
	struct ibv_ah ah;
	struct vrb_av av;
};

struct vv_channel {
	struct ibv_comp_channel ch;
	struct vrb_hchan *h;
};

struct vv_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct vrb_hcq *h;
	uint32_t comp_events_given, async_events_given; /* under cq.mutex */
	/* ibv_start_poll .. ibv_end_poll, under poll_lock unless single_threaded */
	struct ibv_wc wc; /* the completion being read, and its time */
	struct vrb_stamp stamp;
	pthread_mutex_t poll_lock;
	bool single_threaded;
};

struct vv_srq {
	struct ibv_srq srq;
	struct vrb_hsrq *h;
	uint32_t async_events_given;
};

/* What the ibv_wr_ builders need between wr_start and wr_complete; only data.c touches it. */
struct vv_wr_batch {
	uint32_t n; /* requests filled behind the queue's tail */
	int err;    /* the first error; wr_complete returns it */
	struct vrb_swqe *cur;
	_Atomic int lock; /* held from wr_start to wr_complete */
};

struct vv_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	struct vrb_hqp *h;
	uint32_t async_events_given; /* under qp.mutex */
	bool has_ex;		     /* made with send_ops_flags: ibv_qp_to_qp_ex gives ex */
	bool sig_all;
	struct ibv_qp_cap cap; /* as granted */
	uint64_t send_ops;     /* enum ibv_qp_create_send_ops_flags asked for */
	struct vv_wr_batch batch;
};

static inline struct vv_device *vv_device(struct ibv_device *d)
{
	return vrb_container_of(d, struct vv_device, ibv);
}

static inline struct vv_context *vv_context(struct ibv_context *c)
{
	return vrb_container_of(c, struct vv_context, vctx.context);
}

static inline struct vv_pd *vv_pd(struct ibv_pd *p)
{
	return vrb_container_of(p, struct vv_pd, pd);
}

static inline struct vv_mr *vv_mr(struct ibv_mr *m)
{
	return vrb_container_of(m, struct vv_mr, mr);
}

static inline struct vv_mw *vv_mw(struct ibv_mw *m)
{
	return vrb_container_of(m, struct vv_mw, mw);
}

static inline struct vv_ah *vv_ah(struct ibv_ah *a)
{
	return vrb_container_of(a, struct vv_ah, ah);
}

static inline struct vv_channel *vv_channel(struct ibv_comp_channel *c)
{
	return vrb_container_of(c, struct vv_channel, ch);
}

static inline struct vv_cq *vv_cq(struct ibv_cq *c)
{
	return vrb_container_of(c, struct vv_cq, cq);
}

static inline struct vv_cq *vv_cq_ex(struct ibv_cq_ex *c)
{
	return vrb_container_of(c, struct vv_cq, ex);
}

static inline struct vv_srq *vv_srq(struct ibv_srq *s)
{
	return vrb_container_of(s, struct vv_srq, srq);
}

static inline struct vv_qp *vv_qp(struct ibv_qp *q)
{
	return vrb_container_of(q, struct vv_qp, qp);
}

static inline struct vv_qp *vv_qp_ex(struct ibv_qp_ex *q)
{
	return vrb_container_of(q, struct vv_qp, ex);
}

/* ---- data.c: the slots of the context's ops table and of ibv_qp_ex */
int vv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Fills the ibv_wr_ slots of qp->ex that qp->send_ops asks for. */
void vv_qp_ex_init(struct vv_qp *qp);

/* ---- ops.c: fills the tables of a new context */
void vv_ops_init(struct vv_context *ctx);

/* ---- slots of verbs_context and its ops, by the file that has them */
int vv_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len);
int vv_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size);
int vv_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
struct ibv_cq_ex *vv_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int vv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_qp *vv_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_srq *vv_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
struct ibv_mw *vv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vv_dealloc_mw(struct ibv_mw *mw);
int vv_close_xrcd(struct ibv_xrcd *xrcd);

/* ---- mw.c: the entry of a bind, but for its new rkey; checked */
enum vrb_verdict vv_bind_fill(const struct vv_qp *qp, struct vrb_swqe *w, struct ibv_mw *ibmw,
			      const struct ibv_mw_bind_info *info, struct vrb_report *r);

/* ---- cq.c: what create_cq and create_cq_ex share */
struct vv_cq_ask {
	uint32_t cqe;
	void *cq_context;
	struct ibv_comp_channel *channel;
	uint64_t wc_flags; /* enum ibv_create_cq_wc_flags */
	uint32_t flags;	   /* enum ibv_create_cq_attr_flags */
};
struct vv_cq *vv_cq_make(struct ibv_context *ctx, const struct vv_cq_ask *ask);

/* ---- the device as src/rules wants it (attr.c) */
extern struct vrb_rules_limits vv_limits; /* the profile's, from the first open on */
extern struct vrb_post_states vv_posting;
void vv_take_profile(void);
void vv_rules_port(const struct vrb_hdev *dev, struct vrb_rules_port *port);

/* ---- async.c: the device's hook that counts events handed out (hca.h) */
void vv_event_given(int kind, void *user);

/* Waits until the program has acknowledged all that was handed out, as the manual of
 * every destroy call promises */
struct vv_ack_wait {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *given, *acked;
	uint32_t object; /* enum vrb_object, for who wonders why it waits */
};
void vv_wait_acks(const struct vv_ack_wait *w);

/* ---- sysfs.c: what a file of a device's folder would say; the length, or -1 */
int vv_sysfs_answer(const char *dir, const char *file, char *buf, size_t size);
/* ah.c: the address vector's part of attr; pure translation */
void vv_av_from_ibv(struct vrb_qp_attr *out, const struct ibv_ah_attr *in);
void vv_av_to_ibv(struct ibv_ah_attr *out, const struct vrb_qp_attr *in);

#endif
