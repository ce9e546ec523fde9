/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the connection manager: each one in the captures of tests/data/pcaps (the Linux
 * kernel's) is parsed and emitted again byte for byte, the kernel's own refusal is what we answer
 * to the same REQ, and nothing that a stranger writes reads or writes beyond the 256 bytes.
 */
#include "support/test.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/names.h"
#include "support/pcap.h"
#include "wire/mad.h"
#include "wire/net.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#define KIND_MAX 0x20u

static unsigned seen[KIND_MAX];

/* The MAD in a frame, or NULL. */
static const uint8_t *mad_of(const struct pcap_frame *f, struct vrb_pkt *pkt)
{
	const uint8_t *packet;
	struct vrb_net net;
	size_t len;

	if (vrb_net_parse(f->ip, f->len, &net, &packet, &len) != VRB_OK ||
	    vrb_pkt_parse(packet, len - VRB_ICRC_LEN, pkt, NULL) != VRB_OK ||
	    pkt->dqpn != VRB_GSI_QPN)
		return NULL;
	assert_int_equal(pkt->op.v, VRB_TP_UD | VRB_OP_SEND_ONLY);
	assert_int_equal(pkt->qkey, VRB_GSI_QKEY);
	assert_int_equal(pkt->sqpn, VRB_GSI_QPN);
	assert_int_equal(pkt->len, VRB_MAD_LEN);
	assert_true(pkt->flags & VRB_PKT_ACKREQ);
	return pkt->payload;
}

static void check_mad(const char *path, const uint8_t *mad)
{
	uint8_t again[VRB_MAD_LEN];
	struct vrb_cm cm;

	assert_int_equal(vrb_cm_parse(mad, VRB_MAD_LEN, &cm, NULL), VRB_OK);
	assert_true(vrb_cm_emit(&cm, again));
	for (unsigned i = 0; i < VRB_MAD_LEN; i++)
		if (again[i] != mad[i])
			fail_msg("%s, message 0x%x: byte %u is 0x%02x, was 0x%02x", path, cm.kind,
				 i, again[i], mad[i]);
	seen[cm.kind]++;
}

static void test_captures(void **state)
{
	static const unsigned want[] = {VRB_CM_REQ,  VRB_CM_REJ,  VRB_CM_REP,	   VRB_CM_RTU,
					VRB_CM_DREQ, VRB_CM_DREP, VRB_CM_SIDR_REQ, VRB_CM_SIDR_REP};
	glob_t g;

	(void)state;
	assert_int_equal(glob(VRB_TEST_DATA "/pcaps/cm-*.pcap", 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct pcap_frame f;
		struct vrb_pkt pkt;
		struct pcap p;

		assert_true(pcap_open(&p, g.gl_pathv[i]));
		while (pcap_next(&p, &f)) {
			const uint8_t *mad = mad_of(&f, &pkt);

			if (mad)
				check_mad(g.gl_pathv[i], mad);
		}
		pcap_close(&p);
	}
	globfree(&g);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		if (!seen[want[i]])
			fail_msg("no capture holds message 0x%x", want[i]);
}

/* The n-th MAD (from 0) of a capture, copied. */
static void read_mad(const char *name, unsigned n, uint8_t out[VRB_MAD_LEN])
{
	char path[512];
	struct pcap_frame f;
	struct vrb_pkt pkt;
	struct pcap p;

	snprintf(path, sizeof(path), VRB_TEST_DATA "/pcaps/%s", name);
	assert_true(pcap_open(&p, path));
	while (pcap_next(&p, &f)) {
		const uint8_t *mad = mad_of(&f, &pkt);

		if (!mad || n--)
			continue;
		memcpy(out, mad, VRB_MAD_LEN);
		pcap_close(&p);
		return;
	}
	fail_msg("%s has too few messages", name);
}

/* What the kernel has answered to the kernel is what we answer. */
static void test_refusal(void **state)
{
	uint8_t req[VRB_MAD_LEN], rej[VRB_MAD_LEN], ours[VRB_MAD_LEN];
	struct vrb_cm cm, answer;

	(void)state;
	read_mad("cm-reject.pcap", 0, req);
	read_mad("cm-reject.pcap", 1, rej);
	assert_int_equal(vrb_cm_parse(req, sizeof(req), &cm, NULL), VRB_OK);
	assert_true(vrb_cm_refuse_service(&cm, &answer));
	assert_true(vrb_cm_emit(&answer, ours));
	assert_memory_equal(ours, rej, sizeof(rej));
	assert_false(vrb_cm_refuse_service(&answer, &cm));
}

static void test_sidr_refusal(void **state)
{
	uint8_t req[VRB_MAD_LEN], rep[VRB_MAD_LEN], ours[VRB_MAD_LEN];
	struct vrb_cm cm, answer;

	(void)state;
	read_mad("cm-udaddy.pcap", 0, req);
	read_mad("cm-udaddy.pcap", 1, rep);
	assert_int_equal(vrb_cm_parse(req, sizeof(req), &cm, NULL), VRB_OK);
	assert_true(vrb_cm_refuse_service(&cm, &answer));
	/* the kernel's says yes, with a queue pair and its key */
	answer.status = VRB_CM_SIDR_VALID;
	answer.qpn = 0x28;
	answer.qkey = 0x01234567;
	assert_true(vrb_cm_emit(&answer, ours));
	assert_memory_equal(ours, rep, sizeof(rep));
}

/* Values that the captures' kernel has: tshark and rdma-core's own messages say the same. */
static void test_req_values(void **state)
{
	uint8_t req[VRB_MAD_LEN];
	struct vrb_cm c;

	(void)state;
	read_mad("cm-rping.pcap", 0, req);
	assert_int_equal(vrb_cm_parse(req, sizeof(req), &c, NULL), VRB_OK);
	assert_int_equal(c.kind, VRB_CM_REQ);
	assert_int_equal(c.local_id, 0xd54ec02e);
	assert_int_equal(c.service_id, 0x0000000001061c06); /* port 7174 */
	assert_int_equal(c.qpn, 0x25);
	assert_int_equal(c.psn.v, 0x92ce18);
	assert_int_equal(c.resources, 1);
	assert_int_equal(c.depth, 1);
	assert_int_equal(c.remote_timeout, 20);
	assert_int_equal(c.local_timeout, 20);
	assert_int_equal(c.max_retries, 15);
	assert_int_equal(c.retry, 7);
	assert_int_equal(c.rnr_retry, 7);
	assert_int_equal(c.mtu, 3);
	assert_int_equal(c.pkey, 0xffff);
	assert_int_equal(c.path.flow_label, 0xafc16);
	assert_int_equal(c.path.hop_limit, 64);
	assert_int_equal(c.path.ack_timeout, 19);
	assert_int_equal(c.path.local.raw[15], 2);
	assert_int_equal(c.path.remote.raw[15], 3);
	assert_int_equal(c.data_len, 92);
	assert_int_equal(c.data[1], 0x40); /* IP version 4 */
}

/* Kinds of which no capture is at hand: what is emitted is parsed. */
static void test_others(void **state)
{
	static const uint8_t info[3] = {1, 2, 3};
	uint8_t bytes[VRB_MAD_LEN], data[224];
	struct vrb_cm c = {.kind = VRB_CM_MRA,
			   .tid = 0x1122334455667788,
			   .local_id = 0x01020304,
			   .remote_id = 0xf5060708,
			   .about = VRB_CM_ABOUT_REP,
			   .service_timeout = 21,
			   .data = data,
			   .data_len = 222},
		      again;

	(void)state;
	memset(data, 0xa5, sizeof(data));
	assert_true(vrb_cm_emit(&c, bytes));
	assert_int_equal(bytes[VRB_MAD_AT_REMOTE_ID], 0xf5);
	assert_int_equal(vrb_cm_parse(bytes, sizeof(bytes), &again, NULL), VRB_OK);
	again.data = data;
	assert_memory_equal(&again, &c, sizeof(c));
	c = (struct vrb_cm){.kind = VRB_CM_REJ,
			    .remote_id = 7,
			    .about = VRB_CM_ABOUT_REQ,
			    .reason = VRB_CM_REJ_CONSUMER,
			    .info = info,
			    .info_len = sizeof(info),
			    .data = data,
			    .data_len = 148};
	assert_true(vrb_cm_emit(&c, bytes));
	assert_int_equal(vrb_cm_parse(bytes, sizeof(bytes), &again, NULL), VRB_OK);
	assert_memory_equal(again.info, info, sizeof(info));
	again.info = info;
	again.data = data;
	assert_memory_equal(&again, &c, sizeof(c));
}

static void test_room(void **state)
{
	uint8_t bytes[VRB_MAD_LEN], data[VRB_MAD_LEN] = {0};
	struct vrb_cm c = {.data = data, .info = data};
	char name[16];
	struct vrb_text t;

	(void)state;
	for (unsigned kind = 0; kind < KIND_MAX; kind++) {
		uint32_t room = vrb_cm_data_max(kind);

		c.kind = (enum vrb_cm_kind)kind;
		c.data_len = room;
		assert_int_equal(vrb_cm_emit(&c, bytes), room > 0);
		c.data_len = room + 1;
		assert_false(vrb_cm_emit(&c, bytes));
		vrb_text_init(&t, name, sizeof(name));
		assert_true(vrb_name_put(&t, 'c', kind));
		assert_int_equal(name[0] >= 'A', room > 0);
	}
	c.kind = VRB_CM_REJ;
	c.data_len = 0;
	c.info_len = 73;
	assert_false(vrb_cm_emit(&c, bytes));
}

static enum vrb_verdict verdict_of(const uint8_t *bytes, size_t len, struct vrb_report *why)
{
	struct vrb_cm c;

	*why = (struct vrb_report){0};
	assert_int_equal(vrb_cm_parse(bytes, len, &c, NULL), vrb_cm_parse(bytes, len, &c, why));
	return why->verdict;
}

static void test_hostile(void **state)
{
	uint8_t good[VRB_MAD_LEN], bytes[VRB_MAD_LEN];
	struct vrb_report why;
	struct vrb_cm c;

	(void)state;
	read_mad("cm-rping.pcap", 0, good);
	for (size_t len = 0; len < VRB_MAD_LEN; len++) {
		/* of its own length, so that a sanitizer sees what is read beyond */
		uint8_t *copy = malloc(len + !len);

		assert_non_null(copy);
		memcpy(copy, good, len);
		assert_int_equal(verdict_of(copy, len, &why), VRB_V_DROP_MAD);
		assert_int_equal(why.val[0], len);
		free(copy);
	}
	for (unsigned i = 0; i < 4; i++) {
		memcpy(bytes, good, sizeof(bytes));
		bytes[i] ^= 0x81;
		assert_int_equal(verdict_of(bytes, sizeof(bytes), &why), VRB_V_DROP_MAD);
		assert_int_equal(why.val[1 + i], bytes[i]);
	}
	memcpy(bytes, good, sizeof(bytes));
	for (unsigned kind = 0; kind < 0x10000; kind++) {
		vrb_put_be16(bytes + VRB_MAD_AT_ATTRIBUTE, kind);
		if (vrb_cm_data_max(kind))
			continue;
		assert_int_equal(verdict_of(bytes, sizeof(bytes), &why), VRB_V_DROP_CM_KIND);
		assert_int_equal(why.val[0], kind);
	}
	/* additional information of more bytes than there are */
	memset(bytes + VRB_MAD_HEADER_LEN, 0xff, VRB_MAD_LEN - VRB_MAD_HEADER_LEN);
	vrb_put_be16(bytes + VRB_MAD_AT_ATTRIBUTE, VRB_CM_REJ);
	assert_int_equal(vrb_cm_parse(bytes, sizeof(bytes), &c, NULL), VRB_OK);
	assert_int_equal(c.info_len, 72);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captures),     cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_sidr_refusal), cmocka_unit_test(test_req_values),
		cmocka_unit_test(test_others),	     cmocka_unit_test(test_room),
		cmocka_unit_test(test_hostile),
	};

	return VRB_RUN_TESTS(tests);
}
