/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena devinfo`: the devices and their GID tables, asked by the public verbs API. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#include "link/profile.h"
#include "tools/out.h"
#include "tools/tools.h"

static const char *gid_type_name(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "IB";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	}
	return "?";
}

static const char *netdev_name(uint32_t ifindex, char *buf)
{
	return if_indextoname(ifindex, buf) ? buf : "-";
}

static json_t *describe_gids(struct ibv_context *ctx, int table_len)
{
	json_t *gids = json_array();

	for (int i = 0; i < table_len; i++) {
		char text[INET6_ADDRSTRLEN], ifname[64];
		struct ibv_gid_entry e;

		if (ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0))
			continue;
		inet_ntop(AF_INET6, e.gid.raw, text, sizeof(text));
		json_array_append_new(gids,
				      json_pack("{s:i, s:s, s:s, s:s}", "index", i, "gid", text,
						"type", gid_type_name(e.gid_type), "netdev",
						netdev_name(e.ndev_ifindex, ifname)));
	}
	return gids;
}

/* Of this process, and of all that are started in the same environment. */
static const char *profile_name(void)
{
	static struct vrb_profile p;
	struct vrb_profile_error err;

	(void)vrb_profile_load(getenv(VRB_PROFILE_ENV), &p, &err);
	return p.name;
}

static json_t *describe_device(struct ibv_device *dev)
{
	struct ibv_context *ctx = ibv_open_device(dev);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	json_t *d = NULL;
	char guid[20];

	if (!ctx) {
		vrb_complain("cannot open %s: %s", ibv_get_device_name(dev), strerror(errno));
		return NULL;
	}
	if (ibv_query_device(ctx, &attr) || ibv_query_port(ctx, 1, &port)) {
		vrb_complain("cannot query %s", ibv_get_device_name(dev));
	} else {
		snprintf(guid, sizeof(guid), "%016llx",
			 (unsigned long long)be64toh(attr.node_guid));
		d = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:o}",
			      "device", ibv_get_device_name(dev), "profile", profile_name(),
			      "state", ibv_port_state_str(port.state), "guid", guid, "mtu",
			      128 << port.active_mtu, "max_mtu", 128 << port.max_mtu, "firmware",
			      attr.fw_ver, "max_qp", attr.max_qp, "max_qp_wr", attr.max_qp_wr,
			      "max_sge", attr.max_sge, "max_cq", attr.max_cq, "max_mr", attr.max_mr,
			      "gids", describe_gids(ctx, port.gid_tbl_len));
	}
	ibv_close_device(ctx);
	return d;
}

static void print_tables(json_t *devices)
{
	json_t *rows = json_array(), *d, *g;
	size_t i, k;

	json_array_foreach(devices, i, d)
	{
		json_t *row = json_copy(d);

		json_object_del(row, "gids");
		json_object_del(row, "max_cq");
		json_object_del(row, "max_mr");
		json_array_append_new(rows, row);
	}
	vrb_out_table(stdout, rows);
	json_array_clear(rows);
	json_array_foreach(devices, i, d)
	{
		json_array_foreach(json_object_get(d, "gids"), k, g)
		{
			json_t *row = json_pack("{s:O}", "device", json_object_get(d, "device"));

			json_object_update(row, g);
			json_array_append_new(rows, row);
		}
	}
	putchar('\n');
	vrb_out_table(stdout, rows);
	json_decref(rows);
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct ibv_device **list;
	json_t *devices;
	bool json = false;
	int opt, n = 0;

	while ((opt = vrb_opt_next(&vrb_cmd_devinfo, argc, argv, "jh", longs)) != -1) {
		if (opt != 'j')
			return vrb_opt_exit(opt);
		json = true;
	}
	list = ibv_get_device_list(&n);
	if (!list) {
		vrb_complain("cannot list devices: %s", strerror(errno));
		return VRB_EXIT_FAILED;
	}
	devices = json_array();
	for (int i = 0; i < n; i++) {
		json_t *d = describe_device(list[i]);

		if (d && (optind == argc || !strcmp(argv[optind], ibv_get_device_name(list[i]))))
			json_array_append(devices, d);
		json_decref(d);
	}
	ibv_free_device_list(list);
	n = (int)json_array_size(devices);
	if (json)
		vrb_out_json(stdout, devices);
	else if (n)
		print_tables(devices);
	else if (optind < argc)
		vrb_complain("there is no device %s", argv[optind]);
	else
		vrb_complain("no device: no network interface is up and has an address; as root, "
			     "or inside `unshare -rn`: ip link set lo up");
	json_decref(devices);
	return n ? VRB_EXIT_OK : VRB_EXIT_FAILED;
}

const struct vrb_command vrb_cmd_devinfo = {
	.name = "devinfo",
	.summary = "show the devices and their GID tables",
	.usage = "[--json] [DEVICE]\n\n"
		 "  -j, --json  as JSON\n",
	.run = run,
};
