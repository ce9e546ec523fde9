/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends that talk over the public verbs API, for tests that do something wrong on purpose.
 *
 *	one process:    case --- k_do --> end A        two processes:  case --- k_do ----> end A
 *	                     \-- k_do --> end B                             \-- socket --> end B
 *
 * An end owns a context, two PDs, an arena of memory and one QP with two CQs. Everything a case
 * does to an end is a request of plain values, so that the far end may live in a forked process and
 * the same case runs both ways. Each case runs in a process of its own: a failed check prints where
 * and ends it.
 */
#ifndef TESTS_ERRORS_KIT_H
#define TESTS_ERRORS_KIT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define K_ARENA	   (512u << 10) /* bytes of memory each end has; MRs are parts of it */
#define K_SGES	   4
#define K_MRS	   32
#define K_WAIT_MS  60000 /* longest wait for something that must come */
#define K_QUIET_MS 25	 /* how long something that must not come is waited for */

/* What an end is made of. Zero means the default in brackets. */
struct k_opts {
	enum ibv_qp_type type;		 /* [RC] */
	uint32_t send_wr, recv_wr, sges; /* [32, 32, 4] */
	uint32_t inline_max;		 /* [64] */
	uint32_t cqe;			 /* of each CQ [128] */
	uint32_t srq_wr;		 /* 0: no SRQ */
	uint32_t access;		 /* qp_access_flags [all three]; K_NO_ACCESS: none */
	uint32_t qkey;			 /* [0x11111111] */
	int rnr_retry, retry_cnt;	 /* [7, 7]; -1: 0 */
	int rnr_timer, timeout;		 /* [1 (10 us), 14 (67 ms)] */
	int rd_atomic, dest_rd_atomic;	 /* [4, 4]; -1: 0 */
	enum ibv_qp_state stop;		 /* last state connect goes to [RTS]; K_STAY: RESET */
	enum ibv_mtu mtu;		 /* [1024] */
	uint32_t dest_qpn;		 /* instead of the peer's number */
	uint32_t dest_v4;		 /* instead of the peer's address */
	uint32_t rq_psn;		 /* [0xfffffe, as sq_psn] */
	bool sig_none;			 /* sq_sig_all is 0 anyway; kept for readers */
};
#define K_NO_ACCESS 0x80000000u
#define K_STAY	    IBV_QPS_UNKNOWN

struct k_addr {
	union ibv_gid gid;
	uint32_t qpn;
};

struct k_mr {
	uint64_t addr;
	uint32_t len, lkey, rkey;
	int id;
};

struct k_sge {
	uint64_t addr;
	uint32_t len, lkey;
};

/* A send or receive work request in plain values. */
struct k_wr {
	uint64_t id;
	enum ibv_wr_opcode op;
	unsigned int flags; /* IBV_SEND_SIGNALED is added unless K_UNSIGNALED */
	int n_sge;
	struct k_sge sge[K_SGES];
	uint32_t imm; /* or the key to invalidate */
	uint64_t remote_addr, add, swap;
	uint32_t rkey;
};
#define K_UNSIGNALED 0x40000000u

enum k_cq { K_SQ, K_RQ };

struct k_end {
	int sock;  /* to the process the end lives in, or -1: here */
	pid_t pid; /* of that process */
	struct ibv_context *ctx;
	struct ibv_pd *pd[2];
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr[K_MRS];
	uint8_t *arena;
	struct k_opts opts;
	struct k_addr self, peer;
};

struct k_pair {
	struct k_end a, b;
};

/* ---- making */
/* Both ends opened and, as far as their options say, connected. NULL options: the defaults. */
void k_pair(struct k_pair *p, const struct k_opts *a, const struct k_opts *b);
void k_open(struct k_end *e, const struct k_opts *o);
/* Fills attr for one transition of a connected QP as the options say; returns the mask. */
int k_attr(const struct k_end *e, enum ibv_qp_state to, struct ibv_qp_attr *attr);

/* ---- requests to an end; those that return int return the verb's errno */
int k_reg(struct k_end *e, int pd, uint32_t off, uint32_t len, int access, struct k_mr *mr);
int k_dereg(struct k_end *e, const struct k_mr *mr);
int k_send(struct k_end *e, const struct k_wr *wr);
int k_recv(struct k_end *e, const struct k_wr *wr);
int k_modify(struct k_end *e, enum ibv_qp_state to);
enum ibv_qp_state k_state(struct k_end *e);
void k_poke(struct k_end *e, uint64_t addr, const void *from, uint32_t len);
void k_peek(struct k_end *e, uint64_t addr, void *to, uint32_t len);
/* Next completion of a CQ within ms; false when none came. */
bool k_poll(struct k_end *e, enum k_cq cq, int ms, struct ibv_wc *wc);
/* True when an async event of that type came within ms (others on the way are dropped). */
bool k_event(struct k_end *e, enum ibv_event_type type, int ms);
/* True when the end's process has printed "verbena: <counter>:" with text in the same line. */
bool k_said(struct k_end *e, const char *counter, const char *text);
void k_destroy_qp(struct k_end *e);
void k_own_network(void); /* a namespace with nothing but lo; or the case is skipped */

/* ---- short forms */
struct k_sge k_whole(const struct k_mr *mr);
/* A good region of len bytes at the arena's page number, with every right. */
struct k_mr k_good(struct k_end *e, uint32_t page, uint32_t len);
struct k_wr k_wr_send(uint64_t id, struct k_sge sge);
struct k_wr k_wr_rdma(uint64_t id, enum ibv_wr_opcode op, struct k_sge sge, uint64_t addr,
		      uint32_t rkey);
double k_now(void); /* seconds */

/* ---- checks; each ends the case with a message when it fails */
void k_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)))
__attribute__((noreturn));
void k_skip(const char *why) __attribute__((noreturn));
void k_want_wc_at(const char *at, int line, struct k_end *e, enum k_cq cq, uint64_t id,
		  enum ibv_wc_status status);
void k_want_quiet_at(const char *at, int line, struct k_end *e, enum k_cq cq);

#define K_CHECK(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			k_fail(__FILE__, __LINE__, "not true: %s", #cond);                         \
	} while (0)
#define K_WANT_INT(call, want)                                                                     \
	do {                                                                                       \
		long got_ = (call), want_ = (want);                                                \
		if (got_ != want_)                                                                 \
			k_fail(__FILE__, __LINE__, "%s: got %ld, want %ld (%s)", #call, got_,      \
			       want_, #want);                                                      \
	} while (0)
#define K_WANT_WC(e, cq, id, status) k_want_wc_at(__FILE__, __LINE__, e, cq, id, status)
#define K_WANT_QUIET(e, cq)	     k_want_quiet_at(__FILE__, __LINE__, e, cq)
#define K_WANT_SAID(e, counter, text)                                                              \
	do {                                                                                       \
		if (!k_said(e, counter, text))                                                     \
			k_fail(__FILE__, __LINE__, "no explanation '%s' with '%s'", counter,       \
			       (text) ? (text) : "");                                              \
	} while (0)
#define K_WANT_EVENT(e, type)                                                                      \
	do {                                                                                       \
		if (!k_event(e, type, K_WAIT_MS))                                                  \
			k_fail(__FILE__, __LINE__, "no async event %s", #type);                    \
	} while (0)

/* ---- the table of cases */
struct k_case {
	const char *name;
	void (*run)(const struct k_case *c);
	int i, j;	  /* what the row is about; its meaning is the case's own */
	const char *said; /* the counter its explanation carries */
	int want;	  /* an errno or a completion status */
	bool local;	  /* has no far end: run once only */
};
struct k_group {
	const char *name;
	const struct k_case *cases;
	size_t n;
};
/* Of this program: groups.c. */
extern const struct k_group *const k_groups[];
extern const size_t k_n_groups;

/* Set by the runner: where the far end of the next pair lives. */
extern bool k_two_processes;
/* Not NULL: the file of the network namespace in which its process lives. */
extern const char *k_far_network;
void k_log_start(void);	     /* from now on stderr goes to a file that k_said reads */
int k_run_far_end(int sock); /* main loop of the process of a far end */
extern int k_real_stderr;    /* stderr as it was before k_log_start */

#endif
