/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor`: runs the checks and prints what they found. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/doctor.h"
#include "tools/doctor_probe.h"
#include "tools/tools.h"

enum {
	EXIT_WARNINGS = 1,
	EXIT_FAILURES = 2,
};

static void (*const checks[])(struct vrb_doc *d) = {
	vrb_check_software, vrb_check_members,	vrb_check_modules, vrb_check_libraries,
	vrb_check_nodes,    vrb_check_ports,	vrb_check_gids,	   vrb_check_gid_for,
	vrb_check_subnets,  vrb_check_netdevs,	vrb_check_qos,	   vrb_check_pcie,
	vrb_check_irqs,	    vrb_check_cpus,	vrb_check_idle,	   vrb_check_quota,
	vrb_check_memlock,  vrb_check_memory,	vrb_check_process, vrb_check_kernel,
	vrb_check_udp,	    vrb_check_counters, vrb_check_objects,
};

static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
				      {"root", required_argument, NULL, 'r'},
				      {"device", required_argument, NULL, 'd'},
				      {"gid", required_argument, NULL, 'g'},
				      {"only", required_argument, NULL, 'o'},
				      {"pid", required_argument, NULL, 'p'},
				      {"list", no_argument, NULL, 'l'},
				      {"quiet", no_argument, NULL, 'q'},
				      {"serve", no_argument, NULL, 's'},
				      {"record", required_argument, NULL, 'R'},
				      {"watch", required_argument, NULL, 'w'},
				      {"port", required_argument, NULL, 'P'},
				      {"verbose", no_argument, NULL, 'v'},
				      {"help", no_argument, NULL, 'h'},
				      {0}};

struct choice {
	bool json, verbose, quiet, list, serve;
};

static bool is_known(const char *word)
{
	static const char *const severities[] = {"ok", "note", "warn", "fail"};

	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(word, severities[i]))
			return true;
	for (unsigned i = 0; i < VRB_N_FINDINGS; i++)
		if (!strcmp(word, vrb_findings[i].word) || !strcmp(word, vrb_findings[i].group))
			return true;
	for (unsigned i = 0; i < vrb_n_counter_findings; i++)
		if (!strcmp(word, vrb_counter_findings[i].word) ||
		    !strcmp(word, vrb_counter_findings[i].group))
			return true;
	return false;
}

/* Words, with commas between them; the text stays the array's. */
static bool add_only(struct vrb_doc *d, char *words)
{
	char *word;

	while ((word = strsep(&words, ","))) {
		if (!is_known(word)) {
			vrb_complain("`%s` is neither a finding nor a group of them; `verbena "
				     "doctor --list` shows both",
				     word);
			return false;
		}
		if (d->n_only == VRB_DOC_ONLY) {
			vrb_complain("--only takes at most %d words", VRB_DOC_ONLY);
			return false;
		}
		d->only[d->n_only++] = word;
	}
	return true;
}

static bool set_root(struct vrb_doc *d, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		vrb_complain("--root: there is no folder %s", path);
		return false;
	}
	d->root = strcmp(path, "/") ? path : "";
	return true;
}

/* Not into a folder that has something: two records would mix. */
static bool set_record(struct vrb_doc *d, const char *path)
{
	if (mkdir(path, 0755)) {
		vrb_complain("--record makes a new folder, and cannot make %s: %s", path,
			     strerror(errno));
		return false;
	}
	d->record = path;
	return true;
}

static bool set_pid(struct vrb_doc *d, const char *word)
{
	if (word[strspn(word, "0123456789")] || !*word) {
		vrb_complain("--pid takes the number of a process, not `%s`", word);
		return false;
	}
	d->pid = word;
	return true;
}

static bool set_number(int *out, const char *option, const char *word, long max)
{
	char *end;
	long n = strtol(word, &end, 10);

	if (end == word || *end || n < 1 || n > max) {
		vrb_complain("%s takes a number from 1 to %ld, not `%s`", option, max, word);
		return false;
	}
	*out = (int)n;
	return true;
}

static bool take(struct vrb_doc *d, struct choice *c, int opt)
{
	switch (opt) {
	case 'j':
		return c->json = true;
	case 'v':
		return c->verbose = true;
	case 'q':
		return c->quiet = true;
	case 'l':
		return c->list = true;
	case 's':
		return c->serve = true;
	case 'P':
		return set_number(&d->port, "--port", optarg, 65535);
	case 'w':
		return set_number(&d->watch, "--watch", optarg, 86400);
	case 'r':
		return set_root(d, optarg);
	case 'R':
		return set_record(d, optarg);
	case 'p':
		return set_pid(d, optarg);
	case 'o':
		return add_only(d, optarg);
	case 'd':
		d->device = optarg;
		return true;
	default:
		d->gid = optarg;
		return true;
	}
}

/* What is left on the command line: words, or a host. */
static bool take_words(struct vrb_doc *d, int argc, char **argv)
{
	for (int i = optind; i < argc; i++) {
		if (is_known(argv[i])) {
			if (!add_only(d, argv[i]))
				return false;
		} else if (d->host) {
			vrb_complain("one host at a time: %s and %s", d->host, argv[i]);
			return false;
		} else if (!vrb_doc_set_host(d, argv[i])) {
			vrb_complain("`%s` is neither a finding, nor a group of them (`verbena "
				     "--list`) nor a host",
				     argv[i]);
			return false;
		}
	}
	return true;
}

static int examine(struct vrb_doc *d, const struct choice *c)
{
	d->findings = json_array();
	vrb_doc_facts(d);
	if (d->host) {
		vrb_check_gid_for(d);
		vrb_check_path(d);
	}
	if (d->watch)
		vrb_check_watch(d);
	for (size_t i = 0; !d->host && !d->watch && i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](d);
	if (c->json)
		vrb_doc_print_json(d);
	else
		vrb_doc_print_text(d, c->verbose, c->quiet);
	json_decref(d->findings);
	if (d->count[VRB_SEV_FAIL])
		return EXIT_FAILURES;
	return d->count[VRB_SEV_WARN] ? EXIT_WARNINGS : VRB_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct vrb_doc *d = calloc(1, sizeof(*d));
	struct choice c = {0};
	int opt, status = VRB_EXIT_OURS;

	if (!d)
		return status;
	d->root = "";
	d->pid = "self";
	d->port = VRB_PROBE_PORT;
	while ((opt = vrb_opt_next(&vrb_cmd_doctor, argc, argv, "jvqh", longs)) != -1) {
		if (opt == 'h')
			status = VRB_EXIT_OK;
		if (opt == 'h' || opt == '?' || !take(d, &c, opt))
			goto out;
	}
	if (!take_words(d, argc, argv))
		goto out;
	status = VRB_EXIT_OK;
	if (c.list)
		vrb_doc_print_list(c.json);
	else if (c.serve)
		status = vrb_doctor_serve(d->port);
	else
		status = examine(d, &c);
out:
	free(d);
	return status;
}

const struct vrb_command vrb_cmd_doctor = {
	.name = "doctor",
	.summary = "say what is wrong with this machine, its limits and its NICs",
	.usage = "[OPTIONS] [WORD...]\n"
		 "       verbena doctor [OPTIONS] HOST\n"
		 "       verbena doctor --serve [--port PORT]\n\n"
		 "WORD chooses findings by name, group or severity (--list shows them). HOST:\n"
		 "the way to it: reachability, round trip, MTU, loss, order; there runs\n"
		 "`verbena doctor --serve`.\n\n"
		 "  -j, --json        as JSON\n"
		 "  -v, --verbose     with the values read\n"
		 "  -q, --quiet       warnings and failures only\n"
		 "      --only WORDS  the same as WORD..., with commas between them\n"
		 "      --device DEV  this RDMA device only\n"
		 "      --gid ADDR    which device and GID index to use for an address\n"
		 "      --pid PID     the limits, CPUs and environment of that process; with\n"
		 "                    --watch its cache misses, too\n"
		 "      --record DIR  keep what was read, for --root elsewhere\n"
		 "      --root DIR    read a recorded tree instead of this machine\n"
		 "      --serve       answer `verbena doctor HOST` of others\n"
		 "      --port PORT   the UDP port for it, 4791 when left out\n"
		 "      --list        list all findings\n\n"
		 "Exit status: 0 nothing above a note, 1 warnings, 2 failures, 125 wrong usage.\n",
	.run = run,
};
