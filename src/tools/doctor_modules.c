/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel modules, device nodes, rdma-core's libraries and providers: what gets a device to a
 * program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_read.h"

/* Ethernet drivers whose RDMA part is a module of its own, and the provider in user space. */
static const struct part {
	const char *driver, *module, *sysfs, *provider;
} parts[] = {
	{"mlx5_core", "mlx5_ib", "mlx5_ib", "mlx5"},
	{"mlx4_core", "mlx4_ib", "mlx4_ib", "mlx4"},
	{"bnxt_en", "bnxt_re", "bnxt_re", "bnxt_re"},
	{"ice", "irdma", "irdma", "irdma"},
	{"i40e", "irdma", "irdma", "irdma"},
	{"qede", "qedr", "qedr", "qedr"},
	{"hns3", "hns-roce-hw-v2", "hns_roce_hw_v2", "hns"},
	{"cxgb4", "iw_cxgb4", "iw_cxgb4", "cxgb4"},
	{"mana", "mana_ib", "mana_ib", "mana"},
	{"efa", "efa", "efa", "efa"},
};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static const char *const library_folders[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/lib/x86_64-linux-gnu",
	"/lib64",
	"/usr/local/lib",
};
#define N_FOLDERS (sizeof(library_folders) / sizeof(library_folders[0]))

static const struct part *part_of(const char *driver)
{
	for (size_t i = 0; i < N_PARTS; i++)
		if (!strcmp(parts[i].driver, driver))
			return &parts[i];
	return NULL;
}

static bool is_red_hat(const struct vrb_doc *d)
{
	static const char *const ids[] = {"rhel",      "fedora", "centos", "rocky",
					  "almalinux", "ol",	 "amzn"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (!strcmp(d->distro, ids[i]))
			return true;
	return false;
}

static void install_line(const struct vrb_doc *d, char *out, size_t size, const char *deb,
			 const char *rpm)
{
	if (is_red_hat(d))
		snprintf(out, size, "dnf install %s", rpm);
	else
		snprintf(out, size, "apt-get install %s", deb);
}

static bool has_word(const struct vrb_doc *d, const char *file, const char *word)
{
	char *text = vrb_doc_slurp(d, "/lib/modules/%s/%s", d->release, file);
	bool found = text && strstr(text, word);

	free(text);
	return found;
}

static void check_rxe_module(struct vrb_doc *d)
{
	char install[192], deb[128], rpm[128];

	if (vrb_doc_exists(d, "/sys/module/rdma_rxe") || !d->release[0])
		return;
	if (strstr(d->release, "microsoft")) {
		vrb_doc_add(d, VRB_F_WSL, "{s:s}", "release", d->release);
		return;
	}
	if (!vrb_doc_exists(d, "/lib/modules/%s", d->release)) {
		vrb_doc_add(d, VRB_F_MODULES_NONE, "{s:s}", "release", d->release);
		return;
	}
	if (has_word(d, "modules.dep", "/rdma_rxe.ko") ||
	    has_word(d, "modules.builtin", "/rdma_rxe.ko"))
		return;
	snprintf(deb, sizeof(deb), "linux-modules-extra-%s", d->release);
	snprintf(rpm, sizeof(rpm), "kernel-modules-extra-%s", d->release);
	if (!strcmp(d->distro, "ubuntu") || is_red_hat(d))
		install_line(d, install, sizeof(install), deb, rpm);
	else
		snprintf(install, sizeof(install), "%s", VRB_TR("a kernel with CONFIG_RDMA_RXE=m"));
	vrb_doc_add(d, VRB_F_RXE_MISSING, "{s:s, s:s, s:s}", "release", d->release, "install",
		    install, "file", "/lib/modules/RELEASE/modules.dep");
}

/* An interface to put soft-RoCE on: the first that is up and not loopback. */
static void pick_netdev(const struct vrb_doc *d, struct vrb_doc_names *names, char *out)
{
	strcpy(out, "NETDEV");
	vrb_doc_names(d, names, "/sys/class/net");
	for (unsigned i = 0; i < names->n; i++) {
		long long flags;

		if (!vrb_doc_number(d, &flags, "/sys/class/net/%s/flags", names->name[i]) ||
		    !(flags & 1) || (flags & 8))
			continue;
		strcpy(out, names->name[i]);
		return;
	}
}

static void check_rxe_link(struct vrb_doc *d, struct vrb_doc_names *names)
{
	char netdev[VRB_DOC_NAME];

	if (!vrb_doc_exists(d, "/sys/module/rdma_rxe"))
		return;
	for (unsigned i = 0; i < d->n_dev; i++)
		if (!d->dev[i].ours && !d->dev[i].slot[0])
			return;
	pick_netdev(d, names, netdev);
	vrb_doc_add(d, VRB_F_RXE_NO_LINK, "{s:s, s:s}", "netdev", netdev, "file",
		    "/sys/module/rdma_rxe");
}

static void check_nic_drivers(struct vrb_doc *d, struct vrb_doc_names *names)
{
	vrb_doc_names(d, names, "/sys/class/net");
	for (unsigned i = 0; i < names->n; i++) {
		char *text = vrb_doc_slurp(d, "/sys/class/net/%s/device/uevent", names->name[i]);
		char driver[32] = "", slot[32] = "";
		const struct part *p;

		if (text) {
			(void)vrb_doc_field(text, "DRIVER=", driver, sizeof(driver));
			(void)vrb_doc_field(text, "PCI_SLOT_NAME=", slot, sizeof(slot));
		}
		free(text);
		p = part_of(driver);
		if (p && !vrb_doc_exists(d, "/sys/module/%s", p->sysfs))
			vrb_doc_add(d, VRB_F_DRIVER_NO_RDMA, "{s:s, s:s, s:s, s:s, s:s}", "netdev",
				    names->name[i], "slot", slot, "driver", driver, "module",
				    p->module, "file", "/sys/module");
	}
}

static void check_named(struct vrb_doc *d)
{
	char all[256] = "";

	if (!d->device || d->is_software)
		return;
	for (unsigned i = 0; i < d->n_dev; i++) {
		size_t len = strlen(all);

		if (!strcmp(d->dev[i].name, d->device))
			return;
		snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "", d->dev[i].name);
	}
	vrb_doc_add(d, VRB_F_DEVICE_UNKNOWN, "{s:s, s:s, s:s}", "device", d->device, "devices",
		    all[0] ? all : VRB_TR("none"), "file", "/sys/class/infiniband");
}

void vrb_check_modules(struct vrb_doc *d)
{
	struct vrb_doc_names *names = malloc(sizeof(*names));
	bool any = false;

	if (!names)
		return;
	for (unsigned i = 0; i < d->n_dev; i++)
		any = any || !d->dev[i].ours;
	if (!any) {
		vrb_doc_add(d, VRB_F_RDMA_NONE, "{s:s}", "file", "/sys/class/infiniband");
		check_rxe_module(d);
		check_rxe_link(d, names);
	} else {
		if (!vrb_doc_exists(d, "/sys/module/rdma_ucm"))
			vrb_doc_add(d, VRB_F_RDMA_CM_MISSING, "{s:s, s:s}", "device",
				    d->dev[0].name, "file", "/sys/module/rdma_ucm");
	}
	check_nic_drivers(d, names);
	check_named(d);
	free(names);
}

static bool find_provider(const struct vrb_doc *d, struct vrb_doc_names *names,
			  const char *provider)
{
	char start[80];

	snprintf(start, sizeof(start), "lib%s-rdmav", provider);
	for (size_t i = 0; i < N_FOLDERS; i++) {
		vrb_doc_names(d, names, "%s/libibverbs", library_folders[i]);
		for (unsigned k = 0; k < names->n; k++)
			if (!strncmp(names->name[k], start, strlen(start)))
				return true;
	}
	return false;
}

static void check_provider_files(struct vrb_doc *d, struct vrb_doc_names *names)
{
	struct vrb_doc_names *files = malloc(sizeof(*files));
	char line[96], install[96], file[96];

	if (!files)
		return;
	install_line(d, install, sizeof(install), "--reinstall ibverbs-providers", "libibverbs");
	vrb_doc_names(d, files, "/etc/libibverbs.d");
	for (unsigned i = 0; i < files->n; i++) {
		if (!vrb_doc_line(d, line, sizeof(line), "/etc/libibverbs.d/%s", files->name[i]) ||
		    strncmp(line, "driver ", 7) || find_provider(d, names, line + 7))
			continue;
		snprintf(file, sizeof(file), "/etc/libibverbs.d/%s", files->name[i]);
		vrb_doc_add(d, VRB_F_PROVIDER_BROKEN, "{s:s, s:s, s:s}", "file", file, "provider",
			    line + 7, "install", install);
	}
	free(files);
}

void vrb_check_libraries(struct vrb_doc *d)
{
	struct vrb_doc_names *names = malloc(sizeof(*names));
	char install[96], path[128] = "", provider[80];

	if (!names)
		return;
	for (size_t i = 0; i < N_FOLDERS && !path[0]; i++)
		if (vrb_doc_exists(d, "%s/libibverbs.so.1", library_folders[i]))
			snprintf(path, sizeof(path), "%s/libibverbs.so.1", library_folders[i]);
	install_line(d, install, sizeof(install), "ibverbs-providers ibverbs-utils",
		     "libibverbs libibverbs-utils");
	if (path[0])
		vrb_doc_add(d, VRB_F_LIBIBVERBS, "{s:s}", "library", path);
	else
		vrb_doc_add(d, VRB_F_LIBIBVERBS_NONE, "{s:s}", "install", install);
	for (unsigned i = 0; path[0] && i < d->n_dev; i++) {
		const struct vrb_doc_device *dev = &d->dev[i];
		const struct part *p = part_of(dev->driver);

		if (!vrb_doc_wants(d, dev) || !p || find_provider(d, names, p->provider))
			continue;
		snprintf(provider, sizeof(provider), "lib%s-rdmav34.so", p->provider);
		vrb_doc_add(d, VRB_F_PROVIDER_NONE, "{s:s, s:s, s:s, s:s}", "device", dev->name,
			    "driver", dev->driver, "provider", provider, "install", install);
	}
	if (path[0])
		check_provider_files(d, names);
	free(names);
}

/* The uverbs node of a device, or false. */
static bool uverbs_of(const struct vrb_doc *d, struct vrb_doc_names *names, const char *device,
		      char *node)
{
	char name[64];

	vrb_doc_names(d, names, "/sys/class/infiniband_verbs");
	for (unsigned i = 0; i < names->n; i++) {
		if (!vrb_doc_line(d, name, sizeof(name), "/sys/class/infiniband_verbs/%s/ibdev",
				  names->name[i]) ||
		    strcmp(name, device))
			continue;
		strcpy(node, names->name[i]);
		return true;
	}
	return false;
}

void vrb_check_nodes(struct vrb_doc *d)
{
	struct vrb_doc_names *names = malloc(sizeof(*names));

	for (unsigned i = 0; names && i < d->n_dev; i++) {
		const char *device = d->dev[i].name;
		char uverbs[VRB_DOC_NAME], node[96], octal[16];
		unsigned mode;
		bool may;

		if (d->dev[i].ours || !vrb_doc_wants(d, &d->dev[i]))
			continue;
		if (!uverbs_of(d, names, device, uverbs)) {
			vrb_doc_add(d, VRB_F_UVERBS_MISSING, "{s:s, s:s}", "device", device, "file",
				    "/sys/class/infiniband_verbs");
			continue;
		}
		snprintf(node, sizeof(node), "/dev/infiniband/%s", uverbs);
		if (!vrb_doc_access(d, &mode, &may, "%s", node)) {
			vrb_doc_add(d, VRB_F_NODE_MISSING, "{s:s, s:s}", "device", device, "node",
				    node);
			continue;
		}
		snprintf(octal, sizeof(octal), "%03o", mode);
		if (!may)
			vrb_doc_add(d, VRB_F_NODE_DENIED, "{s:s, s:s, s:I, s:s}", "device", device,
				    "node", node, "uid", (json_int_t)d->uid, "mode", octal);
		else
			vrb_doc_add(d, VRB_F_NODE_OK, "{s:s, s:s, s:s}", "device", device, "node",
				    node, "mode", octal);
	}
	free(names);
}
