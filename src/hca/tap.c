/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capture file of a process: how it is begun, written and ended. Blocks are collected and
 * appended by one write at the end of each batch of work, so that what a process has done is in the
 * file when it is killed, and blocks of several processes do not mix. (A kill can cut that write
 * off; the tool mends it.) A file that cannot be written ends the capture, never the program.
 */
#include "hca/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hca/direct.h"

static void refuse(enum vrb_verdict v, uint64_t a, uint64_t b)
{
	struct vrb_report r = {.verdict = v, .val = {a, b}};

	vrb_hca_refuse(&r);
}

/* ---- writing */

/* Beyond RLIMIT_FSIZE a write means SIGXFSZ, whose default is the end of the program. at: where, or
 * -1. */
static long write_guarded(int fd, const void *bytes, size_t n, off_t at)
{
	const struct timespec at_once = {0};
	sigset_t limit, old;
	long r;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &limit, &old);
	r = at < 0 ? syscall(SYS_write, fd, bytes, n) : syscall(SYS_pwrite64, fd, bytes, n, at);
	if (r < 0) {
		r = -errno;
		if (r == -EFBIG)
			syscall(SYS_rt_sigtimedwait, &limit, NULL, &at_once, sizeof(uint64_t));
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

long vrb_tap_append(int fd, const uint8_t *bytes, size_t n)
{
	return write_guarded(fd, bytes, n, -1);
}

long vrb_tap_write_at(int fd, const void *bytes, size_t n, uint64_t at)
{
	return write_guarded(fd, bytes, n, (off_t)at);
}

static void write_out(struct vrb_tap *t)
{
	for (uint32_t done = 0; done < t->n && !t->err;) {
		long r = vrb_tap_append(t->fd, t->buf + done, t->n - done);

		if (r > 0)
			done += (uint32_t)r;
		else if (r != -EINTR)
			t->err = r ? (int)-r : EIO;
	}
	t->n = 0;
}

uint8_t *vrb_tap_room(struct vrb_tap *t, size_t n)
{
	if (t->n + n > sizeof(t->buf))
		write_out(t);
	return t->err ? NULL : t->buf + t->n;
}

/* ---- beginning and ending */

static void tap_all(struct vrb_engine *e, bool on)
{
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next) {
			struct vrb_hqp *q = vrb_list_entry(n, struct vrb_hqp, ctx_node);

			vrb_qp_tap(&q->core, on || e->trace);
			vrb_direct_update(e, q);
		}
	}
}

static int begin(struct vrb_engine *e, int fd, int sock, uint32_t kept)
{
	struct vrb_tap *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->fd = fd;
	t->sock = sock;
	t->kept = kept ? kept : UINT32_MAX;
	e->tap = t;
	tap_all(e, true);
	return 0;
}

static void say(const struct vrb_engine *e, int sock, int err)
{
	const struct vrb_meet_hello h = {.magic = VRB_MEET_MAGIC,
					 .version = VRB_MEET_VERSION,
					 .type = VRB_MEET_CAPTURE,
					 .slot = e->slot,
					 .pid = (uint32_t)getpid(),
					 .arg = (uint32_t)err};

	(void)vrb_meet_send(sock, &h, NULL, 0);
}

static void end(struct vrb_engine *e)
{
	struct vrb_tap *t = e->tap;
	int old = vrb_cancel_off();

	e->tap = NULL;
	tap_all(e, false);
	if (t->err)
		refuse(VRB_V_CAPTURE_ENDED, (uint64_t)t->err, 0);
	if (t->err && t->sock >= 0)
		say(e, t->sock, t->err);
	vrb_meet_unwatch(e, &t->sock);
	close(t->fd);
	free(t);
	vrb_cancel_restore(old);
}

void vrb_tap_flush(struct vrb_engine *e)
{
	struct vrb_tap *t = e->tap;

	if (t->n)
		write_out(t);
	if (vrb_unlikely(t->err))
		end(e);
}

void vrb_tap_close(struct vrb_engine *e)
{
	if (e->tap)
		vrb_tap_flush(e);
	if (e->tap)
		end(e);
}

void vrb_tap_disown(struct vrb_engine *e)
{
	struct vrb_tap *t = e->tap;

	if (!t)
		return;
	e->tap = NULL;
	close(t->fd);
	if (t->sock >= 0)
		close(t->sock);
	free(t);
}

/* ---- the file that VERBENA_CAPTURE names */

/* Never 0. Processes with the same file in front of them get the same. */
static uint32_t id_of(const struct stat *st)
{
	return ((uint32_t)st->st_ino * 0x61c88647u ^ (uint32_t)st->st_dev) | 1;
}

void vrb_tap_open(struct vrb_engine *e)
{
	/* secure: a set-uid program appends to no file that its caller names */
	const char *path = secure_getenv("VERBENA_CAPTURE");
	const char *kept = secure_getenv("VERBENA_CAPTURE_SNAP");
	struct stat st;
	int fd, err;

	if (!path || !*path)
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
	err = fd < 0 || fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	vrb_engine_lock(e);
	if (!err)
		err = begin(e, fd, -1, kept ? (uint32_t)strtoul(kept, NULL, 0) : 0);
	if (!err)
		e->tap->id = id_of(&st);
	vrb_engine_unlock(e);
	if (!err)
		return;
	refuse(VRB_V_CAPTURE_ENDED, (uint64_t)-err, 0);
	if (fd >= 0)
		close(fd);
}

/* ---- a tool's connection */

/* Something that takes bytes at its end without waiting for anybody. */
static int check_file(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !(flags & O_APPEND) ||
	    (flags & O_ACCMODE) == O_RDONLY)
		return -EINVAL;
	return 0;
}

bool vrb_tap_attach(struct vrb_engine *e, int sock, struct vrb_meet_msg *m)
{
	int err = m->n_fds == 1 ? check_file(m->fd[0]) : -EINVAL;

	if (!err && e->tap)
		err = -EBUSY;
	if (!err)
		err = vrb_meet_rewatch(e, VRB_EV_TAP, sock);
	if (!err)
		err = begin(e, m->fd[0], sock, m->hello.arg);
	say(e, sock, -err);
	if (err) {
		refuse(VRB_V_CAPTURE_REFUSED, (uint64_t)vrb_meet_pid(sock), (uint64_t)-err);
		return false;
	}
	m->fd[0] = -1;
	return true;
}

/* Whatever comes from the tool, it is the end. */
void vrb_tap_on_event(struct vrb_engine *e, int sock)
{
	struct vrb_meet_msg m;
	enum vrb_meet_got got;

	if (!e->tap || e->tap->sock != sock)
		return;
	got = vrb_meet_recv(sock, &m);
	if (got == VRB_MEET_NOTHING)
		return;
	if (got == VRB_MEET_MSG)
		vrb_meet_drop(&m);
	vrb_tap_close(e);
}
