/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an answer's descriptors hold. They come from another process: they must be memory (a file
 * of any other kind could let a read wait), their lengths are ours, and they are read, never
 * mapped, since whoever holds them may shrink them.
 */
#include "tools/live.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Only memory has seals to ask for. */
static bool is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/* A file that is read from its beginning to its end. */
struct source {
	int fd;
	off_t at;
};

static bool take(struct source *s, void *to, size_t n)
{
	if (n && pread(s->fd, to, n, s->at) != (ssize_t)n)
		return false;
	s->at += (off_t)n;
	return true;
}

void vrb_live_clean(char *s, size_t size)
{
	s[size - 1] = '\0';
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

static bool is_ours(const struct vrb_rows *h)
{
	return h->magic == VRB_ROWS_MAGIC && h->size == sizeof(*h) &&
	       h->qp_size == sizeof(struct vrb_row_qp) && h->cq_size == sizeof(struct vrb_row_cq) &&
	       h->mr_size == sizeof(struct vrb_row_mr) && h->n_qps <= VRB_ROWS_MAX &&
	       h->n_cqs <= VRB_ROWS_MAX && h->n_mrs <= VRB_ROWS_MAX;
}

/* n more rows behind those of *rows. */
static bool more(struct source *s, void **rows, uint32_t *had, uint32_t n, size_t size)
{
	void *bigger = n ? realloc(*rows, (*had + n) * size) : *rows;

	if (n && !bigger)
		return false;
	*rows = bigger;
	if (n && !take(s, (char *)bigger + *had * size, n * size))
		return false;
	*had += n;
	return true;
}

static bool read_page(struct vrb_live_proc *p, int fd)
{
	struct source s = {.fd = fd};

	if (!is_memory(fd) || !take(&s, &p->page, sizeof(p->page)) ||
	    p->page.magic != VRB_STATS_MAGIC || p->page.size != sizeof(p->page))
		return false;
	if (p->page.n_devices > VRB_STATS_DEVICES)
		p->page.n_devices = VRB_STATS_DEVICES;
	for (uint32_t i = 0; i < VRB_STATS_DEVICES; i++)
		vrb_live_clean(p->page.device[i].name, sizeof(p->page.device[i].name));
	memcpy(p->program, p->page.comm, sizeof(p->page.comm));
	vrb_live_clean(p->program, sizeof(p->page.comm) + 1);
	return true;
}

bool vrb_live_read(struct vrb_live_proc *p, int rows_fd, int page_fd, uint32_t *next)
{
	struct source s = {.fd = rows_fd};
	uint32_t first = p->n_qps;
	struct vrb_rows h;

	if (!is_memory(rows_fd) || !take(&s, &h, sizeof(h)) || !is_ours(&h) ||
	    !more(&s, (void **)&p->qp, &p->n_qps, h.n_qps, sizeof(*p->qp)) ||
	    !more(&s, (void **)&p->cq, &p->n_cqs, h.n_cqs, sizeof(*p->cq)) ||
	    !more(&s, (void **)&p->mr, &p->n_mrs, h.n_mrs, sizeof(*p->mr)) ||
	    !read_page(p, page_fd))
		return false;
	for (uint32_t i = first; i < p->n_qps; i++) {
		vrb_live_clean(p->qp[i].verdict, sizeof(p->qp[i].verdict));
		p->qp[i].device %= VRB_STATS_DEVICES;
	}
	for (uint32_t i = 0; i < p->n_cqs; i++)
		p->cq[i].device %= VRB_STATS_DEVICES;
	for (uint32_t i = 0; i < p->n_mrs; i++)
		p->mr[i].device %= VRB_STATS_DEVICES;
	if (!p->pid) /* of another PID namespace: what it says itself */
		p->pid = (pid_t)(h.pid & INT32_MAX);
	p->now_ns = h.now_ns;
	p->same_version = !strncmp(h.version, VRB_VERSION, sizeof(h.version));
	p->registered_bytes = h.registered_bytes;
	*next = h.next;
	return true;
}

/* ---- finding the same thing again */

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct vrb_row_qp *)a)->qpn, y = ((const struct vrb_row_qp *)b)->qpn;

	return (x > y) - (x < y);
}

static int by_cq_number(const void *a, const void *b)
{
	uint32_t x = ((const struct vrb_row_cq *)a)->number;
	uint32_t y = ((const struct vrb_row_cq *)b)->number;

	return (x > y) - (x < y);
}

void vrb_live_sort(struct vrb_live_proc *p)
{
	if (p->n_qps)
		qsort(p->qp, p->n_qps, sizeof(*p->qp), by_number);
	if (p->n_cqs)
		qsort(p->cq, p->n_cqs, sizeof(*p->cq), by_cq_number);
}

const struct vrb_live_proc *vrb_live_proc_in(const struct vrb_live *old,
					     const struct vrb_live_proc *p)
{
	for (uint32_t i = 0; i < old->n; i++) {
		const struct vrb_live_proc *o = &old->proc[i];

		if (o->slot == p->slot && o->pid == p->pid && o->answer == VRB_LIVE_YES &&
		    o->page.started_ns == p->page.started_ns)
			return o;
	}
	return NULL;
}

const struct vrb_row_qp *vrb_live_qp_in(const struct vrb_live_proc *old, const struct vrb_row_qp *q)
{
	const struct vrb_row_qp *o =
		old && old->n_qps ? bsearch(q, old->qp, old->n_qps, sizeof(*old->qp), by_number)
				  : NULL;

	return o && o->made_ns == q->made_ns ? o : NULL;
}

const struct vrb_row_cq *vrb_live_cq_in(const struct vrb_live_proc *old, const struct vrb_row_cq *q)
{
	return old && old->n_cqs ? bsearch(q, old->cq, old->n_cqs, sizeof(*old->cq), by_cq_number)
				 : NULL;
}
