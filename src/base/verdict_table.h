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
	VRB_VERDICTS_STORY(X) \
	VRB_VERDICTS_WIRE(X) \
	VRB_VERDICTS_LINK(X) \
	VRB_VERDICTS_CM(X) \
	VRB_VERDICTS_FAULT(X) \
	VRB_VERDICTS_SEND(X) \
	VRB_VERDICTS_CHECK(X)

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
	X(MODIFY_SGID_INDEX, "modify_sgid_index", CALL, "sgid_index {0} is empty or out of range; the table has {1} entries", "IBA 11.2.5.2", "list the GIDs with `verbena devinfo`, or by ibv_query_gid_table") /* index, n */ \
	X(MODIFY_GID_V1, "modify_gid_v1", CALL, "sgid_index {0} is an entry of type RoCE v1, which this device does not send", "RoCEv2 A17", "take the entry of type RoCE v2 with the same GID: ibv_query_gid_ex tells the type, `verbena devinfo` shows them") /* index */ \
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
	X(CREATE_LIMIT, "create_limit", CALL, "{1a} of the {2b}: {0} asked for, the limit is {3}", "ibv_query_device(3)", "ask for no more than ibv_query_device reports; inline data it does not report: ask for less") /* asked, attribute id, object id, limit */ \
	X(CREATE_MANY, "create_many", CALL, "there is no room for one more {1b}: {0} are there, as many as the device has", "ibv_query_device(3)", "destroy what is not used any more; max_qp, max_cq, max_mr, max_pd and max_ah of ibv_query_device say how many there may be") /* count, object id */ \
	X(CREATE_QP_TYPE, "create_qp_type", CALL, "QP type {0t} is not offered", "ibv_create_qp(3)", "this device has RC (2), UC (3) and UD (4)") /* type */ \
	X(CREATE_QP_CQ, "create_qp_cq", CALL, "a QP without a {0q} CQ, or with one of another context", "IBA 10.2.4.1", "set send_cq and recv_cq to CQs of the PD's context") /* 0 send 1 recv */ \
	X(CREATE_INVALID, "create_invalid", CALL, "{0a} has the value {1x}, which is not defined", "ibv_create_qp(3)", "clear the whole attribute struct before filling it in") /* field id, value */ \
	X(REG_ACCESS, "reg_access", CALL, "access {0x}: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE", "IBA C10-55", "add IBV_ACCESS_LOCAL_WRITE") /* access */ \
	X(REG_ACCESS_BITS, "reg_access_bits", CALL, "access {0x} holds bits that are not defined", "ibv_reg_mr(3)", "use the IBV_ACCESS_ flags") /* access */ \
	X(REG_RANGE, "reg_range", CALL, "address {0x} + length {1} wraps around or is not mapped as needed", "IBA 10.6.3", "register memory that exists and, with LOCAL_WRITE, can be written") /* addr, len */ \
	X(REG_MEMLOCK, "reg_memlock", CALL, "registering {0} bytes on top of {1} goes beyond RLIMIT_MEMLOCK, {2}", "ibv_reg_mr(3)", "raise it: `ulimit -l unlimited`, LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 for a container") /* bytes, registered, limit */ \
	X(BUSY, "busy", CALL, "the {0b} is still used by {1} objects", "IBA 11.2.1.4", "destroy QPs, SRQs, CQs, MRs and windows before what they were made on") /* object id, n */ \
	X(EVENTS_UNACKED, "events_unacked", NOTE, "destroying the {0b} waits: {1} of its events were taken and not acknowledged", "ibv_get_cq_event(3)", "call ibv_ack_cq_events or ibv_ack_async_event for each event taken; many can be acknowledged by one call") /* object id, n */ \
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
	X(CQ_OVERWRITTEN, "cq_overwritten", NOTE, "the CQ holds {0} completions and has room for {0}: the oldest was lost, as IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN asks for", "ibv_create_cq_ex(3)", "poll more often, or make the CQ as large as all queues on it together") /* cap */ \
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
	X(RETRY_NO_LISTENER, "retry_no_listener", REMOTE, "nothing listens on UDP port 4791 of the destination address, so nobody has QP {0x}", "IBA C9-141", "has the peer process started, on that host and address? Does the other end's firewall refuse the port?") /* dqpn */ \
	X(RETRY_NO_HOST, "retry_no_host", REMOTE, "the network says that the destination cannot be reached (errno {0})", "IBA C9-141", "113 (EHOSTUNREACH): no host answers ARP or neighbour discovery for that address, or a router or firewall on the way refuses; 13 (EACCES): forbidden; is dgid the peer's GID?") /* errno */ \
	X(RETRY_NO_QP, "retry_no_qp", REMOTE, "the peer process is there and has no QP {0x}", "IBA C9-141", "it was destroyed, or dest_qp_num is wrong: exchange qp->qp_num, and mind the byte order") /* dqpn */ \
	X(RETRY_NOT_READY, "retry_not_ready", REMOTE, "the peer's QP {0x} is in state {1s}: it takes no requests yet", "IBA C9-141", "the peer must have gone to RTR before this end sends; let it say so when it has") /* dqpn, state */ \
	X(RETRY_QP_ERROR, "retry_qp_error", REMOTE, "the peer's QP {0x} is in the error state; what ended it: {1r}", "IBA C9-141", "look for the peer's first error, not for this one: `verbena explain` with its QP number, there") /* dqpn, verdict there */ \
	X(RETRY_OTHER_PEER, "retry_other_peer", REMOTE, "the peer's QP {0x} is connected to another queue pair or address, not to this one", "IBA C9-9", "compare dest_qp_num and dgid of both ends: each must name the other, by the GID the other sends from") /* dqpn */ \
	X(RETRY_TYPE, "retry_type", REMOTE, "the peer's QP {0x} is of type {1t}, this one of {2t}", "IBA C9-9", "both ends must use the same QP type") /* dqpn, theirs, ours */ \
	X(RETRY_PSN, "retry_psn", REMOTE, "the peer expects PSN {1x}, this end began with {0x}", "IBA 11.2.5.2", "rq_psn of each end must be the sq_psn of the other") /* first, epsn */ \
	X(RETRY_LOST, "retry_lost", REMOTE, "the packet with PSN {0x} was lost every time; the peer's QP is ready and still waits for it", "IBA C9-141", "the network loses packets on the way there: `verbena doctor HOST`; raise timeout or retry_cnt to outlast a short break") /* psn */ \
	X(RETRY_MTU, "retry_mtu", REMOTE, "small packets reach the peer, those of {0} bytes do not: the way has a smaller MTU, and nobody says so", "IBA 9.7.4.1", "lower path_mtu at both ends, or raise the MTU of every interface and switch on the way") /* bytes of the IP packet */ \
	X(RETRY_ACKS_LOST, "retry_acks_lost", REMOTE, "the peer has taken everything up to PSN {1x}, its acknowledgements from PSN {0x} on were lost on the way back", "IBA C9-141", "the way back loses packets: look at the drops of this host and at firewalls that let one direction pass") /* psn, epsn */ \
	X(RETRY_STOPPED, "retry_stopped", REMOTE, "the peer process (slot {0}) is there and does not run", "IBA C9-141", "it is stopped, in a debugger, or gets no CPU") /* slot */ \
	X(RETRY_SILENCE, "retry_silence", REMOTE, "the peer answered before and now nothing comes from its address: all packets are lost, or its host is down", "IBA C9-141", "is the host up, and the network between? A longer timeout outlasts a short break") /* - */ \
	X(RETRY_UNTOLD, "retry_untold", REMOTE, "nothing was ever heard from QP {0x} at that address, and the reason cannot be told from here", "IBA C9-141", "no Verbena answers there: a foreign adapter that has no such QP, or a network or firewall that drops everything; `verbena doctor HOST` tests the way") /* dqpn */ \
	X(RNR_RETRY_EXC, "rnr_retry_exc", REMOTE, "the receiver had no receive posted, {0} times in a row (rnr_retry {1})", "IBA C9-142", "post receives earlier, or set rnr_retry to 7 (for ever)") /* n, rnr_retry */ \
	X(REM_INVALID, "rem_invalid", REMOTE, "the peer refused PSN {0x}: invalid request", "IBA C9-144", "message longer than its receive, atomic misaligned, or the QP lacks the remote access flag; the peer's explanation says which") /* psn */ \
	X(REM_ACCESS, "rem_access", REMOTE, "the peer refused PSN {0x}: remote access error (rkey {1x}, address {2x}, {3} bytes)", "IBA C9-145", "wrong rkey, range or rights; the peer's explanation says which") /* psn, rkey, va, len */ \
	X(REM_OP, "rem_op", REMOTE, "the peer failed on PSN {0x}: remote operational error", "IBA C9-146", "the peer's receive buffer is not usable; its explanation says why") /* psn */ \
	X(BAD_RESPONSE, "bad_response", REMOTE, "response opcode {0x}, PSN {1x} does not fit the request", "IBA C9-143", "the peer's transport is faulty") /* op, psn */ \
	X(DROP_GHOST, "drop_ghost", DROP, "an acknowledgement for PSN {0x}, which is not outstanding", "IBA C9-139", "normal after a retransmission") /* psn */ \
	X(DROP_SYNDROME, "drop_syndrome", DROP, "a reserved AETH syndrome {0x}", "IBA table 44", "the peer's transport is faulty") /* syndrome */ \
	X(IMPLIED_NAK, "implied_nak", DROP, "the response to PSN {0x} was lost", "IBA C9-137", "normal after a loss") /* psn */

/* ---- what happened, for the history of a queue pair (src/hca/story.c) */
#define VRB_VERDICTS_STORY(X) \
	X(QP_MOVED, "qp_moved", NOTE, "ibv_modify_qp: {0s} to {1s}", "IBA 10.3.1", "-") /* from, to */ \
	X(NAK_SENT, "nak_sent", NOTE, "answered PSN {1x} with {0n}", "IBA table 44", "-") /* syndrome, psn */ \
	X(NAK_GOT, "nak_got", NOTE, "the peer answered PSN {1x} with {0n}", "IBA table 44", "-") /* syndrome, psn */ \
	X(ACK_TIMEOUT, "ack_timeout", NOTE, "no answer for {1} ms to PSN {0x} and what follows it; {2} retries are left", "IBA 9.7.6.1.3", "-") /* psn, ms, retries */

/* ---- bytes that are no packet (src/wire) */
#define VRB_VERDICTS_WIRE(X) \
	X(DROP_SHORT, "drop_short", DROP, "{0} bytes are too few for opcode {1x}", "IBA 9.2", "not a RoCEv2 packet, or cut") /* len, op */ \
	X(DROP_LONG, "drop_long", DROP, "{0} bytes from the BTH on, more than the {1} of the largest packet", "IBA 9.7.4.1", "not a RoCEv2 packet") /* len, largest */ \
	X(DROP_TVER, "drop_tver", DROP, "transport version {0}", "IBA C9-6", "only version 0 is defined") /* tver */ \
	X(DROP_OPCODE, "drop_opcode", DROP, "opcode {0x} is not defined", "IBA table 35", "not a RoCEv2 packet") /* op */ \
	X(DROP_ICRC, "drop_icrc", DROP, "ICRC {0x}, computed {1x}", "IBA 7.8.1", "the packet was damaged or rewritten on its way") /* got, want */ \
	X(DROP_PADCNT, "drop_padcnt", DROP, "pad count {0} with {1} bytes of payload", "IBA 9.2.3", "the sender's transport is faulty") /* pad, len */ \
	X(DROP_IP, "drop_ip", DROP, "{0} bytes are no IPv4 or IPv6 packet with UDP in it, or its lengths disagree", "RoCEv2 A17.3", "options, extension headers and fragments are not used by RoCEv2") /* len */ \
	X(DROP_MAD, "drop_mad", DROP, "{0} bytes to QP 1 that are no connection manager's message (base version {1}, class {2x}, class version {3}, method {4x})", "IBA 13.4", "connection management is class 7, version 2, method 3; nothing else is served on QP 1") /* len, base, class, version, method */ \
	X(DROP_CM_KIND, "drop_cm_kind", DROP, "a connection manager's message of kind {0x}, which is not defined", "IBA 12.6", "the sender's connection manager is faulty") /* attribute id */

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
	X(CAPTURE_REFUSED, "capture_refused", NOTE, "process {0} asked to record packets and was refused (errno {1})", "-", "16 (EBUSY): this process is being captured already; 22 (EINVAL): the file must be a regular one, open for appending") /* pid, errno */ \
	X(CAPTURE_ENDED, "capture_ended", NOTE, "the capture file cannot be written (errno {0}): no packets are recorded any more", "-", "2 (ENOENT): VERBENA_CAPTURE names a file that `verbena capture` has begun; 27, 28: the file, or its file system, is full") /* errno */ \
	X(RECORD_FILE, "record_file", NOTE, "the records of `verbena run --trace` cannot be written (errno {0}): this process is not traced any more", "-", "2, 13: the folder must be there and writable for this process; 27, 28: the file, or its file system, is full") /* errno */ \
	X(STORY_FILE, "story_file", NOTE, "the file that VERBENA_STORY names cannot be written (errno {0}): no stories are kept there", "-", "2, 13: the folder must be there and writable; 22 (EINVAL), 40 (ELOOP): it must be a regular file") /* errno */ \
	X(DROP_SLOT, "drop_slot", DROP, "a packet for QP {0x}, which belongs to another process", "RoCEv2 A17", "normal for a moment while processes come and go") /* qpn */

/* ---- connection managers' messages, on QP 1 (src/hca/gsi.c) */
#define VRB_VERDICTS_CM(X) \
	X(DROP_GSI_SOURCE, "drop_gsi_source", DROP, "a packet to QP 1 came from QP {0x}; only QP 1 sends there", "IBA 13.5", "a forged packet, or a program that sends to QP 1 by a queue pair of its own") /* sqpn */ \
	X(CM_NO_LISTENER, "cm_no_listener", NAK, "{0c} for service id {1x} (port {2}): no process of this user listens there, it is refused", "IBA 12.6.7", "start the server before the client, as this user and in this network namespace; is the port right?") /* kind, service id, port */ \
	X(CM_UNANSWERED, "cm_unanswered", DROP, "more than {0} connection requests in a second for which nobody listens: this one is not answered", "IBA 12.6.7", "somebody scans for ports, or a client repeats itself without a pause") /* limit */ \
	X(CM_NO_OWNER, "cm_no_owner", DROP, "{0c} for communication id {1x}: no process here has it", "IBA 12.9", "normal after a process has ended; else a stale or forged message") /* kind, id */ \
	X(CM_BUSY, "cm_busy", DROP, "{0c} for service id {1x} is dropped: the process that listens there does not take it (errno {2})", "-", "it is stopped, or gets no CPU; the client's connection manager repeats the request") /* kind, service id, errno */ \
	X(CM_SERVICE_TAKEN, "cm_service_taken", CALL, "service id {0x} (port {1}) is taken by process {2}", "rdma_listen(3)", "end that process, or choose another port; process 0 is one of another user or PID namespace") /* service id, port, pid */

/* ---- what the environment asks for (src/hca/profile.c, faults.c) */
#define VRB_VERDICTS_FAULT(X) \
	X(PROFILE, "profile", CALL, "the device profile is not usable (line {0}, column {1}); no device is opened", "-", "`verbena run --profile help` says what a profile may hold") /* line, column */ \
	X(FAULT_PLAN, "fault_plan", CALL, "the fault plan is wrong at line {0}, column {1}; no device is opened", "-", "`verbena run --faults PLAN` says what is expected there") /* line, column */ \
	X(FAULT_FIRED, "fault_fired", NOTE, "rule {0} of the fault plan struck PSN {1x}", "-", "asked for by --faults") /* rule, psn */ \
	X(FAULT_NAK, "fault_nak", NAK, "the fault plan has PSN {1x} answered with syndrome {0x}", "-", "asked for by --faults") /* syndrome, psn */ \
	X(FAULT_FULL, "fault_full", DROP, "the fault plan holds {0} packets back; one more was lost", "-", "delay fewer packets, or for a shorter time") /* n */

/* ---- libverbena (src/send) */
#define VRB_VERDICTS_SEND(X) \
	X(SEND_OPTION, "send_option", CALL, "an option has the value {0}; possible is {1} to {2}", "libverbena(3)", "clear the struct of options before filling it in") /* value, min, max */ \
	X(SEND_NO_DEVICE, "send_no_device", CALL, "there is no such RDMA device", "ibv_get_device_list(3)", "without an adapter start the program with `verbena run`; `verbena devinfo` lists what there is") /* - */ \
	X(SEND_NO_PORT, "send_no_port", CALL, "port {0} of the device is not active (0: none is)", "ibv_query_port(3)", "is the network interface up?") /* port */ \
	X(SEND_NO_GID, "send_no_gid", CALL, "none of the {0} GIDs of port {1} fits the address", "RoCEv2 A17.4.5", "connect by an address of the device's network interface; `verbena devinfo` lists the GIDs") /* n, port */ \
	X(SEND_POOL, "send_pool", CALL, "no pool of {0} bytes can be had (errno {1})", "mmap(2)", "ask for less; 12 (ENOMEM) with lock_pool: raise the limit of locked memory, ulimit -l") /* bytes, errno */ \
	X(SEND_REGISTER, "send_register", CALL, "ibv_reg_mr refused {0} bytes at {1x} (errno {2})", "ibv_reg_mr(3)", "12 (ENOMEM): raise the limit of locked memory, ulimit -l; 14 (EFAULT): not mapped, or not writable and not said to be") /* len, addr, errno */ \
	X(SEND_OVERLAP, "send_overlap", CALL, "{0} bytes at {1x} overlap a region that is registered", "libverbena(3)", "register memory once, as a whole") /* len, addr */ \
	X(SEND_BUSY, "send_busy", CALL, "the domain still has {0} channels and listeners, {1} regions and {2} buffers outside", "libverbena(3)", "vrb_leak_report says which") /* channels, regions, buffers */ \
	X(SEND_ADDRESS, "send_address", CALL, "host or port cannot be resolved", "getaddrinfo(3)", "check the name") /* - */ \
	X(SEND_LISTEN, "send_listen", CALL, "cannot listen (errno {0})", "listen(2)", "98 (EADDRINUSE): another program has the port; 99 (EADDRNOTAVAIL): the address is not of this host") /* errno */ \
	X(SEND_CONNECT, "send_connect", CALL, "no TCP connection to the peer (errno {0})", "connect(2)", "111 (ECONNREFUSED): nobody listens there; 110 (ETIMEDOUT): the host does not answer") /* errno */ \
	X(SEND_EXCHANGE, "send_exchange", CALL, "the exchange with the peer broke off in step {0} (errno {1})", "libverbena(3)", "104 (ECONNRESET): the peer ended, see its own error; 110 (ETIMEDOUT): it is stuck") /* step, errno */ \
	X(SEND_STRANGER, "send_stranger", CALL, "the peer speaks another protocol (magic {0x}, version {1}, link layer {2})", "libverbena(3)", "both ends must use libverbena, of one version, on adapters of one kind") /* magic, version, link layer */ \
	X(SEND_PEER_REFUSED, "send_peer_refused", CALL, "the peer could not connect its queue pairs (errno {0})", "libverbena(3)", "its own error says why") /* errno */ \
	X(SEND_CREATE, "send_create", CALL, "creating the {0b} failed (errno {1})", "ibv_create_qp(3)", "22 (EINVAL), 12 (ENOMEM): the adapter has less than was asked for") /* object, errno */ \
	X(SEND_MODIFY, "send_modify", CALL, "ibv_modify_qp to {0s} failed (errno {1})", "ibv_modify_qp(3)", "110, 113: no way to dgid from this sgid_index; 19: the GID at sgid_index is gone; 22: an attribute, most often path_mtu, does not suit the port") /* state, errno */ \
	X(SEND_TOO_LONG, "send_too_long", CALL, "a message of {0} bytes; this channel carries {1}", "libverbena(3)", "a larger recv_size, or pools that may be READ at both ends") /* len, max */ \
	X(SEND_NO_ROOM, "send_no_room", CALL, "a message of {0} bytes finds no room in a pool of {1} bytes, and nothing is outside that could come back", "libverbena(3)", "raise pool_bytes or grow_bytes of the domain, at the end where this is counted") /* len, pool */ \
	X(SEND_KEPT_BUSY, "send_kept_busy", CALL, "of {0} kept registrations at {1x} messages still use {2}", "libverbena(3)", "wait for the events of the messages before the memory is unmapped") /* n, addr, busy */ \
	X(SEND_NOT_REGISTERED, "send_not_registered", CALL, "piece {0}: {2} bytes at {1x} lie in no registered region", "IBA 10.6.2.1", "take the memory from vrb_buf_get, or vrb_register it") /* piece, addr, len */ \
	X(SEND_RANGE, "send_range", CALL, "piece {0}: {2} bytes at {1x} run {3} bytes past the end of their region", "IBA C10-73", "shorten the piece or register the whole buffer") /* piece, addr, len, excess */ \
	X(SEND_RIGHTS, "send_rights", CALL, "piece {0}: the region at {1x} lacks the right {2}", "IBA C10-72", "1: register for VRB_REMOTE_READ, 2: for VRB_REMOTE_WRITE, 4: without VRB_READ_ONLY") /* piece, addr, right */ \
	X(SEND_OTHER_LKEY, "send_other_lkey", CALL, "SGE {0}: the address {2x} lies in the region of lkey {3x}, not in that of {1x}", "IBA 10.6.2.1", "take address and key from one region; vrb_sgl_build does") /* sge, key, addr, lkey */ \
	X(SEND_REMOTE_RANGE, "send_remote_range", CALL, "{1} bytes at offset {0} do not lie in the {2} bytes that the peer exported", "IBA C9-76", "check offset and length") /* offset, len, size */ \
	X(SEND_FILE, "send_file", CALL, "{1} bytes from {0} on are not in the file, which has {2} (0: it is no regular file)", "libverbena(3)", "check offset and length; pipes and devices are read and sent by hand") /* offset, len, size */ \
	X(SEND_BUF, "send_buf", CALL, "a buffer with len {0} and cap {1} that is not the caller's", "libverbena(3)", "a buffer is the library's from vrb_send_buf on; len must be within cap") /* len, cap */ \
	X(SEND_ENDED, "send_ended", CALL, "the channel has ended", "libverbena(3)", "the text of its last event says why; vrb_disconnect it and connect anew") /* - */ \
	X(SEND_POST, "send_post", CALL, "ibv_post_send or ibv_post_recv failed (errno {0})", "ibv_post_send(3)", "the adapter refused what it had granted; try VERBENA_EXPLAIN=1") /* errno */ \
	X(SEND_FAILED, "send_failed", REMOTE, "queue pair {0x} ended: completion status {1}, vendor code {2x}", "ibv_poll_cq(3)", "`verbena explain` has the statuses; 12: the peer does not answer, 5: the queue pair ended for another reason") /* qpn, status, vendor */ \
	X(SEND_PEER_GONE, "send_peer_gone", REMOTE, "the peer process ended without a word (errno {0})", "libverbena(3)", "it was killed or crashed, or called exit without vrb_disconnect") /* errno */ \
	X(SEND_PEER_MUTE, "send_peer_mute", REMOTE, "the peer process is there but has not called vrb_poll for {0} ms", "libverbena(3)", "it is stopped, in a debugger, or busy with other things; keepalive_ms sets the time") /* ms */ \
	X(SEND_PEER_BROKE, "send_peer_broke", REMOTE, "the peer ended the channel because of an error of its own", "libverbena(3)", "its own event says which") /* - */ \
	X(SEND_PROTOCOL, "send_protocol", REMOTE, "the peer sent what no libverbena sends (kind {0}, {1} bytes)", "libverbena(3)", "its memory may be damaged, or it is hostile") /* kind, len */ \
	X(SEND_QP_EVENT, "send_qp_event", REMOTE, "queue pair {0x} ended: the adapter reported event {1} for it", "ibv_get_async_event(3)", "1: fatal; 2: a request that breaks the rules came; 3: one that reached where it must not") /* qpn, event */ \
	X(SEND_CQ_ERROR, "send_cq_error", WORK, "the channel's completion queue overran, or cannot be polled any more", "IBA C10-100", "it was made shorter than was asked for: by a layer in front of the adapter?") /* - */ \
	X(SEND_SRQ_ERROR, "send_srq_error", WORK, "the channel's shared receive queue has failed", "IBA 11.6.3.5", "the adapter could not fetch from it: is the process's memory whole? the kernel's log may say more") /* - */ \
	X(SEND_DEVICE, "send_device", WORK, "the adapter has failed, or was removed", "ibv_get_async_event(3)", "close the domain and open another adapter; the kernel's log may say more") /* - */ \
	X(SEND_PORT_DOWN, "send_port_down", NOTE, "port {0} of the adapter is down", "ibv_get_async_event(3)", "messages wait as long as the transport repeats them (ack_timeout_us, retries); is the network interface up?") /* port */ \
	X(SEND_LANE_STALLED, "send_lane_stalled", REMOTE, "queue pair {0x} has completed nothing for {1} ms while others did", "libverbena(3)", "stall_ms sets the time; a loss on the way of this queue pair alone: ECMP, a bond") /* qpn, ms */ \
	X(SEND_NO_LANE, "send_no_lane", REMOTE, "no queue pair of the channel has worked for {0} ms, nor one that was built in its place", "libverbena(3)", "the path to the peer is interrupted, though its TCP connection stands: a firewall, a port, a wrong MTU? connect_ms sets the time") /* ms */ \
	X(SEND_PEER_LANE, "send_peer_lane", REMOTE, "the peer took queue pair {0x} out", "libverbena(3)", "its own event says why") /* qpn */ \
	X(SEND_RECONNECT, "send_reconnect", REMOTE, "the peer was not to be had again in {0} attempts", "libverbena(3)", "does it listen? reconnect and reconnect_ms say how often and when") /* attempts */ \
	X(SEND_NO_CLOCK, "send_no_clock", CALL, "the channel has no timestamps (asked for: {0}; 1 is yes)", "libverbena(3)", "set timestamps in the options; an adapter without extended CQs, or whose completions have no time, cannot") /* asked */ \
	X(SEND_NO_NODE, "send_no_node", CALL, "no CPU of a NUMA node of the adapter can be had", "libverbena(3)", "numa_node of the device in /sys says -1 where there is none; taskset may exclude its CPUs") /* - */

/* ---- what only the checker sees (src/check; rules in src/rules where they are pure) */
#define VRB_VERDICTS_CHECK(X) \
	X(SGE_EMPTY, "sge_empty", NOTE, "SGE {0} has length 0, which some adapters read as 2^31 bytes", "ibv_post_send(3)", "leave it out of the list") /* sge, key, addr, len */ \
	X(SGE_WRAPS, "sge_wraps", WORK, "SGE {0}: address {2x} + length {3} runs beyond the last address", "IBA 10.6.3", "check the pointer arithmetic behind address and length") /* sge, key, addr, len */ \
	X(POST_LIST_UNUSED, "post_list_unused", NOTE, "num_sge is 0 although there is an sg_list: no byte of it is sent or filled", "ibv_post_send(3)", "set num_sge, or leave sg_list NULL for an empty message") /* - */ \
	X(UD_NO_GRH_ROOM, "ud_no_grh_room", NOTE, "a UD receive of {0} bytes: the first {1} are for the GRH, so no message fits", "IBA 11.4.1.2", "make UD receives 40 bytes longer than the largest message, and read the payload behind them") /* len, grh */ \
	X(CQ_WORST_CASE, "cq_worst_case", NOTE, "a CQ of {0} entries for queues that can have {1} completions at once", "IBA C10-100", "make the CQ as large as all send and receive queues on it together, or never have more outstanding than it holds") /* cqe, worst */ \
	X(CQ_POLLED_ONCE, "cq_polled_once", NOTE, "the CQ was polled once, which gave nothing, and never again; {0} work requests had been posted", "ibv_poll_cq(3)", "poll in a loop until the completion comes: 0 means not yet") /* posts */ \
	X(CQ_LOST_WAKEUP, "cq_lost_wakeup", NOTE, "a wait for an event of a CQ that holds {0} completions from before it was armed: no event comes for them", "IBA 11.4.2.2", "after ibv_req_notify_cq poll the CQ until it is empty, then wait") /* held */ \
	X(CQ_NOT_ARMED, "cq_not_armed", NOTE, "a wait for an event of a channel none of whose CQs is armed", "ibv_req_notify_cq(3)", "call ibv_req_notify_cq before each wait: it serves one event") /* - */ \
	X(WC_INVALID_FIELD, "wc_invalid_field", NOTE, "{0f} of a completion with status {1} was read; only wr_id, status, qp_num and vendor_err are valid then", "IBA 11.4.2.1", "look at status first") /* field, status */ \
	X(MTU_ACTIVE, "mtu_active", NOTE, "path_mtu code {0} is above the port's active MTU, code {1}", "IBA 9.7.4.1", "use active_mtu of ibv_query_port") /* mtu, active */ \
	X(MTU_UNMATCHED, "mtu_unmatched", NOTE, "path_mtu code {0} here and {1} at QP {2x}, which is the other end", "IBA 9.7.4.1", "both ends must use the same path MTU: exchange it with the QP number") /* mtu, theirs, qpn */ \
	X(GID_V1, "gid_v1", NOTE, "sgid_index {0} is an entry of type RoCE v1; the same address is of type RoCE v2 at index {1}", "RoCEv2 A17", "take the index of type RoCE v2: RoCE v1 is not routed, and both ends must use one type") /* index, better */ \
	X(MR_IN_FLIGHT, "mr_in_flight", CALL, "the region of lkey {0x} is given up while {1} work requests that use it are under way, the oldest with wr_id {2x}", "IBA C10-70", "poll the completions first, or destroy the QP") /* key, n, wr_id */ \
	X(BUFFER_FREED, "buffer_freed", NOTE, "{1} bytes at {0x} are freed while {2} work requests that use them are under way, the oldest with wr_id {3x}", "IBA 10.6.2", "free a buffer when the completion of its last work request has been polled") /* addr, len, n, wr_id */ \
	X(DATA_CHANGED, "data_changed", NOTE, "the {1} bytes of the request with wr_id {0x} were changed between its post and its completion", "IBA 10.7.3.1", "leave a buffer alone until its completion has been polled") /* wr_id, len */ \
	X(FORK_UNSAFE, "fork_unsafe", NOTE, "fork() with {0} registered regions and without ibv_fork_init: a page that parent or child writes is no longer the one the adapter uses", "ibv_fork_init(3)", "call ibv_fork_init before the first registration, or set RDMAV_FORK_SAFE=1") /* n */ \
	X(FORK_PAGE, "fork_page", NOTE, "fork() with a region of {1} bytes at {0x} that shares its pages with other data: the child dies when it touches that data", "ibv_fork_init(3)", "register whole pages, or use a kernel that copies on fork") /* addr, len */ \
	X(LEAK, "leak", NOTE, "{0} times a {1b} was not destroyed when the program ended", "ibv_close_device(3)", "destroy what was created") /* n, object */ \
	X(REFUSED, "refused", CALL, "the device refused with errno {0}; no rule known here says why", "errno(3)", "22: an argument that this device does not take; 12: its memory or the limit of locked memory") /* errno */
/* clang-format on */

#endif
