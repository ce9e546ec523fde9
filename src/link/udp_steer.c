/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several processes of a user on one address: their sockets form a SO_REUSEPORT group, and a
 * classic BPF program in the kernel picks the member by the destination QPN, whose upper byte is
 * the slot of its owner; or, for QP 1, by the communication id of who gets the message, likewise.
 * (A request names a service only: the lowest slot gets it and finds out whose it is.) Any member
 * may attach the program anew, under a lock (an abstract Unix name, freed by the kernel when its
 * owner ends).
 *
 * A member's index in the group cannot be computed: when a socket closes, the last one takes its
 * place. So indices are probed. For a datagram with the opcode PROBE, which RoCEv2 does not use,
 * the program returns the index that the datagram names; whoever receives it answers with its slot.
 * An index beyond the group falls back to a hash, so the smallest one answered counts. When nobody
 * has attached a program yet, one member alone answers them all; then a program that knows probes
 * only is attached first, and they are sent again.
 */
#include "link/udp.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/filter.h>
#include <sys/random.h>
#include <sys/un.h>

#include "link/udp_addr.h"
#include "link/udp_parts.h"
#include "wire/mad.h"

#define PROBE	     0xffu
#define ROUND	     8u /* probes under way together */
#define ROUNDS	     (256u / ROUND)
#define ANSWER_NS    (200 * VRB_NS_PER_MS) /* who has not answered by then is stopped */
#define AGAIN_NS     (20 * VRB_NS_PER_MS)  /* between two times, doubled while nothing changes */
#define AGAIN_MAX_NS (2 * VRB_NS_PER_S)
#define NOT_A_MEMBER 0xffffu
#define SLOTS	     256u
#define SLOT_PART    13u
#define MAD	     (VRB_BTH_LEN + VRB_DETH_LEN) /* where one begins in its packet */

struct probe {
	uint8_t opcode, index, magic[2];
	uint8_t nonce[8];
	uint8_t is_answer, slot, pad[2];
};

struct vrb_udp_steer {
	uint32_t slot;
	bool wanted, tried_bare;
	bool company; /* others of the address have been heard of */
	bool has_left;
	int lock_fd, probe_fd;	  /* -1: nothing under way */
	uint32_t round, answered; /* bits of this round */
	bool news;		  /* this round has found a member */
	vrb_ns sent_at, next_at, pause;
	uint8_t nonce[8];
	uint16_t index[SLOTS]; /* being probed */
	uint16_t table[SLOTS]; /* as last attached */
};

static const uint8_t magic[2] = {'V', 'b'};

int vrb_udp_steer_open(struct vrb_udp *u, uint32_t slot)
{
	struct vrb_udp_steer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->slot = slot;
	s->lock_fd = s->probe_fd = -1;
	s->wanted = true;
	memset(s->table, 0xff, sizeof(s->table));
	u->steer = s;
	return 0;
}

static void let_go(struct vrb_udp_steer *s)
{
	if (s->probe_fd >= 0)
		close(s->probe_fd);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	s->probe_fd = s->lock_fd = -1;
}

void vrb_udp_steer_close(struct vrb_udp *u)
{
	if (!u->steer)
		return;
	let_go(u->steer);
	free(u->steer);
	u->steer = NULL;
}

void vrb_udp_steer_disown(struct vrb_udp *u)
{
	let_go(u->steer);
}

/* One steering of an address at a time. */
static bool take_lock(struct vrb_udp *u)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const uint8_t *g = u->gid.raw;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), n;

	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena.%u.steer.", geteuid());
	for (int i = 0; i < 16; i++)
		n += snprintf(a.sun_path + 1 + n, 3, "%02x", g[i]);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&a,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
		u->steer->lock_fd = fd;
		return true;
	}
	if (fd >= 0)
		close(fd);
	return false;
}

/* ---- the program */

/* The slot that a packet names, into the accumulator; a request to QP 1 returns at once. */
static unsigned short put_slot(struct sock_filter *code, uint16_t lowest)
{
	const struct sock_filter part[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, VRB_QPN_MASK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRB_GSI_QPN, 0, 9),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, MAD + VRB_MAD_AT_ATTRIBUTE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRB_CM_REQ, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRB_CM_SIDR_REQ, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, lowest),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, VRB_CM_SIDR_REP, 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, MAD + VRB_MAD_AT_LOCAL_ID),
		BPF_STMT(BPF_JMP | BPF_JA, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, MAD + VRB_MAD_AT_REMOTE_ID),
		BPF_STMT(BPF_JMP | BPF_JA, 1),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 5), /* of the QPN */
	};

	_Static_assert(sizeof(part) == SLOT_PART * sizeof(part[0]), "has its room");
	memcpy(code, part, sizeof(part));
	return SLOT_PART;
}

static uint16_t lowest_member(const uint16_t *index)
{
	uint32_t slot = 0;

	while (index && slot < SLOTS - 1 && index[slot] == NOT_A_MEMBER)
		slot++;
	return index ? index[slot] : NOT_A_MEMBER;
}

static int attach(struct vrb_udp *u, const uint16_t *index)
{
	struct sock_filter code[2 * SLOTS + SLOT_PART + 8];
	struct sock_fprog prog = {.filter = code};
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0);
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROBE, 0, 2);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 1);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	n = (unsigned short)(n + put_slot(code + n, lowest_member(index)));
	for (uint32_t slot = 0; index && slot < SLOTS; slot++) {
		if (index[slot] == NOT_A_MEMBER)
			continue;
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, index[slot]);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, NOT_A_MEMBER);
	prog.len = n;
	return setsockopt(u->rx_fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog))
		       ? -errno
		       : 0;
}

/* ---- probing */

static void send_round(struct vrb_udp *u, vrb_ns now)
{
	struct vrb_udp_steer *s = u->steer;
	struct probe p = {.opcode = PROBE, .magic = {magic[0], magic[1]}};
	union vrb_udp_addr to;
	socklen_t n = vrb_udp_addr(&to, &u->gid, u->ifindex, VRB_ROCE_PORT);

	memcpy(p.nonce, s->nonce, sizeof(p.nonce));
	for (uint32_t i = 0; i < ROUND; i++) {
		p.index = (uint8_t)(s->round * ROUND + i);
		(void)sendto(s->probe_fd, &p, sizeof(p), MSG_DONTWAIT, &to.sa, n);
	}
	s->answered = 0;
	s->news = false;
	s->sent_at = now;
}

static void begin(struct vrb_udp *u, vrb_ns now)
{
	struct vrb_udp_steer *s = u->steer;

	if (now < s->next_at || !take_lock(u))
		return;
	s->probe_fd = vrb_udp_socket(u);
	if (s->probe_fd < 0 ||
	    getrandom(s->nonce, sizeof(s->nonce), GRND_NONBLOCK) != sizeof(s->nonce)) {
		let_go(s);
		return;
	}
	s->round = 0;
	memset(s->index, 0xff, sizeof(s->index));
	send_round(u, now);
}

static void take_answers(struct vrb_udp_steer *s)
{
	struct probe p;

	for (uint32_t i = 0; i < 2 * ROUND; i++) {
		ssize_t n = recv(s->probe_fd, &p, sizeof(p), MSG_DONTWAIT);

		if (n < 0)
			return;
		if (n != sizeof(p) || p.opcode != PROBE || !p.is_answer ||
		    memcmp(p.nonce, s->nonce, sizeof(p.nonce)) || p.index / ROUND != s->round)
			continue;
		s->answered |= 1u << p.index % ROUND;
		if (s->index[p.slot] == NOT_A_MEMBER)
			s->news = true;
		if (p.index < s->index[p.slot])
			s->index[p.slot] = p.index;
	}
}

/* Of the group, as far as we know, with some who may have come since. */
static uint32_t last_index(const struct vrb_udp_steer *s)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (s->table[i] != NOT_A_MEMBER && s->table[i] > last)
			last = s->table[i];
	last += ROUND;
	return last < SLOTS ? last : SLOTS - 1;
}

static uint32_t n_members(const struct vrb_udp_steer *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		n += s->index[i] != NOT_A_MEMBER;
	return n;
}

static void finish(struct vrb_udp *u, vrb_ns now)
{
	struct vrb_udp_steer *s = u->steer;
	bool found = s->index[s->slot] != NOT_A_MEMBER;

	if ((!found || n_members(s) == 1) && !s->tried_bare) {
		s->tried_bare = true;
		(void)attach(u, NULL);
		s->round = 0;
		memset(s->index, 0xff, sizeof(s->index));
		send_round(u, now);
		return;
	}
	(void)attach(u, s->index);
	s->pause = memcmp(s->table, s->index, sizeof(s->table)) ? AGAIN_NS : s->pause * 2;
	if (s->pause > AGAIN_MAX_NS)
		s->pause = AGAIN_MAX_NS;
	memcpy(s->table, s->index, sizeof(s->table));
	s->next_at = now + s->pause;
	s->company = n_members(s) > found;
	/* who does not find itself tries again */
	s->wanted = !found;
	s->tried_bare = false;
	let_go(s);
}

bool vrb_udp_steer_step(struct vrb_udp *u, vrb_ns now)
{
	struct vrb_udp_steer *s = u->steer;

	if (!s->wanted)
		return false;
	if (s->probe_fd < 0) {
		begin(u, now);
		return true;
	}
	take_answers(s);
	if (s->answered != (1u << ROUND) - 1 && now - s->sent_at < ANSWER_NS)
		return true;
	if (s->news && s->round + 1 < ROUNDS) {
		s->round++;
		send_round(u, now);
		return true;
	}
	finish(u, now);
	return s->wanted;
}

/*
 * Closing a member's socket would lose what comes for others in that moment: the kernel first takes
 * it out of the group and then from its table, and gives it all packets in between. One that is
 * bound to an interface which does not exist is passed over, and leaves the group with that.
 */
void vrb_udp_leave(struct vrb_udp *u)
{
	struct vrb_udp_steer *s = u->steer;
	const int nowhere = INT_MAX;

	if (s->has_left)
		return;
	s->has_left = true;
	s->wanted = false;
	let_go(s);
	/* who sees one knows that sockets move, before anything is overtaken */
	s->probe_fd = s->company ? vrb_udp_socket(u) : -1;
	for (s->round = 0; s->probe_fd >= 0 && s->round * ROUND <= last_index(s); s->round++)
		send_round(u, 0);
	let_go(s);
	/* Linux before 5.7 refuses it, and a link-local address: then that moment is left */
	(void)setsockopt(u->rx_fd, SOL_SOCKET, SO_BINDTOIFINDEX, &nowhere, sizeof(nowhere));
}

void vrb_udp_steer_stranger(struct vrb_udp *u, vrb_ns now)
{
	struct vrb_udp_steer *s = u->steer;

	/* Peers of a process that has ended go on sending for a while: hence the pause. */
	if (now >= s->next_at && !s->has_left)
		s->wanted = true;
}

bool vrb_udp_steer_is_probe(const struct vrb_udp *u, const struct vrb_net *net, const uint8_t *at,
			    uint32_t len)
{
	return len == sizeof(struct probe) && at[0] == PROBE && !memcmp(at + 2, magic, 2) &&
	       !memcmp(&net->src, &u->gid, sizeof(u->gid));
}

void vrb_udp_steer_answer(struct vrb_udp *u, const struct vrb_net *net, const uint8_t *at)
{
	union vrb_udp_addr to;
	socklen_t n = vrb_udp_addr(&to, &net->src, u->ifindex, net->sport);
	struct probe p;

	memcpy(&p, at, sizeof(p));
	if (p.is_answer)
		return;
	u->n_probed++;
	if (u->steer->probe_fd < 0 || memcmp(p.nonce, u->steer->nonce, sizeof(p.nonce)))
		u->steer->company = true;
	p.is_answer = 1;
	p.slot = (uint8_t)u->steer->slot;
	(void)sendto(u->rx_fd, &p, sizeof(p), MSG_DONTWAIT, &to.sa, n);
}
