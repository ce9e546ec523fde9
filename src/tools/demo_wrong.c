/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last act: a work request that is wrong on purpose. Its one SGE starts inside a region of its
 * own and runs 12 bytes past its end. The verbs API answers with one of two dozen statuses; the
 * library says on stderr which rule was broken, with the values. Here stderr is caught, so that
 * both stand in their order.
 */
#include "tools/demo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#define REGION_BYTES 4096u
#define SGE_BYTES    64u
#define PAST_END     12u

struct stderr_tap {
	int saved, heard;
	char text[2048];
};

static bool send_wrong(struct demo *d)
{
	/* the first page of the buffer, registered a second time, alone */
	struct ibv_mr *mr = ibv_reg_mr(d->pd, d->buf, REGION_BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {0};
	struct ibv_send_wr wr = {.wr_id = 13,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	bool ok;

	if (!mr)
		return vrb_demo_fail(d, "ibv_reg_mr: %s", strerror(errno));
	sge.addr = (uintptr_t)d->buf + REGION_BYTES - SGE_BYTES + PAST_END;
	sge.length = SGE_BYTES;
	sge.lkey = mr->lkey;
	ok = vrb_demo_post_send(d, &wr) && vrb_demo_wait_any(d, d->send_cq, &wc);
	ibv_dereg_mr(mr);
	if (!ok)
		return false;
	if (wc.status != IBV_WC_LOC_PROT_ERR || wc.wr_id != 13)
		return vrb_demo_fail(d, "the wrong request ended with: %s",
				     ibv_wc_status_str(wc.status));
	return true;
}

/* Makes stderr a file in memory; the old one is put back by stop_listening. */
static bool start_listening(struct stderr_tap *t)
{
	fflush(stderr);
	t->saved = dup(STDERR_FILENO);
	t->heard = memfd_create("explanation", MFD_CLOEXEC);
	return t->saved >= 0 && t->heard >= 0 && dup2(t->heard, STDERR_FILENO) >= 0;
}

static void stop_listening(struct stderr_tap *t)
{
	ssize_t n = -1;

	if (t->saved >= 0)
		dup2(t->saved, STDERR_FILENO);
	if (t->heard >= 0)
		n = pread(t->heard, t->text, sizeof(t->text) - 1, 0);
	t->text[n > 0 ? n : 0] = '\0';
	close(t->saved);
	close(t->heard);
}

static void print_heard(char *text)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		printf("    %s\n", line);
}

bool vrb_demo_wrong(struct demo *d)
{
	const char *explain = getenv("VERBENA_EXPLAIN");
	struct stderr_tap tap;
	bool ok, tapped;

	if (!d->is_sender)
		return vrb_demo_sync(d);
	tapped = start_listening(&tap);
	ok = send_wrong(d);
	stop_listening(&tap);
	json_object_set_new(d->report, "explanation", json_string(tap.text));
	if (ok && tapped && !tap.text[0] && explain && strcmp(explain, "0") != 0)
		ok = vrb_demo_fail(d, "the library did not explain the failure");
	if (ok && !d->json) {
		puts("\nOn purpose, a SEND whose SGE runs 12 bytes past its memory region.\n"
		     "  The verbs API says:");
		printf("    status %d, %s\n", IBV_WC_LOC_PROT_ERR,
		       ibv_wc_status_str(IBV_WC_LOC_PROT_ERR));
		puts("  Verbena says (on stderr, with VERBENA_EXPLAIN=1):");
		print_heard(tap.text);
	}
	fflush(stdout);
	json_object_set_new(d->report, "wrong_request_refused", json_boolean(ok));
	return vrb_demo_sync(d) && ok;
}
