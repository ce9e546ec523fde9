/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a frame (from the IP header), as a packet (from the BTH) and as a message of the
 * connection manager: nothing is read beyond them, and what parses is the same again when emitted
 * and parsed.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/net.h"
#include "wire/pkt.h"
#include "wire/roce.h"

static void same_again(const struct vrb_pkt *pkt)
{
	uint8_t bytes[VRB_ROCE_PACKET_MAX + VRB_HEADERS_MAX];
	size_t n = vrb_pkt_emit_headers(pkt, bytes), len;
	struct vrb_pkt again;

	FZ_CHECK(n <= VRB_HEADERS_MAX);
	len = n + pkt->len + vrb_pkt_pad(pkt->len);
	if (pkt->len)
		memcpy(bytes + n, pkt->payload, pkt->len);
	memset(bytes + n + pkt->len, 0, vrb_pkt_pad(pkt->len));
	FZ_CHECK(vrb_pkt_parse(bytes, len, &again, NULL) == VRB_OK);
	FZ_CHECK(again.payload == bytes + n);
	again.payload = pkt->payload;
	FZ_CHECK(memcmp(&again, pkt, sizeof(again)) == 0);
}

static void packet(const uint8_t *bytes, size_t len)
{
	struct vrb_report why = {0};
	struct vrb_pkt pkt;
	char line[300];

	if (vrb_pkt_parse(bytes, len, &pkt, &why) != VRB_OK) {
		FZ_CHECK(why.verdict != VRB_OK);
		vrb_verdict_format(line, sizeof(line), &why);
		return;
	}
	FZ_CHECK(pkt.payload >= bytes && pkt.payload + pkt.len + pkt.pad == bytes + len);
	FZ_CHECK(vrb_pkt_dump(line, sizeof(line), &pkt) < sizeof(line));
	vrb_pkt_dump(line, 20, &pkt);
	same_again(&pkt);
}

/* A socket hides "do not fragment", too: one of both ways must be right. */
static bool fits(const uint8_t *data, const uint8_t *bytes, size_t len, uint16_t ip_id)
{
	uint8_t again[VRB_IPV4_LEN + VRB_UDP_LEN];
	bool right = false;

	memcpy(again, data, sizeof(again));
	again[VRB_IPV4_ID] = (uint8_t)(ip_id >> 8);
	again[VRB_IPV4_ID + 1] = (uint8_t)ip_id;
	for (int i = 0; i < 2; i++, again[VRB_IPV4_ID + 2] ^= 0x40)
		right |= vrb_icrc_check(again, sizeof(again), bytes, len, NULL) == VRB_OK;
	return right;
}

static void frame(const uint8_t *data, size_t size)
{
	uint8_t again[VRB_NET_MAX];
	struct vrb_report why;
	const uint8_t *bytes;
	struct vrb_net net;
	uint16_t ip_id;
	size_t len;

	if (vrb_net_parse(data, size, &net, &bytes, &len) != VRB_OK)
		return;
	FZ_CHECK(bytes > data && bytes + len <= data + size);
	/* an IPv6 packet may carry IPv4-mapped addresses; no frame of ours does */
	if ((data[0] >> 4 == 4) == vrb_gid_is_ipv4(&net.dst))
		FZ_CHECK(vrb_net_emit(&net, len, again) == (size_t)(bytes - data));
	vrb_icrc_check(data, (size_t)(bytes - data), bytes, len, &why);
	if (data[0] >> 4 == 4 && vrb_icrc_solve_ip_id(data, bytes, len, &ip_id, &why) == VRB_OK)
		FZ_CHECK(fits(data, bytes, len, ip_id));
	if (len >= VRB_ICRC_LEN)
		packet(bytes, len - VRB_ICRC_LEN);
}

/* Reserved bits are lost on the way; what was read is not. */
static void mad(const uint8_t *bytes, size_t len)
{
	uint8_t out[VRB_MAD_LEN], last[VRB_MAD_LEN];
	struct vrb_report why = {0};
	struct vrb_cm cm, again;

	if (vrb_cm_parse(bytes, len, &cm, &why) != VRB_OK) {
		FZ_CHECK(why.verdict == VRB_V_DROP_MAD || why.verdict == VRB_V_DROP_CM_KIND);
		return;
	}
	FZ_CHECK(cm.data > bytes && cm.data + cm.data_len == bytes + len);
	FZ_CHECK(!cm.info_len || cm.info + cm.info_len <= cm.data);
	FZ_CHECK(vrb_cm_emit(&cm, out));
	FZ_CHECK(vrb_cm_parse(out, sizeof(out), &again, NULL) == VRB_OK);
	FZ_CHECK(vrb_cm_emit(&again, last) && !memcmp(out, last, sizeof(out)));
	if (vrb_cm_refuse_service(&cm, &again))
		FZ_CHECK(vrb_cm_emit(&again, out));
}

/* A message, or its beginning with zeros behind it, without and within its packet. */
static void mads(const uint8_t *data, size_t size)
{
	uint8_t whole[VRB_MAD_LEN] = {1, 7, 2, 3};
	struct vrb_pkt pkt;

	mad(data, size);
	if (vrb_pkt_parse(data, size, &pkt, NULL) == VRB_OK)
		mad(pkt.payload, pkt.len);
	memcpy(whole + 4, data, size < sizeof(whole) - 4 ? size : sizeof(whole) - 4);
	mad(whole, sizeof(whole));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	frame(data, size);
	packet(data, size);
	mads(data, size);
	return 0;
}
