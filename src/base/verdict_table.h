/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the verdict table; see base/verdict.h for the form. Grouped by the layer that finds
 * them. */
#ifndef VRB_BASE_VERDICT_TABLE_H
#define VRB_BASE_VERDICT_TABLE_H

/* clang-format off */
#define VRB_VERDICT_TABLE(X) \
	VRB_VERDICTS_POST(X) \
	VRB_VERDICTS_MODIFY(X) \
	VRB_VERDICTS_OBJECT(X) \
	VRB_VERDICTS_LOCAL(X) \
	VRB_VERDICTS_RESPONDER(X) \
	VRB_VERDICTS_REQUESTER(X) \
	VRB_VERDICTS_WIRE(X) \
	VRB_VERDICTS_LINK(X)

/* ---- post_send, post_recv: immediate errno (src/rules/post.c) */
#define VRB_VERDICTS_POST(X) \
	X(POST_STATE, "post_state", CALL, "a post in QP state {0s}: sending needs RTS (or SQD), receiving needs INIT or later", "IBA 10.3.1", "call ibv_modify_qp through INIT, RTR and RTS before posting") /* state */ \
	X(POST_SQ_FULL, "post_sq_full", CALL, "the send queue is full: {0} of {1} entries are taken", "IBA C10-96", "poll the send CQ: an entry is free again when its completion, or that of a later one, has been polled") /* used, cap */ \
	X(POST_SQ_DEAD_END, "post_sq_dead_end", CALL, "the send queue is full: {0} of {1} entries are taken and none of them is signaled, so no completion will ever free one", "IBA 10.7.3.1", "set IBV_SEND_SIGNALED on at least one work request per queue length, or create the QP with sq_sig_all") /* used, cap */ \
	X(POST_RQ_FULL, "post_rq_full", CALL, "the receive queue is full: {0} of {1} entries are taken", "IBA C10-96", "ask for a larger max_recv_wr or post fewer receives ahead") /* used, cap */ \
	X(POST_NUM_SGE, "post_num_sge", CALL, "num_sge is {0}, the queue was granted {1}", "IBA 11.4.1", "ask for more in cap.max_send_sge / max_recv_sge at ibv_create_qp, or split the list") /* asked, granted */ \
	X(POST_INLINE_LEN, "post_inline_len", CALL, "{0} bytes inline, the QP was granted max_inline_data {1}", "ibv_post_send(3)", "ask for more in cap.max_inline_data at ibv_create_qp, or post without IBV_SEND_INLINE") /* asked, granted */ \
	X(POST_INLINE_OPCODE, "post_inline_opcode", CALL, "IBV_SEND_INLINE with opcode {0o}, which fetches data", "ibv_post_send(3)", "inline works for SEND and RDMA WRITE only") /* opcode */ \
	X(POST_OPCODE, "post_opcode", CALL, "opcode {0o} is not possible on a QP of type {1t}", "IBA table 38", "UD sends only; UC has no READ and no atomics") /* opcode, qp type */ \
	X(POST_LENGTH, "post_length", CALL, "a message of {0} bytes; the largest is {1}", "IBA C9-2", "split the message; a UD message must fit the port's MTU") /* len, limit */ \
	X(POST_AH, "post_ah", CALL, "a UD send without a usable address handle", "IBA 11.4.1.1", "set wr.ud.ah to a handle made by ibv_create_ah on the QP's PD") /* - */ \
	X(POST_ON_SRQ, "post_on_srq", CALL, "ibv_post_recv on a QP that takes its receives from an SRQ", "IBA C10-27.1", "use ibv_post_srq_recv") /* - */ \
	X(POST_MW_BIND, "post_mw_bind", CALL, "a memory window bind that cannot be made: {0w}", "IBA 10.6.7", "window, region and QP share one PD; the region needs IBV_ACCESS_MW_BIND") /* reason code */ \
	X(POST_DEVICE_GONE, "post_device_gone", CALL, "an object of the parent process used in a forked child", "ibv_fork_init(3)", "open the device anew in the child") /* - */

/* ---- ibv_modify_qp (src/rules/modify.c) */
#define VRB_VERDICTS_MODIFY(X) \
	X(MODIFY_TRANSITION, "modify_transition", CALL, "no transition from state {0s} to state {1s}", "IBA 10.3.1", "the way is RESET, INIT, RTR, RTS; to RESET and to ERR from everywhere") /* from, to */ \
	X(MODIFY_MISSING, "modify_missing", CALL, "state {0s} to {1s}: required attributes are missing: {2m}", "IBA table 91", "set them and their bits in attr_mask") /* from, to, missing bits */ \
	X(MODIFY_SURPLUS, "modify_surplus", CALL, "state {0s} to {1s}: attributes that are not allowed here: {2m}", "IBA table 91", "clear these bits in attr_mask") /* from, to, surplus bits */ \
	X(MODIFY_CUR_STATE, "modify_cur_state", CALL, "cur_qp_state is {0s} but the QP is in state {1s}", "IBA 11.2.5.2", "set cur_qp_state to the state the QP is in, or leave IBV_QP_CUR_STATE out") /* given, real */ \
	X(MODIFY_NO_GRH, "modify_no_grh", CALL, "ah_attr.is_global is 0 on a port with Ethernet link layer: sgid_index and dgid are missing", "RoCEv2 A17.4.3", "set is_global = 1, grh.sgid_index, grh.dgid and grh.hop_limit") /* - */ \
	X(MODIFY_SGID_INDEX, "modify_sgid_index", CALL, "sgid_index {0} is empty or out of range; the table has {1} entries", "IBA 11.2.5.2", "list the GIDs with `verbena devinfo`; index 0 is always usable here") /* index, n */ \
	X(MODIFY_DGID, "modify_dgid", CALL, "the destination GID is not a usable unicast address", "RoCEv2 A17.4.5", "take the GID the peer got from ibv_query_gid; it must be of the same IP version as the GID at sgid_index") /* - */ \
	X(MODIFY_UNREACHABLE, "modify_unreachable", CALL, "there is no way to the destination GID from the chosen source (errno {0})", "RoCEv2 A17", "is the GID at sgid_index one of the network the peer is in? See `verbena devinfo` and `ip route get`") /* errno */ \
	X(MODIFY_PATH_MTU, "modify_path_mtu", CALL, "path_mtu code {0} is not one of 1 (256) to {1}", "IBA 9.7.4.1", "use IBV_MTU_256 to IBV_MTU_4096, not more than the port's active_mtu") /* code, max */ \
	X(MODIFY_PORT, "modify_port", CALL, "port {0}: the device has ports 1 to {1}", "IBA 11.2.5.2", "port_num counts from 1") /* port, n */ \
	X(MODIFY_PKEY_INDEX, "modify_pkey_index", CALL, "pkey_index {0}: the table has {1} entries", "IBA 11.2.5.2", "use index 0") /* index, n */ \
	X(MODIFY_DEST_QPN, "modify_dest_qpn", CALL, "dest_qp_num {0x} does not fit 24 bits", "IBA 9.2.4", "exchange qp->qp_num with the peer; mind the byte order") /* qpn */ \
	X(MODIFY_PSN, "modify_psn", CALL, "PSN {0x} does not fit 24 bits", "IBA 9.2.4", "mask the value with 0xffffff") /* psn */ \
	X(MODIFY_RD_ATOMIC, "modify_rd_atomic", CALL, "{0} outstanding READs and atomics asked for; the device has {1}", "IBA 11.2.5.2", "ask for at most max_qp_rd_atom of ibv_query_device") /* asked, limit */ \
	X(MODIFY_TIMEOUT, "modify_timeout", CALL, "timeout {0} does not fit 5 bits", "IBA 11.2.5.2", "the time is 4.096 us x 2^timeout: 14 is 67 ms") /* value */ \
	X(MODIFY_RETRY, "modify_retry", CALL, "a retry count of {0}: it has 3 bits", "IBA 11.2.5.2", "use 0 to 7; rnr_retry 7 means for ever") /* value */ \
	X(MODIFY_RNR_TIMER, "modify_rnr_timer", CALL, "min_rnr_timer {0}: it has 5 bits", "IBA table 45", "use a code from 0 to 31; 12 is 0.64 ms") /* value */ \
	X(MODIFY_ACCESS, "modify_access", CALL, "qp_access_flags {0x} holds bits that a QP does not have", "ibv_modify_qp(3)", "use REMOTE_WRITE, REMOTE_READ and REMOTE_ATOMIC") /* flags */ \
	X(MODIFY_ALT_PATH, "modify_alt_path", CALL, "alternate paths are not offered by this device", "IBA 17.2.8", "leave IBV_QP_ALT_PATH and IBV_QP_PATH_MIG_STATE out") /* - */ \
	X(MODIFY_WIRE_MTU, "modify_wire_mtu", CALL, "path_mtu {0} makes packets of {1} bytes, the way to the destination carries {2}", "IBA 9.7.4.1", "use the port's active_mtu at both ends, or raise the MTU of the interfaces along the way") /* mtu, packet, way */

/* ---- creating, registering, destroying (src/rules/object.c and the faces) */
#define VRB_VERDICTS_OBJECT(X) \
	X(CREATE_LIMIT, "create_limit", CALL, "{1a} of the {2b}: {0} asked for, the limit is {3}", "ibv_query_device(3)", "ask for no more than ibv_query_device reports") /* asked, attribute id, object id, limit */ \
	X(CREATE_QP_TYPE, "create_qp_type", CALL, "QP type {0t} is not offered", "ibv_create_qp(3)", "this device has RC (2), UC (3) and UD (4)") /* type */ \
	X(CREATE_QP_CQ, "create_qp_cq", CALL, "a QP without a {0q} CQ, or with one of another context", "IBA 10.2.4.1", "set send_cq and recv_cq to CQs of the PD's context") /* 0 send 1 recv */ \
	X(CREATE_INVALID, "create_invalid", CALL, "{0a} has the value {1x}, which is not defined", "ibv_create_qp(3)", "clear the whole attribute struct before filling it in") /* field id, value */ \
	X(REG_ACCESS, "reg_access", CALL, "access {0x}: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE", "IBA C10-55", "add IBV_ACCESS_LOCAL_WRITE") /* access */ \
	X(REG_ACCESS_BITS, "reg_access_bits", CALL, "access {0x} holds bits that are not defined", "ibv_reg_mr(3)", "use the IBV_ACCESS_ flags") /* access */ \
	X(REG_RANGE, "reg_range", CALL, "address {0x} + length {1} wraps around or is not mapped as needed", "IBA 10.6.3", "register memory that exists and, with LOCAL_WRITE, can be written") /* addr, len */ \
	X(BUSY, "busy", CALL, "the {0b} is still used by {1} objects", "IBA 11.2.1.4", "destroy QPs, SRQs, CQs, MRs and windows before what they were made on") /* object id, n */ \
	X(CQ_TOO_SMALL, "cq_too_small", CALL, "a CQ of {0} entries cannot shrink below the {1} completions it holds", "IBA 11.2.6.3", "poll it first") /* asked, held */ \
	X(UNSUPPORTED, "unsupported", CALL, "{0v} is not offered by this device", "ibv_query_device(3)", "test the device capability before using an optional verb") /* verb id */ \
	X(MCAST_ATTACH, "mcast_attach", CALL, "a QP of type {0t} cannot be attached to this GID: only UD QPs join, and only multicast groups", "IBA 10.5.2", "use a UD QP and a GID in ff00::/8 or ::ffff:224.0.0.0/100") /* qp type */

/* ---- a work request fails when it is processed (src/core) */
#define VRB_VERDICTS_LOCAL(X) \
	X(LKEY_UNKNOWN, "lkey_unknown", WORK, "SGE {0}: lkey {1x} belongs to no memory region", "IBA 10.6.2.1", "use mr->lkey of the region that holds the buffer") /* sge, key, addr, len */ \
	X(LKEY_STALE, "lkey_stale", WORK, "SGE {0}: lkey {1x} was deregistered", "IBA C10-70", "keep the region registered until its last completion has been polled") /* sge, key, addr, len */ \
	X(LKEY_IS_RKEY, "lkey_is_rkey", WORK, "SGE {0}: {1x} is the rkey of a region, an SGE needs its lkey", "IBA 10.6.2.1", "use mr->lkey in SGEs and mr->rkey in wr.rdma") /* sge, key, addr, len */ \
	X(LKEY_OTHER_PD, "lkey_other_pd", WORK, "SGE {0}: lkey {1x} is of another protection domain", "IBA C10-71", "register the buffer on the PD of the QP (or of the SRQ)") /* sge, key, addr, len */ \
	X(LKEY_RANGE_END, "lkey_range_end", WORK, "SGE {0}: {3} bytes at {2x} run {4} bytes past the end of the region of lkey {1x}", "IBA C10-73", "shorten the SGE or register the whole buffer") /* sge, key, addr, len, excess, mr len */ \
	X(LKEY_RANGE_START, "lkey_range_start", WORK, "SGE {0}: address {2x} lies {4} bytes before the start of the region of lkey {1x}", "IBA C10-73", "check the offset, and that the key belongs to this buffer") /* sge, key, addr, len, shortfall, mr len */ \
	X(LKEY_NO_WRITE, "lkey_no_write", WORK, "SGE {0}: the region of lkey {1x} lacks LOCAL_WRITE, which receives, READs and atomics need", "IBA C10-72", "register with IBV_ACCESS_LOCAL_WRITE") /* sge, key, addr, len */ \
	X(SGE_LENGTH, "sge_length", WORK, "an atomic needs an SGE list of 8 bytes, this one has {0}", "IBA C9-34", "use one SGE of length 8") /* len */ \
	X(RD_ATOMIC_ZERO, "rd_atomic_zero", WORK, "a READ or atomic on a QP whose max_rd_atomic is 0", "IBA C9-85", "set max_rd_atomic at RTS and max_dest_rd_atomic at the peer's RTR to 1 or more") /* - */ \
	X(MW_BIND_FAILED, "mw_bind_failed", WORK, "the memory window could not be bound: {0}", "IBA C10-74", "see ibv_bind_mw(3); the window must be free, the region must have MW_BIND") /* reason */ \
	X(LOCAL_INV_FAILED, "local_inv_failed", WORK, "key {0x} cannot be invalidated by this QP", "IBA 10.6.5", "LOCAL_INV takes a bound type 2 window of the same QP") /* key */ \
	X(UD_TOO_LONG, "ud_too_long", WORK, "a UD message of {0} bytes; one packet holds {1}", "IBA C9-160", "split the message or use RC") /* len, mtu */ \
	X(CQ_OVERRUN, "cq_overrun", WORK, "the CQ holds {0} completions and has room for {0}: one more was lost", "IBA C10-100", "make the CQ as large as all send and receive queues on it together, or poll more often") /* cap */ \
	X(AV_OTHER_PD, "av_other_pd", WORK, "a UD send through no address handle, or through one of another protection domain than the QP's", "IBA 11.2.2.1", "make the handle with ibv_create_ah on the QP's PD") /* - */

/* ---- what the responder answers NAK or drops (src/core/responder.c) */
#define VRB_VERDICTS_RESPONDER(X) \
	X(NAK_SEQUENCE, "nak_sequence", NAK, "PSN {0x} arrived, {1x} was expected: packets were lost", "IBA C9-57", "the network loses or reorders packets; look at drops along the path") /* psn, epsn */ \
	X(NAK_RNR, "nak_rnr", NAK, "a message arrived and no receive was posted (RNR NAK, timer code {0})", "IBA C9-75", "post receives before the peer sends, or use credits") /* code */ \
	X(NAK_OPCODE_SEQ, "nak_opcode_seq", NAK, "opcode {0x} after opcode {1x} is out of sequence", "IBA table 35", "the peer's transport is faulty") /* op, last op */ \
	X(NAK_OPCODE, "nak_opcode", NAK, "opcode {0x} is unknown on this QP", "IBA C9-47", "the peer uses an operation this device does not have") /* op */ \
	X(NAK_LENGTH, "nak_length", NAK, "a packet of {0} bytes where {1} were expected", "IBA C9-44", "both ends must use the same path MTU") /* len, want */ \
	X(NAK_PAD, "nak_pad", NAK, "pad count {0} is wrong for {1} bytes", "IBA C9-45", "the peer's transport is faulty") /* pad, len */ \
	X(NAK_DMA_LENGTH, "nak_dma_length", NAK, "the RDMA length {0} disagrees with the {1} bytes that came, or is above 2^31", "IBA C9-84", "the peer's transport is faulty") /* dma_len, got */ \
	X(NAK_RD_ATOMIC, "nak_rd_atomic", NAK, "more than {0} READs and atomics outstanding", "IBA C9-89", "set max_dest_rd_atomic here to at least the peer's max_rd_atomic") /* limit */ \
	X(NAK_ATOMIC_ALIGN, "nak_atomic_align", NAK, "atomic address {0x} is not a multiple of 8", "IBA C9-92", "align the target of atomics to 8 bytes") /* va */ \
	X(NAK_QP_ACCESS, "nak_qp_access", NAK, "the QP does not allow this remote operation (opcode {0x}, qp_access_flags {1x})", "IBA C9-46", "set IBV_ACCESS_REMOTE_WRITE / READ / ATOMIC in qp_access_flags at INIT") /* op, flags */ \
	X(RKEY_UNKNOWN, "rkey_unknown", NAK, "rkey {0x} belongs to no memory region (address {1x}, {2} bytes)", "IBA C9-76", "send the peer mr->rkey and the address together") /* key, va, len */ \
	X(RKEY_STALE, "rkey_stale", NAK, "rkey {0x} was deregistered or invalidated (address {1x}, {2} bytes)", "IBA C9-76", "keep the region until the peer is done") /* key, va, len */ \
	X(RKEY_IS_LKEY, "rkey_is_lkey", NAK, "{0x} is the lkey of a region, the peer needs its rkey", "IBA 10.6.2.2", "send the peer mr->rkey, not mr->lkey") /* key, va, len */ \
	X(RKEY_OTHER_PD, "rkey_other_pd", NAK, "rkey {0x} is of another protection domain than the QP", "IBA C9-76", "register the target on the PD of the QP that serves it") /* key, va, len */ \
	X(RKEY_RANGE_END, "rkey_range_end", NAK, "{2} bytes at {1x} run {3} bytes past the end of the region of rkey {0x}", "IBA C9-76", "check remote_addr and length against the region") /* key, va, len, excess */ \
	X(RKEY_RANGE_START, "rkey_range_start", NAK, "address {1x} lies {3} bytes before the region of rkey {0x}", "IBA C9-76", "remote_addr is the peer's virtual address (or an offset in a zero-based region)") /* key, va, len, shortfall */ \
	X(RKEY_RIGHTS, "rkey_rights", NAK, "the region of rkey {0x} has access {1x}, the operation needs {2x}", "IBA C9-76", "register the target with the right IBV_ACCESS_REMOTE_ flag") /* key, has, needs */ \
	X(RKEY_OTHER_QP, "rkey_other_qp", NAK, "the window of rkey {0x} belongs to another QP", "IBA 10.6.7.2.4", "a type 2 window serves the QP that bound it") /* key */ \
	X(RECV_TOO_SHORT, "recv_too_short", NAK, "a message of {0} bytes or more arrived for a receive of {1}", "IBA C9-83", "post receive buffers as large as the largest message") /* got, room */ \
	X(RECV_INVALIDATE, "recv_invalidate", NAK, "SEND with Invalidate: key {0x} cannot be invalidated", "IBA C9-97", "send the rkey of a bound type 2 window of the target QP") /* key */ \
	X(DROP_DUPLICATE, "drop_duplicate", DROP, "a duplicate request, PSN {0x}", "IBA C9-105", "normal after a retransmission") /* psn */ \
	X(DROP_PSN_AHEAD, "drop_psn_ahead", DROP, "PSN {0x} while {1x} is awaited; the NAK has been sent", "IBA C9-57", "normal after a loss") /* psn, epsn */ \
	X(DROP_STATE, "drop_state", DROP, "a packet for a QP in state {0s}", "IBA 10.3.1", "the QP must be in RTR before the peer sends") /* state */ \
	X(DROP_NO_QP, "drop_no_qp", DROP, "a packet for QP {0x}, which does not exist", "IBA C9-9", "check dest_qp_num at the peer") /* qpn */ \
	X(DROP_TRANSPORT, "drop_transport", DROP, "opcode {0x} does not fit a QP of type {1t}", "IBA C9-9", "both ends must use the same QP type") /* op, type */ \
	X(DROP_PKEY, "drop_pkey", DROP, "P_Key {0x} does not match {1x}", "IBA C9-42", "both ends must use the same partition") /* got, want */ \
	X(DROP_QKEY, "drop_qkey", DROP, "Q_Key {0x} does not match {1x}", "IBA C9-48", "the sender's wr.ud.remote_qkey must be the receiver's qkey") /* got, want */ \
	X(DROP_NO_RECV, "drop_no_recv", DROP, "an unreliable message of {0} bytes arrived and no receive was posted", "IBA C9-177", "post more receives; UC and UD do not wait") /* len */ \
	X(DROP_UD_SHORT, "drop_ud_short", DROP, "a UD message needs {0} bytes (40 for the GRH), the receive has {1}", "IBA C9-179", "make UD receive buffers 40 bytes longer than the message") /* need, room */ \
	X(DROP_UC_BROKEN, "drop_uc_broken", DROP, "an unreliable message lost a packet (PSN {0x}, expected {1x}) and was given up", "IBA C9-114", "UC does not repeat; use RC where loss matters") /* psn, epsn */ \
	X(DROP_READ_DUP, "drop_read_dup", DROP, "a repeated READ or atomic, PSN {0x}, that is not remembered", "IBA C9-107", "normal after long delays") /* psn */

/* ---- what the requester learns (src/core/completer.c, retry.c) */
#define VRB_VERDICTS_REQUESTER(X) \
	X(RETRY_EXC, "retry_exc", REMOTE, "no answer: the packet with PSN {0x} was sent {1} times, {2} ms apart", "IBA C9-141", "is the peer alive, its QP in RTR, and dest_qp_num right?") /* psn, tries, ms */ \
	X(PEER_GONE, "peer_gone", REMOTE, "the peer process (slot {0}) is gone", "IBA C9-141", "it ended, was killed or called exec; connect anew") /* slot */ \
	X(PEER_ABSENT, "peer_absent", REMOTE, "no process owns QP {0x}", "IBA C9-141", "check dest_qp_num; the peer must have created its QP already") /* qpn */ \
	X(RNR_RETRY_EXC, "rnr_retry_exc", REMOTE, "the receiver had no receive posted, {0} times in a row (rnr_retry {1})", "IBA C9-142", "post receives earlier, or set rnr_retry to 7 (for ever)") /* n, rnr_retry */ \
	X(REM_INVALID, "rem_invalid", REMOTE, "the peer refused PSN {0x}: invalid request", "IBA C9-144", "message longer than its receive, atomic misaligned, or the QP lacks the remote access flag; the peer's explanation says which") /* psn */ \
	X(REM_ACCESS, "rem_access", REMOTE, "the peer refused PSN {0x}: remote access error (rkey {1x}, address {2x}, {3} bytes)", "IBA C9-145", "wrong rkey, range or rights; the peer's explanation says which") /* psn, rkey, va, len */ \
	X(REM_OP, "rem_op", REMOTE, "the peer failed on PSN {0x}: remote operational error", "IBA C9-146", "the peer's receive buffer is not usable; its explanation says why") /* psn */ \
	X(BAD_RESPONSE, "bad_response", REMOTE, "response opcode {0x}, PSN {1x} does not fit the request", "IBA C9-143", "the peer's transport is faulty") /* op, psn */ \
	X(DROP_GHOST, "drop_ghost", DROP, "an acknowledgement for PSN {0x}, which is not outstanding", "IBA C9-139", "normal after a retransmission") /* psn */ \
	X(DROP_SYNDROME, "drop_syndrome", DROP, "a reserved AETH syndrome {0x}", "IBA table 44", "the peer's transport is faulty") /* syndrome */ \
	X(IMPLIED_NAK, "implied_nak", DROP, "the response to PSN {0x} was lost", "IBA C9-137", "normal after a loss") /* psn */

/* ---- bytes that are no packet (src/wire) */
#define VRB_VERDICTS_WIRE(X) \
	X(DROP_SHORT, "drop_short", DROP, "{0} bytes are too few for opcode {1x}", "IBA 9.2", "not a RoCEv2 packet, or cut") /* len, op */ \
	X(DROP_TVER, "drop_tver", DROP, "transport version {0}", "IBA C9-6", "only version 0 is defined") /* tver */ \
	X(DROP_OPCODE, "drop_opcode", DROP, "opcode {0x} is not defined", "IBA table 35", "not a RoCEv2 packet") /* op */ \
	X(DROP_ICRC, "drop_icrc", DROP, "ICRC {0x}, computed {1x}", "IBA 7.8.1", "the packet was damaged or rewritten on its way") /* got, want */ \
	X(DROP_PADCNT, "drop_padcnt", DROP, "pad count {0} with {1} bytes of payload", "IBA 9.2.3", "the sender's transport is faulty") /* pad, len */ \
	X(DROP_IP, "drop_ip", DROP, "{0} bytes are no IPv4 or IPv6 packet with UDP in it, or its lengths disagree", "RoCEv2 A17.3", "options, extension headers and fragments are not used by RoCEv2") /* len */

/* ---- finding and reaching peers (src/link, src/hca) */
#define VRB_VERDICTS_LINK(X) \
	X(LINK_BAD_FRAME, "link_bad_frame", DROP, "a malformed frame in the ring of slot {0}", "-", "the peer process wrote what no Verbena writes; the channel is closed") /* slot */ \
	X(LINK_STRANGER, "link_stranger", DROP, "a connection from user {0} refused", "-", "only processes of one user share memory") /* uid */ \
	X(LINK_BAD_HELLO, "link_bad_hello", DROP, "process {1} announced itself for slot {0} and was refused (errno {2})", "-", "a slot belongs to the process that has claimed it, and is announced once") /* slot, pid, errno or 0 */ \
	X(LINK_NO_SLOT, "link_no_slot", CALL, "all {0} process slots of this user are taken", "-", "end processes that use the device") /* n */ \
	X(LINK_SYSTEM, "link_system", CALL, "a system call failed with errno {0}", "-", "see errno(3); file descriptor or memory limits are likely") /* errno */ \
	X(LINK_PORT_TAKEN, "link_port_taken", NOTE, "UDP port 4791 of the device's address cannot be had (errno {0}): nothing reaches this process from other hosts", "RoCEv2 A17.9", "another user's process, or the kernel's own RoCE driver, holds it; an address of its own helps") /* errno */ \
	X(LINK_SEND, "link_send", DROP, "sending packets failed with errno {0}; they count as lost", "-", "90 (EMSGSIZE): the way has a smaller MTU now; 11 or 105: the interface is slower than the sender") /* errno */ \
	X(DROP_SOURCE, "drop_source", DROP, "a packet for a connected QP came from an address that is not its peer's", "IBA C9-9", "a stale or forged packet; or the peer sends from another of its addresses than the one given as dgid") /* - */ \
	X(DROP_SLOT, "drop_slot", DROP, "a packet for QP {0x}, which belongs to another process", "RoCEv2 A17", "normal for a moment while processes come and go") /* qpn */
/* clang-format on */

#endif
