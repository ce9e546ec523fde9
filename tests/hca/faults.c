/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults on purpose in real traffic: two queue pairs of one process over the sockets of its own
 * address, so that one thread drives both ends. Queue pair 1 sends, queue pair 2 receives. After
 * each kind of fault the record says that it struck, the bytes are those that were sent, and the
 * queue pairs are in the state that the rules ask for.
 */
#include "kit.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "hca/faults_parts.h"

#define MESSAGES 60
#define LEN	 9000u

static struct node a, b;
static struct vrb_hqp *qa, *qb;
static struct vrb_faults *faults;
static char log_path[] = "/tmp/hca-faults-XXXXXX";

static void begin(const char *plan, enum vrb_qp_type type)
{
	int fd;

	if (!faults)
		kit_own_network();
	fd = mkstemp(log_path);
	MUST(fd >= 0);
	close(fd);
	setenv("VERBENA_FAULTS", plan, 1);
	setenv("VERBENA_FAULTS_LOG", log_path, 1);
	node_open(&a, false);
	node_open(&b, false);
	qa = node_qp(&a, type);
	qb = node_qp(&b, type);
	MUST(!node_connect(qa, vrb_hqp_qpn(qb)));
	MUST(!node_connect(qb, vrb_hqp_qpn(qa)));
	MUST(qa->wire.addr && qb->wire.addr);
	faults = qa->e->faults;
	MUST(faults && qa->fault_number == 1 && qb->fault_number == 2);
}

static void end(void)
{
	MUST(!vrb_hqp_destroy(qa));
	MUST(!vrb_hqp_destroy(qb));
	node_close(&a);
	node_close(&b);
	unlink(log_path);
}

static uint64_t struck(uint32_t rule)
{
	return faults->state[rule - 1].struck;
}

/* Lines of the record that hold the text; out: the last. */
static uint32_t recorded(const char *text, char out[512])
{
	char line[512];
	uint32_t n = 0;
	FILE *f;

	vrb_engine_lock(qa->e);
	vrb_faults_log_close(faults);
	vrb_engine_unlock(qa->e);
	f = fopen(log_path, "re");
	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, text))
			continue;
		n++;
		if (out)
			memcpy(out, line, sizeof(line));
	}
	fclose(f);
	return n;
}

static void fill(uint8_t *at, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (uint8_t)(seed + i * 7 + i / 251);
}

static void is_filled(const uint8_t *at, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		MUST(at[i] == (uint8_t)(seed + i * 7 + i / 251));
}

static void send_one(uint32_t id, uint32_t len)
{
	fill(a.buf, len, id);
	memset(b.buf + NODE_LEN / 2, 0, len);
	node_recv(&b, qb, id);
	node_send(&a, qa, id, len);
	MUST(node_wc(&b, id) == VRB_WC_SUCCESS);
	MUST(node_wc(&a, id) == VRB_WC_SUCCESS);
	is_filled(b.buf + NODE_LEN / 2, len, id);
}

static void both_are(enum vrb_qp_state state)
{
	MUST(vrb_hqp_state(qa) == state && vrb_hqp_state(qb) == state);
}

static void post(enum vrb_wr_op op, uint32_t id, uint32_t len)
{
	struct vrb_swqe *w;

	vrb_engine_lock(qa->e);
	w = vrb_hqp_swqe(qa, 0);
	memset(w, 0, VRB_SWQE_HEADER);
	w->wr_id = id;
	w->len = len;
	w->op = (uint8_t)op;
	w->flags = VRB_WRF_SIGNALED;
	w->n_sge = 1;
	w->va = (uintptr_t)b.buf + NODE_LEN / 2;
	w->rkey = b.mr->rkey;
	w->sge[0] = (struct vrb_sge){.addr = (uintptr_t)a.buf, .len = len, .lkey = a.mr->lkey};
	vrb_hqp_commit(qa, 1);
	vrb_engine_unlock(qa->e);
}

/* ---- by chance: nothing is lost in the end */

static void survives(const char *plan, const char *record)
{
	begin(plan, VRB_QPT_RC);
	for (uint32_t i = 0; i < MESSAGES; i++)
		send_one(i, i % 4 ? 60 : LEN);
	both_are(VRB_QPS_RTS);
	MUST(struck(1) > 0);
	MUST(recorded(record, NULL) == struck(1));
	end();
}

static void test_loss(void)
{
	survives("tx request loss 10%", "rule=1 fault=drop dir=tx qp=1 ");
}

static void test_loss_in(void)
{
	survives("rx response drop 10%", "rule=1 fault=drop dir=rx qp=1 ");
}

static void test_duplicate(void)
{
	survives("both duplicate 30%", "rule=1 fault=duplicate ");
}

static void test_corrupt_out(void)
{
	survives("tx send corrupt 10%", "rule=1 fault=corrupt dir=tx qp=1 ");
}

static void test_corrupt_in(void)
{
	survives("qp 2 rx corrupt 10%", "rule=1 fault=corrupt dir=rx qp=2 ");
}

static void test_reorder(void)
{
	survives("tx reorder 20% 300us", "rule=1 fault=reorder dir=tx ");
}

static void test_reorder_in(void)
{
	survives("rx send reorder 20% 300us", "rule=1 fault=reorder dir=rx qp=2 ");
}

static void test_rnr_by_chance(void)
{
	survives("rx rnr-nak 10%", "rule=1 fault=rnr-nak dir=rx qp=2 ");
}

static void test_all_at_once(void)
{
	survives("seed 3; both loss 2%; both duplicate 2%; both corrupt 2%; tx reorder 5% 200us;"
		 "rx delay 5% 300us jitter 100us; rx send rnr-nak 2%; rx send nak sequence 2%",
		 "rule=1 fault=drop ");
}

/* ---- time */

static void test_delay(void)
{
	double t;

	begin("qp 1 tx delay 2ms jitter 1ms; qp 2 rx delay 2ms", VRB_QPT_RC);
	t = now_s();
	for (uint32_t i = 0; i < 10; i++)
		send_one(i, LEN);
	MUST(now_s() - t >= 10 * 0.004);
	/* ten messages of three packets; what was repeated meanwhile may still be held */
	MUST(struck(1) >= 30 && struck(2) >= 30 && struck(1) >= struck(2));
	both_are(VRB_QPS_RTS);
	end();
}

static void test_partition(void)
{
	struct vrb_fault_rule *r;

	begin("qp 1 partition from 1s for 300ms", VRB_QPT_RC);
	r = &faults->plan.rule[0];
	r->from = VRB_NS_NEVER - 1; /* opening may have taken long */
	send_one(1, 60);
	MUST(!struck(1));
	while (!struck(1)) { /* once, unless nobody lets us run for so long */
		r->from = vrb_clock_now() - faults->start;
		r->until = r->from + 300 * VRB_NS_PER_MS;
		send_one(2, LEN);
	}
	MUST(vrb_clock_now() - faults->start >= r->until);
	MUST(recorded("rule=1 fault=partition dir=tx qp=1 ", NULL) > 0);
	both_are(VRB_QPS_RTS);
	end();
}

/* What no packet gets through for ends in RETRY_EXC, as on a path whose MTU lies. */
static void test_blackhole(void)
{
	begin("tx blackhole above 1500", VRB_QPT_RC);
	send_one(1, 60);
	node_recv(&b, qb, 2);
	node_send(&a, qa, 2, LEN);
	MUST(node_wc(&a, 2) == VRB_WC_RETRY_EXC_ERR);
	MUST(vrb_hqp_state(qa) == VRB_QPS_ERR && vrb_hqp_state(qb) == VRB_QPS_RTS);
	MUST(struck(1) > 2);
	end();
}

/* ---- exact */

static void test_rnr_nak_twice(void)
{
	char line[512];

	begin("qp 2 rx send 5 rnr-nak times 2", VRB_QPT_RC);
	for (uint32_t i = 1; i <= 8; i++) {
		send_one(i, 60);
		MUST(struck(1) == (i < 5 ? 0 : 2));
	}
	/* PSNs begin with 0: the fifth message, both times */
	MUST(recorded("rule=1 fault=rnr-nak dir=rx qp=2 ", line) == 2);
	MUST(strstr(line, " psn=0x000004 opcode=\"RC SEND Only\""));
	both_are(VRB_QPS_RTS);
	end();
}

static void test_drop_next_ack(void)
{
	begin("qp 2 tx ack next drop", VRB_QPT_RC);
	for (uint32_t i = 1; i <= 3; i++)
		send_one(i, 60);
	MUST(struck(1) == 1);
	MUST(recorded("rule=1 fault=drop dir=tx qp=2 ", NULL) == 1);
	both_are(VRB_QPS_RTS);
	end();
}

static void test_read_response_packet(void)
{
	char line[512];

	begin("tx read-response 2 packet 3 corrupt times 2", VRB_QPT_RC);
	for (uint32_t i = 1; i <= 3; i++) {
		fill(b.buf + NODE_LEN / 2, 20000, i);
		memset(a.buf, 0, 20000);
		post(VRB_WR_READ, i, 20000);
		MUST(node_wc(&a, i) == VRB_WC_SUCCESS);
		is_filled(a.buf, 20000, i);
	}
	MUST(recorded("rule=1 fault=corrupt dir=tx qp=2 ", line) == 2);
	/* five packets each: PSN 5 + 2 */
	MUST(strstr(line, " psn=0x000007 "));
	both_are(VRB_QPS_RTS);
	end();
}

static void test_other_messages(void)
{
	uint64_t *word;

	begin("tx write 2 packet last drop; tx read-request 1 duplicate; rx atomic 1 drop;"
	      "tx atomic-response 2 drop; rx write 1 nak sequence; tx any 9 drop",
	      VRB_QPT_RC);
	for (uint32_t i = 1; i <= 3; i++) {
		fill(a.buf, LEN, i);
		post(VRB_WR_WRITE, i, LEN);
		MUST(node_wc(&a, i) == VRB_WC_SUCCESS);
		is_filled(b.buf + NODE_LEN / 2, LEN, i);
	}
	post(VRB_WR_READ, 4, 60);
	MUST(node_wc(&a, 4) == VRB_WC_SUCCESS);
	word = (uint64_t *)(void *)(b.buf + NODE_LEN / 2);
	*word = 40;
	for (uint32_t i = 0; i < 2; i++) {
		post(VRB_WR_FETCH_ADD, 5, 8); /* adds 0: done twice it would not show */
		MUST(node_wc(&a, 5) == VRB_WC_SUCCESS);
		MUST(*(uint64_t *)(void *)a.buf == 40);
	}
	for (uint32_t rule = 1; rule <= 6; rule++)
		MUST(struck(rule) == 1);
	both_are(VRB_QPS_RTS);
	end();
}

/* Congestion notifications: the first does not leave, the second does not arrive. */
static void test_cnp(void)
{
	begin("qp 2 tx cnp 1 drop; rx cnp 1 drop", VRB_QPT_RC);
	qa->wire.tclass = 3; /* marked on its way (CE) */
	for (uint32_t i = 1; !qa->stats->cnps_handled; i++) {
		send_one(i, 60);
		usleep(100);
	}
	MUST(struck(1) == 1 && struck(2) == 1);
	MUST(recorded("rule=1 fault=drop dir=tx qp=2 ", NULL) == 1);
	both_are(VRB_QPS_RTS);
	end();
}

/* A fatal answer ends both queue pairs, each with its own status. */
static void fatal(const char *plan, enum vrb_wr_op op, enum vrb_wc_status status)
{
	begin(plan, VRB_QPT_RC);
	node_recv(&b, qb, 1);
	post(op, 7, op == VRB_WR_FETCH_ADD ? 8 : 60);
	MUST(node_wc(&a, 7) == status);
	MUST(node_wc(&b, 1) == VRB_WC_WR_FLUSH_ERR);
	both_are(VRB_QPS_ERR);
	MUST(struck(1) == 1);
	MUST(recorded("rule=1 fault=nak dir=rx qp=2 ", NULL) == 1);
	end();
}

static void test_nak_invalid(void)
{
	fatal("rx send 1 nak invalid", VRB_WR_SEND, VRB_WC_REM_INV_REQ_ERR);
}

static void test_nak_access(void)
{
	fatal("rx atomic 1 nak access", VRB_WR_FETCH_ADD, VRB_WC_REM_ACCESS_ERR);
}

static void test_nak_operational(void)
{
	fatal("rx write 1 nak operational", VRB_WR_WRITE, VRB_WC_REM_OP_ERR);
}

/* ---- datagrams and UC are not repeated: what is lost stays lost */

static void test_uc(void)
{
	struct vrb_wc wc;

	begin("qp 1 tx send 3 drop; rx send 5 duplicate; tx send 7 delay 3ms", VRB_QPT_UC);
	for (uint32_t i = 1; i <= 8; i++) {
		node_recv(&b, qb, i);
		node_send(&a, qa, i, 60);
		MUST(node_wc(&a, i) == VRB_WC_SUCCESS);
		for (uint32_t n = 0; n < (i == 6 ? 2 : i != 3); n++)
			MUST(node_has_wc(&b, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
		/* the receive of the lost message serves the next one, the last one the copy of
		 * the fifth that arrived */
		MUST(i == 3 || wc.wr_id == (i == 4 || i == 5 ? i - 1 : i));
	}
	MUST(!node_has_wc(&b, &wc, 20));
	for (uint32_t rule = 1; rule <= 3; rule++)
		MUST(struck(rule) == 1);
	both_are(VRB_QPS_RTS);
	end();
}

static void test_ud(void)
{
	struct vrb_av av = {0};
	struct vrb_wc wc;

	begin("tx send 2 drop; rx send 2 duplicate; tx any 1 delay 1ms", VRB_QPT_RC);
	qa = (vrb_hqp_destroy(qa), node_qp(&a, VRB_QPT_UD));
	qb = (vrb_hqp_destroy(qb), node_qp(&b, VRB_QPT_UD));
	av.dgid = a.ctx->dev->gid[0].gid;
	MUST(!vrb_hah_create(a.pd, &av));
	for (uint32_t i = 0; i < 5; i++)
		node_recv(&b, qb, i);
	for (uint32_t i = 1; i <= 4; i++) {
		node_send_ud(&a, qa, &av, vrb_hqp_qpn(qb));
		MUST(node_wc(&a, 1) == VRB_WC_SUCCESS);
		/* the second is lost, the third is the second that arrives */
		for (uint32_t n = 0; n < (i == 3 ? 2 : i != 2); n++)
			MUST(node_has_wc(&b, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	}
	MUST(!node_has_wc(&b, &wc, 20));
	for (uint32_t rule = 1; rule <= 3; rule++)
		MUST(struck(rule) == 1);
	vrb_hah_destroy(a.pd, &av);
	end();
}

/* A rule for both directions keeps the order of each, and neither waits for the other. */
static void test_delay_both(void)
{
	struct vrb_wc wc;

	begin("qp 1 both delay 30s times 1", VRB_QPT_UC);
	node_send(&a, qa, 1, 60);
	MUST(node_wc(&a, 1) == VRB_WC_SUCCESS);
	MUST(struck(1) == 1);
	node_recv(&a, qa, 2);
	node_send(&b, qb, 3, 60);
	MUST(node_wc(&b, 3) == VRB_WC_SUCCESS);
	MUST(node_has_wc(&a, &wc, WAIT_MS) && wc.wr_id == 2 && wc.status == VRB_WC_SUCCESS);
	end();
}

/* More than can be held back is lost, and said; at the end what is held leaves. */
static void test_too_many(void)
{
	begin("tx delay 30s", VRB_QPT_UC);
	for (uint32_t i = 0; i < VRB_FAULTS_HELD_MAX + 10; i++) {
		node_send(&a, qa, i, 8);
		MUST(node_wc(&a, i) == VRB_WC_SUCCESS);
	}
	MUST(faults->n_lost == 10);
	MUST(qa->e->stats->verdict[VRB_V_FAULT_FULL] == 10);
	MUST(qa->e->stats->verdict[VRB_V_FAULT_FIRED] == struck(1));
	end();
}

/* ---- the same again */

/* Sends what the plan makes of 200 messages; the record without what differs between runs. */
static void one_run(const char *plan, char *out, size_t size)
{
	char line[512], kept[] = "/tmp/hca-faults-XXXXXX";
	int status, fd = mkstemp(kept);
	size_t n = 0;
	pid_t pid;
	FILE *f;

	MUST(fd >= 0);
	close(fd);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		begin(plan, VRB_QPT_UC);
		for (uint32_t i = 0; i < 200; i++) {
			uint64_t lost = struck(1) + struck(2), seen = faults->state[2].seen;
			struct vrb_wc wc;

			node_recv(&b, qb, i);
			node_send(&a, qa, i, 60);
			MUST(node_wc(&a, i) == VRB_WC_SUCCESS);
			while (struck(1) + struck(2) == lost && faults->state[2].seen == seen)
				(void)node_has_wc(&b, &wc, 0);
		}
		(void)recorded("", NULL);
		_exit(rename(log_path, kept) ? 1 : 0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	MUST(WIFEXITED(status) && !WEXITSTATUS(status));
	f = fopen(kept, "re");
	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		char *rule = strstr(line, "rule="), *psn = strstr(line, " psn=");

		if (rule && psn)
			n += (size_t)snprintf(out + n, size - n, "%.20s%s", rule, psn);
		MUST(n < size);
	}
	fclose(f);
	unlink(kept);
}

static void test_replay(void)
{
	static const char plan[] = "seed 7; tx send loss 10%; tx send corrupt 5%;"
				   "rx send duplicate 10%";
	static char one[65536], two[65536], other[65536];

	SKIP_FORK_OF_THREADS();
	one_run(plan, one, sizeof(one));
	one_run(plan, two, sizeof(two));
	MUST(one[0] && !strcmp(one, two));
	one_run("seed 8; tx send loss 10%; tx send corrupt 5%; rx send duplicate 10%", other,
		sizeof(other));
	MUST(strcmp(one, other) != 0);
	/* another rule takes none of the first one's numbers */
	one_run("seed 7; tx send loss 10%; tx send corrupt 0.0001%;"
		"rx send duplicate 0.0001%",
		two, sizeof(two));
	for (char *s = one, *t = two, *next; *s; s = next) {
		next = strchr(s, '\n') + 1;
		if (strncmp(s, "rule=1 ", 7))
			continue;
		MUST(!strncmp(s, t, (size_t)(next - s)));
		t += next - s;
	}
}

/* ---- beginning and ending */

static void test_bad_plans(void)
{
	struct vrb_hctx *ctx;

	setenv("VERBENA_FAULTS", "tx losss 1%", 1);
	if (node_try_open(&ctx) == -ENODEV)
		_exit(77);
	MUST(node_try_open(&ctx) == -EINVAL); /* VRB_V_FAULT_PLAN */
	setenv("VERBENA_FAULTS", "/nonexistent/plan", 1);
	MUST(node_try_open(&ctx) == -ENOENT);
	setenv("VERBENA_FAULTS", "", 1);
	MUST(!node_try_open(&ctx));
	MUST(!vrb_faults_are_on());
	vrb_hctx_close(ctx);
}

/* Counting goes on when the device is opened anew, and begins in a child. */
static void test_lives(void)
{
	SKIP_FORK_OF_THREADS();
	setenv("VERBENA_LINK", "shm", 1); /* the plan is stronger */
	begin("tx loss 1%", VRB_QPT_RC);
	send_one(1, 60);
	end();
	node_open(&a, false);
	qa = node_qp(&a, VRB_QPT_RC);
	MUST(qa->fault_number == 3);
	if (!fork()) {
		faults = NULL;
		strcpy(log_path, "/tmp/hca-faults-XXXXXX");
		begin("tx loss 1%", VRB_QPT_RC);
		send_one(1, 60);
		MUST(faults->pid == getpid() && faults->n_qps == 2);
		unlink(log_path);
		_exit(0);
	} else {
		int status;

		MUST(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
	}
	MUST(!vrb_hqp_destroy(qa));
	node_close(&a);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"loss", test_loss},
		{"loss_in", test_loss_in},
		{"duplicate", test_duplicate},
		{"corrupt_out", test_corrupt_out},
		{"corrupt_in", test_corrupt_in},
		{"reorder", test_reorder},
		{"reorder_in", test_reorder_in},
		{"rnr_by_chance", test_rnr_by_chance},
		{"all_at_once", test_all_at_once},
		{"delay", test_delay},
		{"partition", test_partition},
		{"blackhole", test_blackhole},
		{"rnr_nak_twice", test_rnr_nak_twice},
		{"drop_next_ack", test_drop_next_ack},
		{"read_response_packet", test_read_response_packet},
		{"other_messages", test_other_messages},
		{"cnp", test_cnp},
		{"nak_invalid", test_nak_invalid},
		{"nak_access", test_nak_access},
		{"nak_operational", test_nak_operational},
		{"uc", test_uc},
		{"ud", test_ud},
		{"delay_both", test_delay_both},
		{"too_many", test_too_many},
		{"replay", test_replay},
		{"bad_plans", test_bad_plans},
		{"lives", test_lives},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
