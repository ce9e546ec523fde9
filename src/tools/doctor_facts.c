/* SPDX-License-Identifier: BSD-2-Clause */
/* What several checks need to know: kernel, distribution, container, process, devices. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_read.h"

#define KERNEL_UNIT 1000

static void read_kernel(struct vrb_doc *d)
{
	unsigned major, minor;

	if (vrb_doc_line(d, d->release, sizeof(d->release), "/proc/sys/kernel/osrelease") &&
	    sscanf(d->release, "%u.%u", &major, &minor) == 2)
		d->kernel = major * KERNEL_UNIT + minor;
}

static void read_distro(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/etc/os-release"), id[32];

	if (text && vrb_doc_field(text, "ID=", id, sizeof(id))) {
		char *start = id[0] == '"' ? id + 1 : id;

		start[strcspn(start, "\"")] = '\0';
		snprintf(d->distro, sizeof(d->distro), "%s", start);
	}
	free(text);
}

static void read_home(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/1/cgroup"), value[64];

	if (vrb_doc_env(d, "KUBERNETES_SERVICE_HOST", value, sizeof(value)) ||
	    (text && strstr(text, "kubepods")))
		d->home = VRB_HOME_KUBERNETES;
	else if (vrb_doc_exists(d, "/run/.containerenv") || (text && strstr(text, "libpod")))
		d->home = VRB_HOME_PODMAN;
	else if (vrb_doc_exists(d, "/.dockerenv") || (text && strstr(text, "docker")))
		d->home = VRB_HOME_DOCKER;
	free(text);
}

/* The last component of the process's control group, when it is a service. */
static void read_unit(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/cgroup", d->pid), path[256];

	if (text && vrb_doc_field(text, "0::", path, sizeof(path))) {
		const char *name = strrchr(path, '/');
		size_t len = name ? strlen(name) : 0;

		if (len > 8 && !strcmp(name + len - 8, ".service") && strncmp(name + 1, "user@", 5))
			snprintf(d->unit, sizeof(d->unit), "%s", name + 1);
	}
	free(text);
}

static void read_process(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/status", d->pid), value[128];

	d->uid = -1;
	if (text && vrb_doc_field(text, "Uid:", value, sizeof(value)))
		d->uid = atoll(value);
	if (text && vrb_doc_field(text, "CapEff:", value, sizeof(value)))
		d->caps = strtoull(value, NULL, 16);
	free(text);
}

static void read_pci(struct vrb_doc *d, struct vrb_doc_device *dev)
{
	char *text = vrb_doc_slurp(d, "/sys/class/infiniband/%s/device/uevent", dev->name);
	long long node;

	dev->node = -1;
	if (!text)
		return;
	(void)vrb_doc_field(text, "DRIVER=", dev->driver, sizeof(dev->driver));
	(void)vrb_doc_field(text, "PCI_SLOT_NAME=", dev->slot, sizeof(dev->slot));
	free(text);
	if (vrb_doc_number(d, &node, "/sys/class/infiniband/%s/device/numa_node", dev->name))
		dev->node = (int)node;
}

static void read_devices(struct vrb_doc *d)
{
	struct vrb_doc_names *names = malloc(sizeof(*names));

	if (!names)
		return;
	vrb_doc_names(d, names, "/sys/class/infiniband");
	for (unsigned i = 0; i < names->n && d->n_dev < VRB_DOC_DEVICES; i++) {
		struct vrb_doc_device *dev = &d->dev[d->n_dev++];

		snprintf(dev->name, sizeof(dev->name), "%s", names->name[i]);
		dev->ours =
			!strncmp(dev->name, "verbena", 7) && isdigit((unsigned char)dev->name[7]);
		read_pci(d, dev);
		d->has_nic = d->has_nic || (!dev->ours && dev->slot[0]);
	}
	free(names);
}

void vrb_doc_facts(struct vrb_doc *d)
{
	read_kernel(d);
	read_distro(d);
	read_home(d);
	read_unit(d);
	read_process(d);
	read_devices(d);
}

bool vrb_doc_wants(const struct vrb_doc *d, const struct vrb_doc_device *dev)
{
	return d->device ? !strcmp(d->device, dev->name) : !dev->ours;
}
