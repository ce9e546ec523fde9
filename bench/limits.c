/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	limits [ping|stream|rate|vm|wake]...      (all)
 *
 * What two processes can do at most through memory they share, with no protocol at all: the
 * ring that copies in and out, the stream through a ring, the rate of 64-byte slots; and the
 * system calls that could do the same: process_vm_writev, a write to /proc/PID/mem, an
 * eventfd that wakes.
 */
#include "probe.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define LINE  64
#define SLOTS 8
#define SMALL 56 /* bytes that fit into a control line */

struct line {
	_Alignas(LINE) _Atomic uint64_t v;
	char data[LINE - 8];
};

#define ACQUIRE(x)    atomic_load_explicit(&(x), memory_order_acquire)
#define RELEASE(x, y) atomic_store_explicit(&(x), (y), memory_order_release)

static struct windows w;

static void *bytes(size_t n)
{
	void *p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095);

	if (!p)
		exit(1);
	memset(p, 0x5a, n);
	return p;
}

/* ---- ping-pong: copy in, copy out */

struct lane {
	struct line ctl[SLOTS];
	_Alignas(4096) char data[SLOTS][4096];
};

static void put(struct lane *l, uint64_t i, const void *from, size_t n)
{
	struct line *c = &l->ctl[i % SLOTS];

	memcpy(n <= SMALL ? c->data : l->data[i % SLOTS], from, n);
	RELEASE(c->v, i);
}

static void get(struct lane *l, uint64_t i, void *to, size_t n)
{
	struct line *c = &l->ctl[i % SLOTS];

	SPIN_UNTIL(ACQUIRE(c->v) == i);
	memcpy(to, n <= SMALL ? c->data : l->data[i % SLOTS], n);
}

static void ping(size_t n)
{
	enum { TRIPS = 40, WINDOWS = 300 };
	struct lane *l = shared(2 * sizeof(*l));
	char *mine = bytes(n), *theirs = bytes(n);
	pid_t child;

	begin();
	child = spawn(1);
	for (uint64_t i = 1; !child && i <= TRIPS * WINDOWS; i++) {
		get(&l[0], i, theirs, n);
		put(&l[1], i, mine, n);
	}
	if (!child)
		_exit(0);
	pin(0);
	w.n = 0;
	for (uint64_t i = 1; i <= TRIPS * WINDOWS; i++) {
		if (i % TRIPS == 1)
			tick(&w);
		put(&l[0], i, mine, n);
		get(&l[1], i, theirs, n);
	}
	reap(child);
	emit("limit ring one-way", (long)n, "ns", median_window(&w) / TRIPS / 2 * 1e9);
	munmap(l, 2 * sizeof(*l));
	free(mine);
	free(theirs);
}

/* ---- stream: pieces through a byte ring */

struct pipe_ring {
	struct line tail, head;
	_Alignas(4096) char data[];
};

static void stream(size_t msg, size_t piece, size_t cap)
{
	size_t window = msg * 4 < 1 << 20 ? 1 << 20 : msg * 4, total = window * 60;
	struct pipe_ring *r = shared(sizeof(*r) + cap);
	char *buf = bytes(msg);
	uint64_t pos = 0, other = 0;
	pid_t child;

	begin();
	child = spawn(1);
	for (; !child && pos < total; pos += piece) {
		if (other < pos + piece)
			SPIN_UNTIL((other = ACQUIRE(r->tail.v)) >= pos + piece);
		memcpy(buf + pos % msg, r->data + pos % cap, piece);
		RELEASE(r->head.v, pos + piece);
	}
	if (!child)
		_exit(0);
	pin(0);
	w.n = 0;
	for (; pos < total; pos += piece) {
		if (pos % window == 0)
			tick(&w);
		if (pos + piece - other > cap)
			SPIN_UNTIL(pos + piece - (other = ACQUIRE(r->head.v)) <= cap);
		memcpy(r->data + pos % cap, buf + pos % msg, piece);
		RELEASE(r->tail.v, pos + piece);
	}
	reap(child);
	emit("limit ring bandwidth", (long)msg, "MB/s", (double)window / median_window(&w) / 1e6);
	munmap(r, sizeof(*r) + cap);
	free(buf);
}

/* ---- rate: 64-byte slots, the tail published every 32 */

struct slot_ring {
	struct line tail, head, slot[1024];
};

static void rate(void)
{
	enum { N = 1024, BATCH = 32, WINDOW = 32 * 256, WINDOWS = 200 };
	struct slot_ring *r = shared(sizeof(*r));
	uint64_t total = (uint64_t)WINDOW * WINDOWS, seen = 0, sum = 0;
	pid_t child;

	begin();
	child = spawn(1);
	for (uint64_t i = 0; !child && i < total; i++) {
		if (seen <= i)
			SPIN_UNTIL((seen = ACQUIRE(r->tail.v)) > i);
		sum += ACQUIRE(r->slot[i % N].v) + (uint64_t)r->slot[i % N].data[40];
		if (i % (N / 4) == 0)
			RELEASE(r->head.v, i);
	}
	if (!child)
		_exit(sum == 1);
	pin(0);
	w.n = 0;
	for (uint64_t i = 0; i < total; i++) {
		if (i % WINDOW == 0)
			tick(&w);
		if (i - seen >= N)
			SPIN_UNTIL(i - (seen = ACQUIRE(r->head.v)) < N);
		memset(r->slot[i % N].data, (int)i, sizeof(r->slot[0].data));
		atomic_store_explicit(&r->slot[i % N].v, i, memory_order_relaxed);
		if (i % BATCH == BATCH - 1)
			RELEASE(r->tail.v, i + 1);
	}
	reap(child);
	emit("limit slot rate", 64, "M/s", WINDOW / median_window(&w) / 1e6);
	munmap(r, sizeof(*r));
}

/* ---- system calls that write into another process */

static void vm(size_t n, bool by_file)
{
	enum { CALLS = 100, WINDOWS = 100 };
	_Atomic uint64_t *stop = shared(4096);
	char *buf = bytes(n), path[64];
	struct iovec a = {buf, n};
	bool bad = false;
	pid_t child;
	int fd;

	begin();
	child = spawn(1);
	if (!child) {
		while (!ACQUIRE(*stop))
			usleep(1000);
		_exit(0);
	}
	pin(0);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)child);
	fd = open(path, O_RDWR);
	w.n = 0;
	for (int i = 0; i < CALLS * WINDOWS && !bad; i++) {
		if (i % CALLS == 0)
			tick(&w);
		bad = by_file ? pwrite(fd, buf, n, (off_t)(uintptr_t)buf) != (ssize_t)n
			      : process_vm_writev(child, &a, 1, &a, 1, 0) != (ssize_t)n;
	}
	RELEASE(*stop, 1);
	reap(child);
	if (fd >= 0)
		close(fd);
	if (!bad)
		emit(by_file ? "limit /proc/PID/mem write" : "limit process_vm_writev", (long)n,
		     "ns", median_window(&w) / CALLS * 1e9);
	munmap((void *)stop, 4096);
	free(buf);
}

/* ---- waking a sleeper */

/* The waker pauses long enough for the sleeper to be asleep; the sleeper reads the clock. */
static void wake(void)
{
	enum { SAMPLES = 300 };
	struct shared_wake {
		_Atomic double sent;
		_Atomic int seen;
		double median;
	} *s = shared(4096);
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t one = 1, got;
	pid_t child;

	begin();
	child = spawn(1);
	if (!child) {
		w.n = 0;
		for (int i = 0; i < SAMPLES; i++) {
			if (read(fd, &got, 8) != 8)
				_exit(1);
			sample(&w, wall() - ACQUIRE(s->sent));
			RELEASE(s->seen, i + 1);
		}
		s->median = median_sample(&w);
		_exit(0);
	}
	pin(0);
	for (int i = 0; i < SAMPLES; i++) {
		pause_us(WAKE_PAUSE_US);
		RELEASE(s->sent, wall());
		if (write(fd, &one, 8) != 8)
			break;
		SPIN_UNTIL(ACQUIRE(s->seen) == i + 1);
	}
	reap(child);
	emit("limit eventfd wake", 8, "ns", s->median * 1e9);
	munmap(s, 4096);
	close(fd);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {8, 64, 256, 4096};

	for (size_t i = 0; i < 4 && wanted(argc, argv, "ping"); i++)
		ping(sizes[i]);
	if (wanted(argc, argv, "stream")) {
		stream(4096, 4096, 64 << 10);
		stream(65536, 16 << 10, 1 << 20);
		stream(1 << 20, 64 << 10, 4 << 20);
	}
	if (wanted(argc, argv, "rate"))
		rate();
	if (wanted(argc, argv, "vm")) {
		vm(8, false);
		vm(8, true);
		vm(65536, false);
	}
	if (wanted(argc, argv, "wake"))
		wake();
	return 0;
}
