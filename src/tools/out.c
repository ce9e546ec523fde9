/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints rows as an aligned table (numbers to the right) or as JSON. */
#include "tools/out.h"

#include <string.h>

#define COLUMNS_MAX 16
#define CELL_BYTES  256

void vrb_out_json(FILE *f, const json_t *any)
{
	json_dumpf(any, f, JSON_INDENT(2));
	fputc('\n', f);
}

static bool is_number(const json_t *v)
{
	return json_is_number(v);
}

static void cell_text(char *out, const json_t *v)
{
	if (json_is_string(v))
		snprintf(out, CELL_BYTES, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(out, CELL_BYTES, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		snprintf(out, CELL_BYTES, "%.2f", json_real_value(v));
	else if (json_is_boolean(v))
		snprintf(out, CELL_BYTES, "%s", json_is_true(v) ? "yes" : "no");
	else
		snprintf(out, CELL_BYTES, "-");
}

void vrb_out_table(FILE *f, const json_t *rows)
{
	const char *keys[COLUMNS_MAX];
	int width[COLUMNS_MAX], n = 0;
	char cell[CELL_BYTES];
	const char *key;
	json_t *row, *value;
	size_t i;

	json_object_foreach(json_array_get(rows, 0), key, value)
	{
		if (n == COLUMNS_MAX)
			break;
		width[n] = (int)strlen(key);
		keys[n++] = key;
	}
	json_array_foreach(rows, i, row) for (int c = 0; c < n; c++)
	{
		cell_text(cell, json_object_get(row, keys[c]));
		if ((int)strlen(cell) > width[c])
			width[c] = (int)strlen(cell);
	}
	for (int c = 0; c < n; c++) {
		bool right = is_number(json_object_get(json_array_get(rows, 0), keys[c]));

		fprintf(f, "%*s%s",
			right	    ? width[c]
			: c + 1 < n ? -width[c]
				    : 0,
			keys[c], c + 1 < n ? "  " : "\n");
	}
	json_array_foreach(rows, i, row) for (int c = 0; c < n; c++)
	{
		const json_t *v = json_object_get(row, keys[c]);

		cell_text(cell, v);
		fprintf(f, "%*s%s",
			is_number(v) ? width[c]
			: c + 1 < n  ? -width[c]
				     : 0,
			cell, c + 1 < n ? "  " : "\n");
	}
}
