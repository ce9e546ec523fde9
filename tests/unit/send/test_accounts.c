/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accounts of a lane: no send queue without a completion to come, no message without a receive,
 * and two ends that never wait for each other for ever.
 */
#include "support/test.h"

#include <string.h>

#include "base/prng.h"
#include "send/credit.h"
#include "send/frame.h"
#include "send/sq.h"
#include "send/ticks.h"

static void test_dead_end(void **state)
{
	(void)state;
	for (uint32_t depth = 1; depth <= 70; depth++)
		for (uint32_t period = 0; period <= 80; period += 5) {
			struct vrb_sq q;
			uint32_t last_signaled = 0;
			bool any = false;

			vrb_sq_init(&q, depth, period);
			for (uint32_t i = 0; i < 500; i++) {
				if (!vrb_sq_room(&q)) {
					/* Something is on its way, and it frees a place. */
					assert_true(any && last_signaled - q.head < depth);
					assert_true(vrb_sq_retire(&q, last_signaled));
					assert_false(vrb_sq_retire(&q, last_signaled));
					assert_true(vrb_sq_room(&q));
				}
				if (vrb_sq_push(&q, false)) {
					last_signaled = q.tail - 1;
					any = true;
				}
			}
		}
}

static void test_numbers_wrap(void **state)
{
	struct vrb_sq q;

	(void)state;
	vrb_sq_init(&q, 4, 2);
	q.head = q.tail = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 4; i++)
		(void)vrb_sq_push(&q, false);
	assert_int_equal(vrb_sq_room(&q), 0);
	assert_false(vrb_sq_retire(&q, 2));
	assert_true(vrb_sq_retire(&q, 1));
	assert_int_equal(vrb_sq_room(&q), 4);
}

/* ---- two ends, a wire of messages, applications that send and release at random */

#define ON_WIRE 4096u

struct wire {
	struct {
		uint16_t credits;
		uint8_t bare_credits;
		bool bare;
	} m[ON_WIRE];
	uint32_t head, tail;
};

struct end {
	struct vrb_credit c;
	struct wire *out, *in;
	uint32_t posted; /* receives that really are there */
	uint32_t held;	 /* taken by messages, not posted again */
	uint64_t bare;
};

static void put(struct end *e, bool bare)
{
	uint32_t i = e->out->tail++ % ON_WIRE;

	assert_true(e->out->tail - e->out->head <= ON_WIRE);
	e->out->m[i].bare = bare;
	e->out->m[i].credits = vrb_credit_take(&e->c, bare, &e->out->m[i].bare_credits);
	e->bare += bare;
}

static void tell(struct end *e)
{
	if (vrb_credit_must_tell(&e->c))
		put(e, true);
}

static void take(struct end *e)
{
	uint32_t i = e->in->head % ON_WIRE;

	if (e->in->head == e->in->tail)
		return;
	e->in->head++;
	assert_true(e->posted > 0); /* else it would be an RNR NAK */
	e->posted--;
	assert_true(vrb_credit_on_message(&e->c, e->in->m[i].bare, e->in->m[i].credits,
					  e->in->m[i].bare_credits));
	if (e->in->m[i].bare) {
		e->posted++;
		vrb_credit_posted(&e->c, 1, true);
	} else {
		e->held++;
	}
}

static void release(struct end *e, uint32_t n)
{
	n = n < e->held ? n : e->held;
	e->held -= n;
	e->posted += n;
	vrb_credit_posted(&e->c, n, false);
}

static void step(struct end *e, uint64_t dice)
{
	switch (dice % 4) {
	case 0:
		if (vrb_credit_can_send(&e->c))
			put(e, false);
		break;
	case 1:
		take(e);
		break;
	case 2:
		release(e, 1 + dice / 8 % 3);
		break;
	default:
		tell(e);
		break;
	}
}

/* Both let go of everything. */
static void settle(struct end *a, struct end *b)
{
	for (uint32_t i = 0; i < 20 || a->in->head != a->in->tail || b->in->head != b->in->tail;
	     i++) {
		take(a), take(b);
		release(a, 1), release(b, 1);
		tell(a), tell(b);
	}
	for (uint32_t i = 0; i < 200; i++) {
		release(a, 1), release(b, 1);
		tell(a), tell(b);
		take(a), take(b);
	}
}

static void run(uint32_t depth_a, uint32_t depth_b, uint64_t seed)
{
	static struct wire ab, ba;
	struct end a = {.out = &ab, .in = &ba, .posted = depth_a + VRB_CREDIT_BARE};
	struct end b = {.out = &ba, .in = &ab, .posted = depth_b + VRB_CREDIT_BARE};
	struct vrb_prng g = vrb_prng_seed(seed);
	uint64_t before;

	ab.head = ab.tail = ba.head = ba.tail = 0;
	vrb_credit_init(&a.c, depth_a, depth_b);
	vrb_credit_init(&b.c, depth_b, depth_a);
	for (uint32_t i = 0; i < 3000; i++) {
		uint64_t dice = vrb_prng_next(&g);
		/* Now and then one end sends alone for a while. */
		bool first = i / 200 % 3 == 1 ? dice % 4 != 0 : dice & 1 << 20;

		step(first ? &a : &b, dice >> 8);
	}
	settle(&a, &b);
	/* Then both can send again, and nobody has anything to say. */
	assert_true(vrb_credit_can_send(&a.c) && vrb_credit_can_send(&b.c));
	before = a.bare + b.bare;
	settle(&a, &b);
	assert_int_equal(a.bare + b.bare, before);
}

static void test_two_ends(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		run(4, 4, seed);
		run(4, 128, seed);
		run(1, 2, seed);
		run(64, 64, seed);
	}
}

static void test_liar(void **state)
{
	struct vrb_credit c;

	(void)state;
	vrb_credit_init(&c, 1, 4);
	assert_true(vrb_credit_on_message(&c, false, 3, 0));
	assert_false(vrb_credit_on_message(&c, false, 3, 0)); /* more messages than receives */
	vrb_credit_init(&c, 4, 4);
	assert_false(vrb_credit_on_message(&c, true, 0, 1)); /* gives back what was never taken */
}

static void test_frame(void **state)
{
	struct vrb_frame f = {.kind = 1,
			      .flags = 2,
			      .credits = 0x0304,
			      .len = 0x05060708,
			      .flow = 0x090a0b0c,
			      .immediate = 0x0d0e0f10};
	const uint8_t want[] = {1, 2, 4, 3, 8, 7, 6, 5, 12, 11, 10, 9, 16, 15, 14, 13};
	uint8_t bytes[16];
	struct vrb_frame back;

	(void)state;
	vrb_frame_emit(bytes, &f);
	assert_memory_equal(bytes, want, sizeof(want));
	back = vrb_frame_parse(bytes);
	assert_memory_equal(&back, &f, sizeof(f));
}

/* ---- a clock of few bits and an odd rate, read a little out of order */

static void test_ticks(void **state)
{
	struct vrb_ticks t = {.mask = 0xffff, .khz = 427000};
	uint64_t true_ticks = 5, first = vrb_ticks_ns(&t, true_ticks), last = first;

	(void)state;
	assert_int_equal(first, 5u * 1000000 / 427000);
	for (int i = 0; i < 10000; i++) {
		true_ticks += 20000;
		last = vrb_ticks_ns(&t, true_ticks & 0xffff);
		assert_in_range(last, true_ticks * 1000000 / 427000 - 1,
				true_ticks * 1000000 / 427000 + 1);
		assert_true(vrb_ticks_ns(&t, (true_ticks - 3000) & 0xffff) < last);
		assert_int_equal(vrb_ticks_ns(&t, true_ticks & 0xffff), last);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dead_end), cmocka_unit_test(test_numbers_wrap),
		cmocka_unit_test(test_two_ends), cmocka_unit_test(test_liar),
		cmocka_unit_test(test_frame),	 cmocka_unit_test(test_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
