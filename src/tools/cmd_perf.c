/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena perf`: reads the command line, brings the two ends together and prints. What is
 * measured, and how, is tools/perf.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/out.h"
#include "tools/perf/environ.h"
#include "tools/perf/session.h"
#include "tools/perf/claims.h"
#include "tools/perf_claims.h"
#include "tools/perf_ends.h"
#include "tools/perf_out.h"
#include "tools/perf_system.h"
#include "tools/tools.h"

#define SIZES_MAX	 64
#define LONGS_MAX	 64
#define FIELD_BASE	 1000
#define EXIT_INTERRUPTED 130
#define CLAIM_MS	 100
#define ROUNDS		 9

enum {
	OPT_SELF = 256,
	OPT_SERVER,
	OPT_FOREVER,
	OPT_CPUS,
	OPT_HTML,
	OPT_CSV,
	OPT_QUIET,
	OPT_SYSTEM,
	OPT_CLAIMS,
	OPT_ROUNDS
};

struct job {
	struct perf_params params; /* without a size */
	uint32_t size[SIZES_MAX];
	unsigned n_sizes;
	bool self, server, forever, json, csv, quiet, system, cpus_given, claims;
	const char *host, *port, *html, *system_file, *claim;
	unsigned rounds;
	int cpu[2]; /* of this side; of the other one with --self; -1: any */
	json_t *results;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* The first signal ends the measurement, a second one the program. Waiting calls are interrupted.
 */
static void catch_signals(void)
{
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* ---- the two ends */

static int serve(const struct job *j)
{
	char why[PERF_WHY_BYTES];
	int listener = vrb_perf_tcp_listen(NULL, j->port, why), r;

	if (listener < 0) {
		vrb_complain("perf: %s", why);
		return VRB_EXIT_FAILED;
	}
	if (!j->quiet)
		fprintf(stderr, "verbena: waiting for a client on port %d\n",
			vrb_perf_tcp_port(listener));
	do {
		r = vrb_perf_serve_one(listener, &j->params, &stop, why);
		if (r)
			vrb_complain("perf: %s", why);
	} while (j->forever && !stop);
	close(listener);
	return stop ? EXIT_INTERRUPTED : r ? VRB_EXIT_FAILED : VRB_EXIT_OK;
}

/* One size. Its row is added; false when it failed or cannot be believed. */
static bool measure(struct job *j, struct perf_session *s, uint32_t size)
{
	struct perf_result *r = malloc(sizeof(*r));
	struct perf_params p = j->params;
	char why[PERF_WHY_BYTES];
	bool ok;

	p.size = size;
	ok = r && vrb_perf_settle(&p, s->why) && vrb_perf_measure(s, &p, r);
	vrb_perf_progress_end();
	if (!ok) {
		vrb_complain("perf: %u bytes: %s", size, r ? s->why : "out of memory");
	} else if (!vrb_perf_is_plausible(r, why)) {
		ok = false;
		vrb_complain("perf: %u bytes: this cannot be true and is not shown: %s", size, why);
	} else {
		json_array_append_new(j->results, vrb_perf_result_json(r, j->json || j->html));
		ok = !r->note[0];
		if (!ok)
			vrb_complain("perf: %s", r->note);
	}
	free(r);
	return ok;
}

static bool client(struct job *j, int fd)
{
	struct perf_session s = {.talk = {.fd = fd, .stop = &stop}};
	bool ok = true;

	vrb_perf_tcp_peer(fd, s.host, sizeof(s.host));
	if (!j->quiet && isatty(STDERR_FILENO))
		s.progress = vrb_perf_progress;
	for (unsigned i = 0; ok && i < j->n_sizes && !stop; i++)
		ok = measure(j, &s, j->size[i]);
	vrb_perf_tell(&s.talk, json_pack("{s:b}", "bye", 1));
	close(fd);
	return ok;
}

static int report(struct job *j, bool ok)
{
	json_t *all = json_object();
	size_t n = json_array_size(j->results);

	json_object_set_new(all, "tool", json_string("verbena perf"));
	json_object_set_new(all, "environment", vrb_perf_environ());
	json_object_set(all, "results", j->results);
	if (j->json)
		vrb_out_json(stdout, all);
	else if (n && j->csv)
		vrb_perf_print_csv(stdout, j->results);
	else if (n)
		vrb_perf_print_table(stdout, j->results);
	fflush(stdout);
	if (j->html && n && !vrb_perf_print_html(j->html, all)) {
		vrb_complain("perf: cannot write %s: %s", j->html, strerror(errno));
		ok = false;
	}
	json_decref(all);
	return stop ? EXIT_INTERRUPTED : ok ? VRB_EXIT_OK : VRB_EXIT_FAILED;
}

/* Both ends in two processes of this program. */
static int both(struct job *j)
{
	int fd;
	pid_t pid = vrb_perf_fork_server(&j->params, j->cpu, &stop, &fd);
	bool ok = pid > 0 && client(j, fd);

	if (pid > 0 && !vrb_perf_collect(pid) && ok) {
		vrb_complain("perf: the server did not end well");
		ok = false;
	}
	return report(j, ok);
}

static int claims(struct job *j)
{
	struct perf_claims_job c = {.params = &j->params,
				    .only = j->claim,
				    .cpu = j->cpu,
				    .rounds = j->rounds,
				    .stop = &stop,
				    .progress = !j->quiet && isatty(STDERR_FILENO)};
	json_t *found, *all = json_object();

	if (!j->params.duration_ms && !j->params.iterations)
		j->params.duration_ms = CLAIM_MS;
	found = vrb_perf_claims_run(&c);
	json_object_set_new(all, "tool", json_string("verbena perf --claims"));
	json_object_set_new(all, "environment", vrb_perf_environ());
	json_object_set(all, "claims", found);
	if (!found)
		vrb_complain("perf: there is no claim `%s`", j->claim ? j->claim : "");
	else if (j->json)
		vrb_out_json(stdout, all);
	else
		vrb_perf_claims_print(stdout, found);
	json_decref(all);
	json_decref(found);
	return stop ? EXIT_INTERRUPTED : found ? VRB_EXIT_OK : VRB_EXIT_USAGE;
}

static int play(struct job *j)
{
	char why[PERF_WHY_BYTES];
	int fd, r;

	catch_signals();
	j->results = json_array();
	if (j->claims) {
		r = claims(j);
	} else if (j->self) {
		r = both(j);
	} else if (!vrb_perf_pin(j->cpu[0])) {
		r = VRB_EXIT_FAILED;
	} else if (j->server) {
		r = serve(j);
	} else {
		fd = vrb_perf_tcp_connect(j->host, j->port, why);
		if (fd < 0)
			vrb_complain("perf: %s", why);
		r = fd < 0 ? VRB_EXIT_FAILED : report(j, client(j, fd));
	}
	json_decref(j->results);
	return r;
}

/* ---- the command line */

static bool refuse(const char *fmt, const char *what)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vrb_complain(fmt, what);
#pragma GCC diagnostic pop
	return false;
}

/* Two processes that spin must not share a CPU: without a word each end of --self gets its own. */
static void choose_cpus(struct job *j)
{
	cpu_set_t set;
	int n = 0;

	if (j->cpus_given || !j->self || sched_getaffinity(0, sizeof(set), &set) ||
	    CPU_COUNT(&set) < 2)
		return;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			j->cpu[n++] = i;
}

static bool parse_cpus(struct job *j, const char *text)
{
	char *end;

	j->cpus_given = true;
	if (!strcmp(text, "any"))
		return true;
	for (int i = 0; i < 2; i++) {
		j->cpu[i] = (int)strtol(text, &end, 10);
		if (end == text || j->cpu[i] < 0 || j->cpu[i] >= CPU_SETSIZE)
			return refuse("--cpus takes one CPU, two (client,server), or any; not `%s`",
				      text);
		if (!*end)
			return true;
		text = end + 1;
	}
	return refuse("--cpus takes no more than two CPUs%s", "");
}

static bool take_option(struct job *j, int opt, char *arg)
{
	char why[PERF_WHY_BYTES], *end;

	if (opt >= FIELD_BASE) {
		if (vrb_perf_field_parse(&vrb_perf_fields[opt - FIELD_BASE], arg, &j->params, why))
			return true;
		return refuse("%s", why);
	}
	switch (opt) {
	case OPT_SELF:
		return j->self = true;
	case OPT_SERVER:
		return j->server = true;
	case OPT_FOREVER:
		return j->forever = true;
	case OPT_QUIET:
		return j->quiet = true;
	case OPT_CSV:
		return j->csv = true;
	case 'j':
		return j->json = true;
	case OPT_HTML:
		j->html = arg;
		return true;
	case OPT_CPUS:
		return parse_cpus(j, arg);
	case OPT_CLAIMS:
		j->claim = arg;
		return j->claims = true;
	case OPT_ROUNDS:
		j->rounds = (unsigned)strtoul(arg, &end, 10);
		return (end != arg && !*end && j->rounds && j->rounds <= PERF_ROUNDS_MAX) ||
		       refuse("--rounds takes a number from 1 to 101, not `%s`", arg);
	case OPT_SYSTEM:
		j->system_file = arg;
		return j->system = true;
	case 'p':
		j->port = arg;
		return true;
	case 'd':
		if (strlen(arg) >= sizeof(j->params.device))
			return refuse("--device %s: no device has such a long name", arg);
		strcpy(j->params.device, arg);
		return true;
	default: /* 's' */
		j->n_sizes = vrb_perf_sizes_parse(arg, j->size, SIZES_MAX, why);
		return j->n_sizes || refuse("%s", why);
	}
}

static const struct option own[] = {{"self", no_argument, NULL, OPT_SELF},
				    {"server", no_argument, NULL, OPT_SERVER},
				    {"forever", no_argument, NULL, OPT_FOREVER},
				    {"cpus", required_argument, NULL, OPT_CPUS},
				    {"html", required_argument, NULL, OPT_HTML},
				    {"csv", no_argument, NULL, OPT_CSV},
				    {"json", no_argument, NULL, 'j'},
				    {"quiet", no_argument, NULL, OPT_QUIET},
				    {"system", optional_argument, NULL, OPT_SYSTEM},
				    {"claims", optional_argument, NULL, OPT_CLAIMS},
				    {"rounds", required_argument, NULL, OPT_ROUNDS},
				    {"port", required_argument, NULL, 'p'},
				    {"device", required_argument, NULL, 'd'},
				    {"size", required_argument, NULL, 's'},
				    {"help", no_argument, NULL, 'h'}};
#define N_OWN (sizeof(own) / sizeof(own[0]))

/* -1: parsed, else the command's exit status. */
static int parse_options(struct job *j, int argc, char **argv)
{
	struct option longs[LONGS_MAX] = {{0}};
	int opt;

	memcpy(longs, own, sizeof(own));
	for (unsigned i = 0; i < vrb_perf_n_fields && N_OWN + i + 1 < LONGS_MAX; i++)
		longs[N_OWN + i] = (struct option){vrb_perf_fields[i].name, required_argument, NULL,
						   FIELD_BASE + (int)i};
	while ((opt = vrb_opt_next(&vrb_cmd_perf, argc, argv, "d:hjp:s:", longs)) != -1) {
		if (opt == 'h' || opt == '?')
			return vrb_opt_exit(opt);
		if (!take_option(j, opt, optarg))
			return VRB_EXIT_USAGE;
	}
	return -1;
}

static bool parse_ends(struct job *j, int argc, char **argv)
{
	int i = optind, mode = i < argc ? vrb_perf_word("lat|bw|rate", argv[i]) : -1;

	if (mode < 0 && !(j->server && i == argc))
		return refuse("perf: what is to be measured? lat, bw or rate%s", "");
	if (mode >= 0)
		j->params.mode = (uint32_t)mode, i++;
	if (i < argc)
		j->host = argv[i++];
	if (i < argc)
		return refuse("perf: what is `%s`? One host is enough", argv[i]);
	if (j->self + j->server + !!j->host != 1)
		return refuse("perf: one of --self, --server and the server's HOST is needed%s",
			      "");
	return true;
}

static bool parse_words(struct job *j, int argc, char **argv)
{
	if (j->claims) {
		if (optind < argc || j->server || j->csv || j->html)
			return refuse("--claims measures by itself and prints a table or JSON: it "
				      "takes neither words nor --server, --csv or --html%s",
				      "");
		return j->self = true;
	}
	return parse_ends(j, argc, argv);
}

/* All that can be refused before anything is opened. */
static bool check(struct job *j)
{
	char why[PERF_WHY_BYTES];

	if (!j->n_sizes) {
		j->size[0] = j->params.mode == PERF_BW ? 65536 : 64;
		j->n_sizes = 1;
	}
	if (j->json && j->csv)
		return refuse("--json or --csv, not both%s", "");
	if (j->forever && !j->server)
		return refuse("--forever goes with --server%s", "");
	if (j->server && (j->html || j->json || j->csv))
		return refuse("the client prints the results, not the server%s", "");
	if (j->cpu[1] >= 0 && !j->self)
		return refuse("--cpus has two CPUs with --self only%s", "");
	for (unsigned i = 0; i < j->n_sizes; i++) {
		struct perf_params p = j->params;

		p.size = j->size[i];
		if (!vrb_perf_settle(&p, why))
			return refuse("%s", why);
	}
	return true;
}

static int run(int argc, char **argv)
{
	struct job j = {.port = PERF_PORT, .cpu = {-1, -1}, .rounds = ROUNDS};
	int status;

	vrb_perf_params_init(&j.params, PERF_LAT);
	status = parse_options(&j, argc, argv);
	if (status >= 0)
		return status;
	if (!parse_words(&j, argc, argv) || !check(&j))
		return VRB_EXIT_USAGE;
	choose_cpus(&j);
	if (j.system && vrb_perf_use_system(j.system_file, argv - 1))
		return VRB_EXIT_FAILED;
	return play(&j);
}

const struct vrb_command vrb_cmd_perf = {
	.name = "perf",
	.summary = "measure latency, bandwidth and rate, by plain verbs or libverbena",
	.usage = "lat|bw|rate --self | --server | HOST [OPTIONS]\n"
		 "       verbena perf --claims[=NAME] [OPTIONS]\n\n"
		 "  lat   one message at a time, there and back\n"
		 "  bw    as many bytes as possible\n"
		 "  rate  as many messages as possible\n\n"
		 "      --self             both ends here, in two processes\n"
		 "      --server           serve one client; with --forever one after the other\n"
		 "      HOST               be the client of the server there\n"
		 "  -p, --port PORT        the server's TCP port (" PERF_PORT ")\n"
		 "  -d, --device NAME      (the first one)\n"
		 "      --ib-port N        port of the device (the first active one)\n"
		 "      --gid-index N      entry of the GID table (chosen by type and address)\n"
		 "      --system[=FILE]    on the system's libibverbs: a NIC, by rdma-core\n"
		 "      --cpus A[,B]|any   bind the process to CPU A, the server of --self to B\n"
		 "                         [--self: the first two]\n\n"
		 "What is sent (defaults in brackets):\n"
		 "      --api raw|send     plain verbs [raw], or libverbena\n"
		 "      --verb VERB        send [send], write or read\n"
		 "  -s, --size LIST        bytes: 64, or 8,1k,1m, or all (1 to 1 MiB)\n"
		 "      --seconds S        time of each size [1]\n"
		 "      --iterations N     messages of each size, instead of a time\n"
		 "      --warmup N         messages before anything is counted\n"
		 "      --pace N           messages per second [as many as possible]\n"
		 "      --sges N           pieces that a message is gathered from [1]\n"
		 "      --align BYTES      alignment of buffers, and no better [4096]\n"
		 "      --register-each 1  allocate and register memory for each message\n"
		 "      --pages KIND       of the buffers: any [any], small or huge\n"
		 "      --span BYTES       messages lie all over an area of so many [one place]\n"
		 "      --recv-span BYTES  and are received all over one of so many [one place]\n\n"
		 "How:\n"
		 "      --engine ENGINE    wait by poll [poll], event or adaptive\n"
		 "      --mod-count N      CQ moderation: completions to an event\n"
		 "      --mod-us US        CQ moderation: the longest delay\n"
		 "      --qps N            queue pairs [1]\n"
		 "      --inline BYTES     what goes inline; 0: nothing [up to what is granted]\n"
		 "      --signal N         one in N requests is signaled [64; bw 16]\n"
		 "      --batch N          requests in one post [1; rate 16]\n"
		 "      --depth N          requests under way per queue pair [128; rate 1024]\n"
		 "      --recv-depth N     receives posted per queue pair [512; rate 4096]\n"
		 "      --recv-size BYTES  of a receive, with --api send [4k to 64k]\n"
		 "      --mtu BYTES        path MTU [the smaller of both ports]\n\n"
		 "Folklore:\n"
		 "      --claims[=NAME]    what is said of performance, measured here\n"
		 "      --rounds N         interleaved, each sample of --seconds [9; 0.1]\n\n"
		 "What is printed:\n"
		 "  -j, --json             everything, with the environment, as JSON\n"
		 "      --csv              one line to a size\n"
		 "      --html FILE        a page with histograms and percentile curves\n"
		 "      --quiet            no progress line\n",
	.run = run,
};
