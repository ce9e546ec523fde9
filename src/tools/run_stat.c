/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See run_stat.h. Each process writes a file of its own into a temporary folder, which goes when
 * they have been read. One model, as JSON or as tables of it: the first has the traffic of each
 * process and device, the second whatever else has happened at all.
 */
#include "tools/run_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/totals.h"
#include "base/verdict.h"
#include "tools/out.h"
#include "tools/run_child.h"
#include "tools/tools.h"

#define INT(v) json_integer((json_int_t)(v))

void vrb_run_stat_take(struct vrb_run_stat_opt *o, const char *form)
{
	o->wanted = true;
	o->form = form;
}

int vrb_run_stat_load(struct vrb_run_stat_opt *o)
{
	size_t n = o->file ? strlen(o->file) : 0;

	if (o->form && strcmp(o->form, "text") && strcmp(o->form, "json")) {
		vrb_complain("--stat=%s: possible are text and json", o->form);
		return VRB_EXIT_USAGE;
	}
	o->wanted = o->wanted || o->file;
	o->json = o->form ? !strcmp(o->form, "json") : n >= 5 && !strcmp(o->file + n - 5, ".json");
	return -1;
}

bool vrb_run_stat_apply(struct vrb_run_stat_opt *o)
{
	const char *tmp = getenv("TMPDIR");
	char prefix[PATH_MAX + 8];
	int fd;

	if (!o->wanted)
		return true;
	/* a pipe that nobody reads is an error, not a wait */
	if (o->file) {
		fd = open(o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
		if (fd < 0 || fcntl(fd, F_SETFL, 0) || !(o->out = fdopen(fd, "w"))) {
			vrb_complain("%s: %s", o->file, strerror(errno));
			return false;
		}
	}
	snprintf(o->folder, sizeof(o->folder), "%s/verbena-stat-XXXXXX",
		 tmp && *tmp == '/' ? tmp : "/tmp");
	if (!mkdtemp(o->folder)) {
		vrb_complain("--stat: no folder for its parts, %s: %s", o->folder, strerror(errno));
		o->folder[0] = '\0';
		return false;
	}
	snprintf(prefix, sizeof(prefix), "%s/part", o->folder);
	if (!setenv(VRB_TOTALS_ENV, prefix, 1))
		return true;
	vrb_complain("cannot set the environment: %s", strerror(errno));
	vrb_run_drop_folder(o->folder);
	return false;
}

/* ---- reading */

static bool read_part(struct vrb_totals_file *p, int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, p, sizeof(*p));
	close(fd);
	p->comm[sizeof(p->comm) - 1] = '\0';
	return n == (ssize_t)sizeof(*p) && p->magic == VRB_TOTALS_MAGIC && p->size == sizeof(*p);
}

static int by_beginning(const void *a, const void *b)
{
	const struct vrb_totals_file *x = a, *y = b;

	return (x->began_ns > y->began_ns) - (x->began_ns < y->began_ns);
}

/* All that can be read: a process may have been killed while it began. */
static bool read_parts(const char *folder, struct vrb_totals_file **parts, size_t *n)
{
	DIR *d = opendir(folder);
	struct vrb_totals_file *more;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		more = reallocarray(*parts, *n + 1, sizeof(*more));
		if (!more) {
			closedir(d);
			return false;
		}
		*parts = more;
		*n += read_part(&more[*n], dirfd(d), e->d_name);
	}
	if (!d)
		return false;
	closedir(d);
	if (*n)
		qsort(*parts, *n, sizeof(**parts), by_beginning);
	return true;
}

/* ---- the model */

static void put(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v);
}

/* Of JSON: the name of a process is anything, and JSON is UTF-8. */
static json_t *text(const char *s)
{
	char plain[256];
	json_t *v = json_string(s);

	if (v)
		return v;
	snprintf(plain, sizeof(plain), "%s", s);
	for (char *c = plain; *c; c++)
		*c = *c & 0x80 ? '?' : *c;
	return json_string(plain);
}

static const struct fact {
	const char *key;
	size_t at;
	bool is_traffic;
} facts[] = {
#define FACT(field, traffic)                                                                       \
	{                                                                                          \
#field, offsetof(struct vrb_totals_device, field), traffic                         \
	}
	FACT(sent, true),
	FACT(taken, true),
	FACT(tx_bytes, true),
	FACT(rx_bytes, true),
	FACT(tx_packets, true),
	FACT(rx_packets, true),
	FACT(completions, true),
	FACT(failed, true),
	FACT(events, false),
	FACT(async_events, false),
	FACT(retransmits, false),
	FACT(timeouts, false),
	FACT(probes, false),
	FACT(rnr_naks_sent, false),
	FACT(rnr_naks_received, false),
	FACT(sequence_naks_sent, false),
	FACT(sequence_naks_received, false),
};
#define N_FACTS (sizeof(facts) / sizeof(facts[0]))

static uint64_t value(const struct vrb_totals_device *d, const struct fact *w)
{
	uint64_t v;

	memcpy(&v, (const char *)d + w->at, sizeof(v));
	return v;
}

static json_t *device_json(const struct vrb_totals_device *d)
{
	json_t *o = json_object();
	char name[sizeof(d->name) + 1] = "";

	memcpy(name, d->name, sizeof(d->name));
	put(o, "name", text(name));
	for (size_t i = 0; i < N_FACTS; i++)
		put(o, facts[i].key, INT(value(d, &facts[i])));
	return o;
}

static json_t *process_json(const struct vrb_totals_file *f)
{
	json_t *o = json_object(), *devices = json_array(), *verdicts = json_object();

	put(o, "pid", INT(f->pid));
	put(o, "program", text(f->comm));
	put(o, "user_s", json_real((double)f->user_ns * 1e-9));
	put(o, "system_s", json_real((double)f->system_ns * 1e-9));
	for (uint32_t i = 0; i < VRB_TOTALS_DEVICES && f->device[i].name[0]; i++)
		json_array_append_new(devices, device_json(&f->device[i]));
	put(o, "devices", devices);
	for (uint32_t i = 0; i < VRB_TOTALS_VERDICTS && i < VRB_N_VERDICTS; i++)
		if (f->verdict[i])
			put(verdicts, vrb_verdict_info((enum vrb_verdict)i)->counter,
			    INT(f->verdict[i]));
	put(o, "verdicts", verdicts);
	return o;
}

static json_t *model(const struct vrb_totals_file *parts, size_t n, char **command, int status)
{
	json_t *o = json_object(), *words = json_array(), *processes = json_array();

	put(o, "verbena", json_string(VRB_VERSION));
	for (; *command; command++)
		json_array_append_new(words, text(*command));
	put(o, "command", words);
	put(o, "status", INT(status));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(processes, process_json(&parts[i]));
	put(o, "processes", processes);
	return o;
}

/* ---- the tables */

static json_t *row_of(const json_t *process, const char *device)
{
	json_t *row = json_object();

	json_object_set(row, "pid", json_object_get(process, "pid"));
	json_object_set(row, "program", json_object_get(process, "program"));
	put(row, "device", json_string(device));
	return row;
}

static void put_traffic(json_t *rows, const json_t *process, const json_t *device)
{
	json_t *row = row_of(process, json_string_value(json_object_get(device, "name")));

	for (size_t i = 0; i < N_FACTS; i++)
		if (facts[i].is_traffic)
			json_object_set(row, facts[i].key, json_object_get(device, facts[i].key));
	json_object_set(row, "user_s", json_object_get(process, "user_s"));
	json_object_set(row, "system_s", json_object_get(process, "system_s"));
	json_array_append_new(rows, row);
}

static void put_other(json_t *rows, const json_t *process, const char *device, const char *what,
		      json_t *count)
{
	json_t *row;

	if (!json_integer_value(count))
		return;
	row = row_of(process, device);
	json_object_set(row, "count", count);
	put(row, "what", json_string(what));
	json_array_append_new(rows, row);
}

static void put_tables(FILE *f, const json_t *all)
{
	json_t *traffic = json_array(), *other = json_array(), *process, *device, *count;
	const char *name;
	size_t i, k;

	json_array_foreach(json_object_get(all, "processes"), i, process)
	{
		json_array_foreach(json_object_get(process, "devices"), k, device)
		{
			put_traffic(traffic, process, device);
			for (size_t w = 0; w < N_FACTS; w++)
				if (!facts[w].is_traffic)
					put_other(
						other, process,
						json_string_value(json_object_get(device, "name")),
						facts[w].key,
						json_object_get(device, facts[w].key));
		}
		json_object_foreach(json_object_get(process, "verdicts"), name, count)
		{
			put_other(other, process, "", name, count);
		}
	}
	if (json_array_size(traffic))
		vrb_out_table(f, traffic);
	else
		fputs("verbena: no process of the command has opened a device\n", f);
	if (json_array_size(other)) {
		fputc('\n', f);
		vrb_out_table(f, other);
	}
	json_decref(traffic);
	json_decref(other);
}

/* ---- the end */

static bool write_all(struct vrb_run_stat_opt *o, const json_t *all)
{
	FILE *f = o->out ? o->out : stderr;
	bool good;

	if (o->json)
		vrb_out_json(f, all);
	else
		put_tables(f, all);
	good = !fflush(f) && !ferror(f);
	return (!o->out || !fclose(o->out)) && good;
}

int vrb_run_stat_end(struct vrb_run_stat_opt *o, char **command, int status)
{
	struct vrb_totals_file *parts = NULL;
	json_t *all;
	size_t n = 0;
	bool good;

	if (!o->wanted)
		return status;
	good = read_parts(o->folder, &parts, &n);
	if (!good)
		vrb_complain("--stat: %s: %s", o->folder, strerror(errno));
	all = model(parts, n, command, status);
	if (good && !write_all(o, all)) {
		vrb_complain("%s: %s", o->file ? o->file : "stderr", strerror(errno));
		good = false;
	}
	json_decref(all);
	free(parts);
	vrb_run_drop_folder(o->folder);
	return good || status ? status : VRB_EXIT_OURS;
}
