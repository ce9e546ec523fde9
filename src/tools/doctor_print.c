/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report as text, gravest first, or as JSON. Terminal escapes in what files hold are printed
 * as '?', since a container's files need not be one's own.
 */
#include <stdio.h>
#include <string.h>

#include "tools/doctor.h"
#include "tools/out.h"

#define WRAP_COLUMN 96
#define LABEL	    "        %-7s"
#define INDENT	    16

static const char *const order[] = {"fail", "warn", "note", "ok"};

static void print_word(const char *s, int n)
{
	for (int i = 0; i < n; i++)
		putchar((unsigned char)s[i] < ' ' || s[i] == 0x7f ? '?' : s[i]);
}

static void print_wrapped(int column, int indent, const char *text)
{
	while (*text) {
		int word = (int)strcspn(text, " ");

		if (column + word + 1 > WRAP_COLUMN)
			column = printf("\n%*s", indent - 1, "") - 1;
		putchar(' ');
		print_word(text, word);
		column += word + 1;
		text += word;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_part(const json_t *f, const char *key, const char *label)
{
	const char *text = json_string_value(json_object_get(f, key));

	if (text && *text)
		print_wrapped(printf(LABEL, label), INDENT, text);
}

/* A command is printed on one line, to be copied. */
static void print_mend(const json_t *f)
{
	const char *text = json_string_value(json_object_get(f, "mend"));

	if (!text || !*text)
		return;
	printf(LABEL " ", "do");
	print_word(text, (int)strlen(text));
	putchar('\n');
}

static void print_evidence(json_t *f)
{
	char *text = json_dumps(json_object_get(f, "evidence"), JSON_COMPACT | JSON_ENSURE_ASCII);

	if (text && strcmp(text, "{}"))
		printf(LABEL " %s\n", "read", text);
	free(text);
}

static void print_finding(json_t *f, const char *severity, bool verbose)
{
	int column = printf("%-5s %s:", severity, json_string_value(json_object_get(f, "id")));

	print_wrapped(column, INDENT, json_string_value(json_object_get(f, "sentence")));
	print_part(f, "costs", "costs");
	print_mend(f);
	if (verbose)
		print_evidence(f);
}

void vrb_doc_print_text(const struct vrb_doc *d, bool verbose, bool quiet)
{
	json_t *f;
	size_t i;

	for (unsigned s = 0; s < (quiet ? 2 : 4); s++) {
		json_array_foreach(d->findings, i, f)
		{
			const char *severity = json_string_value(json_object_get(f, "severity"));

			if (!strcmp(severity, order[s]))
				print_finding(f, severity, verbose);
		}
	}
	printf("%u failed, %u warnings, %u notes, %u ok\n", d->count[VRB_SEV_FAIL],
	       d->count[VRB_SEV_WARN], d->count[VRB_SEV_NOTE], d->count[VRB_SEV_OK]);
}

void vrb_doc_print_json(const struct vrb_doc *d)
{
	json_t *all =
		json_pack("{s:s, s:s, s:{s:i, s:i, s:i, s:i}, s:O}", "version", VRB_VERSION,
			  "kernel", d->release, "summary", "fail", (int)d->count[VRB_SEV_FAIL],
			  "warn", (int)d->count[VRB_SEV_WARN], "note", (int)d->count[VRB_SEV_NOTE],
			  "ok", (int)d->count[VRB_SEV_OK], "findings", d->findings);

	vrb_out_json(stdout, all);
	json_decref(all);
}

static void list_rows(json_t *out, const struct vrb_finding *rows, unsigned n)
{
	static const char *const names[] = {"ok", "note", "warn", "fail"};

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(out,
				      json_pack("{s:s, s:s, s:s, s:s}", "id", rows[i].word, "group",
						rows[i].group, "severity", names[rows[i].severity],
						"sentence", rows[i].sentence));
}

void vrb_doc_print_list(bool json)
{
	json_t *out = json_array();

	list_rows(out, vrb_findings, VRB_N_FINDINGS);
	list_rows(out, vrb_counter_findings, vrb_n_counter_findings);
	if (json)
		vrb_out_json(stdout, out);
	else
		vrb_out_table(stdout, out);
	json_decref(out);
}
