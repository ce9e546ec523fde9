/* SPDX-License-Identifier: BSD-2-Clause */
/* The table's own consistency, and the rows that carry the rules of receive WQEs and messages. */
#include "support/test.h"

#include <string.h>

#include "wire/opcode.h"

static void test_rows(void **state)
{
	unsigned n_known = 0;

	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		const struct vrb_opcode_info *row = &vrb_opcode_table[i];
		bool known = row->flags & VRB_OPF_KNOWN;

		n_known += known;
		assert_non_null(vrb_op_name((struct vrb_opcode){(uint8_t)i}));
		assert_int_equal(row->header_len % 4, 0);
		if (!known)
			assert_int_equal(row->header_len, 0);
		else if (i != VRB_OPCODE_CNP)
			assert_true(!(row->flags & VRB_OPF_REQUEST) !=
				    !(row->flags & VRB_OPF_RESPONSE));
	}
	assert_int_equal(n_known, 23 + 12 + 2 + 1);
}

static void test_some_rows(void **state)
{
	struct vrb_opcode op = vrb_opcode(VRB_TP_RC, VRB_OP_WRITE_ONLY_IMM);

	(void)state;
	assert_string_equal(vrb_op_name(op), "RC WRITE Only with Imm");
	assert_true(vrb_op_has(op, VRB_OPF_NEEDS_RQ | VRB_OPF_RETH | VRB_OPF_IMM | VRB_OPF_FIRST |
					   VRB_OPF_LAST));
	assert_int_equal(vrb_opcode_table[op.v].header_len, 20);
	op = vrb_opcode(VRB_TP_UC, VRB_OP_SEND_LAST_IMM);
	assert_false(vrb_op_has(op, VRB_OPF_NEEDS_RQ));
	assert_true(vrb_op_has(op, VRB_OPF_LAST));
	assert_int_equal(vrb_opcode_table[0x12].header_len, 12);
	assert_int_equal(vrb_opcode_table[0x13].header_len, 28);
	assert_int_equal(vrb_opcode_table[0x65].header_len, 12);
	/* UC has no READ, UD no RDMA */
	assert_int_equal(vrb_opcode_table[0x2c].flags, 0);
	assert_int_equal(vrb_opcode_table[0x6a].flags, 0);
	/* reserved RC opcodes reach the responder */
	assert_int_equal(vrb_opcode_table[0x15].flags, VRB_OPF_REQUEST);
	assert_int_equal(vrb_opcode_table[0x1f].flags, VRB_OPF_REQUEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_some_rows),
	};

	return VRB_RUN_TESTS(tests);
}
