/* SPDX-License-Identifier: BSD-2-Clause */
/* The capture file from the outside: its head is ours, the packets are appended by the processes
 * that are captured, and counted here. */
#include "tools/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pcapng.h"
#include "tools/tools.h"

#define CHUNK	(1u << 20)
#define GAP_MIN 12u /* the shortest block */
#define REST_US 100000u

/* What the file holds is lost: only a capture, or nothing, may be. */
static bool may_empty(const struct vrb_capture *c, const struct stat *st)
{
	static const uint8_t section[4] = {0x0a, 0x0d, 0x0d, 0x0a};
	uint8_t first[sizeof(section)];

	return !st->st_size || (pread(c->fd, first, sizeof(first), 0) == sizeof(first) &&
				!memcmp(first, section, sizeof(first)));
}

bool vrb_capture_create(struct vrb_capture *c, const char *path)
{
	uint8_t head[VRB_PCAPNG_HEAD_MAX];
	size_t len = vrb_pcapng_emit_head(head, "verbena " VRB_VERSION);
	struct stat st;

	*c = (struct vrb_capture){.path = path};
	/* O_NONBLOCK: a named pipe without a reader must not stop us */
	c->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
	if (c->fd < 0) {
		vrb_complain("cannot create %s: %s", path, strerror(errno));
		return false;
	}
	if (fstat(c->fd, &st) || !S_ISREG(st.st_mode)) {
		vrb_complain("%s is no regular file, and several processes append to it; capture "
			     "into a file and read that with `tail -c +1 -f`",
			     path);
		close(c->fd);
		return false;
	}
	if (!may_empty(c, &st)) {
		vrb_complain("%s holds something else than a capture and is left as it is; FILE is "
			     "the first argument, `verbena capture FILE -- COMMAND`, otherwise "
			     "remove it first",
			     path);
		close(c->fd);
		return false;
	}
	if (ftruncate(c->fd, 0) || write(c->fd, head, len) != (ssize_t)len) {
		vrb_complain("cannot write %s: %s", path, strerror(errno));
		close(c->fd);
		return false;
	}
	return true;
}

/* The whole blocks at the beginning of a chunk; returns how many of its bytes they take. */
static size_t walk(struct vrb_capture *c, const uint8_t *bytes, size_t len, uint64_t max)
{
	struct vrb_pcapng_block b;
	size_t off = 0;

	while (c->n_wire + c->n_same_host < max && vrb_pcapng_parse(bytes + off, len - off, &b) &&
	       b.is_whole) {
		if (b.is_packet) {
			*(b.interface == VRB_PCAPNG_WIRE ? &c->n_wire : &c->n_same_host) += 1;
			c->bytes += b.packet_len;
		}
		off += b.len;
	}
	return off;
}

bool vrb_capture_count(struct vrb_capture *c, uint64_t max)
{
	uint8_t *bytes = malloc(CHUNK);
	size_t used = 1;

	while (bytes && used) {
		ssize_t n = pread(c->fd, bytes, CHUNK, c->at);

		used = n > 0 ? walk(c, bytes, (size_t)n, max) : 0;
		c->at += (off_t)used;
	}
	free(bytes);
	return c->n_wire + c->n_same_host >= max;
}

/* How far it is to the next whole packet: a block that was never ended begins here. */
static size_t gap_len(const uint8_t *bytes, size_t len)
{
	struct vrb_pcapng_block b;
	size_t off = GAP_MIN;

	while (off < len && !(vrb_pcapng_parse(bytes + off, len - off, &b) && b.is_packet &&
			      b.is_whole && b.interface <= VRB_PCAPNG_SAME_HOST))
		off += 4;
	return off;
}

/* Somebody may be writing the block that is last: true when nothing has come for a while. */
static bool is_at_rest(const struct vrb_capture *c, off_t end)
{
	struct stat st;

	usleep(REST_US);
	return !fstat(c->fd, &st) && st.st_size == end;
}

static bool put_gap(const struct vrb_capture *c, uint8_t *bytes, size_t len)
{
	char name[32];
	bool done;
	int fd;

	vrb_pcapng_emit_gap(bytes, (uint32_t)len);
	/* a descriptor that appends writes at the end only; the path may be another file by now */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", c->fd);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && pwrite(fd, bytes, len, c->at) == (ssize_t)len;
	if (fd >= 0)
		close(fd);
	return done;
}

/*
 * A process that is killed may leave its last write half done, and others append behind it. What is
 * left of the block is made one that readers pass over, or cut off where it is the last. Processes
 * that go on may append meanwhile: what has become whole since it was counted is left alone. False:
 * there is nothing to mend, or it cannot be.
 */
static bool mend(struct vrb_capture *c)
{
	uint8_t *bytes = malloc(CHUNK);
	ssize_t n = bytes ? pread(c->fd, bytes, CHUNK, c->at) : 0;
	size_t len = n > 0 ? gap_len(bytes, (size_t)n) : 0;
	struct vrb_pcapng_block b;
	bool done = false, grown = false;

	if (n > 0 && vrb_pcapng_parse(bytes, (size_t)n, &b) && b.is_whole)
		grown = true;
	else if (n > 0 && len < (size_t)n)
		done = put_gap(c, bytes, len);
	else if (n > 0 && n < (ssize_t)CHUNK && !(grown = !is_at_rest(c, c->at + n)))
		done = !ftruncate(c->fd, c->at);
	c->is_stuck = n > 0 && !done && !grown;
	free(bytes);
	c->n_gaps += done;
	return done || grown;
}

void vrb_capture_end(struct vrb_capture *c)
{
	do
		(void)vrb_capture_count(c, UINT64_MAX);
	while (mend(c));
	fprintf(stderr, "verbena: %llu packets (%llu same-host, %llu wire), %llu bytes, in %s\n",
		(unsigned long long)(c->n_wire + c->n_same_host),
		(unsigned long long)c->n_same_host, (unsigned long long)c->n_wire,
		(unsigned long long)c->bytes, c->path);
	if (c->n_gaps)
		fprintf(stderr,
			"verbena: %llu more were not written whole (by a process that was killed, "
			"or into a full file system) and are passed over\n",
			(unsigned long long)c->n_gaps);
	if (c->is_stuck)
		fprintf(stderr, "verbena: behind them %s cannot be read\n", c->path);
}
