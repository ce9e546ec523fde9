/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker's picture of a program's verbs objects. It stands between the program and any
 * libibverbs: each interposed call looks at its arguments by src/rules, calls the real function,
 * and notes in shadow objects what came of it. It never refuses and never changes an outcome.
 *
 * Shadows are found by the program's pointer (table.h) without a lock; their memory is never given
 * back, so a program that uses a destroyed object misleads us but does not crash us. A queue pair
 * (or SRQ) has one lock, held across the real post, so that its shadow queue has the order of the
 * real one; no two such locks are held at once.
 */
#ifndef VRB_CHECK_CHECK_H
#define VRB_CHECK_CHECK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/verdict.h"
#include "rules/mem.h"
#include "rules/modify.h"
#include "rules/object.h"
#include "rules/post.h"

/* The library is built with hidden symbols: what the public header declares is what we export. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop
#undef ibv_query_port /* we mean what these macros wrap */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#include "check/site.h"
#include "check/table.h"

/* ---- what was asked for (options.c) */
struct vrb_chk_options {
	bool data;	      /* compare what is sent at post and at completion */
	const char *log;      /* JSON lines; NULL */
	const char *suppress; /* file; NULL */
	unsigned int wait_ms; /* how long a wait may last before it is looked at */
};
extern struct vrb_chk_options vrb_chk_options;

/* ---- the real functions (real.c) */
void *vrb_chk_real(_Atomic(void *) *cached, const char *name);
#define VRB_REAL(name)                                                                             \
	({                                                                                         \
		static _Atomic(void *) cached_;                                                    \
		(__typeof__(&(name)))vrb_chk_real(&cached_, #name);                                \
	})

/* True between enter and leave: calls that libibverbs makes itself are not looked at. Also true in
 * a forked child, whose parent's objects these are. */
extern __thread int vrb_chk_depth;
extern _Atomic bool vrb_chk_in_child;
static inline bool vrb_chk_off(void)
{
	return vrb_chk_depth || atomic_load_explicit(&vrb_chk_in_child, memory_order_relaxed);
}

/* Locks of shadows: while one is held, what libibverbs and the allocator do is not looked at. */
static inline void vrb_chk_lock(pthread_mutex_t *m)
{
	vrb_chk_depth++;
	pthread_mutex_lock(m);
}

static inline void vrb_chk_unlock(pthread_mutex_t *m)
{
	pthread_mutex_unlock(m);
	vrb_chk_depth--;
}

/* ---- shadows */
struct vrb_chk_ctx {
	struct vrb_chk_obj obj;
	uint32_t id; /* in keys of tables; never 0 */
	struct ibv_context *ibv;
	struct ibv_context_ops ops; /* the real ones */
	struct verbs_context ext;   /* the real slots we replaced */
	struct ibv_device_attr attr;
	bool iwarp;
};

struct vrb_chk_pd {
	struct vrb_chk_obj obj;
	uint32_t id; /* that of the base of a parent domain */
};

struct vrb_chk_region { /* found by context and lkey */
	struct vrb_chk_obj obj;
	struct vrb_mem mem;
	uint64_t addr; /* as in the process */
	uint32_t lkey, rkey, ctx;
};

struct vrb_chk_mr {
	struct vrb_chk_obj obj;
	struct vrb_chk_ctx *ctx;
	uint32_t lkey, rkey;
};

struct vrb_chk_stale { /* found by context and lkey: a region that was */
	struct vrb_chk_obj obj;
	struct vrb_chk_site gone;
};

struct vrb_chk_ref { /* rkey -> region, QPN -> queue pair */
	struct vrb_chk_obj obj;
	void *to;
};

struct vrb_chk_ah {
	struct vrb_chk_obj obj;
	uint32_t pd;
};

struct vrb_chk_channel {
	struct vrb_chk_obj obj;
	struct ibv_comp_channel *ibv;
};

struct vrb_chk_cq {
	struct vrb_chk_obj obj;
	struct vrb_chk_ctx *ctx;
	_Atomic(struct vrb_chk_channel *) channel;
	struct ibv_cq *ibv;
	_Atomic uint32_t polls; /* up to 2 */
	_Atomic bool has_given, is_warned;
	_Atomic uint32_t n_posts; /* of queue pairs on it, refused ones too */
	_Atomic bool is_armed, is_solicited, is_unpolled; /* since it was armed */
	_Atomic uint32_t n_events, n_acked, n_async, n_async_acked;
	/* what a look at a stuck CQ has taken out, for the next poll; under lock */
	pthread_mutex_t lock;
	_Atomic uint32_t n_kept;
	struct ibv_wc kept[16];
	struct ibv_cq_ex ex; /* the real functions */
	_Atomic bool is_ex;
};

enum { VRB_CHK_SIGNALED = 1, VRB_CHK_DONE = 2, VRB_CHK_SUMMED = 4 };

struct vrb_chk_wr {
	uint64_t wr_id;
	void *pc; /* the post's call */
	uint64_t sum;
	uint32_t len;
	uint16_t n_sge;
	uint8_t op, flags;
};

struct vrb_chk_ring {
	struct vrb_chk_wr *wr;
	struct ibv_sge *sge;
	uint32_t size, max_sge; /* size: a power of 2 */
	uint32_t head, tail;
	uint32_t done; /* between them: ended, behind one that has not */
	uint32_t cap;  /* granted */
	uint32_t unsignaled;
};

struct vrb_chk_srq {
	struct vrb_chk_obj obj;
	pthread_mutex_t lock;
	struct vrb_chk_ctx *ctx;
	struct vrb_chk_ring rq;
	uint32_t pd, asked;
	bool has_ud;
	_Atomic bool is_used; /* something was posted */
	_Atomic uint32_t n_qps;
	_Atomic uint32_t n_async, n_async_acked;
};

/* One request to send, as it is checked (post.c). */
struct vrb_chk_ask {
	uint64_t wr_id;
	uint32_t opcode;
	int num_sge;
	const struct ibv_sge *sge;
	uint64_t inline_len;
	bool is_inline, is_signaled;
	const struct ibv_ah *ah;
	uint64_t remote_addr;
	uint32_t rkey;
	void *pc;
};
#define VRB_CHK_BATCH_SGES 32

struct vrb_chk_qp {
	struct vrb_chk_obj obj;
	pthread_mutex_t lock;
	struct vrb_chk_ctx *ctx;
	struct vrb_chk_cq *scq, *rcq;
	struct vrb_chk_srq *srq;
	struct vrb_chk_ring sq, rq;
	uint32_t qpn, type, pd;
	_Atomic uint32_t state;
	uint32_t max_inline, asked_send, asked_recv;
	_Atomic bool sends, receives; /* something was posted, ever */
	bool sig_all;
	/* the way, once it is known; other: the other end, when it is in this process */
	_Atomic(struct vrb_chk_qp *) other;
	uint32_t dest_qpn;
	uint8_t mtu, port, sgid_index;
	struct vrb_gid dgid;
	_Atomic uint32_t n_async, n_async_acked;
	/* ibv_wr_*: between wr_start and wr_complete, under lock */
	struct ibv_qp_ex ex;
	struct {
		uint32_t n;   /* whole */
		bool is_open; /* one more is being built */
		struct vrb_chk_ask ask;
		struct ibv_sge sge[VRB_CHK_BATCH_SGES];
	} batch;
};

/* For those who walk a table: takes the lock when the shadow is in use; else false. */
static inline bool vrb_chk_enter(struct vrb_chk_obj *o, pthread_mutex_t *m)
{
	void *key;

	vrb_chk_lock(m);
	key = atomic_load_explicit(&o->key, memory_order_acquire);
	if (key && key != o)
		return true;
	vrb_chk_unlock(m);
	return false;
}

extern struct vrb_chk_table vrb_chk_ctxs, vrb_chk_pds, vrb_chk_mrs, vrb_chk_regions, vrb_chk_stales,
	vrb_chk_rkeys, vrb_chk_ahs, vrb_chk_channels, vrb_chk_cqs, vrb_chk_srqs, vrb_chk_qps,
	vrb_chk_qpns;

static inline void *vrb_chk_key(uint32_t ctx, uint32_t number)
{
	return (void *)(((uintptr_t)ctx << 32) | number);
}

/* ---- findings (report.c) */
struct vrb_chk_finding {
	struct vrb_report r;
	const char *call;		 /* the verbs call */
	const void *pc;			 /* the program's call, where the stack cannot tell */
	const struct vrb_chk_site *made; /* where the object came from; NULL */
	const char *made_what;		 /* "region registered" */
	const void *posted;		 /* where the work request was posted; NULL */
	const char *detail;		 /* more lines, each ended; NULL */
};
void vrb_chk_report(const struct vrb_chk_finding *f);
/* How many so far, those that were suppressed apart. */
uint64_t vrb_chk_n_findings(void);
/* A finding that has values only. */
#define VRB_CHK_NOTE(name, qp, v, ...)                                                             \
	vrb_chk_report(&(struct vrb_chk_finding){                                                  \
		.r = {.verdict = (v), .qpn = (qp), .val = {__VA_ARGS__}}, .call = (name)})

/* ---- parts that call each other */
struct vrb_chk_ctx *vrb_chk_ctx_of(struct ibv_context *ibv);
void vrb_chk_hook(struct vrb_chk_ctx *c);
/* The device refused a call and no rule says why. */
void vrb_chk_refused(const char *call, vrb_qpn qpn, int err);
/* A call that destroys obj failed because n others need it; the first of them was made at site. */
void vrb_chk_busy(const char *call, enum vrb_object object, uint32_t n,
		  const struct vrb_chk_site *site);
uint32_t vrb_chk_pd_id(struct ibv_pd *pd);
int vrb_chk_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vrb_chk_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int vrb_chk_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int vrb_chk_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vrb_chk_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int vrb_chk_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *vrb_chk_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *a);
struct ibv_qp *vrb_chk_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *a);
struct ibv_srq *vrb_chk_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *a);
struct ibv_mr *vrb_chk_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
				 unsigned int access);
struct ibv_mr *vrb_chk_alloc_null_mr(struct ibv_pd *pd);
struct ibv_pd *vrb_chk_alloc_parent_domain(struct ibv_context *ctx,
					   struct ibv_parent_domain_init_attr *a);

struct vrb_chk_cq *vrb_chk_cq_add(struct ibv_cq *cq);
void vrb_chk_cq_polled(struct vrb_chk_cq *c, bool gave);
void vrb_chk_cq_judge(struct vrb_chk_cq *c); /* what can be said of it when it ends */
void vrb_chk_cq_ex_hook(struct vrb_chk_cq *c);
void vrb_chk_qp_ex_hook(struct vrb_chk_qp *q, struct ibv_qp_ex *ex);
struct vrb_chk_srq *vrb_chk_srq_add(struct ibv_srq *s, const struct ibv_srq_attr *granted,
				    uint32_t asked);
/* One completion, as the program is about to see it. opcode: as the device gave it. */
void vrb_chk_completion(struct vrb_chk_cq *c, const struct ibv_wc *wc);

/* Looks at an address vector; failed: the device refused it. */
void vrb_chk_av(const char *call, struct ibv_context *ctx, const struct ibv_ah_attr *a,
		bool failed);
/* Says so when events of an object stay unacknowledged. */
void vrb_chk_wait_acks(const char *call, enum vrb_object object, const _Atomic uint32_t *given,
		       const _Atomic uint32_t *acked);
/* The port as src/rules wants it for the GID at index, and its active MTU. */
void vrb_chk_port(struct vrb_chk_ctx *c, uint8_t number, uint32_t index,
		  struct vrb_rules_port *port, uint32_t *active_mtu);
/* The index of type RoCE v2 with the GID of index, when that is of type v1; else -1. */
int vrb_chk_better_gid(struct vrb_chk_ctx *c, uint8_t port, uint32_t index);

/* ---- one work request (post.c), under the lock of the queue pair */
/* Checks the n-th request behind the tail and writes its entry; it counts from commit on. */
void vrb_chk_send_check(struct vrb_chk_qp *q, const char *call, const struct vrb_chk_ask *a,
			uint32_t n);
void vrb_chk_send_commit(struct vrb_chk_qp *q, uint32_t n);

/* A chain of receives, for a queue pair or an SRQ. */
struct vrb_chk_recv {
	const char *call;
	struct vrb_chk_ring *ring;
	const struct vrb_chk_site *made;
	vrb_qpn qpn;
	uint32_t ctx, pd;
	bool is_ud;
	void *pc;
};
uint32_t vrb_chk_recv_check(const struct vrb_chk_recv *c, const struct ibv_recv_wr *wr);
void vrb_chk_recv_commit(const struct vrb_chk_recv *c, const struct ibv_recv_wr *wr, uint32_t n,
			 int err, struct ibv_recv_wr *const *bad);
void vrb_chk_check_state(const char *call, struct vrb_chk_qp *q, bool sending);
/* Before a post: counts it as long as the CQ has given nothing, and looks at the CQ when it is the
 * first on this queue. */
void vrb_chk_count_post(struct vrb_chk_qp *q, bool sending);
void vrb_chk_count_srq(struct vrb_chk_srq *s);
void vrb_chk_worst(const char *call, struct vrb_chk_cq *c);

/* ---- rings (ring.c): all under the owner's lock */
void vrb_chk_ring_init(struct vrb_chk_ring *r, uint32_t cap, uint32_t max_sge);
void vrb_chk_ring_clear(struct vrb_chk_ring *r);
/* The n-th entry behind the tail, made room for; NULL without memory. */
struct vrb_chk_wr *vrb_chk_ring_next(struct vrb_chk_ring *r, uint32_t n);
static inline struct vrb_chk_wr *vrb_chk_ring_at(const struct vrb_chk_ring *r, uint32_t i)
{
	return &r->wr[i & (r->size - 1)];
}
static inline struct ibv_sge *vrb_chk_ring_sges(const struct vrb_chk_ring *r, uint32_t i)
{
	return &r->sge[(size_t)(i & (r->size - 1)) * r->max_sge];
}

/* Work requests under way that touch memory or a key (flight.c). */
struct vrb_chk_flight {
	uint64_t addr, len;
	uint32_t lkey, ctx; /* ctx 0: by address */
	/* found */
	uint32_t n;
	uint64_t wr_id;
	const void *pc;
	vrb_qpn qpn;
};
void vrb_chk_flight_find(struct vrb_chk_flight *f);
uint64_t vrb_chk_sum(const struct ibv_sge *sge, uint32_t n);

/* ---- memory that goes away (memory.c) */
void vrb_chk_memory_watch(uint64_t addr, uint64_t len);

#endif
