/* SPDX-License-Identifier: BSD-2-Clause */
/* IP and UDP headers: round trips, trailing bytes, every truncation, what is refused. */
#include "support/test.h"

#include <string.h>

#include "wire/net.h"
#include "wire/roce.h"

static const struct vrb_net v4 = {
	.src = {{[10] = 0xff, 0xff, 10, 0, 0, 1}},
	.dst = {{[10] = 0xff, 0xff, 10, 0, 0, 2}},
	.tclass = 0x68,
	.ttl = 64,
	.df = true,
	.ip_id = 0xbeef,
	.sport = 0xc123,
	.dport = 4791,
};

static const struct vrb_net v6 = {
	.src = {{0xfd, [15] = 1}},
	.dst = {{0xfd, [15] = 2}},
	.tclass = 0x68,
	.ttl = 3,
	.flow_label = 0xabcde,
	.sport = 0xc123,
	.dport = 4791,
	.udp_checksum = 0x1234,
};

static void round_trip(const struct vrb_net *n)
{
	uint8_t b[200] = {0};
	struct vrb_net out;
	const uint8_t *payload;
	size_t len, head = vrb_net_emit(n, 16, b);

	assert_int_equal(head, vrb_net_len(n));
	/* trailing bytes of a short Ethernet frame do not count */
	assert_int_equal(vrb_net_parse(b, head + 16 + 9, &out, &payload, &len), VRB_OK);
	assert_int_equal(len, 16);
	assert_ptr_equal(payload, b + head);
	assert_memory_equal(&out.src, &n->src, 16);
	assert_memory_equal(&out.dst, &n->dst, 16);
	assert_int_equal(out.tclass, n->tclass);
	assert_int_equal(out.ttl, n->ttl);
	assert_int_equal(out.df, n->df);
	assert_int_equal(out.ip_id, n->ip_id);
	assert_int_equal(out.flow_label, n->flow_label);
	assert_int_equal(out.sport, n->sport);
	assert_int_equal(out.dport, n->dport);
	assert_int_equal(out.udp_checksum, n->udp_checksum);
	for (size_t cut = 0; cut < head + 16; cut++)
		assert_int_equal(vrb_net_parse(b, cut, &out, &payload, &len), VRB_V_DROP_IP);
}

static void test_round_trips(void **state)
{
	(void)state;
	round_trip(&v4);
	round_trip(&v6);
}

/* Changes one byte of a good packet that must then be refused. */
static void refuse(const struct vrb_net *n, size_t at, uint8_t value)
{
	uint8_t b[200] = {0};
	struct vrb_net out;
	const uint8_t *payload;
	size_t len, head = vrb_net_emit(n, 16, b);

	b[at] = value;
	assert_int_equal(vrb_net_parse(b, head + 16, &out, &payload, &len), VRB_V_DROP_IP);
}

static void test_refusals(void **state)
{
	(void)state;
	refuse(&v4, 0, 0x46); /* options */
	refuse(&v4, 0, 0x55); /* version */
	refuse(&v4, 6, 0x60); /* more fragments */
	refuse(&v4, 7, 1);    /* fragment offset */
	refuse(&v4, 9, 6);    /* TCP */
	refuse(&v4, 10, 0);   /* header checksum */
	refuse(&v4, 25, 25);  /* UDP length */
	refuse(&v6, 5, 25);   /* payload length beyond the bytes */
	refuse(&v6, 6, 0);    /* hop-by-hop header */
	refuse(&v6, 45, 8);   /* UDP length */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_refusals),
	};

	return VRB_RUN_TESTS(tests);
}
