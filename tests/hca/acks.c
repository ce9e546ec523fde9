/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By the wire a program that gets the answer finds what it had sent complete: an answer that takes
 * several sends does not overtake the acknowledgement.
 */
#include "records.h"

#include <unistd.h>

#include "hca/trace.h"

enum { N_ANSWERS = 12 };

/* What left the queue pair, in order. */
struct seen {
	uint32_t qpn, n, n_acks, acks_before;
};

static void read_file(void *seen, int fd)
{
	struct seen *s = seen;
	struct vrb_trace_head h;
	struct vrb_trace_rec r;

	MUST(read(fd, &h, sizeof(h)) == (ssize_t)sizeof(h));
	while (read(fd, &r, sizeof(r)) == (ssize_t)sizeof(r)) {
		if (r.kind != VRB_TRACE_SENT || r.qpn != s->qpn)
			continue;
		if ((r.op & 31) != VRB_OP_ACK)
			s->n++;
		else if (s->n_acks++ == 0)
			s->acks_before = s->n;
	}
	close(fd);
}

static void answer(struct loop *l)
{
	vrb_engine_lock(l->b->e);
	for (uint32_t i = 0; i < N_ANSWERS; i++) {
		struct vrb_swqe *w = vrb_hqp_swqe(l->b, i);

		memset(w, 0, VRB_SWQE_HEADER);
		w->wr_id = 3;
		w->len = 8192;
		w->op = VRB_WR_SEND;
		w->flags = VRB_WRF_SIGNALED;
		w->n_sge = 1;
		w->sge[0] = (struct vrb_sge){(uintptr_t)l->n.buf, 8192, l->n.mr->lkey};
	}
	vrb_hqp_commit(l->b, N_ANSWERS);
	vrb_engine_unlock(l->b->e);
}

static void ahead(void)
{
	struct seen s = {0};
	struct vrb_wc wc;
	struct loop l;

	setenv("VERBENA_LINK", "udp", 1);
	kit_own_network();
	records_begin(VRB_TRACE_ENV);
	loop_open(&l);
	s.qpn = vrb_hqp_qpn(l.b);
	for (uint32_t i = 0; i < N_ANSWERS; i++)
		node_recv(&l.n, l.a, 2);
	node_recv(&l.n, l.b, 2);
	node_send(&l.n, l.a, 1, 32);
	do
		MUST(node_has_wc(&l.n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	while (wc.wr_id != 2);
	answer(&l);
	for (uint32_t n = 0; n < N_ANSWERS;) {
		MUST(node_has_wc(&l.n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
		n += wc.wr_id == 3;
	}
	loop_close(&l);
	records_read(read_file, &s, true);
	MUST(s.n >= N_ANSWERS && s.n_acks && !s.acks_before);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {{"ahead", ahead}};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
