/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract of link/link.h, one body for every link: the simulated wire alone, and with each
 * interposer around one end (doing nothing, so that the frames can be predicted).
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/prng.h"
#include "link/fault.h"
#include "link/sim.h"

#define FRAME_MAX 1500u
#define QUEUE_MAX 64u
#define LATENCY	  1000u

static const struct vrb_fault_conf harmless = {.seed = 1, .per_million = 0, .until = VRB_NS_NEVER};

enum kind { SIM, LOSS, DUPLICATE, REORDER, CORRUPT, DELAY, STACK, N_KINDS };

static const char *const kind_name[] = {"sim",	   "loss",  "duplicate", "reorder",
					"corrupt", "delay", "stack"};

static struct vrb_link *wrap(struct vrb_link *l, enum kind kind)
{
	struct vrb_link *out = l;
	int err = 0;

	switch (kind) {
	case SIM:
		break;
	case LOSS:
		err = vrb_loss_open(l, &harmless, NULL, &out);
		break;
	case DUPLICATE:
		err = vrb_duplicate_open(l, &harmless, 100, &out);
		break;
	case REORDER:
		err = vrb_reorder_open(l, &harmless, 100, &out);
		break;
	case CORRUPT:
		err = vrb_corrupt_open(l, &harmless, &out);
		break;
	case DELAY:
		err = vrb_delay_open(l, &harmless, 500, 100, &out);
		break;
	case STACK:
		for (int k = LOSS; k < STACK; k++)
			out = wrap(out, (enum kind)k);
		break;
	case N_KINDS:
	default:
		fail();
	}
	assert_int_equal(err, 0);
	return out;
}

static void open_pair(enum kind kind, struct vrb_link *end[2])
{
	const struct vrb_sim_conf conf = {FRAME_MAX, QUEUE_MAX, LATENCY, 80};

	assert_int_equal(vrb_sim_open(&conf, end), 0);
	end[0] = wrap(end[0], kind);
	end[1] = wrap(end[1], kind);
}

/* Frame i: its number, then bytes that depend on it; in two or three pieces. */
static uint32_t send_frame(struct vrb_link *l, uint32_t i, uint32_t len, vrb_ns now)
{
	uint8_t bytes[FRAME_MAX + 1];
	uint32_t cut = len / 3;
	const struct vrb_seg seg[3] = {{bytes, cut}, {NULL, 0}, {bytes + cut, len - cut}};
	const struct vrb_link_tx tx = {seg, 3};

	memset(bytes, (int)(i * 7 + 1), len);
	if (len >= sizeof(i))
		memcpy(bytes, &i, sizeof(i));
	return vrb_link_send(l, &tx, 1, now);
}

static void check_frame(const struct vrb_link_rx *rx, uint32_t i, uint32_t len)
{
	assert_int_equal(rx->len, len);
	if (len >= sizeof(i))
		assert_memory_equal(rx->bytes, &i, sizeof(i));
	for (uint32_t k = sizeof(i); k < len; k++)
		assert_int_equal(rx->bytes[k], (uint8_t)(i * 7 + 1));
}

/* Receives until the link is idle, jumping to its deadlines; returns how many. */
static uint32_t drain(struct vrb_link *l, vrb_ns *now)
{
	struct vrb_link_rx rx[VRB_LINK_BURST];
	uint32_t total = 0, n;

	for (unsigned turn = 0; turn < 10000; turn++) {
		n = vrb_link_recv(l, rx, VRB_LINK_BURST, *now);
		total += n;
		if (n)
			continue;
		if (vrb_link_next_deadline(l) == VRB_NS_NEVER)
			return total;
		assert_true(vrb_link_next_deadline(l) > *now);
		*now = vrb_link_next_deadline(l);
	}
	fail_msg("the link never becomes idle");
	return 0;
}

/* Order, lengths, bytes; both directions; random bursts. */
static void order(enum kind kind)
{
	struct vrb_prng rng = vrb_prng_seed(7);
	struct vrb_link *end[2];
	struct vrb_link_rx rx[VRB_LINK_BURST];
	uint32_t sent = 0, got = 0, len[4000];
	vrb_ns now = 0;

	open_pair(kind, end);
	for (unsigned turn = 0; turn < 20000 && got < 4000; turn++) {
		uint32_t burst = vrb_prng_below(&rng, 20), n;

		for (; burst && sent < 4000; burst--, sent++) {
			len[sent] = sent % 5 ? vrb_prng_below(&rng, 200) : 1 + sent % FRAME_MAX;
			if (!send_frame(end[0], sent, len[sent], now))
				break;
		}
		n = vrb_link_recv(end[1], rx, 1 + vrb_prng_below(&rng, VRB_LINK_BURST), now);
		for (uint32_t i = 0; i < n; i++, got++)
			check_frame(&rx[i], got, len[got]);
		assert_int_equal(vrb_link_recv(end[0], rx, 1, now), 0);
		now += vrb_prng_below(&rng, 2000);
	}
	assert_int_equal(got, 4000);
	vrb_link_close(end[0]);
	vrb_link_close(end[1]);
}

/* Nothing is there before its deadline, and at the deadline it is. */
static void deadlines(enum kind kind)
{
	struct vrb_link *end[2];
	struct vrb_link_rx rx[2];
	vrb_ns now = 5;
	unsigned turn;

	open_pair(kind, end);
	assert_int_equal(vrb_link_fd(end[1]), -1);
	assert_true(vrb_link_next_deadline(end[1]) == VRB_NS_NEVER);
	assert_int_equal(send_frame(end[0], 0, 100, now), 1);
	assert_true(vrb_link_next_deadline(end[0]) == VRB_NS_NEVER);
	for (turn = 0; turn < 10; turn++) {
		vrb_ns due = vrb_link_next_deadline(end[1]);

		assert_true(due > now && due != VRB_NS_NEVER);
		assert_int_equal(vrb_link_recv(end[1], rx, 2, due - 1), 0);
		now = due;
		if (vrb_link_recv(end[1], rx, 2, now) == 1)
			break;
	}
	assert_true(turn < 10 && now >= 5 + LATENCY);
	check_frame(&rx[0], 0, 100);
	assert_int_equal(vrb_link_recv(end[1], rx, 2, now), 0);
	assert_true(vrb_link_next_deadline(end[1]) == VRB_NS_NEVER);
	vrb_link_close(end[1]);
	vrb_link_close(end[0]);
}

/* A full link takes no more, loses nothing of what it took, and recovers. */
static void back_pressure(enum kind kind)
{
	struct vrb_link *end[2];
	uint32_t taken = 0;
	vrb_ns now = 0;

	open_pair(kind, end);
	while (taken < 10 * QUEUE_MAX && send_frame(end[0], taken, 64, now))
		taken++;
	assert_int_equal(taken, QUEUE_MAX);
	assert_int_equal(send_frame(end[0], taken, 64, now), 0);
	assert_int_equal(drain(end[1], &now), taken);
	assert_int_equal(send_frame(end[0], 0, 64, now), 1);
	assert_int_equal(drain(end[1], &now), 1);
	vrb_link_close(end[0]);
	vrb_link_close(end[1]);
}

/* More frames than an interposer can store: none is lost, and deadlines stay in the future. */
static void full_store(void)
{
	const struct vrb_sim_conf conf = {FRAME_MAX, 1000, LATENCY, 0};
	struct vrb_link *end[2];
	vrb_ns now = 0;

	assert_int_equal(vrb_sim_open(&conf, end), 0);
	assert_int_equal(vrb_delay_open(end[1], &harmless, 50000, 0, &end[1]), 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(send_frame(end[0], i, 64, now), 1);
	assert_int_equal(drain(end[1], &now), 1000);
	vrb_link_close(end[0]);
	vrb_link_close(end[1]);
}

static void too_long(enum kind kind)
{
	struct vrb_link *end[2];
	vrb_ns now = 0;

	open_pair(kind, end);
	assert_int_equal(send_frame(end[0], 0, FRAME_MAX + 1, now), 1);
	assert_int_equal(send_frame(end[0], 1, FRAME_MAX, now), 1);
	assert_int_equal(drain(end[1], &now), 1);
	vrb_link_close(end[0]);
	vrb_link_close(end[1]);
}

/* One end goes while frames are under way: the other receives what came, and sends into the void.
 */
static void close_under_load(enum kind kind)
{
	struct vrb_link *end[2];
	vrb_ns now = 0;

	open_pair(kind, end);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(send_frame(end[0], i, 64, now), 1);
		assert_int_equal(send_frame(end[1], i, 64, now), 1);
	}
	vrb_link_close(end[0]);
	assert_int_equal(drain(end[1], &now), 10);
	for (uint32_t i = 0; i < 2 * QUEUE_MAX; i++)
		assert_int_equal(send_frame(end[1], i, 64, now), 1);
	assert_true(vrb_link_next_deadline(end[1]) == VRB_NS_NEVER);
	vrb_link_close(end[1]);
}

static void test_contract(void **state)
{
	(void)state;
	for (int k = 0; k < N_KINDS; k++) {
		print_message("%s\n", kind_name[k]);
		order((enum kind)k);
		deadlines((enum kind)k);
		back_pressure((enum kind)k);
		too_long((enum kind)k);
		close_under_load((enum kind)k);
	}
	full_store();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contract),
	};

	return VRB_RUN_TESTS(tests);
}
