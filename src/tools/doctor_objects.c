/* SPDX-License-Identifier: BSD-2-Clause */
/* Who holds queue pairs, CQs and regions, and which of them are of no use. */
#include "tools/doctor_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#define SHOWN	  32 /* processes of a device */
#define MANY_PART 80 /* percent of a limit */

/* "process 12 (ib_send_bw)", "the kernel's ib_core" */
static void put_owner(const struct vrb_doc *d, const struct vrb_owner *w, char *out, size_t size)
{
	char comm[32] = "?";

	if (!w->pid) {
		snprintf(out, size, "the kernel's %s", w->name);
		return;
	}
	if (w->name[0])
		snprintf(comm, sizeof(comm), "%s", w->name);
	else
		(void)vrb_doc_line(d, comm, sizeof(comm), "/proc/%lld/comm", w->pid);
	snprintf(out, size, "process %lld (%s)", w->pid, comm);
}

static void judge_owner(struct vrb_doc *d, const char *device, const struct vrb_owner *w)
{
	char who[96], size[24], bytes[32] = "";

	put_owner(d, w, who, sizeof(who));
	if (w->bytes)
		snprintf(bytes, sizeof(bytes), " (%s)",
			 vrb_doc_size(size, sizeof(size), (long long)w->bytes));
	if (w->pid)
		vrb_doc_add(d, VRB_F_OBJECTS, "{s:s, s:s, s:I, s:I, s:I, s:I, s:s}", "device",
			    device, "owner", who, "pid", (json_int_t)w->pid, "qps",
			    (json_int_t)w->qps, "cqs", (json_int_t)w->cqs, "mrs",
			    (json_int_t)w->mrs, "size", bytes);
	if (w->failed)
		vrb_doc_add(d, VRB_F_QP_FAILED, "{s:s, s:s, s:I, s:I, s:I}", "device", device,
			    "owner", who, "pid", (json_int_t)w->pid, "count", (json_int_t)w->failed,
			    "qpn", (json_int_t)w->failed_qpn);
	if (w->waiting)
		vrb_doc_add(d, VRB_F_QP_WAITING, "{s:s, s:s, s:I, s:I, s:I}", "device", device,
			    "owner", who, "pid", (json_int_t)w->pid, "count",
			    (json_int_t)w->waiting, "qpn", (json_int_t)w->waiting_qpn);
}

static void judge_limit(struct vrb_doc *d, const char *device, const char *what,
			unsigned long long count, unsigned long long max)
{
	if (max && count >= max * MANY_PART / 100)
		vrb_doc_add(d, VRB_F_OBJECTS_MANY, "{s:s, s:s, s:I, s:I}", "device", device, "what",
			    what, "count", (json_int_t)count, "max", (json_int_t)max);
}

static void judge(struct vrb_doc *d, const char *device, const struct vrb_objects *o)
{
	for (unsigned i = 0; i < o->n && i < SHOWN; i++)
		judge_owner(d, device, &o->owner[i]);
	judge_limit(d, device, VRB_TR("queue pairs"), o->qps, o->max_qp);
	judge_limit(d, device, "CQs", o->cqs, o->max_cq);
	judge_limit(d, device, VRB_TR("memory regions"), o->mrs, o->max_mr);
}

static void check_kernel(struct vrb_doc *d, struct vrb_objects *o)
{
	bool said = false;

	for (unsigned i = 0; i < d->n_dev; i++) {
		const char *name = d->dev[i].name;
		char *text;
		int err;

		if (d->dev[i].ours || !vrb_doc_wants(d, &d->dev[i]))
			continue;
		text = vrb_doc_objects_text(d, name, &err);
		if (text) {
			vrb_objects_parse(o, text);
			judge(d, name, o);
		} else if (err && !said) {
			vrb_doc_add(d, VRB_F_OBJECTS_UNKNOWN, "{s:s, s:s}", "device", name, "error",
				    strerror(err));
			said = true;
		}
		free(text);
	}
}

/* A process has a limit of its own here, which it meets with a verdict that says so. */
static void check_software(struct vrb_doc *d, struct vrb_objects *o)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n; i++) {
		const char *name = ibv_get_device_name(list[i]);

		if (d->device && strcmp(d->device, name) != 0)
			continue;
		vrb_objects_of_software(o, name);
		judge(d, name, o);
	}
	if (list)
		ibv_free_device_list(list);
}

void vrb_check_objects(struct vrb_doc *d)
{
	struct vrb_objects *o = malloc(sizeof(*o));
	char *text;
	int err;

	if (!o)
		return;
	check_kernel(d, o);
	/* without a device, too, it can be said why there is nothing to see */
	if (!d->n_dev) {
		text = vrb_doc_objects_text(d, "", &err);
		if (err && err != ENODEV)
			vrb_doc_add(d, VRB_F_OBJECTS_NONE, "{s:s}", "error", strerror(err));
		free(text);
	}
	if (!d->root[0])
		check_software(d, o);
	free(o);
}
