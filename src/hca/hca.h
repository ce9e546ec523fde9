/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software HCA as the faces see it: devices, contexts and their objects, in plain values.
 * Everything here may be called from any thread; calls on one object are serialised by the engine's
 * lock. Functions return 0 or -errno unless said otherwise, and set their last parameter only on
 * success. Checks of what is a legal call are the faces' (src/rules); here only what needs the
 * state of the device is checked. A child after fork must not use objects of its parent: calls on
 * them do nothing and return -EIO (free of memory is allowed).
 */
#ifndef VRB_HCA_HCA_H
#define VRB_HCA_HCA_H

#include "base/list.h"
#include "base/profile.h"
#include "base/verdict.h"
#include "core/qp.h"

#define VRB_DEVICES_MAX 16
#define VRB_GIDS_MAX	16

#define VRB_MAX_QP_WR  16384
#define VRB_MAX_CQE    4194304
#define VRB_MAX_SRQ_WR 32768
#define VRB_MAX_INLINE 1024
#define VRB_MAX_QP     65535
#define VRB_MAX_MR     4194304
#define VRB_UD_MTU     4096

struct vrb_gid_entry {
	struct vrb_gid gid;
	bool valid, is_v4;
	bool is_v1; /* for show: it is listed as RoCE v1 and cannot be used */
};

/* One per usable network interface; lives until the process ends, vrb_hca_devices refreshes it in
 * place. */
struct vrb_hdev {
	char name[16];	 /* verbena0 */
	char ifname[16]; /* eth0 */
	uint32_t index, ifindex, netdev_mtu;
	uint32_t speed_mbps; /* 0: unknown */
	uint64_t guid;	     /* network order, unique per host and interface */
	bool present, up, loopback;
	uint8_t active_mtu; /* path MTU code, 1..5, of what the netdev can carry (5 on lo) */
	uint32_t n_gids;    /* entries are 0..n_gids-1; others are empty */
	struct vrb_gid_entry gid[VRB_GIDS_MAX];
};

/* The devices present now, the default route's first. Returns how many were written to list (at
 * most VRB_DEVICES_MAX). */
int vrb_hca_devices(struct vrb_hdev **list);

/* ---- the manners of this process's devices (VERBENA_PROFILE); the same from the first call on */
const struct vrb_profile *vrb_hca_profile(void);
/* 0, or -errno: it is wrong, which has been said. */
int vrb_hca_profile_check(void);

/* ---- explanations: counts the verdict and, with VERBENA_EXPLAIN=1, prints it to stderr
 * (rate-limited) */
void vrb_hca_refuse(const struct vrb_report *r);
bool vrb_hca_explains(void);

/* ---- context */
struct vrb_hctx;
int vrb_hctx_open(struct vrb_hdev *dev, struct vrb_hctx **ctx);
void vrb_hctx_close(struct vrb_hctx *ctx); /* destroys objects that are left */
int vrb_hctx_async_fd(const struct vrb_hctx *ctx);
struct vrb_hdev *vrb_hctx_dev(const struct vrb_hctx *ctx);

struct vrb_hasync {
	int kind;   /* enum ibv_event_type */
	void *user; /* the user pointer of the QP, CQ or SRQ it concerns; NULL for port and device
		     */
	uint32_t port;
};
/* Takes the next event; blocks unless the fd is non-blocking (-EAGAIN). -EINTR is passed on. */
int vrb_hctx_get_async(struct vrb_hctx *ctx, struct vrb_hasync *ev);
/* Queues an event (for tests and port changes). */
void vrb_hctx_put_async(struct vrb_hctx *ctx, const struct vrb_hasync *ev);

/*
 * Set once by the face: called under the engine's lock for every event handed out, so that a
 * destroy in another thread, which waits for acknowledgements, knows of it. kind is that of the
 * async event, or VRB_EVENT_COMPLETION.
 */
#define VRB_EVENT_COMPLETION (-1)
extern void (*vrb_hca_event_given)(int kind, void *user);

/* ---- protection domain, memory */
struct vrb_hpd {
	struct vrb_hctx *ctx;
	uint32_t id;
	uint32_t refs; /* MRs, QPs, SRQs, AHs, MWs made on it */
};
int vrb_hpd_alloc(struct vrb_hctx *ctx, struct vrb_hpd **pd);
int vrb_hpd_dealloc(struct vrb_hpd *pd); /* -EBUSY */

struct vrb_hmr {
	struct vrb_hpd *pd;
	uint32_t lkey, rkey, access;
	uint64_t addr, iova, len;
	struct vrb_list node;
	vrb_ns made;
	uint64_t caller; /* who registered it, as the face knows; 0; peeked at */
};
/* -EFAULT when the memory is not there (or not writable with LOCAL_WRITE). */
int vrb_hmr_reg(struct vrb_hpd *pd, void *addr, uint64_t len, uint64_t iova, uint32_t access,
		struct vrb_hmr **mr);
int vrb_hmr_dereg(
	struct vrb_hmr *mr); /* -EBUSY: windows bound. After it no access through its keys. */
/* Changes what is given (pd NULL, addr NULL, access UINT32_MAX: keep); with addr, keys change.
 * -EDQUOT: beyond RLIMIT_MEMLOCK, all is as it was. */
int vrb_hmr_rereg(struct vrb_hmr *mr, struct vrb_hpd *pd, void *addr, uint64_t len,
		  uint32_t access);

struct vrb_hmw {
	struct vrb_hpd *pd;
	uint32_t rkey;
	uint32_t type; /* 1, 2 */
};
int vrb_hmw_alloc(struct vrb_hpd *pd, uint32_t type, struct vrb_hmw **mw);
int vrb_hmw_dealloc(struct vrb_hmw *mw);

/* ---- completion channel and CQ */
struct vrb_hchan;
struct vrb_hcq {
	_Alignas(64) struct vrb_hctx *ctx; /* with what a poll reads of core, one line */
	struct vrb_cq core;
	struct vrb_hchan *chan; /* or NULL */
	void *user;		/* the face's object */
	uint32_t refs;		/* QPs and SRQs on it */
	uint32_t number;	/* in order of creation, from 1 */
	struct vrb_list node, event_node;
	uint32_t n_events; /* queued in the channel, not yet taken */
	bool stamp_ns, stamp_wall;
	struct vrb_list held_node; /* an event is held back (moderate.c) until */
	vrb_ns held_until;
};

/* What a CQ may have besides its size. */
struct vrb_hcq_init {
	uint32_t cqe;
	struct vrb_hchan *chan; /* or NULL */
	void *user;
	bool stamp_ns, stamp_wall; /* completions get their time (struct vrb_stamp) */
	bool overwrites;	   /* when it is full the oldest completion is lost, not the CQ */
};
int vrb_hchan_create(struct vrb_hctx *ctx, struct vrb_hchan **chan);
int vrb_hchan_destroy(struct vrb_hchan *chan); /* -EBUSY while CQs refer to it */
int vrb_hchan_fd(const struct vrb_hchan *chan);
/* Takes one event; blocks unless the fd is non-blocking (-EAGAIN). Returns the user pointer of the
 * CQ it is for. */
int vrb_hchan_get(struct vrb_hchan *chan, void **user);

int vrb_hcq_create(struct vrb_hctx *ctx, const struct vrb_hcq_init *init, struct vrb_hcq **cq);
int vrb_hcq_destroy(struct vrb_hcq *cq); /* -EBUSY while QPs refer to it; drops its queued events */
int vrb_hcq_resize(struct vrb_hcq *cq, uint32_t cqe); /* -EINVAL when it holds more */
int vrb_hcq_arm(struct vrb_hcq *cq, bool solicited_only);
/* The event of an armed CQ waits for max completions (0: any number) or until ns have passed since
 * the first; ns 0: it does not wait. */
int vrb_hcq_moderate(struct vrb_hcq *cq, uint32_t max, vrb_ns ns);
/* The clock of the times: nanoseconds, monotonic. */
uint64_t vrb_hca_clock(void);

/* ---- shared receive queue */
struct vrb_hsrq {
	struct vrb_srq core;
	struct vrb_hpd *pd;
	void *user;
	uint32_t refs; /* QPs on it */
	struct vrb_list node;
};
int vrb_hsrq_create(struct vrb_hpd *pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit,
		    void *user, struct vrb_hsrq **srq);
int vrb_hsrq_destroy(struct vrb_hsrq *srq);
int vrb_hsrq_arm(struct vrb_hsrq *srq, uint32_t limit);
int vrb_hsrq_resize(struct vrb_hsrq *srq, uint32_t max_wr);

/* ---- queue pair */
struct vrb_hqp_init {
	enum vrb_qp_type type;
	bool sig_all;
	struct vrb_hcq *scq, *rcq;
	struct vrb_hsrq *srq;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	void *user;
};
struct vrb_hqp; /* complete in hca/qp.h */
int vrb_hqp_create(struct vrb_hpd *pd, const struct vrb_hqp_init *init, struct vrb_hqp **qp);
int vrb_hqp_destroy(struct vrb_hqp *qp); /* -EBUSY while attached to a multicast group */
/* The face has checked the transition with src/rules against vrb_hqp_state. */
int vrb_hqp_modify(struct vrb_hqp *qp, const struct vrb_qp_attr *attr, uint32_t mask);
void vrb_hqp_query(struct vrb_hqp *qp, struct vrb_qp_attr *attr);
enum vrb_qp_state vrb_hqp_state(const struct vrb_hqp *qp);
vrb_qpn vrb_hqp_qpn(const struct vrb_hqp *qp);
void vrb_hqp_set_user(struct vrb_hqp *qp, void *user);
int vrb_hqp_attach(struct vrb_hqp *qp, const struct vrb_gid *mgid);
int vrb_hqp_detach(struct vrb_hqp *qp, const struct vrb_gid *mgid);

/* ---- address handle: the face fills dgid .. flow_label of av, hca the rest */
int vrb_hah_create(struct vrb_hpd *pd, struct vrb_av *av);
void vrb_hah_destroy(struct vrb_hpd *pd, struct vrb_av *av);

/* ---- fork: true when the context was opened by a parent process */
bool vrb_hctx_is_foreign(const struct vrb_hctx *ctx);

#endif
