/* SPDX-License-Identifier: BSD-2-Clause */
/* See trace_read.h. A file is as a process has left it, perhaps killed: only whole records count.
 */
#include "tools/trace_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/tools.h"

static bool map_part(int fd, struct vrb_trace_part *p)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size < sizeof(p->head))
		return false;
	p->map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p->map == MAP_FAILED)
		return false;
	memcpy(&p->head, p->map, sizeof(p->head));
	p->head.comm[sizeof(p->head.comm) - 1] = '\0';
	p->size = (size_t)st.st_size;
	p->rec = (const void *)((const char *)p->map + sizeof(p->head));
	p->n = (p->size - sizeof(p->head)) / sizeof(*p->rec);
	if (p->head.magic == VRB_TRACE_MAGIC && p->head.rec_size == sizeof(*p->rec))
		return true;
	munmap(p->map, p->size);
	return false;
}

static bool add_part(struct vrb_trace_set *s, const char *folder, const char *name)
{
	struct vrb_trace_part *more = reallocarray(s->part, s->n_parts + 1, sizeof(*more)), *p;
	char path[PATH_MAX];
	int fd;

	if (!more)
		return false;
	s->part = more;
	p = &more[s->n_parts];
	memset(p, 0, sizeof(*p));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return true;
	if (map_part(fd, p)) {
		s->n_parts++;
		s->n_records += p->n;
		s->n_lost += p->head.n_lost;
		if (p->n && (!s->first_ns || p->rec->time_ns < s->first_ns))
			s->first_ns = p->rec->time_ns;
	}
	close(fd);
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct vrb_trace_part *x = a, *y = b;

	return (x->head.pid > y->head.pid) - (x->head.pid < y->head.pid);
}

bool vrb_trace_read(struct vrb_trace_set *s, const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	bool good = d;

	memset(s, 0, sizeof(*s));
	while (good && (e = readdir(d)))
		if (e->d_name[0] != '.')
			good = add_part(s, folder, e->d_name);
	if (!good)
		vrb_complain("%s: %s", folder, strerror(errno));
	if (d)
		closedir(d);
	if (s->n_parts)
		qsort(s->part, s->n_parts, sizeof(*s->part), by_pid);
	return good;
}

const struct vrb_trace_rec *vrb_trace_next(struct vrb_trace_set *s, struct vrb_trace_part **whose)
{
	struct vrb_trace_part *first = NULL;

	for (size_t i = 0; i < s->n_parts; i++) {
		struct vrb_trace_part *p = &s->part[i];

		if (p->at < p->n &&
		    (!first || p->rec[p->at].time_ns < first->rec[first->at].time_ns))
			first = p;
	}
	*whose = first;
	return first ? &first->rec[first->at++] : NULL;
}

void vrb_trace_free(struct vrb_trace_set *s)
{
	for (size_t i = 0; i < s->n_parts; i++)
		munmap(s->part[i].map, s->part[i].size);
	free(s->part);
	memset(s, 0, sizeof(*s));
}
