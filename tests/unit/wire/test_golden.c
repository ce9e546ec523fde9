/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Golden bytes: each packet of each capture in tests/data/pcaps is checked (ICRC), parsed, and
 * emitted again byte for byte, IP header and ICRC included. Together the captures hold every
 * opcode that this stack knows; the last test fails when one is missing.
 */
#include "support/test.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "support/pcap.h"
#include "wire/icrc.h"
#include "wire/net.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#define PACKETS_MIN 2497 /* in the captures of the kernel */

static unsigned seen[256], n_packets;

static size_t emit(const struct vrb_net *net, const struct vrb_pkt *pkt, uint8_t *out)
{
	struct vrb_seg seg = {pkt->payload, pkt->len};
	uint8_t headers[VRB_HEADERS_MAX];
	size_t n_headers = vrb_pkt_emit_headers(pkt, headers), n_net, len;
	uint32_t pad = vrb_pkt_pad(pkt->len), crc;

	len = n_headers + pkt->len + pad + VRB_ICRC_LEN;
	n_net = vrb_net_emit(net, len, out);
	memcpy(out + n_net, headers, n_headers);
	memcpy(out + n_net + n_headers, pkt->payload, pkt->len);
	memset(out + n_net + n_headers + pkt->len, 0, pad);
	crc = vrb_icrc_start(out, n_net, headers, n_headers);
	crc = vrb_icrc_add_payload(crc, &seg, 1, pkt->len);
	vrb_icrc_store(crc, out + n_net + len - VRB_ICRC_LEN);
	return n_net + len;
}

static void check_frame(const char *path, unsigned i, const struct pcap_frame *f)
{
	uint8_t out[VRB_FRAME_MAX];
	const uint8_t *packet;
	struct vrb_report why;
	struct vrb_net net;
	struct vrb_pkt pkt;
	char line[256];
	size_t len, n;

	if (vrb_net_parse(f->ip, f->len, &net, &packet, &len) != VRB_OK)
		fail_msg("%s packet %u: no UDP", path, i);
	if (vrb_icrc_check(f->ip, vrb_net_len(&net), packet, len, &why) != VRB_OK)
		fail_msg("%s packet %u: ICRC", path, i);
	if (vrb_gid_is_ipv4(&net.dst)) {
		uint16_t id;

		if (vrb_icrc_solve_ip_id(f->ip, packet, len, &id, &why) != VRB_OK ||
		    id != net.ip_id)
			fail_msg("%s packet %u: IP ID not solved", path, i);
	}
	if (vrb_pkt_parse(packet, len - VRB_ICRC_LEN, &pkt, &why) != VRB_OK)
		fail_msg("%s packet %u: verdict %s", path, i, vrb_verdict_info(why.verdict)->name);
	n = emit(&net, &pkt, out);
	vrb_pkt_dump(line, sizeof(line), &pkt);
	if (n != (size_t)(packet + len - f->ip) || memcmp(out, f->ip, n))
		fail_msg("%s packet %u: emitted otherwise: %s", path, i, line);
	seen[pkt.op.v]++;
	n_packets++;
}

static void test_captures(void **state)
{
	glob_t g;

	(void)state;
	assert_int_equal(glob(VRB_TEST_DATA "/pcaps/*.pcap", 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct pcap_frame f;
		struct pcap p;
		unsigned n = 0;

		assert_true(pcap_open(&p, g.gl_pathv[i]));
		while (pcap_next(&p, &f))
			check_frame(g.gl_pathv[i], ++n, &f);
		assert_true(n > 0);
		pcap_close(&p);
	}
	globfree(&g);
	assert_true(n_packets >= PACKETS_MIN);
}

static void test_every_opcode_seen(void **state)
{
	unsigned missing = 0;

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		struct vrb_opcode o = {(uint8_t)op};

		if (vrb_op_has(o, VRB_OPF_KNOWN) && !seen[op]) {
			print_error("no capture holds opcode 0x%02x, %s\n", op, vrb_op_name(o));
			missing++;
		}
	}
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captures),
		cmocka_unit_test(test_every_opcode_seen),
	};

	return VRB_RUN_TESTS(tests);
}
