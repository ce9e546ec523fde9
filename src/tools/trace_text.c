/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace as text: a line for each record, its columns and words made for grep and awk. */
#include "tools/trace_read.h"

#include <inttypes.h>
#include <time.h>

#include "base/names.h"
#include "base/verdict.h"
#include "wire/opcode.h"

/* ---- names */

const char *vrb_trace_kind_name(const struct vrb_trace_rec *r)
{
	static const char *const names[] = {
		[VRB_TRACE_POST] = "post",   [VRB_TRACE_FETCH] = "fetch",
		[VRB_TRACE_SENT] = "sent",   [VRB_TRACE_GOT] = "received",
		[VRB_TRACE_ACK] = "ack",     [VRB_TRACE_CQE] = "cqe",
		[VRB_TRACE_POLL] = "poll",   [VRB_TRACE_QP] = "created",
		[VRB_TRACE_STATE] = "state", [VRB_TRACE_VERDICT] = "verdict",
	};

	return r->kind < sizeof(names) / sizeof(names[0]) && names[r->kind] ? names[r->kind] : "?";
}

static const char *number(uint64_t v)
{
	static char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	return text;
}

const char *vrb_trace_packet_name(const struct vrb_trace_rec *r)
{
	const char *name = vrb_opcode_table[r->op].name;

	return name ? name : number(r->op);
}

const char *vrb_trace_status_name(const struct vrb_trace_rec *r)
{
	static const char *const names[] = {
		"SUCCESS",	  "LOC_LEN_ERR",       "LOC_QP_OP_ERR",	 "LOC_EEC_OP_ERR",
		"LOC_PROT_ERR",	  "WR_FLUSH_ERR",      "MW_BIND_ERR",	 "BAD_RESP_ERR",
		"LOC_ACCESS_ERR", "REM_INV_REQ_ERR",   "REM_ACCESS_ERR", "REM_OP_ERR",
		"RETRY_EXC_ERR",  "RNR_RETRY_EXC_ERR",
	};

	return r->code < sizeof(names) / sizeof(names[0]) ? names[r->code] : number(r->code);
}

const char *vrb_trace_name(char kind, uint64_t v)
{
	static char text[64];
	struct vrb_text t;

	vrb_text_init(&t, text, sizeof(text));
	(void)vrb_name_put(&t, kind, v);
	return text;
}

const char *vrb_trace_op_name(const struct vrb_trace_rec *r)
{
	static const char *const done[] = {"SEND",	"RDMA_WRITE", "RDMA_READ", "COMP_SWAP",
					   "FETCH_ADD", "BIND_MW",    "LOCAL_INV"};

	if (r->flags & VRB_TRACE_RECV)
		return r->kind != VRB_TRACE_POST && r->op == 129 ? "RECV_RDMA_WITH_IMM" : "RECV";
	if (r->kind == VRB_TRACE_POST)
		return vrb_trace_name('o', r->op);
	return r->op < sizeof(done) / sizeof(done[0]) ? done[r->op] : number(r->op);
}

/* ---- lines */

static void put_head(const struct vrb_trace_set *s, FILE *f)
{
	uint64_t wall = s->n_parts ? s->first_ns + s->part[0].head.wall_ns : 0;
	time_t sec = (time_t)(wall / 1000000000u);
	char date[64] = "no record";
	struct tm tm;

	if (s->first_ns && gmtime_r(&sec, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(f, "# verbena trace: nanoseconds since %s", date);
	if (s->first_ns)
		fprintf(f, ".%09u UTC", (unsigned)(wall % 1000000000u));
	fputc('\n', f);
	for (size_t i = 0; i < s->n_parts; i++) {
		const struct vrb_trace_part *p = &s->part[i];

		fprintf(f, "# process %u %s: %zu records", p->head.pid, p->head.comm, p->n);
		if (p->head.n_lost)
			fprintf(f, ", %" PRIu64 " more were lost", p->head.n_lost);
		fputc('\n', f);
	}
	fputs("# time pid QP event work-request ...\n", f);
}

static void put_request(const struct vrb_trace_rec *r, FILE *f)
{
	if (!(r->flags & VRB_TRACE_HAS_WR)) {
		fputs(" -", f);
		return;
	}
	fputs(r->flags & VRB_TRACE_RECV ? " recv" : " send", f);
	if (r->index != VRB_TRACE_NO_INDEX)
		fprintf(f, "#%u", r->index);
	fprintf(f, " wr_id=%" PRIu64, r->wr_id);
}

static void put_packet(const struct vrb_trace_rec *r, FILE *f)
{
	fprintf(f, " \"%s\" psn=0x%06x len=%u", vrb_trace_packet_name(r), r->psn, r->len);
	if (r->kind == VRB_TRACE_SENT)
		fprintf(f, " to=0x%06x", r->arg);
	if (r->code >> 5)
		fprintf(f, " nak=\"%s\"", vrb_trace_name('n', r->code));
	if (r->flags & (VRB_TRACE_WIRE | VRB_TRACE_SHM))
		fprintf(f, " by=%s", r->flags & VRB_TRACE_WIRE ? "wire" : "shm");
	if (r->flags & VRB_TRACE_AGAIN)
		fputs(" again", f);
}

static void put_rest(const struct vrb_trace_rec *r, FILE *f)
{
	switch ((enum vrb_trace_kind)r->kind) {
	case VRB_TRACE_POST:
		fprintf(f, " %s len=%u", vrb_trace_op_name(r), r->len);
		if (r->flags & VRB_TRACE_SIGNALED)
			fputs(" signaled", f);
		break;
	case VRB_TRACE_SENT:
	case VRB_TRACE_GOT:
		put_packet(r, f);
		break;
	case VRB_TRACE_CQE:
	case VRB_TRACE_POLL:
		fprintf(f, " %s len=%u status=%s", vrb_trace_op_name(r), r->len,
			vrb_trace_status_name(r));
		break;
	case VRB_TRACE_QP:
		fprintf(f, " type=%s", vrb_trace_name('t', r->op));
		break;
	case VRB_TRACE_STATE:
		fprintf(f, " from=%s", vrb_trace_name('s', r->op));
		fprintf(f, " to=%s", vrb_trace_name('s', r->code));
		break;
	case VRB_TRACE_VERDICT:
		fprintf(f, " %s", vrb_trace_name('r', r->arg));
		break;
	case VRB_TRACE_NONE:
	case VRB_TRACE_FETCH:
	case VRB_TRACE_ACK:
		break;
	}
}

void vrb_trace_write_text(struct vrb_trace_set *s, FILE *f)
{
	const struct vrb_trace_rec *r;
	struct vrb_trace_part *p;

	put_head(s, f);
	while ((r = vrb_trace_next(s, &p))) {
		fprintf(f, "%12" PRIu64 " %u 0x%06x %-8s", r->time_ns - s->first_ns, p->head.pid,
			r->qpn, vrb_trace_kind_name(r));
		put_request(r, f);
		put_rest(r, f);
		fputc('\n', f);
	}
}
