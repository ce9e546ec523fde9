/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/doctor_dcb.h"

#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROCE_PORT   4791
#define ALGORITHMS  256
#define TRUST_TABLE 11 /* DCB_ATTR_DCB_APP_TRUST_TABLE, which older headers do not have */
#define ANSWERS_MAX 1024

static void put_ets(FILE *out, const struct vrb_nl_attr *a)
{
	struct ieee_ets ets;

	if (a->len < sizeof(ets))
		return;
	memcpy(&ets, a->data, sizeof(ets));
	for (int i = 0; i < VRB_PRIORITIES; i++)
		fprintf(out, "ets tc %d bw %u tsa %u\n", i, ets.tc_tx_bw[i], ets.tc_tsa[i]);
	for (int i = 0; i < VRB_PRIORITIES; i++)
		fprintf(out, "map %d %u\n", i, ets.prio_tc[i]);
}

static void put_pfc(FILE *out, const struct vrb_nl_attr *a)
{
	char digits[VRB_PRIORITIES + 1] = "";
	struct ieee_pfc pfc;

	if (a->len < sizeof(pfc))
		return;
	memcpy(&pfc, a->data, sizeof(pfc));
	for (int i = 0; i < VRB_PRIORITIES; i++)
		digits[i] = pfc.pfc_en & 1u << i ? '1' : '0';
	fprintf(out, "pfc %s\n", digits);
}

static void put_apps(FILE *out, const struct vrb_nl_attr *table)
{
	struct vrb_nl_part rows = vrb_nl_nested(table);
	struct vrb_nl_attr a;
	struct dcb_app app;

	for (int i = 0; i < ANSWERS_MAX && vrb_nl_next(&rows, &a); i++) {
		if (a.type != DCB_ATTR_IEEE_APP || a.len < sizeof(app))
			continue;
		memcpy(&app, a.data, sizeof(app));
		fprintf(out, "app %u %u %u\n", app.selector, app.protocol, app.priority);
	}
}

static void put_trust(FILE *out, const struct vrb_nl_attr *table)
{
	struct vrb_nl_part rows = vrb_nl_nested(table);
	struct vrb_nl_attr a;

	for (int i = 0; i < ANSWERS_MAX && vrb_nl_next(&rows, &a); i++)
		fprintf(out, "trust %u\n", (unsigned)vrb_nl_number(&a));
}

static void put_ieee(FILE *out, const struct vrb_nl_attr *table)
{
	struct vrb_nl_part rows = vrb_nl_nested(table);
	struct vrb_nl_attr a;

	for (int i = 0; i < ANSWERS_MAX && vrb_nl_next(&rows, &a); i++) {
		if (a.type == DCB_ATTR_IEEE_ETS)
			put_ets(out, &a);
		else if (a.type == DCB_ATTR_IEEE_PFC)
			put_pfc(out, &a);
		else if (a.type == DCB_ATTR_IEEE_APP_TABLE)
			put_apps(out, &a);
		else if (a.type == TRUST_TABLE)
			put_trust(out, &a);
	}
}

void vrb_dcb_to_text(FILE *out, struct vrb_nl_part body)
{
	struct vrb_nl_attr a;

	if (body.left < sizeof(struct dcbmsg))
		return;
	body.at += sizeof(struct dcbmsg);
	body.left -= sizeof(struct dcbmsg);
	for (int i = 0; i < ANSWERS_MAX && vrb_nl_next(&body, &a); i++) {
		if (a.type == DCB_ATTR_DCBX)
			fprintf(out, "dcbx %u\n", (unsigned)vrb_nl_number(&a));
		else if (a.type == DCB_ATTR_IEEE)
			put_ieee(out, &a);
	}
}

static void heard(void *arg, struct vrb_nl_part body)
{
	vrb_dcb_to_text(arg, body);
}

static void ask_dcb(FILE *out, const char *netdev)
{
	struct {
		struct dcbmsg m;
		struct nlattr a;
		char name[IFNAMSIZ];
	} q = {.m = {.dcb_family = AF_UNSPEC, .cmd = DCB_CMD_IEEE_GET},
	       .a = {.nla_type = DCB_ATTR_IFNAME}};
	struct vrb_nl_question ask = {.type = RTM_GETDCB};
	int fd = vrb_nl_open(NETLINK_ROUTE);
	size_t len = strlen(netdev) + 1;

	if (fd < 0)
		return;
	if (len <= sizeof(q.name)) {
		memcpy(q.name, netdev, len);
		q.a.nla_len = (uint16_t)(NLA_HDRLEN + len);
		ask.body = (struct vrb_nl_part){(uint8_t *)&q, sizeof(q.m) + NLA_HDRLEN + len};
		(void)vrb_nl_ask(fd, &ask, heard, out);
	}
	close(fd);
}

static void ask_pause(FILE *out, const char *netdev)
{
	struct ethtool_pauseparam p = {.cmd = ETHTOOL_GPAUSEPARAM};
	struct ifreq r = {.ifr_data = (char *)&p};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", netdev);
	if (fd >= 0 && !ioctl(fd, SIOCETHTOOL, &r))
		fprintf(out, "pause rx %d tx %d\n", !!p.rx_pause, !!p.tx_pause);
	if (fd >= 0)
		close(fd);
}

static char *ask_kernel(const struct vrb_doc *d, const char *netdev)
{
	char *text = NULL, path[64];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	ask_pause(out, netdev);
	ask_dcb(out, netdev);
	fclose(out);
	snprintf(path, sizeof(path), "/dcb/%s", netdev);
	if (text && len)
		vrb_record_file(d, path, text, len);
	return text;
}

static void parse_app(struct vrb_dcb *out, unsigned selector, unsigned value, unsigned priority)
{
	if (priority >= VRB_PRIORITIES)
		return;
	if (selector == IEEE_8021QAZ_APP_SEL_DSCP && value < VRB_DSCPS) {
		/* of two rows the higher priority acts */
		if (out->by_dscp[value] < (int)priority)
			out->by_dscp[value] = (int8_t)priority;
		/* rows are what makes a driver without a table of trust look at DSCP */
		out->trusts_dscp = out->trusts_dscp || !out->has_trust;
	} else if ((selector == IEEE_8021QAZ_APP_SEL_DGRAM ||
		    selector == IEEE_8021QAZ_APP_SEL_ANY) &&
		   value == ROCE_PORT) {
		out->by_port = (int8_t)priority;
	} else if (selector == IEEE_8021QAZ_APP_SEL_ETHERTYPE && !value) {
		out->by_default = (int8_t)priority;
	}
}

static void parse_line(struct vrb_dcb *out, const char *line)
{
	char digits[VRB_PRIORITIES + 1];
	unsigned a, b, c;

	if (sscanf(line, "pause rx %u tx %u", &a, &b) == 2) {
		out->has_pause = true;
		out->pause_rx = a;
		out->pause_tx = b;
	} else if (sscanf(line, "dcbx %u", &a) == 1) {
		out->dcbx = a;
	} else if (sscanf(line, "ets tc %u bw %u tsa %u", &a, &b, &c) == 3) {
		if (a >= VRB_PRIORITIES || b > 100 || c >= ALGORITHMS)
			return;
		out->has_ets = true;
		out->bandwidth[a] = (uint8_t)b;
		out->algorithm[a] = (uint8_t)c;
	} else if (sscanf(line, "map %u %u", &a, &b) == 2) {
		if (a < VRB_PRIORITIES && b < VRB_PRIORITIES)
			out->class_of[a] = (uint8_t)b;
	} else if (sscanf(line, "pfc %8[01]", digits) == 1) {
		out->has_pfc = true;
		for (int i = 0; digits[i]; i++)
			out->pfc |= digits[i] == '1' ? (uint8_t)(1u << i) : 0;
	} else if (sscanf(line, "app %u %u %u", &a, &b, &c) == 3) {
		parse_app(out, a, b, c);
	} else if (sscanf(line, "trust %u", &a) == 1) {
		out->trusts_dscp =
			(out->has_trust && out->trusts_dscp) || a == IEEE_8021QAZ_APP_SEL_DSCP;
		out->has_trust = true;
	}
}

void vrb_dcb_parse(struct vrb_dcb *out, char *text)
{
	char *cursor = text, *line;

	memset(out, 0, sizeof(*out));
	memset(out->by_dscp, -1, sizeof(out->by_dscp));
	out->by_port = out->by_default = -1;
	while ((line = vrb_doc_next_line(&cursor)))
		parse_line(out, line);
}

bool vrb_doc_dcb(const struct vrb_doc *d, const char *netdev, struct vrb_dcb *out)
{
	char *text = d->root[0] ? vrb_doc_slurp(d, "/dcb/%s", netdev) : ask_kernel(d, netdev);
	bool known = text && *text;

	if (known)
		vrb_dcb_parse(out, text);
	free(text);
	return known;
}
