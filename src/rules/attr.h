/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of a queue pair as plain values: what ibv_modify_qp and ibv_query_qp carry, without
 * the verbs headers. Numbers of states, types and mask bits are those of verbs.h (static-asserted
 * by the face).
 */
#ifndef VRB_RULES_ATTR_H
#define VRB_RULES_ATTR_H

#include "base/types.h"

enum vrb_qp_type { VRB_QPT_RC = 2, VRB_QPT_UC = 3, VRB_QPT_UD = 4 };

enum vrb_qp_state {
	VRB_QPS_RESET,
	VRB_QPS_INIT,
	VRB_QPS_RTR,
	VRB_QPS_RTS,
	VRB_QPS_SQD,
	VRB_QPS_SQE,
	VRB_QPS_ERR,
	VRB_N_QP_STATES,
};

enum {
	VRB_QPA_STATE = 1 << 0,
	VRB_QPA_CUR_STATE = 1 << 1,
	VRB_QPA_EN_SQD_ASYNC = 1 << 2,
	VRB_QPA_ACCESS = 1 << 3,
	VRB_QPA_PKEY_INDEX = 1 << 4,
	VRB_QPA_PORT = 1 << 5,
	VRB_QPA_QKEY = 1 << 6,
	VRB_QPA_AV = 1 << 7,
	VRB_QPA_PATH_MTU = 1 << 8,
	VRB_QPA_TIMEOUT = 1 << 9,
	VRB_QPA_RETRY_CNT = 1 << 10,
	VRB_QPA_RNR_RETRY = 1 << 11,
	VRB_QPA_RQ_PSN = 1 << 12,
	VRB_QPA_MAX_QP_RD_ATOMIC = 1 << 13,
	VRB_QPA_ALT_PATH = 1 << 14,
	VRB_QPA_MIN_RNR_TIMER = 1 << 15,
	VRB_QPA_SQ_PSN = 1 << 16,
	VRB_QPA_MAX_DEST_RD_ATOMIC = 1 << 17,
	VRB_QPA_PATH_MIG_STATE = 1 << 18,
	VRB_QPA_CAP = 1 << 19,
	VRB_QPA_DEST_QPN = 1 << 20,
	VRB_QPA_RATE_LIMIT = 1 << 25,
};

struct vrb_qp_attr {
	uint8_t state, cur_state; /* enum vrb_qp_state */
	uint8_t path_mtu;	  /* code 1..5 */
	uint8_t port, timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t en_sqd_async, sq_draining;
	uint8_t path_mig_state; /* 0: migrated, the only one offered */
	uint16_t pkey_index;
	uint32_t access, qkey, dest_qpn, rq_psn, sq_psn;
	/* address vector */
	struct vrb_gid dgid;
	uint8_t is_global, sgid_index, hop_limit, traffic_class, sl, static_rate, src_path_bits,
		av_port;
	uint16_t dlid;
	uint32_t flow_label;
};

#endif
