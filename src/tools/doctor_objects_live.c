/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only this machine can tell of objects: the counters pages of the software adapter's
 * processes, and a kernel device's limits, which neither netlink nor sysfs has. The limits are
 * asked by `verbena devinfo` on the system's libibverbs, in a process of its own with a time limit:
 * a broken device must not stop the doctor.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/meet.h"
#include "tools/doctor_objects.h"
#include "tools/perf_system.h"
#include "tools/slot.h"
#include "verbena/stats.h"

#define LIMITS_MS    3000
#define LIMITS_BYTES 65536
#define PATIENCE_US  200000 /* for one process */
#define SILENT_MAX   5	    /* processes that are stopped, say, before the rest is left out */

/* ---- the software adapter */

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int hear_page(int sock)
{
	struct vrb_meet_hello h;
	int fds[VRB_SLOT_FDS], n = vrb_slot_hear(sock, &h, fds, VRB_SLOT_FDS, 0);

	for (int i = 1; i < n; i++)
		close(fds[i]);
	return n > 0 ? fds[0] : -1;
}

/* Copied, never mapped: who lies about the size of his file must not end this program. */
static bool read_page(uint32_t slot, struct vrb_stats_page *page)
{
	struct vrb_meet_hello hello = {.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = VRB_MEET_STATS,
				       .pid = (uint32_t)getpid()};
	struct timeval patience = {.tv_usec = PATIENCE_US};
	int sock = vrb_slot_connect(slot, 0, patience), fd = -1;
	bool whole = false;

	if (sock < 0)
		return false;
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(sock, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello))
		fd = hear_page(sock);
	close(sock); /* errno stays that of who did not answer */
	if (fd < 0)
		return false;
	whole = pread(fd, page, sizeof(*page), 0) == (ssize_t)sizeof(*page) &&
		page->magic == VRB_STATS_MAGIC && page->n_devices <= VRB_STATS_DEVICES;
	close(fd);
	return whole;
}

static void add_page(struct vrb_objects *o, const struct vrb_stats_page *page, const char *device)
{
	for (unsigned i = 0; i < page->n_devices && o->n < VRB_OWNERS; i++) {
		const struct vrb_stats_device *s = &page->device[i];
		struct vrb_owner *w = &o->owner[o->n];

		if (strncmp(s->name, device, sizeof(s->name)) || !(s->qps + s->cqs + s->mrs))
			continue;
		memset(w, 0, sizeof(*w));
		w->pid = page->pid;
		snprintf(w->name, sizeof(w->name), "%.*s", (int)sizeof(page->comm), page->comm);
		w->qps = s->qps;
		w->cqs = s->cqs;
		w->mrs = s->mrs;
		o->qps += s->qps;
		o->cqs += s->cqs;
		o->mrs += s->mrs;
		o->n++;
	}
}

void vrb_objects_of_software(struct vrb_objects *out, const char *device)
{
	struct vrb_stats_page *page = malloc(sizeof(*page));
	unsigned silent = 0;

	memset(out, 0, sizeof(*out));
	for (uint32_t slot = 1; page && slot <= VRB_SLOTS && silent < SILENT_MAX; slot++) {
		errno = 0;
		if (read_page(slot, page))
			add_page(out, page, device);
		else if (errno == EAGAIN)
			silent++;
	}
	free(page);
}

/* ---- limits of a kernel device */

static void be_devinfo(int out, const char *library)
{
	static const char *const ours[] = {"LD_LIBRARY_PATH", "VERBENA_PROFILE", "VERBENA_FAULTS",
					   "VERBENA_STORY", "VERBENA_EXPLAIN"};
	char name[] = "verbena", command[] = "devinfo", json[] = "--json";
	char *argv[] = {name, command, json, NULL};
	int none = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		unsetenv(ours[i]);
	if (none >= 0 && dup2(out, 1) >= 0 && dup2(none, 2) >= 0 &&
	    !setenv("LD_PRELOAD", library, 1))
		execv("/proc/self/exe", argv);
	_exit(1);
}

static size_t hear_all(int fd, char *out, size_t size)
{
	long long end = now_ms() + LIMITS_MS, left;
	size_t n = 0;
	ssize_t got;

	while (n < size && (left = end - now_ms()) > 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, (int)left) <= 0)
			break;
		got = read(fd, out + n, size - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

static json_t *ask_devinfo(void)
{
	char library[512], *text = malloc(LIMITS_BYTES);
	json_t *all = NULL;
	int ends[2];
	pid_t child;

	if (!text || !vrb_perf_find_system(library, sizeof(library)) || pipe2(ends, O_CLOEXEC)) {
		free(text);
		return NULL;
	}
	child = fork();
	if (!child)
		be_devinfo(ends[1], library);
	close(ends[1]);
	if (child > 0) {
		size_t n = hear_all(ends[0], text, LIMITS_BYTES);

		all = json_loadb(text, n, 0, NULL);
		if (!all)
			kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	free(text);
	return all;
}

void vrb_doc_limits_text(FILE *out, const char *device)
{
	json_t *all = ask_devinfo(), *dev;
	size_t i;

	json_array_foreach(all, i, dev)
	{
		const char *name = json_string_value(json_object_get(dev, "device"));

		if (name && !strcmp(name, device))
			fprintf(out, "limits qp %lld cq %lld mr %lld\n",
				(long long)json_integer_value(json_object_get(dev, "max_qp")),
				(long long)json_integer_value(json_object_get(dev, "max_cq")),
				(long long)json_integer_value(json_object_get(dev, "max_mr")));
	}
	json_decref(all);
}
