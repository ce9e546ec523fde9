/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTH opcodes as a type and a table (IBA table 35): which headers follow, which role sends it,
 * where it stands in a message. Ask questions, not bits. The table is complete over 256 values; an
 * undefined opcode has no headers and no VRB_OPF_KNOWN (reserved RC ones are VRB_OPF_REQUEST, since
 * the responder must answer them with NAK).
 */
#ifndef VRB_WIRE_OPCODE_H
#define VRB_WIRE_OPCODE_H

#include "base/types.h"

struct vrb_opcode {
	uint8_t v;
};

enum { /* transport, bits 7:5 */
       VRB_TP_RC = 0x00,
       VRB_TP_UC = 0x20,
       VRB_TP_RD = 0x40,
       VRB_TP_UD = 0x60,
       VRB_TP_CNP = 0x80,
       VRB_TP_XRC = 0xa0,
       VRB_TP_MASK = 0xe0,
};

enum { /* operation, bits 4:0 */
       VRB_OP_SEND_FIRST = 0x00,
       VRB_OP_SEND_MIDDLE = 0x01,
       VRB_OP_SEND_LAST = 0x02,
       VRB_OP_SEND_LAST_IMM = 0x03,
       VRB_OP_SEND_ONLY = 0x04,
       VRB_OP_SEND_ONLY_IMM = 0x05,
       VRB_OP_WRITE_FIRST = 0x06,
       VRB_OP_WRITE_MIDDLE = 0x07,
       VRB_OP_WRITE_LAST = 0x08,
       VRB_OP_WRITE_LAST_IMM = 0x09,
       VRB_OP_WRITE_ONLY = 0x0a,
       VRB_OP_WRITE_ONLY_IMM = 0x0b,
       VRB_OP_READ_REQ = 0x0c,
       VRB_OP_READ_RESP_FIRST = 0x0d,
       VRB_OP_READ_RESP_MIDDLE = 0x0e,
       VRB_OP_READ_RESP_LAST = 0x0f,
       VRB_OP_READ_RESP_ONLY = 0x10,
       VRB_OP_ACK = 0x11,
       VRB_OP_ATOMIC_ACK = 0x12,
       VRB_OP_CMP_SWAP = 0x13,
       VRB_OP_FETCH_ADD = 0x14,
       VRB_OP_SEND_LAST_INV = 0x16,
       VRB_OP_SEND_ONLY_INV = 0x17,
       VRB_OP_MASK = 0x1f,
       VRB_OPCODE_CNP = 0x81,
};

enum { /* properties of an opcode */
       VRB_OPF_KNOWN = 1 << 0,
       VRB_OPF_REQUEST = 1 << 1, /* sent by the requester */
       VRB_OPF_RESPONSE = 1 << 2,
       VRB_OPF_FIRST = 1 << 3, /* First or Only begin a message, Last or Only end it */
       VRB_OPF_LAST = 1 << 4,
       VRB_OPF_SEND = 1 << 5,
       VRB_OPF_WRITE = 1 << 6,
       VRB_OPF_READ = 1 << 7,	/* READ request or response */
       VRB_OPF_ATOMIC = 1 << 8, /* atomic request or acknowledge */
       VRB_OPF_PAYLOAD = 1 << 9,
       VRB_OPF_RETH = 1 << 10,
       VRB_OPF_AETH = 1 << 11,
       VRB_OPF_ATOMICETH = 1 << 12,
       VRB_OPF_ATOMICACK = 1 << 13,
       VRB_OPF_IMM = 1 << 14,
       VRB_OPF_INV = 1 << 15,
       VRB_OPF_DETH = 1 << 16,
       VRB_OPF_NEEDS_RQ =
	       1 << 17, /* takes a receive WQE: SEND First/Only, WRITE Last/Only with Immediate */
};

struct vrb_opcode_info {
	const char *name; /* "RC SEND Only"; NULL when undefined */
	uint32_t flags;
	uint8_t header_len; /* extension headers behind the BTH, bytes */
};

extern const struct vrb_opcode_info vrb_opcode_table[256];

static inline struct vrb_opcode vrb_opcode(unsigned transport, unsigned operation)
{
	return (struct vrb_opcode){(uint8_t)(transport | operation)};
}

static inline uint32_t vrb_op_flags(struct vrb_opcode op)
{
	return vrb_opcode_table[op.v].flags;
}

static inline bool vrb_op_has(struct vrb_opcode op, uint32_t flags)
{
	return (vrb_op_flags(op) & flags) == flags;
}

static inline const char *vrb_op_name(struct vrb_opcode op)
{
	const char *name = vrb_opcode_table[op.v].name;

	return name ? name : "undefined";
}

static inline unsigned vrb_op_transport(struct vrb_opcode op)
{
	return op.v & VRB_TP_MASK;
}

static inline unsigned vrb_op_operation(struct vrb_opcode op)
{
	return op.v & VRB_OP_MASK;
}

#endif
