/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena explain`: looks a word up among verdicts, completion statuses and errnos, or tells the
 * story of a queue pair, given by its number or by the file that keeps it. A small number is a
 * completion status; an errno is given by its name, because the same number may be both.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <infiniband/verbs.h>

#include "base/verdict.h"
#include "lang/lang.h"
#include "tools/explain_story.h"
#include "tools/explain_table.h"
#include "tools/out.h"
#include "tools/tools.h"
#include "tools/wrap.h"

#define LABEL_WIDTH 8

static const char *const kind_text[] = {
	[VRB_KIND_CALL] = VRB_TR("a verbs call is refused"),
	[VRB_KIND_WORK] = VRB_TR("a work request fails locally"),
	[VRB_KIND_NAK] = VRB_TR("the responder refuses with a NAK"),
	[VRB_KIND_REMOTE] = VRB_TR("the peer refused or is gone"),
	[VRB_KIND_DROP] = VRB_TR("a packet is dropped"),
	[VRB_KIND_NOTE] = VRB_TR("nothing is refused"),
};

/* What stands for a value, by the letter of its placeholder (base/verdict.h). */
static const char *generic_value(char kind)
{
	static const char letters[] = "xstombavwqnr";
	static const char *const words[] = {
		"0x..",
		VRB_TR("<state>"),
		VRB_TR("<type>"),
		VRB_TR("<opcode>"),
		VRB_TR("<mask bits>"),
		VRB_TR("<object>"),
		VRB_TR("<attribute>"),
		VRB_TR("<verb>"),
		VRB_TR("<reason>"),
		VRB_TR("<send or receive>"),
		VRB_TR("<NAK>"),
		VRB_TR("<verdict>"),
	};
	const char *at = strchr(letters, kind);

	return at && *at ? vrb_tr(words[at - letters]) : "N";
}

/* A sentence without values. */
static void generic_sentence(char *out, size_t size, const char *s)
{
	size_t n = 0;

	out[0] = '\0';
	while (*s && n + 1 < size) {
		const char *end = *s == '{' ? strchr(s, '}') : NULL;

		if (end)
			n += (size_t)snprintf(out + n, size - n, "%s", generic_value(end[-1]));
		else
			n += (size_t)snprintf(out + n, size - n, "%c", *s);
		s = end ? end + 1 : s + 1;
	}
}

static void print_part(const char *label, const char *text)
{
	vrb_wrap(vrb_wrap_label(2, LABEL_WIDTH, label), LABEL_WIDTH + 3, text);
}

static void print_verdict(enum vrb_verdict v)
{
	const struct vrb_verdict_info *info = vrb_verdict_info(v);
	char sentence[512];

	generic_sentence(sentence, sizeof(sentence), vrb_tr(info->sentence));
	printf("%s: %s\n", info->name, vrb_tr(kind_text[info->kind]));
	print_part(vrb_tr("what"), sentence);
	if (strcmp(info->hint, "-"))
		print_part(vrb_tr("do"), vrb_tr(info->hint));
	if (strcmp(info->clause, "-"))
		print_part(vrb_tr("rule"), info->clause);
	print_part(vrb_tr("counter"), info->counter);
}

static void print_meaning(const struct vrb_meaning *m)
{
	printf("%s (%d): %s\n", m->name, m->number,
	       m->is_errno ? strerror(m->number)
			   : ibv_wc_status_str((enum ibv_wc_status)m->number));
	print_part(vrb_tr("means"), vrb_tr(m->text));
	for (int i = 0; i < VRB_EXPLAIN_VERDICTS && m->verdicts[i]; i++) {
		const struct vrb_verdict_info *info =
			vrb_verdict_info((enum vrb_verdict)m->verdicts[i]);
		char line[640], sentence[512];

		generic_sentence(sentence, sizeof(sentence), vrb_tr(info->sentence));
		snprintf(line, sizeof(line), "%s: %s", info->name, sentence);
		print_part(i ? "" : vrb_tr("because"), line);
	}
}

/* Names compare without case, and - and _ are the same. */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '-' ? '_' : (char)toupper((unsigned char)*a);
		char y = *b == '-' ? '_' : (char)toupper((unsigned char)*b);

		if (x != y)
			return false;
	}
	return *a == *b;
}

static bool explain_meaning(const char *word)
{
	char *end;
	long number = strtol(word, &end, 10);
	bool is_number = *word && !*end;

	for (unsigned i = 0; i < vrb_n_meanings; i++) {
		const struct vrb_meaning *m = &vrb_meanings[i];
		const char *bare = m->is_errno ? m->name : m->name + strlen("IBV_WC_");
		const char *said = m->is_errno ? strerror(m->number)
					       : ibv_wc_status_str((enum ibv_wc_status)m->number);

		if ((is_number && !m->is_errno && number == m->number) ||
		    same_name(word, m->name) || same_name(word, bare) || !strcasecmp(word, said)) {
			print_meaning(m);
			return true;
		}
	}
	return false;
}

static bool explain_verdict(const char *word)
{
	for (int v = 1; v < VRB_N_VERDICTS; v++) {
		const struct vrb_verdict_info *info = vrb_verdict_info((enum vrb_verdict)v);

		if (same_name(word, info->name) || same_name(word, info->counter)) {
			print_verdict((enum vrb_verdict)v);
			return true;
		}
	}
	return false;
}

static void print_list(void)
{
	puts(vrb_tr("Completion statuses and errnos:"));
	for (unsigned i = 0; i < vrb_n_meanings; i++)
		printf("  %s\n", vrb_meanings[i].name);
	puts(vrb_tr("Verdicts:"));
	for (int v = 1; v < VRB_N_VERDICTS; v++) {
		const struct vrb_verdict_info *info = vrb_verdict_info((enum vrb_verdict)v);

		printf("  %-20s %s\n", info->name, vrb_tr(kind_text[info->kind]));
	}
}

/* False, having said so: there is none. */
static bool tell(json_t *stories, bool as_json)
{
	json_t *story;
	size_t i;

	if (!stories)
		return false;
	if (as_json)
		vrb_out_json(stdout, stories);
	json_array_foreach(stories, i, story)
	{
		if (as_json)
			break;
		if (i)
			putchar('\n');
		vrb_story_print(story);
	}
	json_decref(stories);
	return true;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool as_json = false;
	int opt, missed = 0;
	vrb_qpn qpn;

	while ((opt = vrb_opt_next(&vrb_cmd_explain, argc, argv, "h", longs)) != -1) {
		if (opt != 'j')
			return vrb_opt_exit(opt);
		as_json = true;
	}
	if (optind == argc)
		print_list();
	for (int i = optind; i < argc; i++) {
		if (i > optind)
			putchar('\n');
		if (explain_meaning(argv[i]) || explain_verdict(argv[i]))
			continue;
		if (vrb_story_is_qpn(argv[i], &qpn)) {
			missed += !tell(vrb_story_ask(qpn), as_json);
			continue;
		}
		if (vrb_story_is_file(argv[i])) {
			missed += !tell(vrb_story_read(argv[i]), as_json);
			continue;
		}
		vrb_complain(vrb_tr("`%s` is no verdict, completion status or errno that I know "
				    "(`verbena explain` lists them), no queue pair number and no "
				    "file"),
			     argv[i]);
		missed++;
	}
	return missed ? VRB_EXIT_FAILED : VRB_EXIT_OK;
}

const struct vrb_command vrb_cmd_explain = {
	.name = "explain",
	.summary = "say what a refusal, a status or an errno means, or why a queue pair ended",
	.usage =
		"[--json] [NAME | QPN | FILE]...\n\n"
		"NAME is a verdict (LKEY_RANGE_END), a completion status (LOC_PROT_ERR, 4) or an\n"
		"errno (EINVAL): what it means. Without NAME all are listed.\n\n"
		"QPN (0x0312ab) is a queue pair of a process that runs: what happened to it and\n"
		"what ended it. FILE holds the stories of processes that have ended; it was named\n"
		"by VERBENA_STORY or `verbena run --story`. --json: stories as JSON.\n\n"
		"Symptoms, causes and remedies: docs/troubleshooting.md.\n",
	.run = run,
};
