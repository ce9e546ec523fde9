/* SPDX-License-Identifier: BSD-2-Clause */
/* Netlink's answers, in bytes, as lines: complete ones, those cut anywhere, and noise. */
#include "support/test.h"

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_dcb.h"
#include "tools/doctor_objects.h"
#include "tools/tools.h"

#define TRUST_TABLE 11
#define NOISE_RUNS  20000

void vrb_complain(const char *fmt, ...)
{
	(void)fmt;
}

void vrb_doc_limits_text(FILE *out, const char *device)
{
	(void)out;
	(void)device;
}

struct msg {
	uint8_t bytes[4096];
	size_t len;
};

static size_t begin(struct msg *m, unsigned type)
{
	struct nlattr a = {.nla_type = (uint16_t)(type | NLA_F_NESTED)};
	size_t at = m->len;

	memcpy(m->bytes + at, &a, sizeof(a));
	m->len += NLA_HDRLEN;
	return at;
}

static void end(struct msg *m, size_t at)
{
	uint16_t len = (uint16_t)(m->len - at);

	memcpy(m->bytes + at, &len, sizeof(len));
	m->len = NLA_ALIGN(m->len);
}

static void put(struct msg *m, unsigned type, const void *data, size_t len)
{
	struct nlattr a = {.nla_type = (uint16_t)type, .nla_len = (uint16_t)(NLA_HDRLEN + len)};

	memcpy(m->bytes + m->len, &a, sizeof(a));
	memcpy(m->bytes + m->len + NLA_HDRLEN, data, len);
	m->len += NLA_ALIGN(NLA_HDRLEN + len);
}

static void put_number(struct msg *m, unsigned type, uint64_t n, size_t len)
{
	uint8_t b = (uint8_t)n;
	uint32_t w = (uint32_t)n;

	put(m, type, len == 1 ? (void *)&b : len == 4 ? (void *)&w : (void *)&n, len);
}

typedef void (*to_text)(FILE *out, struct vrb_nl_part body);

/* The bytes lie at the end of a block of their own, so that a reader beyond them is caught. */
static char *text_of(to_text f, const struct msg *m, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(copy);
	assert_non_null(out);
	memcpy(copy, m->bytes, len);
	f(out, (struct vrb_nl_part){copy, len});
	fclose(out);
	free(copy);
	return text;
}

static void make_dcb(struct msg *m)
{
	struct dcbmsg head = {.cmd = DCB_CMD_IEEE_GET};
	struct ieee_ets ets = {.tc_tx_bw = {30, 0, 0, 70}, .tc_tsa = {2, 0, 0, 2}};
	struct ieee_pfc pfc = {.pfc_cap = 8, .pfc_en = 1 << 3};
	struct dcb_app dscp = {.selector = 5, .priority = 3, .protocol = 26};
	struct dcb_app port = {.selector = 3, .priority = 4, .protocol = 4791};
	size_t ieee, table;

	for (int i = 0; i < 8; i++)
		ets.prio_tc[i] = (uint8_t)i;
	m->len = sizeof(head);
	memcpy(m->bytes, &head, sizeof(head));
	put(m, DCB_ATTR_IFNAME, "eth0", 5);
	ieee = begin(m, DCB_ATTR_IEEE);
	put(m, DCB_ATTR_IEEE_ETS, &ets, sizeof(ets));
	put(m, DCB_ATTR_IEEE_PFC, &pfc, sizeof(pfc));
	table = begin(m, DCB_ATTR_IEEE_APP_TABLE);
	put(m, DCB_ATTR_IEEE_APP, &dscp, sizeof(dscp));
	put(m, DCB_ATTR_IEEE_APP, &port, sizeof(port));
	end(m, table);
	table = begin(m, TRUST_TABLE);
	put_number(m, 1, 5, 1);
	end(m, table);
	end(m, ieee);
	put_number(m, DCB_ATTR_DCBX, 9, 1);
}

static void test_dcb(void **state)
{
	struct msg m = {.len = 0};
	struct vrb_dcb dcb;
	char *text;

	(void)state;
	make_dcb(&m);
	text = text_of(vrb_dcb_to_text, &m, m.len);
	assert_non_null(strstr(text, "ets tc 3 bw 70 tsa 2\n"));
	assert_non_null(strstr(text, "map 7 7\n"));
	assert_non_null(strstr(text, "pfc 00010000\napp 5 26 3\napp 3 4791 4\ntrust 5\ndcbx 9\n"));
	vrb_dcb_parse(&dcb, text);
	assert_true(dcb.has_pfc && dcb.has_ets && dcb.has_trust && dcb.trusts_dscp);
	assert_int_equal(dcb.pfc, 1 << 3);
	assert_int_equal(dcb.by_dscp[26], 3);
	assert_int_equal(dcb.by_dscp[0], -1);
	assert_int_equal(dcb.by_port, 4);
	assert_int_equal(dcb.bandwidth[3], 70);
	assert_int_equal(dcb.class_of[7], 7);
	assert_int_equal(dcb.dcbx, 9);
	free(text);
}

static void put_qp(struct msg *m, uint32_t qpn, uint8_t type, uint8_t qp_state, uint32_t pid)
{
	size_t row = begin(m, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

	put_number(m, RDMA_NLDEV_ATTR_RES_LQPN, qpn, 4);
	put_number(m, RDMA_NLDEV_ATTR_RES_TYPE, type, 1);
	put_number(m, RDMA_NLDEV_ATTR_RES_STATE, qp_state, 1);
	if (pid)
		put_number(m, RDMA_NLDEV_ATTR_RES_PID, pid, 4);
	else
		put(m, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core", 8);
	end(m, row);
}

static void make_objects(struct msg *m)
{
	size_t table, row;

	m->len = 0;
	put_number(m, RDMA_NLDEV_ATTR_DEV_INDEX, 0, 4);
	put(m, RDMA_NLDEV_ATTR_DEV_NAME, "rxe0", 5);
	table = begin(m, RDMA_NLDEV_ATTR_RES_QP);
	put_qp(m, 1, 1, 3, 0);
	put_qp(m, 17, 2, 6, 99);
	put_qp(m, 18, 2, 1, 99);
	end(m, table);
	table = begin(m, RDMA_NLDEV_ATTR_RES_CQ);
	row = begin(m, RDMA_NLDEV_ATTR_RES_CQ_ENTRY);
	put_number(m, RDMA_NLDEV_ATTR_RES_CQN, 5, 4);
	put_number(m, RDMA_NLDEV_ATTR_RES_PID, 99, 4);
	end(m, row);
	end(m, table);
	table = begin(m, RDMA_NLDEV_ATTR_RES_MR);
	row = begin(m, RDMA_NLDEV_ATTR_RES_MR_ENTRY);
	put_number(m, RDMA_NLDEV_ATTR_RES_MRN, 2, 4);
	put_number(m, RDMA_NLDEV_ATTR_RES_MRLEN, 65536, 8);
	put_number(m, RDMA_NLDEV_ATTR_RES_PID, 99, 4);
	end(m, row);
	end(m, table);
}

static void test_objects(void **state)
{
	static struct vrb_objects o;
	struct msg m;
	char *text;

	(void)state;
	make_objects(&m);
	text = text_of(vrb_objects_to_text, &m, m.len);
	assert_string_equal(text, "qp 1 type 1 state 3 kernel ib_core\n"
				  "qp 17 type 2 state 6 pid 99\n"
				  "qp 18 type 2 state 1 pid 99\n"
				  "cq 5 pid 99\n"
				  "mr 2 bytes 65536 pid 99\n");
	vrb_objects_parse(&o, text);
	free(text);
	assert_int_equal(o.n, 2);
	assert_int_equal(o.qps, 3);
	assert_string_equal(o.owner[0].name, "ib_core");
	assert_int_equal(o.owner[1].pid, 99);
	assert_int_equal(o.owner[1].qps, 2);
	assert_int_equal(o.owner[1].cqs, 1);
	assert_int_equal(o.owner[1].mrs, 1);
	assert_int_equal(o.owner[1].bytes, 65536);
	assert_int_equal(o.owner[1].failed_qpn, 17);
	assert_int_equal(o.owner[1].waiting_qpn, 18);
}

static void test_cut(void **state)
{
	struct msg dcb = {.len = 0}, objects;

	(void)state;
	make_dcb(&dcb);
	make_objects(&objects);
	for (size_t len = 0; len < dcb.len; len++)
		free(text_of(vrb_dcb_to_text, &dcb, len));
	for (size_t len = 0; len < objects.len; len++)
		free(text_of(vrb_objects_to_text, &objects, len));
}

static void test_noise(void **state)
{
	static struct vrb_objects o;
	struct vrb_dcb dcb;
	uint32_t x = 12345;

	(void)state;
	for (int run = 0; run < NOISE_RUNS; run++) {
		struct msg m;
		char *text;

		if (run & 1)
			make_dcb(&m);
		else
			make_objects(&m);
		for (int i = 0; i < 4; i++) {
			x = x * 1664525u + 1013904223u;
			m.bytes[(x >> 8) % m.len] = (uint8_t)(x >> 24);
		}
		text = text_of(run & 1 ? vrb_dcb_to_text : vrb_objects_to_text, &m, m.len);
		if (run & 1)
			vrb_dcb_parse(&dcb, text);
		else
			vrb_objects_parse(&o, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dcb),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_noise),
	};

	return VRB_RUN_TESTS(tests);
}
