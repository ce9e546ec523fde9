/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that nobody registered: kept registrations are used again, dropped when the memory goes in
 * any of the ways that memory goes, bounded, and alive as long as a message needs them.
 */
#include "send/kit.h"

#include <sys/mman.h>
#include <unistd.h>

#define LEN ((size_t)64 << 10)

/* ---- the server says what it got: a message is its own sum */

static void sums(struct end *e)
{
	for (;;) {
		struct vrb_event ev = next_event(e);
		uint64_t sum = 0;

		if (ev.kind == VRB_EV_CLOSED)
			return;
		if (ev.kind != VRB_EV_MESSAGE)
			continue;
		for (uint32_t i = 0; i < ev.buf->len; i++)
			sum += ((uint8_t *)ev.buf->data)[i];
		vrb_buf_put(ev.buf);
		UNTIL_ROOM(e, vrb_send(e->ch, &sum, sizeof(sum), NULL));
	}
}

static struct vrb_keep_stats stats(struct end *e)
{
	struct vrb_keep_stats s;

	vrb_keep_stats(e->d, &s);
	return s;
}

/* Sends len bytes of v from there, and has the server read them. */
static void sends(struct end *e, char *at, size_t len, int v)
{
	struct vrb_send_options o = {.cookie = e};
	struct iovec iov = {at, len};
	int sent = 0, answered = 0;

	memset(at, v, len);
	UNTIL_ROOM(e, vrb_sendv(e->ch, &iov, 1, &o));
	while (!sent || !answered) {
		struct vrb_event ev = next_event(e);
		uint64_t sum;

		if (ev.kind == VRB_EV_SENT) {
			CHECK(ev.outcome == VRB_DONE);
			sent = 1;
		} else if (ev.kind == VRB_EV_MESSAGE) {
			memcpy(&sum, ev.buf->data, sizeof(sum));
			CHECK(sum == (uint64_t)v * len);
			vrb_buf_put(ev.buf);
			answered = 1;
		}
	}
}

static char *map(void *at, size_t len, int more)
{
	char *p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* It was invalidated and registered anew, and what was sent is what is there now. */
static void is_new(struct end *e, char *at, int v)
{
	struct vrb_keep_stats before = stats(e), after;

	sends(e, at, LEN, v);
	after = stats(e);
	CHECK(after.invalidated == before.invalidated + 1);
	CHECK(after.misses == before.misses + 1 && after.hits == before.hits);
	sends(e, at, LEN, v + 1);
	CHECK(stats(e).hits == before.hits + 1);
}

static void watched(struct end *e)
{
	char *p = map(NULL, LEN, 0), *q;

	sends(e, p, LEN, 1);
	if (!stats(e).watching) {
		CHECK(stats(e).once == 1 && !stats(e).regions);
		munmap(p, LEN);
		return;
	}
	sends(e, p, LEN, 2);
	sends(e, p + 100, LEN / 2, 3);
	CHECK(stats(e).misses == 1 && stats(e).hits == 2 && stats(e).bytes == LEN);
	CHECK(!munmap(p, LEN)); /* and mapped anew */
	CHECK(map(p, LEN, MAP_FIXED_NOREPLACE) == p);
	is_new(e, p, 4);
	CHECK(map(p, LEN, MAP_FIXED) == p); /* over it */
	is_new(e, p, 6);
	CHECK(!madvise(p, LEN, MADV_DONTNEED));
	is_new(e, p, 8);
	CHECK(!madvise(p + 4096, 4096, MADV_DONTNEED)); /* a part */
	is_new(e, p, 10);
	q = mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, p + 4 * LEN);
	CHECK(q == p + 4 * LEN);
	CHECK(map(p, LEN, MAP_FIXED_NOREPLACE) == p);
	is_new(e, p, 12);
	sends(e, q, LEN, 20);
	CHECK(!munmap(p, LEN) && !munmap(q, LEN));
}

static void by_heap(struct end *e)
{
	char *p;

	free(malloc(100000)); /* what the library allocates meanwhile lies below */
	p = sbrk(4 * LEN);
	CHECK(p != (void *)-1);
	sends(e, p, LEN, 1);
	CHECK(sbrk(-4 * (long)LEN) == p + 4 * LEN);
	CHECK(sbrk(4 * LEN) == p);
	if (stats(e).watching)
		is_new(e, p, 2);
	sbrk(-4 * (long)LEN);
}

/* Memory that changes without an event is not kept, and goes right all the same. */
static void not_watched(struct end *e)
{
	struct vrb_keep_stats before = stats(e);
	char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	sends(e, p, LEN, 1);
	sends(e, p, LEN, 2);
	CHECK(stats(e).once == before.once + 2);
	CHECK(stats(e).regions <= before.regions); /* one that had gone may have been here */
	CHECK(!munmap(p, LEN));
	CHECK(!vrb_forget(e->d, p, LEN));
}

static void watches(struct end *e)
{
	watched(e);
	by_heap(e);
	not_watched(e);
}

/* ---- promised: the bounds, vrb_forget, growing together */

static void promises(struct end *e)
{
	char *p = map(NULL, 8 * LEN, 0);
	struct vrb_keep_stats s;

	for (size_t i = 0; i < 5; i++)
		sends(e, p + i * LEN, LEN, 1);
	s = stats(e);
	CHECK(s.regions == 3 && s.evictions == 2 && s.misses == 5 && s.bytes == 3 * LEN);
	sends(e, p + 2 * LEN, LEN, 2); /* the oldest of the three */
	CHECK(stats(e).hits == 1);
	sends(e, p + 5 * LEN, LEN, 2);
	sends(e, p + 2 * LEN, LEN, 3);
	CHECK(stats(e).hits == 2);
	CHECK(!vrb_forget(e->d, p, 8 * LEN));
	CHECK(!stats(e).regions && !stats(e).bytes);
	sends(e, p, LEN, 4);
	sends(e, p + LEN / 2, LEN, 5); /* both become one */
	CHECK(stats(e).regions == 1 && stats(e).bytes == LEN + LEN / 2);
	sends(e, p, LEN + LEN / 2, 6);
	CHECK(stats(e).hits == 3);
	sends(e, p, 7 * LEN, 7); /* more than is kept */
	CHECK(stats(e).once == 1 && !stats(e).regions);
	CHECK(!munmap(p, 8 * LEN));
}

/* ---- while messages use them */

static void late(struct end *e)
{
	struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);

	vrb_buf_put(ev.buf);
	for (int i = 0; i < 8; i++) {
		ev = want_event(e, VRB_EV_MESSAGE);
		CHECK(is_filled(ev.buf->data, (uint64_t)i, LEN));
		vrb_buf_put(ev.buf);
	}
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

static void in_use(struct end *e)
{
	char *p = map(NULL, 8 * LEN, 0);
	struct vrb_send_options o = {.cookie = e};
	int done = 0;

	send_all(e, "go", 2, NULL);
	for (uint64_t i = 0; i < 8; i++) {
		struct iovec iov = {p + i * LEN, LEN};

		fill(iov.iov_base, i, LEN);
		while (vrb_sendv(e->ch, &iov, 1, &o)) {
			struct vrb_event ev = next_event(e);

			done += ev.kind == VRB_EV_SENT;
		}
	}
	if (done < 8) {
		CHECK(vrb_forget(e->d, p, 8 * LEN) == -EBUSY);
		CHECK(strcmp(vrb_error_name(), "send_kept_busy") == 0);
	}
	while (done < 8)
		done += next_event(e).kind == VRB_EV_SENT;
	CHECK(!vrb_forget(e->d, p, 8 * LEN));
	CHECK(!munmap(p, 8 * LEN));
}

int main(void)
{
	struct vrb_domain_options watch = {.keep = VRB_KEEP_WATCHED},
				  promise = {.keep = VRB_KEEP_PROMISED,
					     .keep_regions = 3,
					     .keep_bytes = 4 * LEN};
	struct vrb_channel_options o = {.qps = 1};

	run_pair(&(struct pair){&watch, &o, &o}, sums, watches);
	run_pair(&(struct pair){&promise, &o, &o}, sums, promises);
	run_pair(&(struct pair){&promise, &o, &o}, late, in_use);
	puts("3 passed, 0 failed, 0 skipped");
	return 0;
}
