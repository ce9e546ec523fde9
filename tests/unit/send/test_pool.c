/* SPDX-License-Identifier: BSD-2-Clause */
/* Size classes, buffers that never overlap, threads that get and put each other's, double puts. */
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "send/pool.h"

#define BYTES (8u << 20)

static void *memory(void)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, VRB_PAGE, BYTES), 0);
	return p;
}

static void test_classes(void **state)
{
	(void)state;
	for (uint32_t len = 0; len <= VRB_SLAB_MAX; len++) {
		uint32_t c = vrb_slab_class(len);

		assert_true(c < VRB_SLAB_CLASSES && vrb_slab_size[c] >= len);
		assert_true(!c || vrb_slab_size[c - 1] < len);
	}
}

static void use(struct vrb_buf *b, uint8_t v)
{
	b->len = b->cap;
	memset(b->data, v, b->cap);
	memset((uint8_t *)b->data + b->cap, v, VRB_TAIL);
}

static void check_use(const struct vrb_buf *b, uint8_t v)
{
	assert_int_equal(b->len, b->cap);
	for (uint32_t i = 0; i < b->cap; i += 61)
		assert_int_equal(((uint8_t *)b->data)[i], v);
	assert_int_equal(((uint8_t *)b->data)[b->cap - 1], v);
}

static void test_random(void **state)
{
	enum { N = 300 };
	struct vrb_buf *b[N] = {0};
	struct vrb_pool_stats s;
	struct vrb_pool p;
	struct vrb_prng r;
	void *mem = memory();

	(void)state;
	r = vrb_prng_seed(7);
	assert_int_equal(vrb_pool_init(&p, mem, BYTES, 5), 0);
	for (uint32_t step = 0; step < 50000; step++) {
		uint32_t i = (uint32_t)vrb_prng_below(&r, N);
		uint64_t cap = vrb_prng_below(&r, step % 5 ? 5000 : 40000);

		if (b[i]) {
			check_use(b[i], (uint8_t)i);
			vrb_pool_put(b[i]);
			b[i] = NULL;
		} else if ((b[i] = vrb_pool_get(&p, cap, NULL))) {
			assert_true(b[i]->cap >= cap && b[i]->lkey == 5);
			assert_int_equal((uintptr_t)b[i]->data % 64, 0);
			use(b[i], (uint8_t)i);
		}
	}
	for (uint32_t i = 0; i < N; i++)
		if (b[i])
			vrb_pool_put(b[i]);
	vrb_pool_count(&p, &s);
	assert_int_equal(s.outside, 0);
	assert_int_equal(vrb_pool_each(&p, NULL, NULL), 0);
	vrb_pool_fini(&p);
	free(mem);
}

static void test_used_up(void **state)
{
	struct vrb_buf *b[4096], *large;
	struct vrb_pool_stats s;
	struct vrb_pool p;
	void *mem = memory();
	uint32_t n = 0;

	(void)state;
	assert_int_equal(vrb_pool_init(&p, mem, BYTES, 0), 0);
	large = vrb_pool_get(&p, BYTES - VRB_FRONT - VRB_TAIL, NULL);
	assert_non_null(large);
	assert_null(vrb_pool_get(&p, 1, NULL));
	vrb_pool_put(large);
	assert_null(vrb_pool_get(&p, BYTES, NULL));
	assert_null(vrb_pool_get(&p, UINT64_MAX, NULL));
	while ((b[n] = vrb_pool_get(&p, 4096, NULL)))
		n++;
	assert_true(n >= BYTES / 4096 * 90 / 100);
	vrb_pool_count(&p, &s);
	assert_int_equal(s.outside, n);
	assert_int_equal(s.refused, 4);
	while (n--)
		vrb_pool_put(b[n]);
	vrb_pool_put(b[0]); /* twice: counted, no harm */
	vrb_pool_count(&p, &s);
	assert_int_equal(s.outside, 0);
	assert_string_equal(vrb_error_name(), "send_buf");
	vrb_pool_fini(&p);
	free(mem);
}

/* More memory for the pool: what grow gives, at most. */
static int grow(void *arg, uint64_t bytes, void **base, uint32_t *lkey)
{
	uint64_t *given = arg;

	if (*given + bytes > BYTES / 2)
		return -ENOMEM;
	*given += bytes;
	*lkey = 77;
	return posix_memalign(base, VRB_PAGE, bytes) ? -ENOMEM : 0;
}

static void test_grows(void **state)
{
	struct vrb_buf *all, *receive, *large[8], *small;
	struct vrb_pool_stats s;
	struct vrb_pool p;
	uint64_t given = 0;
	void *mem = memory();
	uint32_t n = 0;

	(void)state;
	assert_int_equal(vrb_pool_init(&p, mem, BYTES, 0), 0);
	vrb_pool_may_grow(&p, grow, &given, BYTES);
	receive = vrb_pool_get_receive(&p, 100000);
	all = vrb_pool_get(&p, BYTES - 120000, NULL);
	assert_non_null(receive);
	assert_non_null(all);
	assert_null(vrb_pool_get(&p, 100000, NULL)); /* not by itself */
	assert_true(vrb_pool_has(&p, 100000));
	for (; n < 8 && (large[n] = vrb_pool_get_grow(&p, BYTES / 8, NULL)); n++) {
		assert_int_equal(large[n]->lkey, 77);
		use(large[n], (uint8_t)n);
	}
	assert_true(n >= 1 && n <= 4 && given <= BYTES / 2);
	assert_int_equal(atomic_load(&p.grow_left), 0); /* refused once: not asked again */
	vrb_pool_count(&p, &s);
	assert_int_equal(s.bytes_grown, given);
	assert_false(vrb_pool_is_hopeless(&p, BYTES / 8));
	small = vrb_pool_get(&p, 10, NULL); /* small ones come from the first segment only */
	assert_true(!small || small->lkey == 0);
	vrb_pool_put(all);
	for (uint32_t i = 0; i < n; i++) {
		check_use(large[i], (uint8_t)i);
		vrb_pool_put(large[i]);
	}
	assert_true(vrb_pool_is_hopeless(&p, BYTES)); /* but a receive nothing is outside */
	vrb_pool_deliver(receive);
	assert_false(vrb_pool_is_hopeless(&p, BYTES));
	vrb_pool_put(receive);
	if (small)
		vrb_pool_put(small);
	vrb_pool_count(&p, &s);
	assert_int_equal(s.outside, 0);
	assert_int_equal(p.large_posted, 0);
	for (uint32_t i = 1; i < p.n_seg; i++)
		free(p.seg[i].base);
	vrb_pool_fini(&p);
	free(mem);
}

struct ring {
	_Atomic(struct vrb_buf *) at[256];
	struct vrb_pool *p;
};

static void *put_all(void *arg)
{
	struct ring *g = arg;

	for (uint32_t i = 0; i < 200000; i++) {
		struct vrb_buf *b;

		while (!(b = atomic_exchange(&g->at[i % 256], NULL)))
			sched_yield();
		check_use(b, (uint8_t)i);
		vrb_pool_put(b);
	}
	return NULL;
}

/* One thread gets, another puts; then a third inherits the cache of the one that ended. */
static void test_threads(void **state)
{
	static struct ring g;
	struct vrb_pool_stats s;
	struct vrb_pool p;
	pthread_t t;
	void *mem = memory();

	(void)state;
	assert_int_equal(vrb_pool_init(&p, mem, BYTES, 0), 0);
	g.p = &p;
	pthread_create(&t, NULL, put_all, &g);
	for (uint32_t i = 0; i < 200000; i++) {
		struct vrb_buf *b;

		while (!(b = vrb_pool_get(&p, 200, NULL)))
			sched_yield();
		use(b, (uint8_t)i);
		while (atomic_load(&g.at[i % 256]))
			sched_yield();
		atomic_store(&g.at[i % 256], b);
	}
	pthread_join(t, NULL);
	vrb_pool_count(&p, &s);
	assert_int_equal(s.outside, 0);
	assert_int_equal(s.gets, 200000);
	vrb_pool_fini(&p);
	free(mem);
}

/* ---- pages that small buffers had taken become long runs again */

static void test_rejoin(void **state)
{
	enum { N = 30000 };
	static struct vrb_buf *b[N];
	void *mem = memory();
	struct vrb_prng r = vrb_prng_seed(3);
	struct vrb_buf *large;
	struct vrb_pool p;

	(void)state;
	assert_int_equal(vrb_pool_init(&p, mem, BYTES, 5), 0);
	for (int round = 0; round < 20; round++) {
		uint32_t n = 0;

		while (n < N && (b[n] = vrb_pool_get(&p, vrb_prng_below(&r, 4000), NULL)))
			n++;
		assert_true(n > 1000 && n < N);
		assert_null(vrb_pool_get(&p, BYTES / 2, NULL));
		for (uint32_t i = n; i > 0;) { /* in any order */
			uint32_t k = (uint32_t)vrb_prng_below(&r, i);

			vrb_pool_put(b[k]);
			b[k] = b[--i];
		}
		assert_true(vrb_pool_has(&p, BYTES / 2));
		large = vrb_pool_get(&p, BYTES - VRB_PAGE, NULL);
		assert_non_null(large);
		assert_null(vrb_pool_get(&p, 64, NULL));
		vrb_pool_put(large);
	}
	vrb_pool_fini(&p);
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes), cmocka_unit_test(test_random),
		cmocka_unit_test(test_used_up), cmocka_unit_test(test_grows),
		cmocka_unit_test(test_threads), cmocka_unit_test(test_rejoin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
