/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs that this device does not offer and that cannot be told by an empty slot: real functions
 * that say so.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

static int unsupported(enum vrb_verb verb)
{
	struct vrb_report r;

	vrb_rules_unsupported(verb, &r);
	return vv_reason(&r);
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return vv_null(unsupported(VRB_VERB_IMPORT_DEVICE));
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	(void)context;
	(void)pd_handle;
	return vv_null(unsupported(VRB_VERB_IMPORT_PD));
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	(void)pd;
	(void)mr_handle;
	return vv_null(unsupported(VRB_VERB_IMPORT_MR));
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	(void)context;
	(void)dm_handle;
	return vv_null(unsupported(VRB_VERB_IMPORT_DM));
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return vv_null(unsupported(VRB_VERB_REG_DMABUF_MR));
}

/* The header calls this slot without looking whether it is there. */
int vv_close_xrcd(struct ibv_xrcd *xrcd)
{
	(void)xrcd;
	return vv_int(unsupported(VRB_VERB_XRC));
}

/* Ethernet addresses are the link's affair here; nobody below asks for them. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	return -unsupported(VRB_VERB_OTHER);
}
