/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes the tree once, to two sinks: the first hashes, the second writes. A new tree is written
 * under a name of its own and renamed, so that a reader never sees half of one. Trees that nobody
 * has used for a day are removed when a new one is made. Sits in $XDG_RUNTIME_DIR/verbena or
 * /tmp/verbena-UID; a folder of that name that is not the user's own is not used.
 */
#include "preload/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/stat.h>

#include "link/netdev.h"
#include "link/profile.h"
#include "preload/counters.h"

#define DEVICES_MAX   16
#define GID_TABLE     16
#define BASES_MAX     4 /* tried in turn when another user has taken the name */
#define USE_NOTED_S   3600
#define STALE_AFTER_S 86400
#define FILE_MODE     0444
#define TREE_PREFIX   "tree-"

struct sink {
	const char *root; /* NULL: only hash */
	uint64_t hash;
	bool failed;
};

static void hash_text(struct sink *s, const char *text)
{
	do {
		s->hash = (s->hash ^ (uint8_t)*text) * 0x100000001b3ull; /* FNV-1a */
	} while (*text++);
}

/* Makes the folders above path. */
static void make_parents(char *path, size_t from)
{
	for (char *p = path + from; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

/* The place of an entry below the root, its folders made; false when only hashing. */
static bool place(struct sink *s, const char *path, const char *text, char *full)
{
	if (!s->root) {
		hash_text(s, path);
		hash_text(s, text);
		return false;
	}
	if (snprintf(full, PATH_MAX, "%s/%s", s->root, path) >= PATH_MAX) {
		s->failed = true;
		return false;
	}
	make_parents(full, strlen(s->root) + 1);
	return true;
}

__attribute__((format(printf, 3, 4))) static void put_file(struct sink *s, const char *text,
							   const char *fmt, ...)
{
	char path[512], full[PATH_MAX];
	va_list ap;
	int fd;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (!place(s, path, text, full))
		return;
	fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
	if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
		s->failed = true;
	if (fd >= 0)
		close(fd);
}

__attribute__((format(printf, 3, 4))) static void put_link(struct sink *s, const char *target,
							   const char *fmt, ...)
{
	char path[512], full[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (place(s, path, target, full) && symlink(target, full))
		s->failed = true;
}

static void put_dir(struct sink *s, const char *path)
{
	char full[PATH_MAX];

	if (place(s, path, "", full))
		mkdir(full, 0755);
}

static void gid_text(char *out, size_t size, const struct vrb_gid *g)
{
	size_t n = 0;

	for (int i = 0; i < 16; i += 2)
		n += (size_t)snprintf(out + n, size - n, "%s%02x%02x", i ? ":" : "", g->raw[i],
				      g->raw[i + 1]);
}

/* As the library has them (hca/device.c). */
static void place_gids(const struct vrb_netdev *d, const struct vrb_gid **gid, bool *is_v1)
{
	struct vrb_profile_error ignored; /* the library says it */
	struct vrb_profile p;

	(void)vrb_profile_load(secure_getenv(VRB_PROFILE_ENV), &p, &ignored);
	for (uint32_t i = 0; i < d->n_gids; i++) {
		uint32_t at = vrb_profile_gid_index(&p, i);

		if (at >= GID_TABLE)
			return;
		gid[at] = &d->gid[i];
		if (!p.roce_v1_gids)
			continue;
		gid[at - 1] = &d->gid[i];
		is_v1[at - 1] = true;
	}
}

static void put_gids(struct sink *s, const struct vrb_netdev *d, const char *port)
{
	static const struct vrb_gid empty;
	const struct vrb_gid *gid[GID_TABLE] = {NULL};
	bool is_v1[GID_TABLE] = {false};
	char text[48];

	place_gids(d, gid, is_v1);
	for (uint32_t i = 0; i < GID_TABLE; i++) {
		gid_text(text, sizeof(text), gid[i] ? gid[i] : &empty);
		put_file(s, text, "%s/gids/%u", port, i);
		if (!gid[i])
			continue;
		put_file(s, is_v1[i] ? "IB/RoCE v1" : "RoCE v2", "%s/gid_attrs/types/%u", port, i);
		put_file(s, d->ifname, "%s/gid_attrs/ndevs/%u", port, i);
	}
}

/* As the verbs face tells the speed: the next step at or above it, 100 Gb/s when unknown. */
static const char *rate_text(uint32_t mbps)
{
	static const struct {
		uint32_t mbps;
		const char *text;
	} step[] = {
		{1000, "2.5 Gb/sec (1X SDR)"},	 {10000, "10 Gb/sec (1X FDR10)"},
		{20000, "20 Gb/sec (4X DDR)"},	 {25000, "25 Gb/sec (1X EDR)"},
		{40000, "40 Gb/sec (4X FDR10)"}, {50000, "50 Gb/sec (1X HDR)"},
		{100000, "100 Gb/sec (4X EDR)"}, {200000, "200 Gb/sec (4X HDR)"},
		{400000, "400 Gb/sec (4X NDR)"},
	};
	unsigned i = 0;

	if (!mbps)
		mbps = 100000;
	while (i + 1 < sizeof(step) / sizeof(step[0]) && step[i].mbps < mbps)
		i++;
	return step[i].text;
}

static void put_port(struct sink *s, const struct vrb_netdev *d)
{
	char port[64];

	snprintf(port, sizeof(port), "class/infiniband/%s/ports/1", d->name);
	put_file(s, d->running ? "4: ACTIVE" : "1: DOWN", "%s/state", port);
	put_file(s, d->running ? "5: LinkUp" : "3: Disabled", "%s/phys_state", port);
	put_file(s, rate_text(d->speed_mbps), "%s/rate", port);
	put_file(s, "Ethernet", "%s/link_layer", port);
	put_file(s, "0x0", "%s/lid", port);
	put_file(s, "0", "%s/lid_mask_count", port);
	put_file(s, "0x0", "%s/sm_lid", port);
	put_file(s, "0", "%s/sm_sl", port);
	put_file(s, "0x04010000", "%s/cap_mask", port);
	put_file(s, "0xffff", "%s/pkeys/0", port);
	put_gids(s, d, port);
	/* what a reader sees who does not come by open() */
	for (unsigned i = 0; i < vrb_n_counters; i++)
		put_file(s, "0", "%s/%s/%s", port, vrb_counters[i].dir, vrb_counters[i].name);
	put_file(s, "10", "%s/hw_counters/lifespan", port);
}

static void put_device(struct sink *s, const struct vrb_netdev *d, unsigned index)
{
	const uint8_t *g = (const uint8_t *)&d->guid;
	char dir[64], text[64];

	snprintf(dir, sizeof(dir), "class/infiniband/%s", d->name);
	snprintf(text, sizeof(text), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3],
		 g[4], g[5], g[6], g[7]);
	put_file(s, text, "%s/node_guid", dir);
	put_file(s, text, "%s/sys_image_guid", dir);
	put_file(s, "1: CA", "%s/node_type", dir);
	put_file(s, d->name, "%s/node_desc", dir);
	put_file(s, "verbena " VRB_VERSION, "%s/fw_ver", dir);
	put_file(s, "verbena", "%s/board_id", dir);
	put_file(s, d->name, "%s/hca_type", dir);
	put_file(s, "0", "%s/hw_rev", dir);
	put_file(s, "-1", "%s/device/numa_node", dir);
	snprintf(text, sizeof(text), "/sys/class/net/%s", d->ifname);
	put_link(s, text, "%s/device/net/%s", dir, d->ifname);
	put_port(s, d);

	snprintf(dir, sizeof(dir), "class/infiniband_verbs/uverbs%u", index);
	put_file(s, d->name, "%s/ibdev", dir);
	put_file(s, "1", "%s/abi_version", dir);
	snprintf(text, sizeof(text), "231:%u", 192 + index);
	put_file(s, text, "%s/dev", dir);
	snprintf(text, sizeof(text), "../../infiniband/%s/device", d->name);
	put_link(s, text, "%s/device", dir);
	put_link(s, "/dev/null", "dev/infiniband/uverbs%u", index);
}

static void put_all(struct sink *s, const struct vrb_netdev *d, unsigned n)
{
	put_file(s, "6", "class/infiniband_verbs/abi_version");
	/* the folders are there even without a device */
	put_dir(s, "class/infiniband");
	put_dir(s, "dev/infiniband");
	for (unsigned i = 0; i < n; i++)
		put_device(s, &d[i], i);
}

static bool is_private_dir(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

/* The private folder of this user that holds the trees. */
static bool find_base(char *out, size_t size)
{
	const char *run = secure_getenv("XDG_RUNTIME_DIR");

	if (run && run[0] == '/' && is_private_dir(run)) {
		snprintf(out, size, "%s/verbena", run);
		mkdir(out, 0700);
		if (is_private_dir(out))
			return true;
	}
	for (int i = 0; i < BASES_MAX; i++) {
		snprintf(out, size, i ? "/tmp/verbena-%u-%d" : "/tmp/verbena-%u",
			 (unsigned)geteuid(), i);
		mkdir(out, 0700);
		if (is_private_dir(out))
			return true;
	}
	return false;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_stale(const char *base)
{
	DIR *dir = opendir(base);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char path[PATH_MAX];
		struct stat st;

		if (strncmp(e->d_name, TREE_PREFIX, strlen(TREE_PREFIX)) ||
		    snprintf(path, sizeof(path), "%s/%s", base, e->d_name) >= (int)sizeof(path))
			continue;
		if (!lstat(path, &st) && st.st_mtime + STALE_AFTER_S < time(NULL))
			remove_tree(path);
	}
	if (dir)
		closedir(dir);
}

static bool build(const char *base, const char *final, const struct vrb_netdev *d, unsigned n)
{
	static atomic_uint serial;
	char fresh[PATH_MAX];
	struct sink s = {.root = fresh};
	struct stat st;

	snprintf(fresh, sizeof(fresh), "%s/%snew-%d-%u", base, TREE_PREFIX, (int)getpid(),
		 atomic_fetch_add(&serial, 1));
	if (mkdir(fresh, 0755))
		return false;
	put_all(&s, d, n);
	if (!s.failed && !rename(fresh, final)) {
		remove_stale(base);
		return true;
	}
	/* somebody else was faster, or the disk is full */
	remove_tree(fresh);
	return !lstat(final, &st);
}

bool vrb_tree_make(char out[PATH_MAX])
{
	struct vrb_netdev d[DEVICES_MAX];
	struct sink s = {.hash = 0xcbf29ce484222325ull};
	char base[PATH_MAX - 64];
	struct stat st;
	int n = vrb_netdev_scan(d, DEVICES_MAX);

	if (n < 0 || !find_base(base, sizeof(base)))
		return false;
	put_all(&s, d, (unsigned)n);
	snprintf(out, PATH_MAX, "%s/" TREE_PREFIX "%016llx", base, (unsigned long long)s.hash);
	if (lstat(out, &st))
		return build(base, out, d, (unsigned)n);
	if (st.st_mtime + USE_NOTED_S < time(NULL))
		utimensat(AT_FDCWD, out, NULL, AT_SYMLINK_NOFOLLOW);
	return true;
}
