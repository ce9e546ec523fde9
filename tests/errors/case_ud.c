/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams: the sender's work request succeeds whatever becomes of them; what the receiver drops
 * leaves no trace but the explanation, and takes no receive.
 */
#include "kit.h"

#include <errno.h>
#include <string.h>

static const struct k_opts ud = {.type = IBV_QPT_UD};

/* A good message must arrive in receive 100, which the dropped one has not taken. */
static void want_next_arrives(struct k_pair *p, struct k_mr *mine)
{
	struct k_wr wr = k_wr_send(2, (struct k_sge){mine->addr, 8, mine->lkey});
	struct ibv_wc wc;

	K_WANT_INT(k_send(&p->a, &wr), 0);
	K_WANT_WC(&p->a, K_SQ, 2, IBV_WC_SUCCESS);
	K_CHECK(k_poll(&p->b, K_RQ, K_WAIT_MS, &wc));
	K_WANT_INT((long)wc.wr_id, 100);
	K_WANT_INT(wc.status, IBV_WC_SUCCESS);
	K_WANT_INT((long)wc.byte_len, 48);
	K_CHECK(wc.wc_flags & IBV_WC_GRH);
	K_WANT_INT((long)wc.src_qp, (long)p->a.self.qpn);
	K_WANT_QUIET(&p->b, K_RQ);
}

static void post_receive(struct k_pair *p, uint32_t len)
{
	struct k_mr theirs = k_good(&p->b, 0, len);
	struct k_wr wr = k_wr_send(100, k_whole(&theirs));

	K_WANT_INT(k_recv(&p->b, &wr), 0);
}

static void wrong_qkey(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &ud, &ud);
	mine = k_good(&p.a, 0, 64);
	post_receive(&p, 128);
	wr = k_wr_send(1, k_whole(&mine));
	wr.rkey = 0x22222222; /* on UD the kit takes it as the Q_Key */
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_SAID(&p.b, "drop_qkey", "0x22222222");
	want_next_arrives(&p, &mine);
}

static void short_receive(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &ud, &ud);
	mine = k_good(&p.a, 0, 64);
	post_receive(&p, 64); /* 40 + 64 would be needed */
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_SAID(&p.b, "drop_ud_short", "104");
	want_next_arrives(&p, &mine);
}

static void no_receive(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &ud, &ud);
	mine = k_good(&p.a, 0, 64);
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_SAID(&p.b, "drop_no_recv", NULL);
	post_receive(&p, 128);
	want_next_arrives(&p, &mine);
}

static void too_long(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;
	int err;

	(void)c;
	k_pair(&p, &ud, &ud);
	mine = k_good(&p.a, 0, 8192);
	post_receive(&p, 128);
	wr = k_wr_send(1, k_whole(&mine));
	err = k_send(&p.a, &wr);
	if (err) {
		K_WANT_INT(err, EINVAL);
		K_WANT_SAID(&p.a, "post_length", NULL);
		want_next_arrives(&p, &mine);
		return;
	}
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_LOC_LEN_ERR);
	K_WANT_SAID(&p.a, "ud_too_long", NULL);
}

static void nobody_there(const struct k_case *c)
{
	struct k_opts o = {.type = IBV_QPT_UD, .dest_qpn = 0xfffff0};
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &o, &ud);
	mine = k_good(&p.a, 0, 64);
	for (uint64_t id = 1; id <= 3; id++) {
		wr = k_wr_send(id, k_whole(&mine));
		K_WANT_INT(k_send(&p.a, &wr), 0);
		K_WANT_WC(&p.a, K_SQ, id, IBV_WC_SUCCESS);
	}
	K_WANT_INT(k_state(&p.a), IBV_QPS_RTS);
}

/* clang-format off */
static const struct k_case cases[] = {
	{"wrong_qkey", wrong_qkey, 0, 0, NULL, 0, false},
	{"receive_without_room_for_grh", short_receive, 0, 0, NULL, 0, false},
	{"no_receive", no_receive, 0, 0, NULL, 0, false},
	{"longer_than_a_packet", too_long, 0, 0, NULL, 0, false},
	{"no_such_qp", nobody_there, 0, 0, NULL, 0, false},
};
/* clang-format on */

const struct k_group k_ud_group = {"ud", cases, sizeof(cases) / sizeof(cases[0])};
