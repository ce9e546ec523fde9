/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last act: a work request that is wrong on purpose. Its one SGE starts inside a region of its
 * own and runs 12 bytes past its end. The plain verbs API answers with one of 24 statuses; the
 * library has said on stderr which rule was broken, with the values.
 */
#include "tools/demo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REGION_BYTES 4096u
#define SGE_BYTES    64u
#define PAST_END     12u

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
	if (!d->json)
		printf("  All that the verbs API says:  status %d, %s\n"
		       "  Verbena's own words stand on stderr; more: verbena explain %s\n",
		       wc.status, ibv_wc_status_str(wc.status), "LOC_PROT_ERR");
	return true;
}

bool vrb_demo_wrong(struct demo *d)
{
	bool ok;

	if (!d->is_sender)
		return vrb_demo_sync(d);
	if (!d->json)
		puts("\nOn purpose, a SEND whose SGE runs 12 bytes past its memory region:");
	fflush(stdout);
	ok = send_wrong(d) && vrb_demo_sync(d);
	json_object_set_new(d->report, "wrong_request_refused", json_boolean(ok));
	return ok;
}
