/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See run_faults.h. The program gets the plan's text, not the file's name: it may change its folder
 * or run in another mount namespace. --faults-strict needs the record of all processes that the
 * command starts, so it keeps one in a temporary file when none is asked for.
 */
#include "tools/run_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/run_child.h"
#include "tools/tools.h"

static const char help[] =
	"A plan is a file, or the text itself, of one rule a line; a semicolon ends a rule, too,\n"
	"and # begins a comment:\n"
	"\n"
	"  seed NUMBER\n"
	"  [QP] partition [TAIL]\n"
	"  [QP] DIRECTION [PACKETS] FAULT [TAIL]\n"
	"\n"
	"  QP         qp N (the N-th queue pair the process creates), or qpn 0xHEX\n"
	"  DIRECTION  tx (what the process sends), rx (what it receives), both\n"
	"  PACKETS    CLASS, or for an exact fault CLASS next, CLASS N, CLASS N packet M,\n"
	"             CLASS N packet last, CLASS packet N\n"
	"  CLASS      any request response send write read-request read-response atomic\n"
	"             atomic-response ack nak rnr-nak cnp\n"
	"  FAULT      loss P, drop P, duplicate P, corrupt P, reorder P TIME,\n"
	"             delay [P] TIME [jitter TIME], blackhole above BYTES, rnr-nak P,\n"
	"             nak sequence P, nak invalid P, nak access P, nak operational P\n"
	"  TAIL       [times N] [from TIME] [for TIME]\n"
	"\n"
	"P is a percentage (0.0001% to 100%), TIME has a unit (ns us ms s). Exact faults\n"
	"have no P: they strike the packet they name, once, or `times N`.\n"
	"\n"
	"  tx loss 1%; rx loss 1%           one packet in a hundred, both ways\n"
	"  both delay 1ms jitter 200us      every packet a millisecond later, in order\n"
	"  tx reorder 2% 200us              held back while others pass\n"
	"  tx blackhole above 1500          longer IP packets vanish\n"
	"  partition from 2s for 500ms      nothing comes or goes\n"
	"  qp 3 rx send 5 rnr-nak times 2   the fifth SEND to the third QP: RNR NAK twice\n"
	"  qp 1 tx ack next drop            the next acknowledgement is lost\n"
	"  qp 1 tx read-response 2 packet 3 corrupt\n"
	"\n"
	"verbena-run(1) says more.\n";

/* ---- before */

static bool read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 1;
	size_t len = 0;

	/* a pipe gives it in parts */
	while (n > 0 && len < size - 1) {
		n = read(fd, out + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0) {
		vrb_complain("%s: %s%s", path, strerror(errno),
			     errno == ENOENT ? " (a plan given as text has a blank or ; in it)"
					     : "");
		if (fd >= 0)
			close(fd);
		return false;
	}
	close(fd);
	out[len] = '\0';
	return true;
}

/* What looks like text is no file's name, unless there is such a file. */
static bool read_plan(struct vrb_faults_opt *o)
{
	size_t len;

	if (!vrb_fault_is_text(o->plan) || !access(o->plan, R_OK)) {
		if (!read_file(o->plan, o->text, sizeof(o->text) - 1))
			return false;
		/* with a line's end, so that it is text whatever it holds */
		len = strlen(o->text);
		if (len && o->text[len - 1] != '\n')
			memcpy(o->text + len, "\n", 2);
		return true;
	}
	return snprintf(o->text, sizeof(o->text), "%s", o->plan) >= 0;
}

int vrb_faults_load(struct vrb_faults_opt *o)
{
	struct vrb_words_error error;
	char text[512];

	if (!o->plan && (o->log || o->strict)) {
		vrb_complain("--faults-log and --faults-strict need --faults PLAN");
		return VRB_EXIT_OURS;
	}
	if (!o->plan)
		return -1;
	if (!strcmp(o->plan, "help")) {
		fputs(help, stdout);
		return VRB_EXIT_OK;
	}
	if (!read_plan(o))
		return VRB_EXIT_USAGE;
	if (vrb_fault_plan_parse(o->text, strlen(o->text), &o->parsed, &error))
		return -1;
	vrb_words_error_format(text, sizeof(text), &error);
	vrb_complain("fault plan: %s", text);
	fputs("Try `verbena run --faults help`.\n", stderr);
	return VRB_EXIT_USAGE;
}

bool vrb_faults_apply(struct vrb_faults_opt *o)
{
	if (!o->plan)
		return true;
	if ((o->log || o->strict) &&
	    !vrb_run_log(o->log, "verbena-faults", o->log_path, &o->log_is_ours))
		return false;
	if (!setenv(VRB_FAULT_ENV, o->text, 1) &&
	    (!o->log_path[0] || !setenv(VRB_FAULT_ENV_LOG, o->log_path, 1)))
		return true;
	vrb_complain("cannot set the environment: %s", strerror(errno));
	return false;
}

/* ---- afterwards */

static void read_record(const char *path, bool struck[VRB_FAULT_RULES_MAX])
{
	FILE *f = fopen(path, "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, " rule=");
		unsigned rule;

		if (at && sscanf(at, " rule=%u fault=", &rule) == 1 && strstr(at, " fault=") &&
		    rule - 1 < VRB_FAULT_RULES_MAX)
			struck[rule - 1] = true;
	}
	if (f)
		fclose(f);
}

/* True when all exact rules have struck, in one process or another. */
static bool all_struck(const struct vrb_faults_opt *o)
{
	bool struck[VRB_FAULT_RULES_MAX] = {false}, all = true;

	read_record(o->log_path, struck);
	for (uint32_t i = 0; i < o->parsed.n; i++) {
		const struct vrb_fault_rule *r = &o->parsed.rule[i];

		if (!r->exact || struck[i])
			continue;
		vrb_complain("rule %u `%.*s` of the fault plan has not struck", i + 1,
			     (int)r->text_len, o->text + r->text);
		all = false;
	}
	return all;
}

int vrb_faults_watch(struct vrb_faults_opt *o, char **argv)
{
	int status = vrb_run_child(argv);

	if (!all_struck(o) && !status)
		status = VRB_EXIT_NOT_STRUCK;
	if (o->log_is_ours)
		unlink(o->log_path);
	return status;
}
