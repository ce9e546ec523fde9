/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of faults: with VERBENA_FAULTS_LOG a line for each strike, and at the end what each
 * rule saw and did, there and on stderr. The file is opened for each write, since a program may
 * close descriptors that it does not know; lines are whole, so several processes may share it.
 * Strikes of exact rules are written at once, others in company.
 */
#include "hca/faults_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool append(const struct vrb_fault_log *l, const char *text, size_t len)
{
	int old = vrb_cancel_off();
	/* O_NONBLOCK, and no pipe: a reader that is not there or slow must not stop the program */
	int fd = open(l->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	struct stat st;
	bool good = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		    write(fd, text, len) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	vrb_cancel_restore(old);
	return good;
}

static void flush(struct vrb_fault_log *l)
{
	if (l->len)
		(void)append(l, l->buf, l->len);
	l->len = 0;
}

void vrb_faults_log_open(struct vrb_faults *f)
{
	const char *path = secure_getenv(VRB_FAULT_ENV_LOG);

	if (!path || !*path || strlen(path) >= sizeof(f->log.path))
		return;
	strcpy(f->log.path, path);
	if (append(&f->log, "", 0))
		return;
	fprintf(stderr, "verbena: cannot write the record of faults to %s (a regular file?)\n",
		path);
	f->log.path[0] = '\0';
}

/* The beginning that all lines share. */
static int begin(const struct vrb_faults *f, char *out, size_t size, vrb_ns now)
{
	uint64_t t = now - f->start;

	return snprintf(out, size, "pid=%d t=%llu.%09llu ", (int)f->pid,
			(unsigned long long)(t / VRB_NS_PER_S),
			(unsigned long long)(t % VRB_NS_PER_S));
}

static void add(struct vrb_faults *f, const char *line, int len, bool at_once)
{
	struct vrb_fault_log *l = &f->log;

	if (l->len + (uint32_t)len > sizeof(l->buf))
		flush(l);
	memcpy(l->buf + l->len, line, (size_t)len);
	l->len += (uint32_t)len;
	if (at_once)
		flush(l);
}

void vrb_faults_log_name(struct vrb_faults *f, const struct vrb_hqp *q)
{
	static const char *const types[] = {
		[VRB_QPT_RC] = "RC", [VRB_QPT_UC] = "UC", [VRB_QPT_UD] = "UD"};
	char line[160];
	int n;

	if (!f->log.path[0])
		return;
	n = begin(f, line, sizeof(line), vrb_clock_now());
	n += snprintf(line + n, sizeof(line) - (size_t)n, "qp=%u qpn=0x%06x created type=%s\n",
		      q->fault_number, q->core.qpn, types[q->core.type]);
	add(f, line, n, false);
}

void vrb_faults_log_strike(struct vrb_faults *f, uint32_t i, const struct vrb_fault_view *v)
{
	const struct vrb_fault_rule *r = &f->plan.rule[i];
	struct vrb_report said = {
		.verdict = VRB_V_FAULT_FIRED, .qpn = v->q->core.qpn, .val = {i + 1, v->pkt->psn.v}};
	char line[256];
	int n;

	vrb_hca_refuse(&said);
	if (!f->log.path[0])
		return;
	n = begin(f, line, sizeof(line), v->now);
	n += snprintf(line + n, sizeof(line) - (size_t)n,
		      "rule=%u fault=%s dir=%s qp=%u qpn=0x%06x psn=0x%06x opcode=\"%s\" len=%u\n",
		      i + 1, vrb_fault_kind_name(r->kind), v->dir == VRB_FAULT_TX ? "tx" : "rx",
		      v->q->fault_number, v->q->core.qpn, v->pkt->psn.v, vrb_op_name(v->pkt->op),
		      v->pkt->len);
	add(f, line, n, r->exact);
}

/* ---- the end */

static int say_rule(const struct vrb_faults *f, uint32_t i, char *out, size_t size)
{
	const struct vrb_fault_rule *r = &f->plan.rule[i];
	const struct vrb_fault_state *s = &f->state[i];
	int n = snprintf(out, size, "verbena[%d]: faults: rule %u `%.*s`: ", (int)f->pid, i + 1,
			 r->text_len < 200 ? (int)r->text_len : 200, f->text + r->text);

	if (r->exact && !s->struck)
		return n + snprintf(out + n, size - (size_t)n,
				    "never struck; it saw %llu packets of its kind\n",
				    (unsigned long long)s->seen);
	return n + snprintf(out + n, size - (size_t)n, "struck %llu of %llu packets\n",
			    (unsigned long long)s->struck, (unsigned long long)s->seen);
}

static void say(const struct vrb_faults *f)
{
	const char *explain = getenv("VERBENA_EXPLAIN");
	char text[VRB_FAULTS_LOG_MAX];
	size_t n = 0;

	if (explain && !strcmp(explain, "0"))
		return;
	for (uint32_t i = 0; i < f->plan.n; i++) {
		n += (size_t)say_rule(f, i, text + n, sizeof(text) - n);
		if (sizeof(text) - n > 400 && i + 1 < f->plan.n)
			continue;
		(void)!write(STDERR_FILENO, text, n);
		n = 0;
	}
	if (f->n_lost)
		fprintf(stderr,
			"verbena[%d]: faults: %llu packets more than could be held back "
			"were lost\n",
			(int)f->pid, (unsigned long long)f->n_lost);
}

void vrb_faults_log_close(struct vrb_faults *f)
{
	char line[160];
	vrb_ns now = vrb_clock_now();

	say(f);
	if (!f->log.path[0])
		return;
	for (uint32_t i = 0; i < f->plan.n; i++) {
		int n = begin(f, line, sizeof(line), now);

		n += snprintf(line + n, sizeof(line) - (size_t)n, "rule=%u seen=%llu struck=%llu\n",
			      i + 1, (unsigned long long)f->state[i].seen,
			      (unsigned long long)f->state[i].struck);
		add(f, line, n, false);
	}
	flush(&f->log);
}
