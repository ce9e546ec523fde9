/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver's own statistics, which sysfs does not have: discards at the port, pause frames. Asked
 * by ioctl; in a recorded tree they are lines "name: value" of ethtool/NETDEV.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/doctor_read.h"

#define STATISTICS_MAX 4096
#define LINE_BYTES     (ETH_GSTRING_LEN + 24)

static bool ask(int fd, const char *netdev, void *data)
{
	struct ifreq r = {.ifr_data = data};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", netdev);
	return !ioctl(fd, SIOCETHTOOL, &r);
}

static unsigned how_many(int fd, const char *netdev)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t n;
	} q = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_STATS}};

	return ask(fd, netdev, &q) && q.info.sset_mask && q.n <= STATISTICS_MAX ? q.n : 0;
}

static char *to_text(const struct ethtool_gstrings *names, const struct ethtool_stats *values,
		     unsigned n)
{
	char *text = malloc((size_t)n * LINE_BYTES + 1);
	size_t len = 0;

	if (!text)
		return NULL;
	text[0] = '\0';
	for (unsigned i = 0; i < n && i < names->len && i < values->n_stats; i++)
		len += (size_t)snprintf(text + len, LINE_BYTES, "%.*s: %llu\n", ETH_GSTRING_LEN - 1,
					(const char *)names->data + (size_t)i * ETH_GSTRING_LEN,
					(unsigned long long)values->data[i]);
	return text;
}

static char *ask_driver(const char *netdev)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned n = fd < 0 ? 0 : how_many(fd, netdev);
	/* a driver may have more of them when it is asked the second time */
	struct ethtool_gstrings *names =
		n ? calloc(1, sizeof(*names) + 2 * STATISTICS_MAX * ETH_GSTRING_LEN) : NULL;
	struct ethtool_stats *values =
		n ? calloc(1, sizeof(*values) + 2 * STATISTICS_MAX * sizeof(uint64_t)) : NULL;
	char *text = NULL;

	if (names && values) {
		names->cmd = ETHTOOL_GSTRINGS;
		names->string_set = ETH_SS_STATS;
		names->len = n;
		values->cmd = ETHTOOL_GSTATS;
		values->n_stats = n;
		if (ask(fd, netdev, names) && ask(fd, netdev, values))
			text = to_text(names, values, n);
	}
	free(names);
	free(values);
	if (fd >= 0)
		close(fd);
	return text;
}

char *vrb_doc_ethtool(const struct vrb_doc *d, const char *netdev)
{
	char path[64], *text;

	if (d->root[0])
		return vrb_doc_slurp(d, "/ethtool/%s", netdev);
	text = ask_driver(netdev);
	snprintf(path, sizeof(path), "/ethtool/%s", netdev);
	if (text)
		vrb_record_file(d, path, text, strlen(text));
	return text;
}

bool vrb_doc_ethtool_sum(const char *text, const char *name, long long *out)
{
	const char *star = strchr(name, '*');
	size_t front = star ? (size_t)(star - name) : 0;
	bool found = false;
	char value[32], one[64];

	*out = 0;
	/* a star stands for the priorities */
	for (int prio = 0; text && prio < (star ? 8 : 1); prio++) {
		if (star)
			snprintf(one, sizeof(one), "%.*s%d%s:", (int)front, name, prio, star + 1);
		else
			snprintf(one, sizeof(one), "%s:", name);
		if (!vrb_doc_field(text, one, value, sizeof(value)))
			continue;
		*out += atoll(value);
		found = true;
	}
	return found;
}
