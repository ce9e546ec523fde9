/* SPDX-License-Identifier: BSD-2-Clause */
/* A letter box at QP 1: what comes for this process is kept until the test takes it, and letters
 * are written from values (wire/mad.h). */
#ifndef TESTS_HCA_BOX_H
#define TESTS_HCA_BOX_H

#include "hca/gsi_parts.h"
#include "kit.h"

#define BOX_MAX	    2048u
#define BOX_SERVICE 0x0000000001060000ull /* + port, as rdma_cm has it */

struct letter {
	struct vrb_gid src, dst;
	struct vrb_cm cm; /* points into bytes */
	uint8_t bytes[VRB_MAD_LEN];
};

struct box {
	struct vrb_hctx *ctx;
	uint32_t n_in, n_out; /* run free */
	struct letter at[BOX_MAX];
};

struct box *box_open(struct vrb_hctx *ctx);
void box_close(struct box *b);
/* The next that comes within ms. */
bool box_take(struct box *b, struct letter *out, int ms);
/* A REQ or SIDR_REQ with our new communication id, which is returned; it carries `word`. */
uint32_t box_ask(struct box *b, const struct vrb_gid *to, enum vrb_cm_kind kind,
		 uint64_t service_id, uint32_t word);
struct box_ids {
	uint32_t local, remote;
};
/* Any other message. */
void box_write(struct box *b, const struct vrb_gid *to, enum vrb_cm_kind kind, struct box_ids id,
	       uint32_t word);
uint32_t box_word(const struct letter *l); /* that it carries */
uint64_t box_said(enum vrb_verdict v);

extern const struct vrb_pkt box_form; /* of a packet that brings a message */

/* A node with a box, and its address. At the end nothing may be left in the box. */
struct box *box_begin(struct node *n);
void box_end(struct node *n, struct box *b);
struct vrb_gid box_self(const struct node *n);
/* The next that comes, which must be this. */
void box_want(struct box *b, struct letter *l, enum vrb_cm_kind kind, uint32_t remote_id);

#endif
