/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The class in which RoCE travels at an interface, and what has been set for it: PFC, ETS, trust in
 * DSCP, congestion control. The mark comes from configfs (rdma_cm) or from the vendor's sysfs; a
 * program may choose its own, so that no mark is a note only. Interfaces that tell nothing of DCB,
 * VLANs among them, are left alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_dcb.h"
#include "tools/doctor_gids.h"

#define TSA_ETS	     2
#define LLD_MANAGED  2 /* DCB_CAP_DCBX_LLD_MANAGED */
#define ECN_PRIORITY 3 /* the usual one, where the class is not known */

struct qos {
	const char *device, *port, *netdev;
	struct vrb_dcb dcb;
	bool known, marked;
	long long cm, global; /* traffic class, -1 unknown */
	int dscp, priority;
	char cm_file[160], pfc[32];
};

/* "Global tclass=106" of the vendor's driver, or a number. */
static long long read_global(const struct vrb_doc *d, const struct qos *q)
{
	char line[64], *value;

	if (!vrb_doc_line(d, line, sizeof(line), "/sys/class/infiniband/%s/tc/%s/traffic_class",
			  q->device, q->port))
		return -1;
	value = strchr(line, '=');
	return strtoll(value ? value + 1 : line, NULL, 0);
}

static int priority_of(const struct vrb_dcb *dcb, int dscp)
{
	int fallback = dcb->by_default < 0 ? 0 : dcb->by_default;

	if (dcb->by_port >= 0)
		return dcb->by_port;
	return dcb->trusts_dscp && dcb->by_dscp[dscp] >= 0 ? dcb->by_dscp[dscp] : fallback;
}

/* "3 and 4", "none" */
static void put_priorities(char *out, size_t size, unsigned bits)
{
	size_t len = 0;

	snprintf(out, size, "none");
	for (int i = 0; i < VRB_PRIORITIES && len < size; i++)
		if (bits & 1u << i)
			len += (size_t)snprintf(out + len, size - len, "%s%d", len ? ", " : "", i);
}

static void read_qos(struct vrb_doc *d, struct qos *q)
{
	long long tos;

	snprintf(q->cm_file, sizeof(q->cm_file),
		 "/sys/kernel/config/rdma_cm/%s/ports/%s/default_roce_tos", q->device, q->port);
	if (!vrb_doc_number(d, &q->cm, "%s", q->cm_file))
		q->cm = -1;
	q->global = read_global(d, q);
	tos = q->global > 0 ? q->global : q->cm;
	q->marked = tos > 0 && tos < 256;
	q->dscp = q->marked ? (int)(tos >> 2) : 0;
	q->known = vrb_doc_dcb(d, q->netdev, &q->dcb);
	q->priority = q->known ? priority_of(&q->dcb, q->dscp) : ECN_PRIORITY;
	put_priorities(q->pfc, sizeof(q->pfc), q->dcb.pfc);
}

static void add(struct vrb_doc *d, const struct qos *q, enum vrb_finding_id id)
{
	vrb_doc_add(d, id, "{s:s, s:s, s:s, s:i, s:i, s:s, s:i, s:i, s:s}", "netdev", q->netdev,
		    "device", q->device, "port", q->port, "dscp", q->dscp, "priority", q->priority,
		    "pfc", q->pfc, "rx", q->dcb.pause_rx, "tx", q->dcb.pause_tx, "file",
		    q->cm_file);
}

static void judge_pfc(struct vrb_doc *d, const struct qos *q)
{
	bool here = q->dcb.pfc & 1u << q->priority;

	if (!q->dcb.has_pfc)
		return;
	if (!q->dcb.pfc)
		add(d, q, q->dcb.pause_rx || q->dcb.pause_tx ? VRB_F_PAUSE_GLOBAL : VRB_F_PFC_OFF);
	else if (q->dcb.pfc == 0xff)
		add(d, q, VRB_F_PFC_ALL);
	else if (here)
		add(d, q, VRB_F_QOS);
	else
		add(d, q, q->marked ? VRB_F_PFC_OTHER : VRB_F_ROCE_NO_CLASS);
}

static void judge_ets(struct vrb_doc *d, const struct qos *q)
{
	const struct vrb_dcb *dcb = &q->dcb;
	unsigned class = dcb->class_of[q->priority], others = 0;
	char text[32];

	if (!dcb->has_ets)
		return;
	if (dcb->algorithm[class] == TSA_ETS && !dcb->bandwidth[class])
		vrb_doc_add(d, VRB_F_ETS_STARVED, "{s:s, s:s, s:i, s:i}", "netdev", q->netdev,
			    "device", q->device, "priority", q->priority, "class", (int)class);
	for (int i = 0; i < VRB_PRIORITIES; i++)
		if (dcb->class_of[i] == class && !(dcb->pfc & 1u << i))
			others |= 1u << i;
	if (!(dcb->pfc & 1u << q->priority) || !others)
		return;
	put_priorities(text, sizeof(text), others);
	vrb_doc_add(d, VRB_F_ETS_SHARED, "{s:s, s:s, s:i, s:i, s:s}", "netdev", q->netdev, "device",
		    q->device, "priority", q->priority, "class", (int)class, "others", text);
}

static void judge_marks(struct vrb_doc *d, const struct qos *q)
{
	if (q->cm >= 0 && q->global > 0 && q->cm != q->global)
		vrb_doc_add(d, VRB_F_ROCE_TOS_DIFFERS, "{s:s, s:s, s:I, s:I, s:s}", "device",
			    q->device, "port", q->port, "cm", (json_int_t)q->cm, "global",
			    (json_int_t)q->global, "file", q->cm_file);
	if (!q->known)
		return;
	if (q->marked && !q->dcb.trusts_dscp && q->dcb.by_port < 0)
		add(d, q, VRB_F_DSCP_NO_TRUST);
	if (q->dcb.dcbx & LLD_MANAGED)
		add(d, q, VRB_F_DCBX_FIRMWARE);
}

/* The files of the vendor's own driver package: whether marks are answered, by priority, and how
 * the answers travel. */
static void judge_ecn(struct vrb_doc *d, const struct qos *q)
{
	static const char *const roles[] = {"roce_np", "roce_rp"};
	long long on, cnp;
	char file[96];

	for (size_t i = 0; i < 2; i++) {
		snprintf(file, sizeof(file), "/sys/class/net/%s/ecn/%s/enable/%d", q->netdev,
			 roles[i], q->priority);
		if (vrb_doc_number(d, &on, "%s", file) && !on)
			vrb_doc_add(d, VRB_F_ECN_OFF, "{s:s, s:i, s:s}", "netdev", q->netdev,
				    "priority", q->priority, "file", file);
	}
	snprintf(file, sizeof(file), "/sys/class/net/%s/ecn/roce_np/cnp_dscp", q->netdev);
	if (q->known && q->marked && q->dcb.trusts_dscp && q->dcb.by_port < 0 &&
	    vrb_doc_number(d, &cnp, "%s", file) && cnp >= 0 && cnp < VRB_DSCPS &&
	    priority_of(&q->dcb, (int)cnp) == q->priority)
		vrb_doc_add(d, VRB_F_CNP_SHARES, "{s:s, s:s, s:I, s:i, s:s}", "netdev", q->netdev,
			    "device", q->device, "cnp", (json_int_t)cnp, "priority", q->priority,
			    "file", file);
}

static void check_port(struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port)
{
	char netdev[16], layer[32];
	struct qos q = {.device = dev->name, .port = port, .netdev = netdev};

	vrb_doc_port_netdev(d, dev->name, port, netdev);
	if (!vrb_doc_line(d, layer, sizeof(layer), "/sys/class/infiniband/%s/ports/%s/link_layer",
			  dev->name, port) ||
	    strcmp(layer, "Ethernet"))
		return;
	read_qos(d, &q);
	judge_marks(d, &q);
	if (q.known) {
		judge_pfc(d, &q);
		judge_ets(d, &q);
	}
	judge_ecn(d, &q);
}

void vrb_check_qos(struct vrb_doc *d)
{
	vrb_doc_each_port(d, check_port);
}
