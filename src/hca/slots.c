/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Claiming a slot. The name of a slot holds the user's number, so each user has slots of his own;
 * but a number that another user's process has in this network namespace is avoided, so that the
 * upper byte of a QPN says who is meant even between users of one host. The kernel's list of Unix
 * sockets tells; where it cannot be read, or all numbers are in use, users may share one.
 */
#include "hca/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Two users may claim one number at the same moment; each sees the other afterwards, and both go
 * on, from different places. */
#define CLAIM_TRIES 4

/* others[slot]: a process of another user has it. */
static void read_others(bool others[VRB_SLOTS + 1])
{
	FILE *f = fopen("/proc/net/unix", "re");
	unsigned int uid, slot;
	char line[256];

	memset(others, 0, (VRB_SLOTS + 1) * sizeof(others[0]));
	while (f && fgets(line, sizeof(line), f)) {
		const char *name = strstr(line, " @verbena.");

		if (name && sscanf(name, " @" VRB_MEET_NAME, &uid, &slot) == 2 &&
		    uid != geteuid() && slot <= VRB_SLOTS)
			others[slot] = true;
	}
	if (f)
		fclose(f);
}

bool vrb_slot_is_of_others(uint32_t slot)
{
	bool others[VRB_SLOTS + 1];

	read_others(others);
	return slot <= VRB_SLOTS && others[slot];
}

uint32_t vrb_slot_name(struct sockaddr_un *sa, uint32_t slot)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, VRB_MEET_NAME, (unsigned)geteuid(),
		     (unsigned)slot);
	return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* The first free one from `start` on, avoided ones last: the slot, or -errno; 0: none is free. */
static int bind_one(int fd, const bool *avoid, uint32_t start)
{
	struct sockaddr_un sa;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < VRB_SLOTS; i++) {
			uint32_t slot = 1 + (start + i) % VRB_SLOTS;
			socklen_t n = vrb_slot_name(&sa, slot);

			if (avoid[slot] != (pass == 1))
				continue;
			if (!bind(fd, (struct sockaddr *)&sa, n))
				return (int)slot;
			if (errno != EADDRINUSE)
				return -errno;
		}
	}
	return 0;
}

int vrb_slot_claim(uint32_t *out, int *listen_fd)
{
	struct vrb_report r = {.verdict = VRB_V_LINK_NO_SLOT, .val = {VRB_SLOTS}};
	bool others[VRB_SLOTS + 1];
	int fd, slot;

	read_others(others);
	for (int i = 0;; i++) {
		bool was_free;

		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			return -errno;
		slot = bind_one(fd, others, i ? (uint32_t)getpid() * 31u % VRB_SLOTS : 0);
		if (slot <= 0)
			break;
		was_free = !others[slot];
		read_others(others);
		if (!others[slot] || !was_free || i == CLAIM_TRIES)
			break;
		close(fd);
	}
	*listen_fd = fd;
	if (slot == 0) {
		vrb_hca_refuse(&r);
		return -EUSERS;
	}
	if (slot < 0)
		return slot;
	*out = (uint32_t)slot;
	return 0;
}
