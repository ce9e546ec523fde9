/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file straight from its mapping. Windows of the file are mapped, registered and offered like any
 * large message, on the queue pairs in turn; the peer READs them from the page cache and they are
 * let go. So memory and registrations stay bounded whatever the file's size. Who shrinks the file
 * meanwhile makes the transfer fail, not the process: the mapping is guarded (guard.c), the size is
 * looked at again after each window, and the last word to the peer says whether all of it was good.
 * An adapter that cannot pin pages of a file (a kernel's ib_umem before Linux 6.2 wants to write to
 * them) gets copies of the windows.
 */
#include "send/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "send/fail.h"
#include "send/guard.h"
#include "send/send.h"

#define WINDOW	(1u << 20)
#define WINDOWS 4u

struct window {
	void *map;	      /* NULL: free */
	size_t map_len, skip; /* in front of the window: mappings begin with a page */
	struct vrb_region *region;
	uint64_t off, len;
	int guard;
};

struct vrb_file {
	int fd;
	uint64_t off, at, end; /* the part of the file: begin, next window, end */
	struct vrb_send_options o;
	struct window w[WINDOWS];
	uint32_t busy, lane;
	bool shrunk, copies;
	enum vrb_outcome worst;
};

static bool is_there(const struct vrb_file *f, uint64_t end)
{
	struct stat st;

	return !fstat(f->fd, &st) && (uint64_t)st.st_size >= end;
}

static void unmap(struct vrb_file *f, struct window *w)
{
	if (w->region)
		vrb_unregister(w->region);
	if (w->guard >= 0)
		f->shrunk |= vrb_guard_remove(w->guard);
	munmap(w->map, w->map_len);
	*w = (struct window){.guard = -1};
}

/* The window as it is in the page cache, guarded. */
static bool map_pages(struct vrb_channel *ch, struct vrb_file *f, struct window *w)
{
	off_t from = (off_t)(w->off - w->skip);

	w->map_len = (size_t)(w->skip + w->len);
	w->map = mmap(NULL, w->map_len, PROT_READ, MAP_SHARED, f->fd, from);
	if (w->map == MAP_FAILED) {
		w->map = NULL;
		return false;
	}
	w->guard = vrb_guard_add(w->map, w->map_len);
	if (w->guard >= 0 &&
	    !vrb_register(ch->d, w->map, w->map_len, VRB_REMOTE_READ | VRB_READ_ONLY, &w->region))
		return true;
	f->copies = w->guard >= 0 && is_there(f, w->off + w->len);
	unmap(f, w);
	return false;
}

/* A copy of it. */
static bool copy_pages(struct vrb_channel *ch, struct vrb_file *f, struct window *w)
{
	uint64_t got = 0;
	ssize_t n = 1;

	w->map_len = (size_t)(w->skip + w->len);
	w->map = mmap(NULL, w->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->map == MAP_FAILED) {
		w->map = NULL;
		return false;
	}
	for (; n > 0 && got < w->len; got += (uint64_t)(n > 0 ? n : 0))
		n = pread(f->fd, (char *)w->map + w->skip + got, (size_t)(w->len - got),
			  (off_t)(w->off + got));
	f->shrunk |= n == 0;
	if (n > 0 && !vrb_register(ch->d, w->map, w->map_len, VRB_REMOTE_READ, &w->region))
		return true;
	unmap(f, w);
	return false;
}

/* False: it cannot be had now, or never; then the transfer ends. */
static bool take_window(struct vrb_channel *ch, struct vrb_file *f, struct window *w)
{
	const struct window want = {
		.off = f->at,
		.len = f->end - f->at < WINDOW ? f->end - f->at : WINDOW,
		.skip = f->at % (uint64_t)sysconf(_SC_PAGESIZE),
		.guard = -1,
	};

	*w = want;
	if (!f->copies && map_pages(ch, f, w))
		return true;
	*w = want;
	if (copy_pages(ch, f, w))
		return true;
	f->shrunk |= !is_there(f, want.off + want.len); /* what is not there cannot be pinned */
	if (!f->busy && !f->shrunk) {
		f->worst = VRB_FAILED;
		f->at = f->end;
	}
	return false;
}

/* The window's place, and behind it where in the file that is, and of how much. */
static int offer(struct vrb_channel *ch, struct vrb_file *f, uint32_t i)
{
	struct vrb_lane *l = ch->lane[f->lane];
	const struct window *w = &f->w[i];
	uint64_t total = f->end - f->off;
	const struct vrb_piece piece[2] = {
		{.addr = w->region->addr + w->skip,
		 .len = (uint32_t)w->len,
		 .rkey = w->region->mr->rkey},
		{.addr = w->off - f->off, .len = (uint32_t)total, .rkey = (uint32_t)(total >> 32)}};
	struct vrb_frame frame = {.kind = VRB_FRAME_OFFER,
				  .flags = VRB_FRAME_FILE,
				  .len = (uint32_t)w->len,
				  .flow = f->o.flow,
				  .immediate = f->o.immediate};
	const struct vrb_sent what = {
		.kind = VRB_SENT_OFFER, .cookie = (void *)(uintptr_t)i, .flags = VRB_SENT_FILE};

	const struct vrb_want callers = l->want;
	int r;

	if (!vrb_lane_is_up(l) || l->resting || !vrb_credit_can_send(&l->credit) ||
	    !vrb_sq_room(&l->sq) || l->n_answers)
		return -EAGAIN;
	r = vrb_offer_send(l, piece, 2, &what, &frame);
	l->want = callers; /* nobody waits for this one */
	return r;
}

static void to_lane_in_use(const struct vrb_channel *ch, struct vrb_file *f)
{
	for (uint32_t i = 0; i < ch->n_lanes && ch->lane[f->lane]->state != VRB_LANE_UP; i++)
		f->lane = (f->lane + 1) % ch->n_lanes;
}

static bool next_window(struct vrb_channel *ch, struct vrb_file *f)
{
	uint32_t i = 0;

	while (i < WINDOWS && f->w[i].map)
		i++;
	if (i == WINDOWS || f->at == f->end || f->shrunk)
		return false;
	to_lane_in_use(ch, f);
	if (!is_there(f, f->end)) {
		f->shrunk = true;
		return false;
	}
	if (!take_window(ch, f, &f->w[i]))
		return false;
	if (offer(ch, f, i)) {
		unmap(f, &f->w[i]);
		return false;
	}
	f->at += f->w[i].len;
	f->busy++;
	f->lane = (f->lane + 1) % ch->n_lanes;
	return true;
}

static void finish(struct vrb_channel *ch, enum vrb_outcome outcome)
{
	struct vrb_file *f = ch->file;
	struct vrb_event e = {.kind = VRB_EV_SENT, .outcome = outcome, .cookie = f->o.cookie};

	ch->file = NULL;
	ch->freed = true;
	close(f->fd);
	free(f);
	vrb_emit(ch, &e);
}

/* The last word: how much it was, and whether that is the file. */
static void say_end(struct vrb_channel *ch, struct vrb_file *f)
{
	struct vrb_lane *l;
	uint32_t word[3] = {htole32((uint32_t)(f->end - f->off)),
			    htole32((uint32_t)((f->end - f->off) >> 32)), htole32(f->worst)};
	struct vrb_frame frame = {.kind = VRB_FRAME_MESSAGE,
				  .flags = VRB_FRAME_FILE,
				  .len = sizeof(word),
				  .flow = f->o.flow,
				  .immediate = f->o.immediate};

	to_lane_in_use(ch, f);
	l = ch->lane[f->lane];
	if (!vrb_lane_is_up(l) || l->resting || !vrb_credit_can_send(&l->credit) ||
	    !vrb_sq_room(&l->sq) || l->n_answers || vrb_lane_flush(l))
		return;
	if (vrb_post_control(l, &frame, word, sizeof(word)))
		return;
	l->mark = l->sq.tail;
	finish(ch, f->worst);
}

void vrb_file_move(struct vrb_channel *ch)
{
	struct vrb_file *f = ch->file;

	if (ch->state != VRB_UP)
		return;
	while (next_window(ch, f))
		;
	if (f->shrunk && f->worst == VRB_DONE)
		f->worst = VRB_SHRUNK;
	if (!f->busy && (f->at == f->end || f->shrunk) && ch->state == VRB_UP)
		say_end(ch, f);
}

void vrb_file_window_over(struct vrb_channel *ch, uint32_t window, enum vrb_outcome outcome)
{
	struct vrb_file *f = ch->file;
	struct window *w = &f->w[window];

	f->shrunk |= !is_there(f, w->off + w->len);
	unmap(f, w);
	f->busy--;
	if (outcome != VRB_DONE) {
		f->worst = outcome;
		f->at = f->end;
	}
}

void vrb_file_settle(struct vrb_channel *ch)
{
	if (ch->file)
		finish(ch, VRB_FLUSHED);
}

int vrb_send_file(struct vrb_channel *ch, int fd, uint64_t offset, uint64_t len,
		  const struct vrb_send_options *o)
{
	struct vrb_file *f;
	struct stat st;

	if (ch->state != VRB_UP)
		return vrb_lane_down(ch->lane[0]);
	if (ch->file)
		return vrb_again_for(ch->lane[0], &ch->st.again_queue,
				     &(struct vrb_want){.wrs = 1, .file = true});
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return vrb_fail(EINVAL, VRB_V_SEND_FILE, 0, 0, 0);
	if (len == UINT64_MAX && offset <= (uint64_t)st.st_size)
		len = (uint64_t)st.st_size - offset;
	if (offset > (uint64_t)st.st_size || len > (uint64_t)st.st_size - offset)
		return vrb_fail(ERANGE, VRB_V_SEND_FILE, offset, len, (uint64_t)st.st_size);
	f = calloc(1, sizeof(*f));
	if (!f)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*f), ENOMEM, 0);
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0) {
		free(f);
		return vrb_fail(EMFILE, VRB_V_SEND_FILE, offset, len, (uint64_t)st.st_size);
	}
	f->off = f->at = offset;
	f->end = offset + len;
	f->o = o ? *o : (struct vrb_send_options){0};
	for (uint32_t i = 0; i < WINDOWS; i++)
		f->w[i].guard = -1;
	ch->file = f;
	vrb_file_move(ch);
	return 0;
}
