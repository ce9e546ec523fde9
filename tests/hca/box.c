/* SPDX-License-Identifier: BSD-2-Clause */
#include "box.h"

#include <string.h>

const struct vrb_pkt box_form = {.op.v = VRB_TP_UD | VRB_OP_SEND_ONLY,
				 .pkey = 0xffff,
				 .dqpn = VRB_GSI_QPN,
				 .qkey = VRB_GSI_QKEY,
				 .sqpn = VRB_GSI_QPN,
				 .len = VRB_MAD_LEN};

static void on_letter(void *arg, const struct vrb_gsi_mad *mad)
{
	struct box *b = arg;
	struct letter *l = &b->at[b->n_in % BOX_MAX];

	MUST(b->n_in - b->n_out < BOX_MAX);
	l->src = mad->src;
	l->dst = mad->dst;
	memcpy(l->bytes, mad->bytes, VRB_MAD_LEN);
	b->n_in++;
}

struct box *box_open(struct vrb_hctx *ctx)
{
	struct box *b = calloc(1, sizeof(*b));

	MUST(b);
	b->ctx = ctx;
	MUST(!vrb_gsi_open(ctx, on_letter, b));
	return b;
}

void box_close(struct box *b)
{
	vrb_gsi_close(b->ctx);
	free(b);
}

bool box_take(struct box *b, struct letter *out, int ms)
{
	double end = now_s() + ms / 1000.0;
	bool got;

	for (;;) {
		vrb_engine_lock(b->ctx->e);
		got = b->n_in != b->n_out;
		if (got)
			*out = b->at[b->n_out++ % BOX_MAX];
		vrb_engine_unlock(b->ctx->e);
		if (got)
			break;
		if (now_s() > end)
			return false;
		usleep(200);
	}
	MUST(vrb_cm_parse(out->bytes, VRB_MAD_LEN, &out->cm, NULL) == VRB_OK);
	return true;
}

static void send_one(struct box *b, const struct vrb_gid *to, struct vrb_cm *cm, uint32_t word)
{
	struct vrb_gsi_to where = {.dgid = *to};
	uint8_t mad[VRB_MAD_LEN];

	cm->data = (const uint8_t *)&word;
	cm->data_len = sizeof(word);
	cm->tid = word;
	MUST(vrb_cm_emit(cm, mad));
	while (vrb_gid_is_ipv4(&b->ctx->dev->gid[where.sgid_index].gid) != vrb_gid_is_ipv4(to))
		MUST(++where.sgid_index < b->ctx->dev->n_gids);
	(void)vrb_gsi_send(b->ctx, &where, mad);
}

uint32_t box_ask(struct box *b, const struct vrb_gid *to, enum vrb_cm_kind kind,
		 uint64_t service_id, uint32_t word)
{
	struct vrb_cm cm = {.kind = kind,
			    .local_id = vrb_gsi_new_id(b->ctx),
			    .service_id = service_id,
			    .pkey = 0xffff};

	MUST(cm.local_id >> 24 == b->ctx->e->slot);
	send_one(b, to, &cm, word);
	return cm.local_id;
}

void box_write(struct box *b, const struct vrb_gid *to, enum vrb_cm_kind kind, struct box_ids id,
	       uint32_t word)
{
	struct vrb_cm cm = {.kind = kind, .local_id = id.local, .remote_id = id.remote};

	send_one(b, to, &cm, word);
}

uint32_t box_word(const struct letter *l)
{
	uint32_t word;

	memcpy(&word, l->cm.data, sizeof(word));
	return word;
}

uint64_t box_said(enum vrb_verdict v)
{
	return vrb_peek(&vrb_engine_current->stats->verdict[v]);
}

struct vrb_gid box_self(const struct node *n)
{
	return n->ctx->dev->gid[0].gid;
}

struct box *box_begin(struct node *n)
{
	node_open(n, false);
	return box_open(n->ctx);
}

void box_end(struct node *n, struct box *b)
{
	struct letter l;

	MUST(!box_take(b, &l, 0));
	box_close(b);
	node_close(n);
}

void box_want(struct box *b, struct letter *l, enum vrb_cm_kind kind, uint32_t remote_id)
{
	MUST(box_take(b, l, WAIT_MS));
	MUST(l->cm.kind == kind && l->cm.remote_id == remote_id);
}
