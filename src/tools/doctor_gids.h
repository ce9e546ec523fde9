/* SPDX-License-Identifier: BSD-2-Clause */
/* The GID table of a port as sysfs has it; empty entries are left out. */
#ifndef VRB_TOOLS_DOCTOR_GIDS_H
#define VRB_TOOLS_DOCTOR_GIDS_H

#include "tools/doctor_read.h"

#define VRB_DOC_GIDS 256

enum vrb_gid_kind { VRB_GID_V4, VRB_GID_V6, VRB_GID_LINK_LOCAL };

struct vrb_doc_gid {
	int index;
	bool v2;
	enum vrb_gid_kind kind;
	uint8_t raw[16];
	char text[48], type[24], netdev[16];
};

struct vrb_doc_gids {
	unsigned n;
	struct vrb_doc_gid gid[VRB_DOC_GIDS];
};

/* IPv4 is ::ffff:a.b.c.d. */
enum vrb_gid_kind vrb_gid_kind_of(const uint8_t *raw);

/* A GID that is looked for. */
struct vrb_gid_wish {
	const uint8_t *addr;
	const char *netdev; /* of the route to it; NULL: the address itself is looked for */
	enum vrb_gid_kind kind;
};

/* Asks the software adapter's devices, and adds the finding. */
bool vrb_doc_software_gid(struct vrb_doc *d, const struct vrb_gid_wish *w);

void vrb_doc_gids(const struct vrb_doc *d, struct vrb_doc_gids *out, const char *device,
		  const char *port);
/* The interface of a port: that of its first GID, else the one of its PCI function, else "NETDEV".
 */
void vrb_doc_port_netdev(const struct vrb_doc *d, const char *device, const char *port,
			 char netdev[16]);
/* The entry to use by default: RoCE v2, IPv4 before IPv6 before link-local. */
const struct vrb_doc_gid *vrb_doc_gid_best(const struct vrb_doc_gids *g);

/* Calls f for each port of each device that is wanted. */
void vrb_doc_each_port(struct vrb_doc *d,
		       void (*f)(struct vrb_doc *d, const struct vrb_doc_device *dev,
				 const char *port));

#endif
