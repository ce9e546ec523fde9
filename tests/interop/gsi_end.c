/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	gsi_end ADDRESS refuse PORT...	claims the service ids of the ports; refuses what comes for
 *them gsi_end ADDRESS accept PORT...	likewise; accepts, and says what comes by communication id
 *	gsi_end ADDRESS all PEER	sends one message of each kind
 *
 * An end of QP 1 that is no connection manager, for tests/interop. A line for each message: its
 * dump, "data" and the private data in hexadecimal.
 */
#include <arpa/inet.h>
#include <string.h>

#include "hca/box.h"
#include "hca/kit.h"

#define SPACE_TCP 0x0000000001060000ull
#define SPACE_UDP 0x0000000001110000ull

static struct vrb_gid gid_of(const char *address)
{
	struct vrb_gid g = {{[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET6, address, g.raw) != 1)
		MUST(inet_pton(AF_INET, address, g.raw + 12) == 1);
	return g;
}

static void say(const struct letter *l)
{
	char words[200];

	(void)vrb_cm_dump(words, sizeof(words), &l->cm);
	printf("%s data ", words);
	for (uint32_t i = 0; i < l->cm.data_len; i++)
		printf("%02x", l->cm.data[i]);
	printf("\n");
	fflush(stdout);
}

static void reply(struct box *b, const struct letter *l, struct vrb_cm *cm)
{
	struct vrb_gsi_to to = {.dgid = l->src};
	uint8_t mad[VRB_MAD_LEN];

	cm->tid = l->cm.tid;
	cm->remote_id = l->cm.local_id;
	cm->service_id = l->cm.service_id;
	MUST(vrb_cm_emit(cm, mad));
	while (memcmp(&b->ctx->dev->gid[to.sgid_index].gid, &l->dst, sizeof(l->dst)))
		MUST(++to.sgid_index < b->ctx->dev->n_gids);
	MUST(!vrb_gsi_send(b->ctx, &to, mad));
}

static void refuse(struct box *b, const struct letter *l)
{
	struct vrb_cm rej = {.kind = VRB_CM_REJ,
			     .reason = VRB_CM_REJ_CONSUMER,
			     .data = (const uint8_t *)"no",
			     .data_len = 2};
	struct vrb_cm rep = {.kind = VRB_CM_SIDR_REP, .status = 2}; /* rejected by the service */

	if (l->cm.kind == VRB_CM_REQ)
		reply(b, l, &rej);
	else if (l->cm.kind == VRB_CM_SIDR_REQ)
		reply(b, l, &rep);
}

/* A queue pair that does not exist: the connection is one of words only. */
static void accept_it(struct box *b, const struct letter *l)
{
	struct vrb_cm rep = {.kind = VRB_CM_REP,
			     .local_id = vrb_gsi_new_id(b->ctx),
			     .qpn = b->ctx->e->slot << 16 | 0x1234,
			     .psn = l->cm.psn,
			     .resources = 1,
			     .depth = 1,
			     .ack_delay = 15,
			     .rnr_retry = 7,
			     .guid = 0x56524221};
	struct vrb_cm drep = {.kind = VRB_CM_DREP, .local_id = l->cm.remote_id};

	if (l->cm.kind == VRB_CM_REQ)
		reply(b, l, &rep);
	else if (l->cm.kind == VRB_CM_DREQ)
		reply(b, l, &drep);
}

static void __attribute__((noreturn)) serve(struct box *b, bool accepts)
{
	struct letter l;

	printf("ready, slot %u\n", b->ctx->e->slot);
	fflush(stdout);
	for (;;) {
		if (!box_take(b, &l, WAIT_MS))
			continue;
		say(&l);
		(accepts ? accept_it : refuse)(b, &l);
	}
}

static void send_all(struct box *b, const struct vrb_gid *to)
{
	struct letter l;

	for (uint32_t kind = VRB_CM_REQ; kind <= VRB_CM_APR; kind++) {
		struct box_ids id = {vrb_gsi_new_id(b->ctx), 0x05000001};

		if (vrb_cm_asks(kind))
			(void)box_ask(b, to, kind, SPACE_TCP + 7174, kind);
		else
			box_write(b, to, kind, id, kind);
	}
	while (box_take(b, &l, 500)) /* refusals */
		say(&l);
}

int main(int argc, char **argv)
{
	struct vrb_hdev *list[VRB_DEVICES_MAX];
	int n = vrb_hca_devices(list);
	struct vrb_hctx *ctx = NULL;
	struct vrb_gid gid;
	struct box *b;

	MUST(argc > 2);
	gid = gid_of(argv[1]);
	for (int d = 0; d < n && !ctx; d++)
		for (uint32_t i = 0; i < list[d]->n_gids && !ctx; i++)
			if (list[d]->gid[i].valid && !memcmp(&list[d]->gid[i].gid, &gid, 16))
				MUST(!vrb_hctx_open(list[d], &ctx));
	MUST(ctx);
	b = box_open(ctx);
	if (!strcmp(argv[2], "all")) {
		gid = gid_of(argv[3]);
		send_all(b, &gid);
		box_close(b);
		vrb_hctx_close(ctx);
		return 0;
	}
	for (int i = 3; i < argc; i++) {
		MUST(!vrb_gsi_claim(ctx, SPACE_TCP + (uint32_t)atoi(argv[i])));
		MUST(!vrb_gsi_claim(ctx, SPACE_UDP + (uint32_t)atoi(argv[i])));
	}
	serve(b, !strcmp(argv[2], "accept"));
}
