/* SPDX-License-Identifier: BSD-2-Clause */
#include "records.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

char records_folder[] = "/tmp/verbena-records-XXXXXX";

uint64_t said(enum vrb_verdict v)
{
	return vrb_peek(&vrb_engine_current->stats->verdict[v]);
}

void records_begin(const char *env)
{
	char prefix[64];

	MUST(mkdtemp(records_folder));
	snprintf(prefix, sizeof(prefix), "%s/t", records_folder);
	MUST(!setenv(env, prefix, 1));
}

void records_read(void (*f)(void *arg, int fd), void *arg, bool last)
{
	DIR *d = opendir(records_folder);
	struct dirent *e;

	MUST(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		f(arg, openat(dirfd(d), e->d_name, O_RDONLY));
		if (last)
			MUST(!unlinkat(dirfd(d), e->d_name, 0));
	}
	closedir(d);
	if (last)
		MUST(!rmdir(records_folder));
}

void loop_open(struct loop *l)
{
	node_open(&l->n, false);
	l->a = node_qp(&l->n, VRB_QPT_RC);
	l->b = node_qp(&l->n, VRB_QPT_RC);
	MUST(!node_connect(l->a, vrb_hqp_qpn(l->b)) && !node_connect(l->b, vrb_hqp_qpn(l->a)));
}

void loop_close(struct loop *l)
{
	vrb_hqp_destroy(l->a);
	vrb_hqp_destroy(l->b);
	node_close(&l->n);
}
