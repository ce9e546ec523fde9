/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 of several processes on one address, 127.0.0.1: requests reach the process that has claimed
 * their service id, everything else the owner of the communication id, none another; where nobody
 * listens they are refused. gsi_hostile.c has what must not be believed, tests/e2e/gsi kills
 * members.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/pcapng.h"
#include "box.h"
#include "hca/peer.h"
#include "hca/wire_parts.h"

#define QUIET_MS    100 /* what should not come has not come by then */
#define ALL_FOR_ONE 40u

static struct vrb_wire_addr *addr_of(const struct node *n)
{
	struct vrb_gid self = box_self(n);

	return vrb_wire_find(n->ctx->e->wire, &self);
}

/* ---- nobody listens */

static void refused(void)
{
	struct letter l;
	struct vrb_gid to;
	struct node n;
	struct box *b;
	uint32_t id;

	kit_own_network();
	b = box_begin(&n);
	to = box_self(&n);
	id = box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 7174, 11);
	box_want(b, &l, VRB_CM_REJ, id);
	MUST(l.cm.reason == VRB_CM_REJ_SERVICE_ID && l.cm.about == VRB_CM_ABOUT_REQ);
	MUST(l.cm.tid == 11 && !l.cm.local_id);
	id = box_ask(b, &to, VRB_CM_SIDR_REQ, BOX_SERVICE + 7175, 12);
	box_want(b, &l, VRB_CM_SIDR_REP, id);
	MUST(l.cm.status == VRB_CM_SIDR_NO_SERVICE && l.cm.service_id == BOX_SERVICE + 7175);
	MUST(box_said(VRB_V_CM_NO_LISTENER) == 2);
	box_end(&n, b);
}

/* A packet as if it had come; len of what is behind the headers. */
static bool give(struct node *n, const struct vrb_pkt *form, const uint8_t *body, bool from_socket)
{
	struct vrb_udp_packet p = {.net = {.src = box_self(n), .dst = box_self(n), .ttl = 64}};
	uint8_t bytes[VRB_ROCE_PACKET_MAX];
	struct vrb_pkt pkt;
	size_t len = vrb_pkt_emit_headers(form, bytes);
	bool done;

	memcpy(bytes + len, body, form->len);
	p.bytes = bytes;
	p.len = (uint32_t)len + form->len;
	MUST(vrb_pkt_parse(p.bytes, p.len, &pkt, NULL) == VRB_OK);
	done = vrb_gsi_take(n->ctx->e, addr_of(n), &p, &pkt, from_socket);
	return done;
}

/* A scan is answered so far, and no further. */
static void flood(void)
{
	struct vrb_cm cm = {.kind = VRB_CM_REQ, .local_id = 0x12345678, .service_id = BOX_SERVICE};
	uint8_t mad[VRB_MAD_LEN];
	uint64_t answered, not ;
	struct node n;
	struct box *b;

	kit_own_network();
	b = box_begin(&n);
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e); /* one second, as nobody looks at the clock meanwhile */
	for (uint32_t i = 0; i < 1500; i++)
		MUST(give(&n, &box_form, mad, true));
	answered = box_said(VRB_V_CM_NO_LISTENER);
	not = box_said(VRB_V_CM_UNANSWERED);
	vrb_engine_unlock(n.ctx->e);
	MUST(answered == 1000 && not == 500);
	box_close(b); /* of the answers, which are for an id that nobody has */
	node_close(&n);
}

/* ---- claims */

enum order { CLAIM = 1, RELEASE, TAKE, ANSWER, CARRIED, END };

/* Packets that this process has carried to others. */
static uint32_t n_carried(struct vrb_engine *e)
{
	uint32_t n = 0;

	vrb_engine_lock(e);
	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++)
		if (e->peer[slot] && e->peer[slot]->tx_open)
			n += (uint32_t)e->peer[slot]->tx.head;
	vrb_engine_unlock(e);
	return n;
}

/* A member does what it is told: an order, and a port or a word. */
static int member(int sock, void *arg)
{
	struct letter l = {0};
	struct node n;
	struct box *b = box_begin(&n);

	(void)arg;
	put_u32(sock, n.ctx->e->slot);
	for (;;) {
		uint32_t order = get_u32(sock), what = get_u32(sock), id;

		switch (order) {
		case CLAIM:
			put_u32(sock, (uint32_t)-vrb_gsi_claim(n.ctx, BOX_SERVICE + what));
			break;
		case RELEASE:
			vrb_gsi_release(n.ctx, BOX_SERVICE + what);
			put_u32(sock, 0);
			break;
		case TAKE: /* what: ms; 0 back: nothing came */
			put_u32(sock, box_take(b, &l, (int)what) ? box_word(&l) : 0);
			break;
		case CARRIED:
			put_u32(sock, n_carried(n.ctx->e));
			break;
		case ANSWER:
			id = vrb_gsi_new_id(n.ctx);
			box_write(b, &l.src, VRB_CM_REP, (struct box_ids){id, l.cm.local_id}, what);
			put_u32(sock, id);
			break;
		default:
			box_end(&n, b);
			return 0;
		}
	}
}

static uint32_t tell(struct child *c, enum order order, uint32_t what)
{
	put_u32(c->sock, order);
	put_u32(c->sock, what);
	return get_u32(c->sock);
}

static void dismiss(struct child *c)
{
	put_u32(c->sock, END);
	put_u32(c->sock, 0);
	child_join(c);
}

static void claims(void)
{
	struct child c;
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;
	uint32_t id;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	child_start(&c, member, NULL);
	(void)get_u32(c.sock);
	b = box_begin(&n);
	to = box_self(&n);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + 1));
	MUST(vrb_gsi_claim(n.ctx, BOX_SERVICE + 1) == -EADDRINUSE);
	MUST(box_said(VRB_V_CM_SERVICE_TAKEN) == 1);
	MUST(tell(&c, CLAIM, 1) == EADDRINUSE);
	(void)box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 1, 21);
	box_want(b, &l, VRB_CM_REQ, 0);
	MUST(box_word(&l) == 21 && l.cm.service_id == BOX_SERVICE + 1);
	MUST(!tell(&c, TAKE, QUIET_MS));
	/* it changes hands */
	vrb_gsi_release(n.ctx, BOX_SERVICE + 1);
	MUST(!tell(&c, CLAIM, 1));
	(void)box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 1, 22);
	MUST(tell(&c, TAKE, WAIT_MS) == 22);
	(void)box_ask(b, &to, VRB_CM_SIDR_REQ, BOX_SERVICE + 1, 23);
	MUST(tell(&c, TAKE, WAIT_MS) == 23);
	/* released, it is refused; and so when its owner has died */
	MUST(!tell(&c, RELEASE, 1));
	id = box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 1, 24);
	box_want(b, &l, VRB_CM_REJ, id);
	MUST(!tell(&c, CLAIM, 1));
	child_kill(&c);
	id = box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 1, 25);
	box_want(b, &l, VRB_CM_REJ, id);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + 1));
	box_end(&n, b);
}

static int hold(int sock, void *arg)
{
	(void)arg;
	(void)get_u32(sock);
	return 0;
}

/* A forked child does not keep what its parent has claimed. */
static void forked(void)
{
	struct child c;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	b = box_begin(&n);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + 1));
	child_start(&c, hold, NULL);
	vrb_gsi_release(n.ctx, BOX_SERVICE + 1);
	for (double end = now_s() + WAIT_MS / 1e3; vrb_gsi_claim(n.ctx, BOX_SERVICE + 1);
	     usleep(500))
		MUST(now_s() < end);
	put_u32(c.sock, 0);
	child_join(&c);
	box_end(&n, b);
}

static void limits(void)
{
	struct node n;
	struct box *b;

	kit_own_network();
	node_open(&n, false);
	MUST(vrb_gsi_claim(n.ctx, BOX_SERVICE) == -ENOTCONN);
	b = box_open(n.ctx);
	for (uint32_t i = 0; i < VRB_GSI_CLAIMS; i++) {
		int err = vrb_gsi_claim(n.ctx, BOX_SERVICE + i);

		if (err == -EMFILE)
			_exit(77); /* this user may have few descriptors */
		MUST(!err);
	}
	MUST(vrb_gsi_claim(n.ctx, BOX_SERVICE + VRB_GSI_CLAIMS) == -ENOSPC);
	vrb_gsi_release(n.ctx, BOX_SERVICE + 5);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + VRB_GSI_CLAIMS));
	box_end(&n, b);
}

/* ---- several processes */

/* Each has a service, and is answered by its id; the sender is one of them. */
static void owners(void)
{
	struct child c[3];
	uint32_t id[3], mine[3];
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	for (uint32_t i = 0; i < 3; i++) {
		child_start(&c[i], member, NULL);
		(void)get_u32(c[i].sock);
		MUST(!tell(&c[i], CLAIM, 100 + i));
	}
	b = box_begin(&n);
	to = box_self(&n);
	for (uint32_t i = 0; i < 3; i++) {
		mine[i] = box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 100 + i, 31 + i);
		MUST(tell(&c[i], TAKE, WAIT_MS) == 31 + i);
		id[i] = tell(&c[i], ANSWER, 41 + i);
		box_want(b, &l, VRB_CM_REP, mine[i]);
		MUST(box_word(&l) == 41 + i && l.cm.local_id == id[i]);
	}
	for (uint32_t k = 0; k < ALL_FOR_ONE; k++)
		for (uint32_t i = 0; i < 3; i++)
			box_write(b, &to, k % 2 ? VRB_CM_DREQ : VRB_CM_RTU,
				  (struct box_ids){mine[i], id[i]}, 1000 * (i + 1) + k);
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < ALL_FOR_ONE; k++)
			MUST(tell(&c[i], TAKE, WAIT_MS) / 1000 == i + 1);
		MUST(!tell(&c[i], TAKE, QUIET_MS));
		dismiss(&c[i]);
	}
	box_end(&n, b);
}

/* Once members have come, the kernel's program knows: nothing is carried. */
static void steered(void)
{
	uint32_t slot[3], quiet = 0, last = UINT32_MAX;
	struct child c[3];
	struct vrb_gid to;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	for (uint32_t i = 0; i < 3; i++) {
		child_start(&c[i], member, NULL);
		slot[i] = get_u32(c[i].sock);
	}
	b = box_begin(&n);
	to = box_self(&n);
	for (double end = now_s() + WAIT_MS / 1e3; quiet < 20; usleep(1000)) {
		uint32_t sum = n_carried(n.ctx->e);

		MUST(now_s() < end);
		for (uint32_t i = 0; i < 3; i++) {
			box_write(b, &to, i % 2 ? VRB_CM_RTU : VRB_CM_SIDR_REP,
				  (struct box_ids){1, slot[i] << 24 | 77}, 7);
			MUST(tell(&c[i], TAKE, WAIT_MS) == 7);
		}
		for (uint32_t i = 0; i < 3; i++)
			sum += tell(&c[i], CARRIED, 0);
		quiet = sum == last ? quiet + 1 : 0;
		last = sum;
	}
	for (uint32_t i = 0; i < 3; i++)
		dismiss(&c[i]);
	box_end(&n, b);
}

/* The kernel gave it to the wrong one: by the ring to its owner, who is not asked twice. */
static void carried(void)
{
	struct vrb_cm cm = {.kind = VRB_CM_DREQ, .data_len = 4};
	uint8_t mad[VRB_MAD_LEN];
	uint32_t word = 51, slot;
	struct child c;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	child_start(&c, member, NULL);
	slot = get_u32(c.sock);
	b = box_begin(&n);
	cm.remote_id = slot << 24 | 5;
	cm.data = (const uint8_t *)&word;
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e);
	MUST(give(&n, &box_form, mad, true));
	vrb_engine_ring_bells(n.ctx->e);
	vrb_engine_unlock(n.ctx->e);
	MUST(tell(&c, TAKE, WAIT_MS) == 51);
	/* one that another has handed to us goes no further */
	vrb_engine_lock(n.ctx->e);
	MUST(give(&n, &box_form, mad, false));
	vrb_engine_unlock(n.ctx->e);
	MUST(box_said(VRB_V_CM_NO_OWNER) == 1);
	MUST(!tell(&c, TAKE, QUIET_MS));
	/* a request that was handed over, and its claim released meanwhile */
	cm.kind = VRB_CM_REQ;
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e);
	MUST(give(&n, &box_form, mad, false));
	vrb_engine_unlock(n.ctx->e);
	MUST(box_said(VRB_V_CM_BUSY) == 1 && !box_said(VRB_V_CM_NO_LISTENER));
	dismiss(&c);
	box_end(&n, b);
}

/* A listener that does not run is not refused for: its requests wait, and what does not fit is
 * lost. */
static void stopped(void)
{
	struct vrb_cm cm = {.kind = VRB_CM_REQ, .service_id = BOX_SERVICE + 1, .data_len = 4};
	uint32_t word = 61, n_given = 0;
	uint8_t mad[VRB_MAD_LEN];
	struct child c;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	child_start(&c, member, NULL);
	(void)get_u32(c.sock);
	MUST(!tell(&c, CLAIM, 1));
	b = box_begin(&n);
	child_stop(&c);
	cm.data = (const uint8_t *)&word;
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e);
	for (; !box_said(VRB_V_CM_BUSY); n_given++)
		MUST(give(&n, &box_form, mad, true) && n_given < 1000);
	vrb_engine_unlock(n.ctx->e);
	MUST(!box_said(VRB_V_CM_NO_LISTENER) && n_given > 100);
	kill(c.pid, SIGCONT);
	for (uint32_t i = 0; i + 1 < n_given; i++)
		MUST(tell(&c, TAKE, WAIT_MS) == 61);
	MUST(!tell(&c, TAKE, QUIET_MS));
	dismiss(&c);
	box_end(&n, b);
}

/* ---- the capture names them */

static bool has_text(int fd, const char *text)
{
	static char bytes[1u << 20];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	return n > 0 && memmem(bytes, (size_t)n, text, strlen(text));
}

static void recorded(void)
{
	uint8_t head[VRB_PCAPNG_HEAD_MAX];
	size_t n_head = vrb_pcapng_emit_head(head, "test");
	char path[] = "/tmp/verbena-gsi.XXXXXX";
	int fd = mkstemp(path);
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;
	uint32_t id;

	kit_own_network();
	MUST(fd >= 0 && write(fd, head, n_head) == (ssize_t)n_head);
	MUST(!setenv("VERBENA_CAPTURE", path, 1));
	b = box_begin(&n);
	unlink(path);
	to = box_self(&n);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + 1));
	(void)box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 1, 91);
	box_want(b, &l, VRB_CM_REQ, 0);
	id = box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 2, 92);
	box_want(b, &l, VRB_CM_REJ, id);
	box_end(&n, b);
	MUST(has_text(fd, "sender QP 0x000001: CM REQ service_id=0x1060001"));
	MUST(has_text(fd, "receiver QP 0x000001: CM REQ service_id=0x1060001"));
	MUST(has_text(fd, "no process of this user listens there"));
	MUST(has_text(fd, "sender QP 0x000001: CM REJ"));
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {{"refused", refused}, {"flood", flood},
						{"claims", claims},   {"forked", forked},
						{"limits", limits},   {"owners", owners},
						{"steered", steered}, {"carried", carried},
						{"stopped", stopped}, {"recorded", recorded}};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
