/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Findings become words, on stderr and, one line of JSON each, in the log. The same verdict from
 * the same place in the program is told once and counted from then on; the counts come at exit.
 *     verbena: <counter>: <sentence> (QP 0x...; <clause>)
 *     verbena:   in <call> at <function> (<file>+0x...): addr2line -fe <file> 0x...
 *     verbena:   hint: ...
 */
#include "check/check.h"
#include "check/end.h"
#include "check/suppress.h"
#include "lang/lang.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#define SEEN_MAX  1024
#define TEXT_SIZE 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	enum vrb_verdict v;
	const void *pc;
	uint64_t place; /* three frames, so that two users of one helper are two places */
	uint64_t more;
} seen[SEEN_MAX];
static uint32_t n_seen;
static _Atomic uint64_t n_findings;
static int log_fd = -2;

struct out {
	char text[TEXT_SIZE];
	size_t n;
};

static __attribute__((format(printf, 2, 3))) void put(struct out *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->text + o->n, sizeof(o->text) - o->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		o->n += (size_t)n < sizeof(o->text) - o->n ? (size_t)n : sizeof(o->text) - o->n - 1;
}

static void put_place(struct out *o, const void *pc)
{
	struct vrb_chk_place p;

	if (!vrb_chk_place(pc, &p)) {
		put(o, "%p", pc);
		return;
	}
	if (p.symbol)
		put(o, "%s+0x%llx (", p.symbol, (unsigned long long)p.offset);
	put(o, "%s+0x%llx", p.object, (unsigned long long)p.address);
	if (p.symbol)
		put(o, ")");
}

/* The call with up to three frames, and the command that names its line. */
static void put_site(struct out *o, const char *what, const struct vrb_chk_site *s)
{
	struct vrb_chk_place p;

	put(o, vrb_tr("verbena:   %s at "), what);
	put_place(o, s->pc[0]);
	for (int i = 1; i < 3 && s->pc[i]; i++) {
		put(o, " < ");
		put_place(o, s->pc[i]);
	}
	put(o, "\n");
	if (vrb_chk_place(s->pc[0], &p))
		put(o, vrb_tr("verbena:     line: addr2line -fe %s 0x%llx\n"), p.object,
		    (unsigned long long)p.address);
}

static void put_json_string(struct out *o, const char *s)
{
	put(o, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			put(o, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			put(o, "\\u%04x", (unsigned)*s);
		else
			put(o, "%c", *s);
	}
	put(o, "\"");
}

static void put_json_site(struct out *o, const char *name, const struct vrb_chk_site *s)
{
	struct vrb_chk_place p;

	put(o, ", \"%s\": [", name);
	for (int i = 0; i < VRB_CHK_FRAMES && s->pc[i]; i++) {
		if (!vrb_chk_place(s->pc[i], &p))
			continue;
		put(o, "%s{\"object\": ", i ? ", " : "");
		put_json_string(o, p.object);
		put(o, ", \"address\": \"0x%llx\"", (unsigned long long)p.address);
		if (p.symbol) {
			put(o, ", \"function\": ");
			put_json_string(o, p.symbol);
		}
		put(o, "}");
	}
	put(o, "]");
}

static void write_log(const struct vrb_chk_finding *f, const char *sentence,
		      const struct vrb_chk_site *at)
{
	const struct vrb_verdict_info *info = vrb_verdict_info(f->r.verdict);
	struct out o = {.n = 0};

	if (log_fd == -2)
		log_fd = vrb_chk_options.log ? open(vrb_chk_options.log,
						    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)
					     : -1;
	if (log_fd < 0)
		return;
	put(&o, "{\"finding\": \"%s\", \"pid\": %d, \"qp\": %u, \"call\": \"%s\", \"text\": ",
	    info->counter, (int)getpid(), f->r.qpn, f->call);
	put_json_string(&o, sentence);
	put_json_site(&o, "at", at);
	if (f->made)
		put_json_site(&o, "made", f->made);
	put(&o, ", \"hint\": ");
	put_json_string(&o, info->hint);
	put(&o, "}\n");
	(void)syscall(SYS_write, log_fd, o.text, o.n);
}

static void say(const struct vrb_chk_finding *f, const struct vrb_chk_site *at)
{
	const struct vrb_verdict_info *info = vrb_verdict_info(f->r.verdict);
	struct out o = {.n = 0};
	char what[128], sentence[512];

	vrb_verdict_format_in(sentence, sizeof(sentence), &f->r, vrb_tr);
	put(&o, "verbena: %s: %s (", info->counter, sentence);
	if (f->r.qpn)
		put(&o, "QP 0x%06x; ", f->r.qpn);
	put(&o, "%s)\n", info->clause);
	snprintf(what, sizeof(what), vrb_tr("in %s"), f->call);
	if (at->pc[0] && !(f->made && f->made->pc[0] == at->pc[0]))
		put_site(&o, what, at);
	if (f->posted) {
		put(&o, "%s", vrb_tr("verbena:   posted at "));
		put_place(&o, f->posted);
		put(&o, "\n");
	}
	if (f->made && f->made->pc[0])
		put_site(&o, vrb_tr(f->made_what), f->made);
	if (f->detail)
		put(&o, "%s", f->detail);
	put(&o, vrb_tr("verbena:   hint: %s\n"), vrb_tr(info->hint));
	(void)syscall(SYS_write, STDERR_FILENO, o.text, o.n);
}

/* True at the first time; else it is counted. */
static bool is_new(const struct vrb_report *r, const struct vrb_chk_site *at)
{
	uint64_t place = at->pc[0] ? 0 : r->qpn; /* the stack cannot be read */
	enum vrb_verdict v = r->verdict;
	uint32_t i = 0;

	for (int f = 0; f < 3 && at->pc[f]; f++)
		place = place * 0x9e3779b97f4a7c15ull + (uintptr_t)at->pc[f];
	while (i < n_seen && (seen[i].v != v || seen[i].place != place))
		i++;
	if (i < n_seen) {
		seen[i].more++;
		return false;
	}
	if (n_seen == SEEN_MAX)
		return false;
	seen[n_seen].v = v;
	seen[n_seen].pc = at->pc[0];
	seen[n_seen].place = place;
	seen[n_seen++].more = 0;
	return true;
}

void vrb_chk_report(const struct vrb_chk_finding *f)
{
	const struct vrb_verdict_info *info = vrb_verdict_info(f->r.verdict);
	const struct vrb_chk_site *sites[2] = {NULL, f->made};
	struct vrb_chk_site at;
	char sentence[512];

	vrb_chk_depth++;
	vrb_chk_site_take(&at);
	if (f->pc)
		at = (struct vrb_chk_site){.pc = {(void *)(uintptr_t)f->pc}};
	sites[0] = &at;
	pthread_mutex_lock(&lock);
	if (!vrb_chk_suppressed(info->counter, sites, 2)) {
		atomic_fetch_add(&n_findings, 1);
		if (is_new(&f->r, &at)) {
			say(f, &at);
			vrb_verdict_format(sentence, sizeof(sentence), &f->r);
			write_log(f, sentence, &at);
		}
	}
	pthread_mutex_unlock(&lock);
	vrb_chk_depth--;
}

uint64_t vrb_chk_n_findings(void)
{
	return atomic_load(&n_findings);
}

void vrb_chk_report_rest(void)
{
	struct out o = {.n = 0};

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < n_seen; i++) {
		if (!seen[i].more)
			continue;
		put(&o, vrb_tr("verbena: %s: %llu more at "), vrb_verdict_info(seen[i].v)->counter,
		    (unsigned long long)seen[i].more);
		put_place(&o, seen[i].pc);
		put(&o, "\n");
	}
	if (o.n)
		(void)syscall(SYS_write, STDERR_FILENO, o.text, o.n);
	pthread_mutex_unlock(&lock);
}

void vrb_chk_report_forget(void)
{
	pthread_mutex_init(&lock, NULL); /* another thread may have held it */
	n_seen = 0;
	atomic_store(&n_findings, 0);
}
