/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helpers that programs use to read a device's files under /sys/class/infiniband. For our
 * devices there are no such files; the answer comes from memory. Other paths are read as they are.
 */
#include "verbs/verbs.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Exported, but no longer in the public header. */
VV_EXPORT const char *ibv_get_sysfs_path(void);
VV_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

const char *ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");

	return path && *path ? path : "/sys";
}

static int guid_text(char *buf, size_t size, uint64_t guid)
{
	uint64_t g = be64toh(guid);

	return snprintf(buf, size, "%04x:%04x:%04x:%04x", (unsigned)(g >> 48) & 0xffff,
			(unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff,
			(unsigned)g & 0xffff);
}

static int gid_text(char *buf, size_t size, const struct vrb_hdev *dev, unsigned i)
{
	static const struct vrb_gid none;
	const uint8_t *g = i < dev->n_gids && dev->gid[i].valid ? dev->gid[i].gid.raw : none.raw;
	int len = 0;

	for (int k = 0; k < 16 && (size_t)len < size; k += 2)
		len += snprintf(buf + len, size - (size_t)len, "%s%02x%02x", k ? ":" : "", g[k],
				g[k + 1]);
	return len;
}

/* Files of the device's folder. */
static int device_file(const struct vrb_hdev *dev, const char *file, char *buf, size_t size)
{
	if (!strcmp(file, "node_type"))
		return snprintf(buf, size, "1: CA");
	if (!strcmp(file, "node_guid") || !strcmp(file, "sys_image_guid"))
		return guid_text(buf, size, dev->guid);
	if (!strcmp(file, "node_desc") || !strcmp(file, "hca_type"))
		return snprintf(buf, size, "%s", dev->name);
	if (!strcmp(file, "board_id"))
		return snprintf(buf, size, "verbena");
	if (!strcmp(file, "fw_ver"))
		return snprintf(buf, size, "verbena %s", VRB_VERSION);
	if (!strcmp(file, "hw_rev"))
		return snprintf(buf, size, "0");
	return -1;
}

/* Files of the port's folder. */
static int port_file(const struct vrb_hdev *dev, const char *file, char *buf, size_t size)
{
	unsigned i;

	if (!strcmp(file, "state"))
		return snprintf(buf, size, dev->up ? "4: ACTIVE" : "1: DOWN");
	if (!strcmp(file, "phys_state"))
		return snprintf(buf, size, dev->up ? "5: LinkUp" : "3: Disabled");
	if (!strcmp(file, "link_layer"))
		return snprintf(buf, size, "Ethernet");
	if (!strcmp(file, "lid") || !strcmp(file, "sm_lid"))
		return snprintf(buf, size, "0x0");
	if (sscanf(file, "gids/%u", &i) == 1 && i < VRB_GIDS_MAX)
		return gid_text(buf, size, dev, i);
	if (sscanf(file, "pkeys/%u", &i) == 1 && i < VV_PKEYS)
		return snprintf(buf, size, "0x%04x", VV_PKEY);
	if (sscanf(file, "gid_attrs/types/%u", &i) == 1 && i < dev->n_gids && dev->gid[i].valid)
		return snprintf(buf, size, dev->gid[i].is_v1 ? "IB/RoCE v1" : "RoCE v2");
	if (sscanf(file, "gid_attrs/ndevs/%u", &i) == 1 && i < dev->n_gids && dev->gid[i].valid)
		return snprintf(buf, size, "%s", dev->ifname);
	return -1;
}

int vv_sysfs_answer(const char *dir, const char *file, char *buf, size_t size)
{
	struct vrb_hdev *h[VRB_DEVICES_MAX];
	char path[512], root[IBV_SYSFS_PATH_MAX];
	int n = vrb_hca_devices(h), len = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	for (int i = 0; i < n && len < 0; i++) {
		size_t skip = (size_t)snprintf(root, sizeof(root), "%s/class/infiniband/%s/",
					       ibv_get_sysfs_path(), h[i]->name);

		if (strncmp(path, root, skip))
			continue;
		if (!strncmp(path + skip, "ports/1/", 8))
			len = port_file(h[i], path + skip + 8, buf, size);
		else
			len = device_file(h[i], path + skip, buf, size);
	}
	if (len >= (int)size) /* cut, as a read into a short buffer is */
		len = size ? (int)size - 1 : 0;
	return len;
}

/* The length without the newline at the end, or -1. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	ssize_t len;
	int fd, answer;

	if (!size)
		return -1;
	answer = vv_sysfs_answer(dir, file, buf, size);
	if (answer >= 0)
		return answer;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	close(fd);
	if (len > 0 && buf[len - 1] == '\n')
		buf[--len] = '\0';
	else if (len >= 0 && (size_t)len < size)
		buf[len] = '\0';
	return (int)len;
}
