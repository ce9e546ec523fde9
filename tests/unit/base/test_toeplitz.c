/* SPDX-License-Identifier: BSD-2-Clause */
/* The vectors that Microsoft published for receive side scaling ("Verifying the RSS Hash
 * Calculation"), and that parts add up. */
#include "support/test.h"

#include "base/toeplitz.h"

#include <arpa/inet.h>
#include <string.h>

static const struct vector {
	const char *dst, *src;
	uint16_t dst_port, src_port;
	uint32_t with_ports, addresses;
} vectors[] = {
	{"161.142.100.80", "66.9.149.187", 1766, 2794, 0x51ccc178, 0x323e8fc2},
	{"65.69.140.83", "199.92.111.2", 4739, 14230, 0xc626b0ea, 0xd718262a},
	{"12.22.207.184", "24.19.198.95", 38024, 12898, 0x5c2b394a, 0xd2d0a5de},
	{"209.142.163.6", "38.27.205.30", 2217, 48228, 0xafc7327f, 0x82989176},
	{"202.188.127.2", "153.39.163.191", 1303, 44251, 0x10e828a2, 0x5d1809c5},
	{"3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x40207d3d, 0x2cc18cd5},
	{"ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0xdde51bbf, 0x0f0c461c},
	{"fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
	 0x02d1feef, 0x4b61e985},
};

static uint32_t build(const struct vector *v, uint8_t in[VRB_TOEPLITZ_MAX])
{
	int family = strchr(v->dst, ':') ? AF_INET6 : AF_INET;
	uint32_t n = family == AF_INET ? 4 : 16;
	uint16_t ports[2] = {htons(v->src_port), htons(v->dst_port)};

	assert_int_equal(inet_pton(family, v->src, in), 1);
	assert_int_equal(inet_pton(family, v->dst, in + n), 1);
	memcpy(in + 2 * n, ports, sizeof(ports));
	return n;
}

static void test_published(void **state)
{
	uint8_t in[VRB_TOEPLITZ_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		uint32_t n = build(&vectors[i], in);

		assert_int_equal(vrb_toeplitz(vrb_toeplitz_key, 0, in, 2 * n),
				 vectors[i].addresses);
		assert_int_equal(vrb_toeplitz(vrb_toeplitz_key, 0, in, 2 * n + 4),
				 vectors[i].with_ports);
	}
}

static void test_parts(void **state)
{
	uint8_t in[VRB_TOEPLITZ_MAX];
	uint32_t whole;

	(void)state;
	(void)build(&vectors[7], in);
	whole = vrb_toeplitz(vrb_toeplitz_key, 0, in, sizeof(in));
	for (uint32_t cut = 0; cut <= sizeof(in); cut++)
		assert_int_equal(vrb_toeplitz(vrb_toeplitz_key, 0, in, cut) ^
					 vrb_toeplitz(vrb_toeplitz_key, cut, in + cut,
						      (uint32_t)sizeof(in) - cut),
				 whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
