/* SPDX-License-Identifier: BSD-2-Clause */
/* The statuses and errnos of verbs in words, each with the verdicts that end in it. */
#include <errno.h>
#include <stdbool.h>
#include <infiniband/verbs.h>

#include "base/verdict.h"
#include "tools/explain_table.h"

#define WC(name, text, ...)                                                                        \
	{                                                                                          \
		"IBV_WC_" #name, IBV_WC_##name, false, text,                                       \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define ERRNO(name, text, ...)                                                                     \
	{                                                                                          \
#name, name, true, text,                                                           \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* clang-format off */
const struct vrb_meaning vrb_meanings[] = {
WC(SUCCESS,
   "The work request is done: a send was acknowledged, or the data of a receive is in place.", 0),
WC(LOC_LEN_ERR,
   "On a receive: the message was longer than the receive it met. On a send: the message is longer "
   "than the transport or the path MTU (UD) allows.",
   VRB_V_RECV_TOO_SHORT, VRB_V_UD_TOO_LONG, VRB_V_SGE_LENGTH),
WC(LOC_QP_OP_ERR, "The QP could not process its own work request.", VRB_V_RD_ATOMIC_ZERO),
WC(LOC_PROT_ERR,
   "An SGE of the work request does not lie in registered memory: wrong lkey, wrong protection "
   "domain, range or rights. It is found when the request is processed, not when it is posted.",
   VRB_V_LKEY_UNKNOWN, VRB_V_LKEY_STALE, VRB_V_LKEY_IS_RKEY, VRB_V_LKEY_OTHER_PD,
   VRB_V_LKEY_RANGE_END, VRB_V_LKEY_RANGE_START, VRB_V_LKEY_NO_WRITE),
WC(WR_FLUSH_ERR,
   "The QP went to the error state before this work request was processed. This is never the "
   "cause: look at the first completion with another status, or at who called ibv_modify_qp.", 0),
WC(MW_BIND_ERR, "A memory window could not be bound or a key not be invalidated.",
   VRB_V_MW_BIND_FAILED, VRB_V_LOCAL_INV_FAILED, VRB_V_POST_MW_BIND),
WC(BAD_RESP_ERR, "The response does not fit the request.", VRB_V_BAD_RESPONSE),
WC(LOC_ACCESS_ERR,
   "On a receive that an RDMA WRITE with immediate consumed: the write itself was refused.",
   VRB_V_RKEY_UNKNOWN, VRB_V_RKEY_RIGHTS, VRB_V_RKEY_RANGE_END),
WC(REM_INV_REQ_ERR,
   "The peer found the request invalid: its receive is too short, an atomic is misaligned, the "
   "opcode does not fit, or its QP does not allow the operation.",
   VRB_V_REM_INVALID, VRB_V_RECV_TOO_SHORT, VRB_V_NAK_ATOMIC_ALIGN, VRB_V_NAK_QP_ACCESS,
   VRB_V_NAK_RD_ATOMIC, VRB_V_NAK_DMA_LENGTH, VRB_V_NAK_LENGTH, VRB_V_NAK_OPCODE,
   VRB_V_NAK_OPCODE_SEQ, VRB_V_NAK_PAD),
WC(REM_ACCESS_ERR,
   "The peer refused access to its memory: wrong rkey, range, rights or protection domain.",
   VRB_V_REM_ACCESS, VRB_V_RKEY_UNKNOWN, VRB_V_RKEY_STALE, VRB_V_RKEY_IS_LKEY,
   VRB_V_RKEY_OTHER_PD, VRB_V_RKEY_RANGE_END, VRB_V_RKEY_RANGE_START, VRB_V_RKEY_RIGHTS,
   VRB_V_RKEY_OTHER_QP, VRB_V_RECV_INVALIDATE),
WC(REM_OP_ERR,
   "The peer could not finish the operation, mostly because the buffer of its receive is not "
   "usable; the peer sees IBV_WC_LOC_PROT_ERR.",
   VRB_V_REM_OP),
WC(RETRY_EXC_ERR,
   "Nobody answered, retry_cnt times. Verbena asks the process that should have, and says which of "
   "these it was.",
   VRB_V_RETRY_EXC, VRB_V_PEER_GONE, VRB_V_PEER_ABSENT, VRB_V_RETRY_NO_LISTENER,
   VRB_V_RETRY_NO_HOST, VRB_V_RETRY_NO_QP, VRB_V_RETRY_NOT_READY, VRB_V_RETRY_QP_ERROR,
   VRB_V_RETRY_OTHER_PEER, VRB_V_RETRY_TYPE, VRB_V_RETRY_PSN, VRB_V_RETRY_LOST, VRB_V_RETRY_MTU,
   VRB_V_RETRY_ACKS_LOST, VRB_V_RETRY_STOPPED, VRB_V_RETRY_SILENCE, VRB_V_RETRY_UNTOLD),
WC(RNR_RETRY_EXC_ERR,
   "The peer had no receive posted, rnr_retry times in a row.", VRB_V_RNR_RETRY_EXC, VRB_V_NAK_RNR),
WC(REM_ABORT_ERR, "The peer aborted the operation.", 0),
WC(FATAL_ERR, "The device is in a state from which it cannot go on.", 0),
WC(RESP_TIMEOUT_ERR, "A response did not come in time.", 0),
WC(GENERAL_ERR, "A transport error of another kind.", 0),
ERRNO(EINVAL, "An argument, an attribute or the state of the object does not allow the call.",
   VRB_V_POST_STATE, VRB_V_POST_NUM_SGE, VRB_V_POST_OPCODE, VRB_V_POST_LENGTH, VRB_V_POST_AH,
   VRB_V_MODIFY_TRANSITION, VRB_V_MODIFY_MISSING, VRB_V_MODIFY_SURPLUS, VRB_V_MODIFY_NO_GRH,
   VRB_V_MODIFY_SGID_INDEX, VRB_V_MODIFY_DGID, VRB_V_CREATE_LIMIT, VRB_V_CREATE_INVALID,
   VRB_V_REG_ACCESS, VRB_V_POST_ON_SRQ, VRB_V_MODIFY_GID_V1),
ERRNO(ENOMEM, "A queue is full (ibv_post_send, ibv_post_recv), too much inline data was given, or "
   "memory or a table of the device ran out.",
   VRB_V_POST_SQ_FULL, VRB_V_POST_SQ_DEAD_END, VRB_V_POST_RQ_FULL, VRB_V_POST_INLINE_LEN,
   VRB_V_REG_MEMLOCK, VRB_V_CREATE_MANY),
ERRNO(EBUSY, "Other objects still use this one.", VRB_V_BUSY),
ERRNO(EFAULT, "The memory is not mapped, or not writable though LOCAL_WRITE was asked.",
   VRB_V_REG_RANGE),
ERRNO(EOPNOTSUPP, "The device does not offer this verb.", VRB_V_UNSUPPORTED),
ERRNO(ENODATA, "The GID index is empty.", 0),
ERRNO(EIO, "The object was made by the parent process; a forked child opens the device anew.",
   VRB_V_POST_DEVICE_GONE),
ERRNO(ENETUNREACH, "The destination GID cannot be reached.", VRB_V_MODIFY_UNREACHABLE),
ERRNO(EMFILE, "The process has too many open files: see `ulimit -n`.", VRB_V_LINK_SYSTEM),
};
/* clang-format on */

const unsigned vrb_n_meanings = sizeof(vrb_meanings) / sizeof(vrb_meanings[0]);
