/* SPDX-License-Identifier: BSD-2-Clause */
/* A member of the mesh (mesh.h): four queue pairs, SENDs of random length and READs, all checked.
 */
#include "mesh.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MSG	 2048u
#define SENDS	 6u
#define RECVS	 16u
#define AT_SENDS (4u << 10) /* in front: what the peer READs */
#define AT_RECVS (AT_SENDS + SENDS * MSG)
#define AT_READ	 (AT_RECVS + RECVS * MSG)
#define REGION	 (AT_READ + MSG)
#define RECV	 (1ull << 32)
#define READ	 (1ull << 33)
#define TELL_S	 0.05

enum state { FRESH, CONNECTED, RUNNING, ENDING };

struct head {
	uint32_t who, life;
	uint64_t seq;
};

struct line {
	struct end e;
	struct end_id peer;
	enum state state;
	uint32_t epoch, peer_who, peer_life;
	uint32_t busy; /* send slots with a WQE, as bits; bit SENDS: a READ */
	uint32_t recvs;
	uint64_t tx, rx, count;
	int status;
};

static struct line line[MESH_N];
static uint32_t me, my_life;
static uint64_t seed;
static int control;

static uint8_t pattern(uint32_t who, uint32_t life, uint64_t i)
{
	return (uint8_t)(who * 37 + life * 11 + i * 3);
}

static void tell(struct mesh_msg *m)
{
	if (send(control, m, sizeof(*m), MSG_NOSIGNAL) != (ssize_t)sizeof(*m))
		_exit(0); /* the controller has ended */
}

static void offer(uint32_t j)
{
	struct line *l = &line[j];
	struct mesh_msg m = {.type = MESH_ID, .j = j, .epoch = ++l->epoch, .id = l->e.id};

	l->state = FRESH;
	l->busy = l->recvs = 0;
	l->tx = l->rx = 0;
	l->status = 0;
	tell(&m);
}

static void renew(uint32_t j)
{
	struct end *e = &line[j].e;
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
					.recv_cq = e->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {e->opts.send_wr, e->opts.recv_wr, 1, 1, 0}};

	MUST(!ibv_destroy_qp(e->qp));
	MUST((e->qp = ibv_create_qp(e->pd, &init)) != NULL);
	e->id.qpn = e->qp->qp_num;
	end_init(e);
	offer(j);
}

static void post_recv(struct line *l, uint64_t at)
{
	MUST(!end_recv(&l->e, RECV | at, AT_RECVS + at * MSG, MSG));
	l->recvs++;
}

static void connect_to(const struct mesh_msg *m)
{
	struct line *l = &line[m->j];
	struct mesh_msg ready = {.type = MESH_READY, .j = m->j, .epoch = m->epoch};

	l->peer = m->id;
	l->peer_life = m->life;
	for (uint64_t i = 0; i < RECVS; i++)
		post_recv(l, i);
	end_connect(&l->e, &m->id);
	l->state = CONNECTED;
	tell(&ready);
}

static void on_msg(const struct mesh_msg *m)
{
	struct line *l = &line[m->j];

	if (m->epoch != l->epoch)
		return;
	if (m->type == MESH_CONNECT && l->state == FRESH)
		connect_to(m);
	else if (m->type == MESH_GO && l->state == CONNECTED)
		l->state = RUNNING;
	else if (m->type == MESH_RENEW && l->state == CONNECTED)
		renew(m->j);
}

/* ---- traffic */

static void post_send(struct line *l, uint32_t slot)
{
	uint8_t *at = l->e.buf + AT_SENDS + slot * MSG;
	uint32_t len = (uint32_t)(sizeof(struct head) + rnd(&seed) % (MSG - sizeof(struct head)));
	struct head h = {me, my_life, l->tx};

	memcpy(at, &h, sizeof(h));
	for (uint32_t i = sizeof(h); i < len; i++)
		at[i] = pattern(me, my_life, l->tx + i);
	MUST(!end_send(&l->e, slot, AT_SENDS + slot * MSG, len, IBV_SEND_SIGNALED));
	l->busy |= 1u << slot;
	l->tx++;
}

static void post_read(struct line *l)
{
	struct ibv_sge sge = {(uintptr_t)l->e.buf + AT_READ, MSG, l->e.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = READ,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_READ,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {l->peer.addr, l->peer.rkey}};

	memset(l->e.buf + AT_READ, 0, MSG);
	MUST(!ibv_post_send(l->e.qp, &wr, &bad));
	l->busy |= 1u << SENDS;
}

static void refill(struct line *l)
{
	for (uint32_t slot = 0; slot < SENDS; slot++)
		if (!(l->busy & 1u << slot))
			post_send(l, slot);
	if (!(l->busy & 1u << SENDS))
		post_read(l);
}

static void check_recv(struct line *l, const struct ibv_wc *wc)
{
	const uint8_t *at = l->e.buf + AT_RECVS + (wc->wr_id & 0xff) * MSG;
	struct head h;

	memcpy(&h, at, sizeof(h));
	if (h.who != l->peer_who || h.life != l->peer_life || h.seq != l->rx)
		die("member %u: message %llu of member %u, life %u; wanted %llu of %u, life %u", me,
		    (unsigned long long)h.seq, h.who, h.life, (unsigned long long)l->rx,
		    l->peer_who, l->peer_life);
	for (uint32_t i = sizeof(h); i < wc->byte_len; i++)
		if (at[i] != pattern(h.who, h.life, h.seq + i))
			die("member %u: byte %u of message %llu of member %u is wrong", me, i,
			    (unsigned long long)h.seq, h.who);
	l->rx++;
}

static void check_read(const struct line *l)
{
	for (uint32_t i = 0; i < MSG; i++)
		if (l->e.buf[AT_READ + i] != pattern(l->peer_who, l->peer_life, i))
			die("member %u: byte %u of a READ from member %u is wrong", me, i,
			    l->peer_who);
}

static void on_wc(struct line *l, const struct ibv_wc *wc)
{
	uint64_t id = wc->wr_id;

	if (id & RECV)
		l->recvs--;
	else
		l->busy &= ~(1u << (id & READ ? SENDS : id));
	if (wc->status != IBV_WC_SUCCESS) {
		l->state = ENDING;
		if (!l->status)
			l->status = (int)wc->status;
		return;
	}
	if (l->state == ENDING)
		die("member %u: a success after a failure", me);
	if (id & RECV) {
		check_recv(l, wc);
		post_recv(l, id & 0xff);
	} else if (id & READ) {
		check_read(l);
	}
	l->count++;
}

/* True when something came. */
static bool serve(uint32_t j)
{
	struct line *l = &line[j];
	struct mesh_msg lost = {.type = MESH_LOST, .j = j, .epoch = l->epoch};
	struct ibv_wc wc;
	bool some = false;

	for (int i = 0; i < 32 && ibv_poll_cq(l->e.cq, 1, &wc) == 1; i++) {
		on_wc(l, &wc);
		some = true;
	}
	if (l->state == RUNNING)
		refill(l);
	if (l->state == ENDING && !l->busy && !l->recvs) {
		lost.status = l->status;
		tell(&lost);
		renew(j);
	}
	return some;
}

static void listen_to_controller(void)
{
	struct mesh_msg m;
	ssize_t n;

	while ((n = recv(control, &m, sizeof(m), MSG_DONTWAIT)) == (ssize_t)sizeof(m))
		on_msg(&m);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		_exit(0);
}

static void tell_counts(double *next)
{
	struct mesh_msg m = {.type = MESH_COUNT};
	double now = now_s();

	if (now < *next)
		return;
	*next = now + TELL_S;
	for (uint32_t j = 0; j < MESH_N; j++)
		m.count[j] = line[j].count;
	tell(&m);
}

void mesh_member(int sock, uint32_t who, uint32_t life)
{
	struct ibv_context *ctx = end_device();
	struct end_opts o = {.ctx = ctx, .len = REGION, .timeout = 17, .retry = 7};
	double next = 0;

	control = sock;
	me = who;
	my_life = life;
	seed = (uint64_t)who << 32 | (life + 1);
	for (uint32_t j = 0; j < MESH_N; j++) {
		end_open(&line[j].e, &o);
		for (uint32_t i = 0; i < AT_SENDS; i++)
			line[j].e.buf[i] = pattern(me, my_life, i);
		line[j].peer_who = (who / MESH_N ? 0 : MESH_N) + j;
		offer(j);
	}
	for (uint32_t turn = 0, idle = 0;; turn++) {
		bool some = false;

		for (uint32_t j = 0; j < MESH_N; j++)
			some |= serve(j);
		idle = some ? 0 : idle + 1;
		if (idle % 16 == 15)
			usleep(200);
		else
			sched_yield();
		if (turn % 16 == 0) {
			listen_to_controller();
			tell_counts(&next);
		}
	}
}
