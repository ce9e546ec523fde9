/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA netlink: the objects of a device as lines of text, and those lines as numbers by process. */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/doctor_objects.h"

#define ROWS_MAX 1000000 /* of one answer */
#define QPS_INIT 1	 /* ibv_qp_state */
#define QPS_SQE	 5
#define QPS_ERR	 6

struct row {
	uint64_t number, type, state, bytes, pid;
	char kernel[32];
};

static void read_row(struct vrb_nl_part part, struct row *r)
{
	struct vrb_nl_attr a;

	memset(r, 0, sizeof(*r));
	while (vrb_nl_next(&part, &a)) {
		switch (a.type) {
		case RDMA_NLDEV_ATTR_RES_LQPN:
		case RDMA_NLDEV_ATTR_RES_CQN:
		case RDMA_NLDEV_ATTR_RES_MRN:
			r->number = vrb_nl_number(&a);
			break;
		case RDMA_NLDEV_ATTR_RES_TYPE:
			r->type = vrb_nl_number(&a);
			break;
		case RDMA_NLDEV_ATTR_RES_STATE:
			r->state = vrb_nl_number(&a);
			break;
		case RDMA_NLDEV_ATTR_RES_MRLEN:
			r->bytes = vrb_nl_number(&a);
			break;
		case RDMA_NLDEV_ATTR_RES_PID:
			r->pid = vrb_nl_number(&a);
			break;
		case RDMA_NLDEV_ATTR_RES_KERN_NAME:
			snprintf(r->kernel, sizeof(r->kernel), "%.*s", (int)a.len,
				 (const char *)a.data);
			break;
		default:
			break;
		}
	}
}

static void put_row(FILE *out, unsigned type, const struct row *r)
{
	if (type == RDMA_NLDEV_ATTR_RES_QP_ENTRY)
		fprintf(out, "qp %llu type %llu state %llu", (unsigned long long)r->number,
			(unsigned long long)r->type, (unsigned long long)r->state);
	else if (type == RDMA_NLDEV_ATTR_RES_CQ_ENTRY)
		fprintf(out, "cq %llu", (unsigned long long)r->number);
	else
		fprintf(out, "mr %llu bytes %llu", (unsigned long long)r->number,
			(unsigned long long)r->bytes);
	if (r->kernel[0])
		fprintf(out, " kernel %s\n", r->kernel);
	else
		fprintf(out, " pid %llu\n", (unsigned long long)r->pid);
}

void vrb_objects_to_text(FILE *out, struct vrb_nl_part body)
{
	struct vrb_nl_attr table, a;
	struct row r;

	while (vrb_nl_next(&body, &table)) {
		struct vrb_nl_part rows = vrb_nl_nested(&table);

		if (table.type != RDMA_NLDEV_ATTR_RES_QP && table.type != RDMA_NLDEV_ATTR_RES_CQ &&
		    table.type != RDMA_NLDEV_ATTR_RES_MR)
			continue;
		for (unsigned i = 0; i < ROWS_MAX && vrb_nl_next(&rows, &a); i++) {
			if (a.type != RDMA_NLDEV_ATTR_RES_QP_ENTRY &&
			    a.type != RDMA_NLDEV_ATTR_RES_CQ_ENTRY &&
			    a.type != RDMA_NLDEV_ATTR_RES_MR_ENTRY)
				continue;
			read_row(vrb_nl_nested(&a), &r);
			put_row(out, a.type, &r);
		}
	}
}

static void heard_rows(void *arg, struct vrb_nl_part body)
{
	vrb_objects_to_text(arg, body);
}

struct wish {
	const char *device;
	bool found;
	uint32_t index;
};

static void heard_device(void *arg, struct vrb_nl_part body)
{
	struct wish *w = arg;
	struct vrb_nl_attr a;
	uint32_t index = 0;
	bool named = false;

	while (vrb_nl_next(&body, &a)) {
		if (a.type == RDMA_NLDEV_ATTR_DEV_INDEX)
			index = (uint32_t)vrb_nl_number(&a);
		else if (a.type == RDMA_NLDEV_ATTR_DEV_NAME)
			named = a.len == strlen(w->device) + 1 && !memcmp(a.data, w->device, a.len);
	}
	if (named) {
		w->found = true;
		w->index = index;
	}
}

static int ask_kernel(FILE *out, const char *device)
{
	static const unsigned commands[] = {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_CQ_GET,
					    RDMA_NLDEV_CMD_RES_MR_GET};
	struct wish w = {.device = device};
	struct {
		struct nlattr a;
		uint32_t index;
	} q = {.a = {.nla_len = sizeof(q), .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX}};
	struct vrb_nl_question ask = {
		.type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
		.flags = NLM_F_DUMP,
		.body = {(uint8_t *)&q, 0},
	};
	int fd = vrb_nl_open(NETLINK_RDMA), err;

	if (fd < 0)
		return fd;
	err = vrb_nl_ask(fd, &ask, heard_device, &w);
	if (!err && !w.found)
		err = -ENODEV;
	q.index = w.index;
	ask.body.left = sizeof(q);
	for (size_t i = 0; !err && i < sizeof(commands) / sizeof(commands[0]); i++) {
		ask.type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, commands[i]);
		err = vrb_nl_ask(fd, &ask, heard_rows, out);
	}
	close(fd);
	return err;
}

static char *from_tree(const struct vrb_doc *d, const char *device, int *err)
{
	char *text = vrb_doc_slurp(d, "/rdma/%s", device);
	long long number;

	if (!text && vrb_doc_number(d, &number, "/rdma/error") && number > 0)
		*err = (int)number;
	return text;
}

char *vrb_doc_objects_text(const struct vrb_doc *d, const char *device, int *err)
{
	char *text = NULL, path[96];
	size_t len = 0;
	FILE *out;

	*err = 0;
	if (d->root[0])
		return from_tree(d, device, err);
	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	*err = -ask_kernel(out, device);
	if (!*err)
		vrb_doc_limits_text(out, device);
	else
		fprintf(out, "%d\n", *err);
	fclose(out);
	snprintf(path, sizeof(path), "/rdma/%s", *err ? "error" : device);
	if (text)
		vrb_record_file(d, path, text, len);
	if (*err) {
		free(text);
		return NULL;
	}
	return text;
}

static struct vrb_owner *find(struct vrb_objects *o, const char *rest)
{
	struct vrb_owner w = {.pid = 0};

	if (sscanf(rest, " pid %lld", &w.pid) != 1 && sscanf(rest, " kernel %31s", w.name) != 1)
		return NULL;
	for (unsigned i = 0; i < o->n; i++)
		if (o->owner[i].pid == w.pid && !strcmp(o->owner[i].name, w.name))
			return &o->owner[i];
	if (o->n == VRB_OWNERS)
		return NULL;
	o->owner[o->n] = w;
	return &o->owner[o->n++];
}

static void add_qp(struct vrb_objects *o, const char *rest, unsigned long long qpn, unsigned state)
{
	struct vrb_owner *w = find(o, rest);

	o->qps++;
	if (!w)
		return;
	w->qps++;
	if (state == QPS_SQE || state == QPS_ERR) {
		if (!w->failed++)
			w->failed_qpn = qpn;
	} else if (state <= QPS_INIT && !w->waiting++) {
		w->waiting_qpn = qpn;
	}
}

static void parse_line(struct vrb_objects *o, const char *line)
{
	unsigned long long a, b;
	struct vrb_owner *w;
	unsigned state;
	int n = 0;

	if (sscanf(line, "limits qp %llu cq %llu mr %llu", &o->max_qp, &o->max_cq, &o->max_mr) == 3)
		return;
	if (sscanf(line, "qp %llu type %*u state %u%n", &a, &state, &n) == 2 && n) {
		add_qp(o, line + n, a, state);
	} else if (sscanf(line, "cq %llu%n", &a, &n) == 1 && n) {
		w = find(o, line + n);
		o->cqs++;
		if (w)
			w->cqs++;
	} else if (sscanf(line, "mr %llu bytes %llu%n", &a, &b, &n) == 2 && n) {
		w = find(o, line + n);
		o->mrs++;
		if (w) {
			w->mrs++;
			w->bytes += b;
		}
	}
}

void vrb_objects_parse(struct vrb_objects *out, char *text)
{
	char *cursor = text, *line;

	memset(out, 0, sizeof(*out));
	while ((line = vrb_doc_next_line(&cursor)))
		parse_line(out, line);
}
