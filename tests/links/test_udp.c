/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP link on loopback, two ends that share an address (slots 1 and 2) in a network namespace
 * of the test's own: order and bytes, sends that the kernel cuts, whose packets come to whom, an
 * identification that nobody sees, and what is no packet.
 */
#include "support/test.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "link/udp.h"

#define PATIENCE 200000u /* looks at an empty socket */
#define SLOTS	 6u

static const struct vrb_gid v4 = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
static const struct vrb_gid v6 = {{[15] = 1}};
static struct vrb_udp *end[SLOTS]; /* by slot */
static struct vrb_udp_batch batch;
static uint8_t payload[VRB_MTU_MAX];

static bool own_namespace(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r))
		return false;
	close(fd);
	return true;
}

static vrb_ns now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vrb_ns)t.tv_sec * VRB_NS_PER_S + (vrb_ns)t.tv_nsec;
}

/* 1, -1, or 0 when nothing comes for a long time. */
static int receive(struct vrb_udp *u, struct vrb_udp_packet *p, struct vrb_report *why)
{
	for (uint32_t i = 0; i < PATIENCE; i++) {
		int r = vrb_udp_next(u, p, why);

		if (r)
			return r;
		(void)vrb_udp_fill(u);
	}
	return 0;
}

static void open_ends(const struct vrb_gid *gid, uint32_t n)
{
	struct vrb_udp_packet p;
	struct vrb_report why;
	bool busy = true;

	for (uint32_t slot = 1; slot <= n; slot++)
		assert_int_equal(vrb_udp_open(gid, 1, slot, &end[slot]), 0);
	for (uint32_t turn = 0; busy && turn < 1000000; turn++) {
		busy = false;
		for (uint32_t slot = 1; slot <= n; slot++) {
			busy |= vrb_udp_steer_step(end[slot], now());
			(void)vrb_udp_fill(end[slot]);
			assert_int_equal(vrb_udp_next(end[slot], &p, &why), 0);
		}
	}
	assert_false(busy);
}

static void close_end(uint32_t slot)
{
	vrb_udp_close(end[slot]);
	end[slot] = NULL;
}

static void close_ends(uint32_t n)
{
	for (uint32_t slot = 1; slot <= n; slot++)
		close_end(slot);
}

static uint8_t tclass = 0x68;

static void push(struct vrb_udp *from, uint32_t slot, uint32_t psn, uint32_t len)
{
	const struct vrb_udp_flow f = {.dst = from->gid, .lane = 3, .tclass = tclass};
	const struct vrb_pkt pkt = {.op = vrb_opcode(VRB_TP_UC, VRB_OP_SEND_ONLY),
				    .pkey = 0xffff,
				    .dqpn = slot << VRB_QPN_INDEX_BITS | 77,
				    .psn = vrb_psn(psn),
				    .len = len};
	const struct vrb_seg seg[] = {{payload, len / 3}, {payload + len / 3, len - len / 3}};

	memset(payload, (int)(psn * 7 + 1), len);
	vrb_udp_push(&batch, from, &f, &pkt, seg);
}

static void want(struct vrb_udp *u, uint32_t psn, uint32_t len)
{
	struct vrb_udp_packet p;
	struct vrb_report why;
	struct vrb_pkt pkt;

	assert_int_equal(receive(u, &p, &why), 1);
	assert_int_equal(vrb_pkt_parse(p.bytes, p.len, &pkt, &why), VRB_OK);
	assert_int_equal(pkt.psn.v, psn);
	assert_int_equal(pkt.len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(pkt.payload[i], (uint8_t)(psn * 7 + 1));
	assert_int_equal(p.net.tclass, tclass);
	assert_memory_equal(&p.net.src, &u->gid, sizeof(u->gid));
	assert_true(p.net.sport >= VRB_UDP_PORT_MIN);
}

/* Equal ones, shorter and longer ones, in sends of every length. */
static void in_order(const struct vrb_gid *gid)
{
	uint32_t sent = 0, got = 0, len[400];

	open_ends(gid, 1);
	for (uint32_t burst = 1; sent + burst < 400; burst++) {
		for (uint32_t i = 0; i < burst; i++, sent++) {
			len[sent] = burst % 3 ? 1024 : (sent * 977) % (VRB_MTU_MAX + 1);
			push(end[1], 1, sent, len[sent]);
		}
		vrb_udp_flush(&batch);
		for (; got < sent; got++)
			want(end[1], got, len[got]);
	}
	assert_int_equal(end[1]->n_send_failed, 0);
	assert_true(end[1]->n_sends < sent);
	close_ends(1);
}

static void test_in_order(void **state)
{
	(void)state;
	in_order(&v4);
	in_order(&v6);
	/* without control messages */
	tclass = 0;
	in_order(&v4);
	in_order(&v6);
	tclass = 0x68;
}

static void test_steering(void **state)
{
	struct vrb_udp_packet p;
	struct vrb_report why;

	(void)state;
	open_ends(&v4, 2);
	for (uint32_t i = 0; i < 100; i++) {
		push(end[1], 1 + i % 2, i, 64);
		vrb_udp_flush(&batch);
		want(end[1 + i % 2], i, 64);
		(void)vrb_udp_fill(end[2 - i % 2]);
		assert_int_equal(vrb_udp_next(end[2 - i % 2], &p, &why), 0);
	}
	/* the first socket of the group goes: the other takes its index */
	close_end(1);
	vrb_udp_steer_stranger(end[2], now() + VRB_NS_PER_S);
	for (uint32_t i = 0; i < 1000000 && vrb_udp_steer_step(end[2], now()); i++) {
		(void)vrb_udp_fill(end[2]);
		assert_int_equal(vrb_udp_next(end[2], &p, &why), 0);
	}
	push(end[2], 2, 5, 64);
	vrb_udp_flush(&batch);
	want(end[2], 5, 64);
	close_end(2);
}

/* Until nobody has anything to find out. */
static void steer_all(vrb_ns at)
{
	struct vrb_udp_packet p;
	struct vrb_report why;
	bool busy = true;

	for (uint32_t turn = 0; busy && turn < 1000000; turn++) {
		busy = false;
		for (uint32_t slot = 1; slot < SLOTS; slot++) {
			if (!end[slot])
				continue;
			busy |= vrb_udp_steer_step(end[slot], at);
			(void)vrb_udp_fill(end[slot]);
			assert_int_equal(vrb_udp_next(end[slot], &p, &why), 0);
		}
	}
	assert_false(busy);
}

/* What is there now. */
static bool next_now(struct vrb_udp *u, struct vrb_udp_packet *p)
{
	struct vrb_report why;
	int r = vrb_udp_next(u, p, &why);

	if (r == 0 && vrb_udp_fill(u))
		r = vrb_udp_next(u, p, &why);
	assert_true(r >= 0);
	return r == 1;
}

/* One packet for each slot that is open; the first one that has got another's is told so. */
static bool all_find_home(uint32_t psn, vrb_ns at)
{
	struct vrb_udp_packet p;
	bool exact = true;

	for (uint32_t to = 1; to < SLOTS; to++) {
		if (!end[to])
			continue;
		push(end[to], to, psn, 64);
		vrb_udp_flush(&batch);
	}
	for (uint32_t slot = 1; slot < SLOTS; slot++) {
		uint32_t n = 0;

		while (end[slot] && next_now(end[slot], &p)) {
			n += p.bytes[5] == slot;
			if (p.bytes[5] == slot)
				continue;
			exact = false;
			vrb_udp_steer_stranger(end[slot], at);
		}
		exact &= !end[slot] || n == 1;
	}
	return exact;
}

/* Members come and go in any order: exact at once when one has come, and after one stranger's
 * packet when one has gone. */
static void test_churn(void **state)
{
	struct vrb_prng rng = vrb_prng_seed(4791);
	vrb_ns at = now();

	(void)state;
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t slot = 1 + (uint32_t)(vrb_prng_next(&rng) % (SLOTS - 1));

		at += 10 * VRB_NS_PER_S;
		if (end[slot]) {
			close_end(slot);
			if (!all_find_home(round, at)) {
				steer_all(at);
				assert_true(all_find_home(round, at));
			}
		} else {
			assert_int_equal(vrb_udp_open(&v4, 1, slot, &end[slot]), 0);
			steer_all(at);
			assert_true(all_find_home(round, at));
		}
	}
	for (uint32_t slot = 1; slot < SLOTS; slot++)
		if (end[slot])
			close_end(slot);
}

/* Bytes from a socket of nobody; the ICRC is that of a packet with this ID and flag. */
static void send_raw(uint32_t len, uint16_t id, bool df, bool spoil)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct vrb_net n = {.src = v4, .dst = v4, .df = df, .ip_id = id, .dport = VRB_ROCE_PORT};
	uint8_t bytes[200] = {VRB_TP_UC | VRB_OP_SEND_ONLY, 0, 0xff, 0xff, 0, 1, 0, 77}, net[48];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t size = sizeof(a);

	assert_int_equal(bind(fd, (void *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (void *)&a, &size), 0);
	n.sport = ntohs(a.sin_port);
	if (len >= 16)
		vrb_icrc_store(vrb_icrc_start(net, vrb_net_emit(&n, len, net), bytes, len - 4),
			       bytes + len - 4);
	if (spoil)
		bytes[13] ^= 1;
	a.sin_port = htons(VRB_ROCE_PORT);
	assert_int_equal(sendto(fd, bytes, len, 0, (void *)&a, sizeof(a)), len);
	close(fd);
}

static void test_hidden_id(void **state)
{
	static const uint16_t id[] = {0, 1, 2, 0xbeef, 0xbef0, 0x8000, 0xffff, 0};
	struct vrb_udp_packet p;
	struct vrb_report why;

	(void)state;
	open_ends(&v4, 1);
	for (uint32_t i = 0; i < 16; i++) {
		send_raw(24 + 4 * i, id[i % 8], i < 8, false);
		assert_int_equal(receive(end[1], &p, &why), 1);
		assert_int_equal(p.net.ip_id, id[i % 8]);
		assert_int_equal(p.len, 20 + 4 * i);
	}
	close_ends(1);
}

static void test_no_packets(void **state)
{
	struct vrb_udp_packet p;
	struct vrb_report why;

	(void)state;
	open_ends(&v4, 1);
	for (uint32_t len = 0; len < 16; len++) {
		send_raw(len, 0, true, false);
		assert_int_equal(receive(end[1], &p, &why), -1);
		assert_int_equal(why.verdict, VRB_V_DROP_SHORT);
	}
	for (uint32_t len = 20; len < 200; len += 4) {
		send_raw(len, 0, true, true);
		assert_int_equal(receive(end[1], &p, &why), -1);
		assert_int_equal(why.verdict, VRB_V_DROP_ICRC);
	}
	push(end[1], 1, 9, 100);
	vrb_udp_flush(&batch);
	want(end[1], 9, 100);
	close_ends(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),   cmocka_unit_test(test_steering),
		cmocka_unit_test(test_churn),	   cmocka_unit_test(test_hidden_id),
		cmocka_unit_test(test_no_packets),
	};

	if (!own_namespace()) {
		printf("no network namespace of our own: skipped\n");
		return 77;
	}
	return VRB_RUN_TESTS(tests);
}
