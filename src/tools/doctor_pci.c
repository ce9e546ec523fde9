/* SPDX-License-Identifier: BSD-2-Clause */
/* The way between NIC and CPU: PCIe speed and width, IOMMU, NUMA node, interrupts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_read.h"

struct pcie {
	char speed[32], max_speed[32]; /* "16.0 GT/s" */
	double gts, max_gts;
	int width, max_width;
	double gbps; /* payload of the link after its encoding */
};

static bool read_speed(const struct vrb_doc *d, const struct vrb_doc_device *dev, const char *which,
		       char *text, double *gts)
{
	char *end;

	if (!vrb_doc_line(d, text, 32, "/sys/class/infiniband/%s/device/%s_link_speed", dev->name,
			  which))
		return false;
	*gts = strtod(text, &end);
	if (end == text)
		return false;
	end = strstr(text, " PCIe");
	if (end)
		*end = '\0';
	return true;
}

static bool read_pcie(const struct vrb_doc *d, const struct vrb_doc_device *dev, struct pcie *p)
{
	long long width, max;

	if (!read_speed(d, dev, "current", p->speed, &p->gts) ||
	    !read_speed(d, dev, "max", p->max_speed, &p->max_gts) ||
	    !vrb_doc_number(d, &width, "/sys/class/infiniband/%s/device/current_link_width",
			    dev->name) ||
	    !vrb_doc_number(d, &max, "/sys/class/infiniband/%s/device/max_link_width", dev->name) ||
	    width < 1 || width > 64)
		return false;
	p->width = (int)width;
	p->max_width = (int)max;
	/* 8b/10b up to 5 GT/s, 128b/130b up to 32, from 64 on 236 of 256 bytes of a flit are TLPs
	 */
	p->gbps = p->gts * p->width * (p->gts < 8 ? 0.8 : p->gts < 64 ? 128.0 / 130 : 236.0 / 256);
	return true;
}

/* The fastest port: two ports of one card need not be full at the same time. */
static double port_rate(const struct vrb_doc *d, const struct vrb_doc_device *dev)
{
	struct vrb_doc_names *ports = malloc(sizeof(*ports));
	double best = 0;

	if (ports)
		vrb_doc_names(d, ports, "/sys/class/infiniband/%s/ports", dev->name);
	for (unsigned i = 0; ports && i < ports->n; i++) {
		char rate[48];

		if (vrb_doc_line(d, rate, sizeof(rate), "/sys/class/infiniband/%s/ports/%s/rate",
				 dev->name, ports->name[i]) &&
		    strtod(rate, NULL) > best)
			best = strtod(rate, NULL);
	}
	free(ports);
	return best;
}

static void add_pcie(struct vrb_doc *d, enum vrb_finding_id id, const struct vrb_doc_device *dev,
		     const struct pcie *p, double rate)
{
	char gbps[32], want[32];

	snprintf(gbps, sizeof(gbps), "%.1f", p->gbps);
	snprintf(want, sizeof(want), "%g", rate);
	vrb_doc_add(d, id, "{s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:s}", "device", dev->name, "slot",
		    dev->slot, "speed", p->speed, "max_speed", p->max_speed, "width", p->width,
		    "max_width", p->max_width, "gbps", gbps, "rate", want);
}

static void check_link(struct vrb_doc *d, const struct vrb_doc_device *dev)
{
	struct pcie p;
	double rate;

	if (!read_pcie(d, dev, &p))
		return;
	rate = port_rate(d, dev);
	if (p.gts < p.max_gts)
		add_pcie(d, VRB_F_PCIE_SPEED, dev, &p, rate);
	if (p.width < p.max_width)
		add_pcie(d, VRB_F_PCIE_WIDTH, dev, &p, rate);
	if (p.gbps < rate)
		add_pcie(d, VRB_F_PCIE_BELOW_PORT, dev, &p, rate);
	else if (p.gts >= p.max_gts && p.width >= p.max_width)
		add_pcie(d, VRB_F_PCIE, dev, &p, rate);
}

void vrb_check_pcie(struct vrb_doc *d)
{
	for (unsigned i = 0; i < d->n_dev; i++) {
		const struct vrb_doc_device *dev = &d->dev[i];
		char type[32];

		if (!vrb_doc_wants(d, dev) || !dev->slot[0])
			continue;
		check_link(d, dev);
		if (vrb_doc_line(d, type, sizeof(type),
				 "/sys/class/infiniband/%s/device/iommu_group/type", dev->name) &&
		    !strncmp(type, "DMA", 3))
			vrb_doc_add(d, VRB_F_IOMMU, "{s:s, s:s, s:s}", "device", dev->name, "type",
				    type, "slot", dev->slot);
	}
}

static bool node_cpus(const struct vrb_doc *d, int node, struct vrb_cpus *cpus, char *list)
{
	return node >= 0 &&
	       vrb_doc_line(d, list, 256, "/sys/devices/system/node/node%d/cpulist", node) &&
	       vrb_cpus_parse(cpus, list) && vrb_cpus_count(cpus);
}

static void check_node(struct vrb_doc *d, const struct vrb_doc_device *dev)
{
	struct vrb_cpus near, allowed;
	char near_list[256], allowed_list[256];
	enum vrb_finding_id id = VRB_F_NUMA;
	unsigned common;

	/* one node: nothing is far */
	if (!vrb_doc_exists(d, "/sys/devices/system/node/node1") ||
	    !node_cpus(d, dev->node, &near, near_list) ||
	    !vrb_doc_allowed(d, &allowed, allowed_list, sizeof(allowed_list)))
		return;
	common = vrb_cpus_common(&near, &allowed);
	if (!common)
		id = VRB_F_NUMA_REMOTE;
	else if (common < vrb_cpus_count(&allowed))
		id = VRB_F_NUMA_LOOSE;
	vrb_doc_add(d, id, "{s:s, s:i, s:s, s:s}", "device", dev->name, "node", dev->node, "near",
		    near_list, "allowed", allowed_list);
}

struct irqs {
	int total, far, example;
	char where[64];
	struct vrb_cpus all;
};

static void read_irqs(const struct vrb_doc *d, const struct vrb_doc_device *dev,
		      const struct vrb_cpus *near, struct irqs *q)
{
	struct vrb_doc_names *names = malloc(sizeof(*names));

	memset(q, 0, sizeof(*q));
	if (names)
		vrb_doc_names(d, names, "/sys/class/infiniband/%s/device/msi_irqs", dev->name);
	for (unsigned i = 0; names && i < names->n; i++) {
		char list[64];
		struct vrb_cpus cpus;

		if ((!vrb_doc_line(d, list, sizeof(list), "/proc/irq/%s/effective_affinity_list",
				   names->name[i]) &&
		     !vrb_doc_line(d, list, sizeof(list), "/proc/irq/%s/smp_affinity_list",
				   names->name[i])) ||
		    !vrb_cpus_parse(&cpus, list) || !vrb_cpus_count(&cpus))
			continue;
		q->total++;
		for (unsigned w = 0; w < VRB_DOC_CPUS / 64; w++)
			q->all.word[w] |= cpus.word[w];
		if (!near || vrb_cpus_common(&cpus, near) || q->far++)
			continue;
		q->example = atoi(names->name[i]);
		snprintf(q->where, sizeof(q->where), "%s", list);
	}
	free(names);
}

static void check_device_irqs(struct vrb_doc *d, const struct vrb_doc_device *dev)
{
	struct vrb_cpus near, online;
	char list[256];
	bool known = vrb_doc_exists(d, "/sys/devices/system/node/node1") &&
		     node_cpus(d, dev->node, &near, list);
	struct irqs q;

	read_irqs(d, dev, known ? &near : NULL, &q);
	if (q.far)
		vrb_doc_add(d, VRB_F_IRQ_REMOTE, "{s:s, s:i, s:i, s:i, s:i, s:s, s:s, s:b}",
			    "device", dev->name, "count", q.far, "total", q.total, "node",
			    dev->node, "irq", q.example, "cpus", q.where, "near", list,
			    "irqbalance", vrb_doc_running(d, "irqbalance"));
	if (q.total > 1 && vrb_cpus_count(&q.all) == 1 &&
	    vrb_doc_cpus(d, &online, "/sys/devices/system/cpu/online") &&
	    vrb_cpus_count(&online) > 1) {
		int cpu = 0;

		while (!vrb_cpus_has(&q.all, (unsigned)cpu))
			cpu++;
		vrb_doc_add(d, VRB_F_IRQ_ONE_CPU, "{s:s, s:i, s:i, s:b}", "device", dev->name,
			    "total", q.total, "cpu", cpu, "irqbalance",
			    vrb_doc_running(d, "irqbalance"));
	}
}

void vrb_check_irqs(struct vrb_doc *d)
{
	for (unsigned i = 0; i < d->n_dev; i++) {
		if (!vrb_doc_wants(d, &d->dev[i]) || !d->dev[i].slot[0])
			continue;
		check_node(d, &d->dev[i]);
		check_device_irqs(d, &d->dev[i]);
	}
}
