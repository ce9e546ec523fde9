/* SPDX-License-Identifier: BSD-2-Clause */
/* A file by several queue pairs, from odd offsets, empty, sparse; and one that shrinks meanwhile.
 * The same with an adapter that does not pin the pages of a file, and with one that pins nothing.
 */
#include "send/kit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE (40u * 1000 * 1000 + 7)

static enum { PINS_ALL, PINS_NO_FILE, PINS_NOTHING } pins;

/* In front of the library's, by which libverbena registers memory. */
#undef ibv_reg_mr
#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
					 unsigned access)
{
	static struct ibv_mr *(*next)(struct ibv_pd *, void *, size_t, uint64_t, unsigned);

	if (pins == PINS_NOTHING || (pins == PINS_NO_FILE && !(access & IBV_ACCESS_LOCAL_WRITE))) {
		errno = EFAULT;
		return NULL;
	}
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");
	return next(pd, addr, len, iova, access);
}

EXPORTED struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

static char path[] = "/tmp/verbena-test-file.XXXXXX";
static int fd;

static void make_file(void)
{
	char block[65536];

	fd = mkstemp(path);
	CHECK(fd >= 0);
	for (uint64_t at = 0; at < SIZE; at += sizeof(block)) {
		size_t n = SIZE - at < sizeof(block) ? SIZE - at : sizeof(block);

		fill(block, at, n);
		if (at / sizeof(block) % 5) /* holes between */
			CHECK(pwrite(fd, block, n, (off_t)at) == (ssize_t)n);
	}
	CHECK(!ftruncate(fd, SIZE));
}

/* Puts the parts together; returns how it ended. */
static enum vrb_outcome take_file(struct end *e, char *into, uint64_t want)
{
	uint64_t got = 0;

	for (;;) {
		struct vrb_event ev = next_event(e);

		if (ev.kind == VRB_EV_FILE_END) {
			CHECK(ev.flow == 9 && ev.total == want);
			CHECK(ev.outcome != VRB_DONE || got == want);
			return ev.outcome;
		}
		if (ev.kind != VRB_EV_FILE)
			fprintf(stderr, "event %d %s\n", ev.kind, ev.text ? ev.text : "");
		CHECK(ev.kind == VRB_EV_FILE && ev.total == want && ev.flow == 9);
		CHECK(ev.offset <= want && ev.buf->len <= want - ev.offset);
		memcpy(into + ev.offset, ev.buf->data, ev.buf->len);
		got += ev.buf->len;
		vrb_buf_put(ev.buf);
	}
}

static void takes(struct end *e)
{
	char *into = malloc(SIZE), *file = malloc(SIZE);
	struct vrb_event ev;

	CHECK(pread(fd, file, SIZE, 0) == SIZE);
	CHECK(take_file(e, into, SIZE) == VRB_DONE && !memcmp(into, file, SIZE));
	CHECK(take_file(e, into, 0) == VRB_DONE);
	CHECK(take_file(e, into, 5000000) == VRB_DONE && !memcmp(into, file + 12345, 5000000));
	send_all(e, "cut", 3, NULL);
	/* Only now, with parts on their way: the rest of the file is gone. */
	ev = next_event(e);
	CHECK(ev.kind == VRB_EV_FILE);
	vrb_buf_put(ev.buf);
	CHECK(!truncate(path, 3000000));
	CHECK(take_file(e, into, SIZE) == VRB_SHRUNK);
	send_all(e, "end", 3, NULL);
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
	free(into);
	free(file);
}

static void send_file(struct end *e, uint64_t off, uint64_t len, enum vrb_outcome want)
{
	struct vrb_send_options o = {.cookie = e, .flow = 9};
	struct vrb_event ev;

	UNTIL_ROOM(e, vrb_send_file(e->ch, fd, off, len, &o));
	ev = want_event(e, VRB_EV_SENT);
	CHECK(ev.outcome == want && ev.cookie == e);
}

static void sends(struct end *e)
{
	struct vrb_event ev;
	int p[2];

	CHECK(vrb_send_file(e->ch, fd, SIZE, 1, NULL) == -ERANGE);
	CHECK(!strcmp(vrb_error_name(), "send_file"));
	CHECK(!pipe(p) && vrb_send_file(e->ch, p[0], 0, 1, NULL) == -EINVAL);
	send_file(e, 0, UINT64_MAX, VRB_DONE);
	send_file(e, SIZE, UINT64_MAX, VRB_DONE);
	send_file(e, 12345, 5000000, VRB_DONE);
	ev = want_event(e, VRB_EV_MESSAGE);
	vrb_buf_put(ev.buf);
	send_file(e, 0, UINT64_MAX, VRB_SHRUNK);
	ev = want_event(e, VRB_EV_MESSAGE);
	vrb_buf_put(ev.buf);
}

static void sends_copies(struct end *e)
{
	pins = PINS_NO_FILE;
	sends(e);
}

static void sends_nothing(struct end *e)
{
	pins = PINS_NOTHING;
	send_file(e, 0, UINT64_MAX, VRB_FAILED);
	pins = PINS_NO_FILE;
	send_file(e, 0, 5000000, VRB_DONE);
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

static void takes_nothing(struct end *e)
{
	char *into = malloc(SIZE);

	CHECK(take_file(e, into, SIZE) == VRB_FAILED);
	CHECK(take_file(e, into, 5000000) == VRB_DONE);
	free(into);
}

/* A file of its own: it is cut off. */
static void run(const struct vrb_channel_options *o, side *server, side *client)
{
	snprintf(path, sizeof(path), "/tmp/verbena-test-file.XXXXXX");
	make_file();
	run_pair(&(struct pair){.client = o, .server = o}, server, client);
	unlink(path);
	close(fd);
}

int main(void)
{
	const struct vrb_channel_options three = {.qps = 3}, one = {.qps = 1};

	run(&three, takes, sends);
	run(&one, takes, sends);
	run(&three, takes, sends_copies);
	run(&one, takes_nothing, sends_nothing);
	puts("4 passed, 0 failed, 0 skipped");
	return 0;
}
