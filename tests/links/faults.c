/* SPDX-License-Identifier: BSD-2-Clause */
/* What each interposer does when it strikes, and that it does nothing else. */
#include "support/test.h"

#include <string.h>

#include "link/fault.h"
#include "link/sim.h"

#define N_FRAMES  2000u
#define FRAME_LEN 64u
#define LATENCY	  1000u
#define SPACING	  100u
#define PART	  250000u /* strikes one frame in four */

static struct vrb_link *end[2];

/* What came: numbers of frames in order of arrival, and when. */
static struct {
	uint32_t n, id[3 * N_FRAMES], n_bits_wrong[3 * N_FRAMES];
	vrb_ns at[3 * N_FRAMES];
} got;

static void open_wire(void)
{
	const struct vrb_sim_conf conf = {FRAME_LEN, 4 * N_FRAMES, LATENCY, 0};

	assert_int_equal(vrb_sim_open(&conf, end), 0);
}

static void on_frame(const struct vrb_link_rx *rx, vrb_ns now)
{
	uint32_t wrong = 0, id;

	assert_int_equal(rx->len, FRAME_LEN);
	memcpy(&id, rx->bytes, sizeof(id));
	for (uint32_t k = sizeof(id); k < FRAME_LEN; k++)
		wrong += (uint32_t)__builtin_popcount(rx->bytes[k]);
	assert_true(got.n < 3 * N_FRAMES);
	got.id[got.n] = id;
	got.n_bits_wrong[got.n] = wrong;
	got.at[got.n++] = now;
}

/* Sends all frames, SPACING apart, receives until nothing is under way, closes. */
static void run(void)
{
	struct vrb_link_rx rx[VRB_LINK_BURST];
	uint32_t sent = 0, n;
	vrb_ns now = 0;

	memset(&got, 0, sizeof(got));
	for (unsigned turn = 0; turn < 100 * N_FRAMES; turn++) {
		uint8_t bytes[FRAME_LEN] = {0};
		struct vrb_seg seg = {bytes, FRAME_LEN};
		const struct vrb_link_tx tx = {&seg, 1};
		vrb_ns next = vrb_link_next_deadline(end[1]);

		if (sent < N_FRAMES && next > sent * SPACING)
			next = sent * SPACING;
		if (next == VRB_NS_NEVER)
			break;
		now = next;
		memcpy(bytes, &sent, sizeof(sent));
		if (sent < N_FRAMES && now == sent * SPACING)
			sent += vrb_link_send(end[0], &tx, 1, now);
		while ((n = vrb_link_recv(end[1], rx, VRB_LINK_BURST, now)) > 0)
			for (uint32_t i = 0; i < n; i++)
				on_frame(&rx[i], now);
	}
	vrb_link_close(end[0]);
	vrb_link_close(end[1]);
}

static struct vrb_fault_conf part(void)
{
	return (struct vrb_fault_conf){.seed = 42, .per_million = PART, .until = VRB_NS_NEVER};
}

static void assert_about_a_quarter(uint32_t n)
{
	assert_in_range(n, N_FRAMES / 5, N_FRAMES * 3 / 10);
}

static void test_loss(void **state)
{
	struct vrb_fault_conf conf = part();

	(void)state;
	open_wire();
	assert_int_equal(vrb_loss_open(end[1], &conf, NULL, &end[1]), 0);
	run();
	assert_about_a_quarter(N_FRAMES - got.n);
	for (uint32_t i = 1; i < got.n; i++)
		assert_true(got.id[i] > got.id[i - 1]);
}

static void test_loss_ends(void **state)
{
	struct vrb_fault_conf conf = {.seed = 1, .per_million = 1000000, .until = 50 * SPACING};

	(void)state;
	open_wire();
	assert_int_equal(vrb_loss_open(end[1], &conf, NULL, &end[1]), 0);
	run();
	/* frames that arrive before `until` are lost, all others come */
	assert_int_equal(got.n, N_FRAMES - (50 - LATENCY / SPACING));
}

static void test_loss_script(void **state)
{
	struct vrb_fault_conf conf = {.seed = 1};
	struct vrb_loss_script script = {.mask = 0x5, .n = 4};

	(void)state;
	open_wire();
	assert_int_equal(vrb_loss_open(end[1], &conf, &script, &end[1]), 0);
	run();
	assert_int_equal(got.n, N_FRAMES - 2);
	assert_int_equal(got.id[0], 1);
	assert_int_equal(got.id[1], 3);
	assert_int_equal(got.id[2], 4);
}

static void test_duplicate(void **state)
{
	struct vrb_fault_conf conf = part();
	uint8_t times[N_FRAMES] = {0};

	(void)state;
	open_wire();
	assert_int_equal(vrb_duplicate_open(end[1], &conf, 5 * SPACING, &end[1]), 0);
	run();
	assert_about_a_quarter(got.n - N_FRAMES);
	for (uint32_t i = 0; i < got.n; i++)
		times[got.id[i]]++;
	for (uint32_t i = 0; i < N_FRAMES; i++)
		assert_in_range(times[i], 1, 2);
}

static void test_reorder(void **state)
{
	struct vrb_fault_conf conf = part();
	uint8_t times[N_FRAMES] = {0};
	uint32_t overtaken = 0;

	(void)state;
	open_wire();
	assert_int_equal(vrb_reorder_open(end[1], &conf, 10 * SPACING, &end[1]), 0);
	run();
	assert_int_equal(got.n, N_FRAMES);
	for (uint32_t i = 0; i < got.n; i++) {
		times[got.id[i]]++;
		overtaken += i && got.id[i] < got.id[i - 1];
		assert_in_range(got.at[i] - got.id[i] * SPACING, LATENCY, LATENCY + 10 * SPACING);
	}
	assert_true(overtaken > N_FRAMES / 10);
	for (uint32_t i = 0; i < N_FRAMES; i++)
		assert_int_equal(times[i], 1);
}

static void test_corrupt(void **state)
{
	struct vrb_fault_conf conf = part();
	uint32_t damaged = 0;

	(void)state;
	open_wire();
	assert_int_equal(vrb_corrupt_open(end[1], &conf, &end[1]), 0);
	run();
	assert_int_equal(got.n, N_FRAMES);
	for (uint32_t i = 0; i < got.n; i++) {
		/* one bit, in the number or in the zeros behind it */
		uint32_t bits = (uint32_t)__builtin_popcount(got.id[i] ^ i) + got.n_bits_wrong[i];

		assert_true(bits <= 1);
		damaged += bits;
	}
	assert_about_a_quarter(damaged);
}

static void test_delay(void **state)
{
	struct vrb_fault_conf conf = part();
	uint32_t held_up = 0;

	(void)state;
	open_wire();
	assert_int_equal(vrb_delay_open(end[1], &conf, 700, 5 * SPACING, &end[1]), 0);
	run();
	assert_int_equal(got.n, N_FRAMES);
	for (uint32_t i = 0; i < got.n; i++) {
		assert_int_equal(got.id[i], i);
		assert_in_range(got.at[i] - i * SPACING, LATENCY + 700,
				LATENCY + 700 + 5 * SPACING);
		held_up += got.at[i] - i * SPACING > LATENCY + 700;
	}
	assert_true(held_up > N_FRAMES / 5);
}

/* The same seed does the same. */
static void test_repeatable(void **state)
{
	struct vrb_fault_conf conf = part();
	static uint32_t first[3 * N_FRAMES];
	uint32_t n = 0;

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		open_wire();
		assert_int_equal(vrb_duplicate_open(end[1], &conf, 500, &end[1]), 0);
		assert_int_equal(vrb_reorder_open(end[1], &conf, 900, &end[1]), 0);
		assert_int_equal(vrb_loss_open(end[1], &conf, NULL, &end[1]), 0);
		run();
		if (round == 0) {
			n = got.n;
			memcpy(first, got.id, sizeof(first));
		}
	}
	assert_int_equal(got.n, n);
	assert_memory_equal(first, got.id, sizeof(first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss),	    cmocka_unit_test(test_loss_ends),
		cmocka_unit_test(test_loss_script), cmocka_unit_test(test_duplicate),
		cmocka_unit_test(test_reorder),	    cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_delay),	    cmocka_unit_test(test_repeatable),
	};

	return VRB_RUN_TESTS(tests);
}
