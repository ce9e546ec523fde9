/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opcode table (IBA table 35; CNP: RoCEv2 A17.9.3). A row says which headers follow and what
 * the packet is to the machines; header_len is computed from the header flags, so the two cannot
 * disagree. Reserved RC opcodes are marked as requests without KNOWN: the responder answers them
 * (IBA C9-47). RD and XRC are not spoken here and stay undefined.
 */
#include "wire/opcode.h"

#include "wire/roce.h"

#define F(x) VRB_OPF_##x

#define LEN(flags)                                                                                 \
	(((flags)&F(RETH) ? VRB_RETH_LEN : 0) + ((flags)&F(AETH) ? VRB_AETH_LEN : 0) +             \
	 ((flags)&F(ATOMICETH) ? VRB_ATOMICETH_LEN : 0) +                                          \
	 ((flags)&F(ATOMICACK) ? VRB_ATOMICACKETH_LEN : 0) +                                       \
	 ((flags)&F(IMM) ? VRB_IMMDT_LEN : 0) + ((flags)&F(INV) ? VRB_IETH_LEN : 0) +              \
	 ((flags)&F(DETH) ? VRB_DETH_LEN : 0))

#define ROW(tp, op, text, flags)                                                                   \
	[VRB_TP_##tp | VRB_OP_##op] = {#tp " " text, F(KNOWN) | (flags), LEN(flags)}
#define RESERVED(op) [VRB_TP_RC | (op)] = {"RC reserved", F(REQUEST), 0}

#define REQ  F(REQUEST)
#define ONLY (F(FIRST) | F(LAST))
#define SND  (F(REQUEST) | F(SEND) | F(PAYLOAD))
#define SNO  (SND | ONLY | F(NEEDS_RQ))
#define WRT  (F(REQUEST) | F(WRITE) | F(PAYLOAD))
#define WRO  (WRT | ONLY | F(RETH))
#define ACK  (F(RESPONSE) | ONLY | F(AETH))
#define RDR  (F(RESPONSE) | F(READ) | F(PAYLOAD))

/* clang-format off */
#define SEND_AND_WRITE(tp) \
	ROW(tp, SEND_FIRST,       "SEND First",           SND | F(FIRST) | F(NEEDS_RQ)), \
	ROW(tp, SEND_MIDDLE,      "SEND Middle",          SND), \
	ROW(tp, SEND_LAST,        "SEND Last",            SND | F(LAST)), \
	ROW(tp, SEND_LAST_IMM,    "SEND Last with Imm",   SND | F(LAST) | F(IMM)), \
	ROW(tp, SEND_ONLY,        "SEND Only",            SNO), \
	ROW(tp, SEND_ONLY_IMM,    "SEND Only with Imm",   SNO | F(IMM)), \
	ROW(tp, WRITE_FIRST,      "WRITE First",          WRT | F(FIRST) | F(RETH)), \
	ROW(tp, WRITE_MIDDLE,     "WRITE Middle",         WRT), \
	ROW(tp, WRITE_LAST,       "WRITE Last",           WRT | F(LAST)), \
	ROW(tp, WRITE_LAST_IMM,   "WRITE Last with Imm",  WRT | F(LAST) | F(NEEDS_RQ) | F(IMM)), \
	ROW(tp, WRITE_ONLY,       "WRITE Only",           WRO), \
	ROW(tp, WRITE_ONLY_IMM,   "WRITE Only with Imm",  WRO | F(IMM) | F(NEEDS_RQ))

const struct vrb_opcode_info vrb_opcode_table[256] = {
	SEND_AND_WRITE(RC),
	ROW(RC, READ_REQ,         "READ Request",         REQ | ONLY | F(READ) | F(RETH)),
	ROW(RC, READ_RESP_FIRST,  "READ Response First",  RDR | F(FIRST) | F(AETH)),
	ROW(RC, READ_RESP_MIDDLE, "READ Response Middle", RDR),
	ROW(RC, READ_RESP_LAST,   "READ Response Last",   RDR | F(LAST) | F(AETH)),
	ROW(RC, READ_RESP_ONLY,   "READ Response Only",   RDR | ONLY | F(AETH)),
	ROW(RC, ACK,              "ACK",                  ACK),
	ROW(RC, ATOMIC_ACK,       "ATOMIC ACK",           ACK | F(ATOMIC) | F(ATOMICACK)),
	ROW(RC, CMP_SWAP,         "CmpSwap",              REQ | ONLY | F(ATOMIC) | F(ATOMICETH)),
	ROW(RC, FETCH_ADD,        "FetchAdd",             REQ | ONLY | F(ATOMIC) | F(ATOMICETH)),
	ROW(RC, SEND_LAST_INV,    "SEND Last with Inv",   SND | F(LAST) | F(INV)),
	ROW(RC, SEND_ONLY_INV,    "SEND Only with Inv",   SNO | F(INV)),
	RESERVED(0x15), RESERVED(0x18), RESERVED(0x19), RESERVED(0x1a), RESERVED(0x1b),
	RESERVED(0x1c), RESERVED(0x1d), RESERVED(0x1e), RESERVED(0x1f),

	SEND_AND_WRITE(UC),

	ROW(UD, SEND_ONLY,        "SEND Only",            SNO | F(DETH)),
	ROW(UD, SEND_ONLY_IMM,    "SEND Only with Imm",   SNO | F(DETH) | F(IMM)),

	[VRB_OPCODE_CNP] = {"CNP", F(KNOWN) | F(PAYLOAD), 0},
};
/* clang-format on */
