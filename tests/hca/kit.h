/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the engine have in common: a node (a context with a PD, a CQ and a region) over
 * hca.h, children joined by sockets, and a rogue: a process that speaks the meeting protocol by
 * hand and says what it likes. Everything that must hold and does not ends the process with a line
 * on stderr. A process has one engine, so two nodes that are to meet over a ring live in two
 * processes.
 */
#ifndef TESTS_HCA_KIT_H
#define TESTS_HCA_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/meet.h"
#include "hca/data.h"
#include "link/shm.h"
#include "support/cases.h"

#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			kit_die(__FILE__, __LINE__, #cond);                                        \
	} while (0)
void kit_die(const char *file, int line, const char *what) __attribute__((noreturn));

#define NODE_LEN (64u << 10)

/* ThreadSanitizer cannot follow a child that makes threads after its parent had some. */
#ifdef __SANITIZE_THREAD__
#define SKIP_FORK_OF_THREADS() _exit(77)
/* It puts a handler off until the thread makes a call that it knows to block: futexes are not. */
#define SKIP_SIGNALS() _exit(77)
#else
#define SKIP_FORK_OF_THREADS() ((void)0)
#define SKIP_SIGNALS()	       ((void)0)
#endif

struct node {
	struct vrb_hctx *ctx;
	struct vrb_hpd *pd;
	struct vrb_hchan *chan;
	struct vrb_hcq *cq;
	struct vrb_hmr *mr;
	uint8_t *buf;
};

/* Memory of another node. */
struct node_at {
	uint64_t addr;
	uint32_t rkey, len;
};

/* chan: the CQ gets a completion channel. Opening ends with 77 when there is no device. */
void node_open(struct node *n, bool chan);
void node_close(struct node *n);
int node_try_open(struct vrb_hctx **ctx);
struct vrb_hqp *node_qp(struct node *n, enum vrb_qp_type type); /* in INIT, UD in RTS */
int node_connect(struct vrb_hqp *q, vrb_qpn dqpn);		/* to RTS */
int node_to(struct vrb_hqp *q, enum vrb_qp_state state);	/* RESET, ERR, SQD, RTS */
void node_recv(struct node *n, struct vrb_hqp *q, uint64_t id);
void node_send(struct node *n, struct vrb_hqp *q, uint64_t id, uint32_t len);
/* By the straight way that the face takes: direct when it may be. */
void node_write(struct node *n, struct vrb_hqp *q, uint64_t id, const struct node_at *at);
void node_send_ud(struct node *n, struct vrb_hqp *q, const struct vrb_av *av, vrb_qpn qpn);
/* One completion within 10 s; its id must be the one given. Returns the status. */
enum vrb_wc_status node_wc(struct node *n, uint64_t id);
bool node_has_wc(struct node *n, struct vrb_wc *wc, int ms);
int count_fds(void);
double now_s(void);
double cpu_s(void); /* CPU time of this process */

/* A child with a socket to it; fn's return is its exit status. */
struct child {
	pid_t pid;
	int sock;
};
void child_start(struct child *c, int (*fn)(int sock, void *arg), void *arg);
void child_join(struct child *c); /* must have ended well */
void child_kill(struct child *c);
void child_stop(struct child *c); /* none of its threads runs any more */
void put(int sock, const void *p, size_t n);
void get(int sock, void *p, size_t n);
void put_u32(int sock, uint32_t v);
uint32_t get_u32(int sock);

/* A network namespace with nothing but lo, which is then the only device; ends with 77 when this
 * user can have none. */
void kit_own_network(void);
/* The same for who is root, and keeps all users. */
void kit_own_network_as_root(void);

/* ---- the rogue */
struct rogue {
	uint32_t slot;
	int listen, to, from;	   /* our name; connection to the victim; its connection to us */
	struct vrb_shm_map tx, rx; /* our ring to it, its ring to us */
	int tx_fd, bell_mem, bell, export;
	uint32_t head; /* of tx */
};

bool rogue_try_claim(struct rogue *r); /* false: all slots are taken */
void rogue_claim(struct rogue *r);
int rogue_connect(uint32_t slot);
int rogue_say(int sock, const struct vrb_meet_hello *h, const int *fds, unsigned n);
struct vrb_meet_hello rogue_hello(const struct rogue *r);
void rogue_make(struct rogue *r); /* the descriptors of a good hello */
/* Takes the connection that the victim makes to our name, and maps its ring. */
void rogue_accept(struct rogue *r, uint32_t victim);
/* The whole handshake as it should be: afterwards both rings are mapped. */
void rogue_join(struct rogue *r, uint32_t victim);
bool rogue_heard_end(int sock, int ms); /* the victim closed the connection */
/* One line into our ring. */
struct rogue_line {
	uint8_t op, flags;
	uint16_t index;
	uint32_t psn, ack;
	const void *body;
	uint32_t body_len;
};
void rogue_write(struct rogue *r, const struct rogue_line *l);

#endif
