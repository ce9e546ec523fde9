/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the doctor reads: files below the root of struct vrb_doc, each path given as a format. All
 * return false (or NULL, or 0) when the file is missing or is not what was asked for.
 */
#ifndef VRB_TOOLS_DOCTOR_READ_H
#define VRB_TOOLS_DOCTOR_READ_H

#include <stddef.h>

#include "tools/doctor.h"

#define VRB_DOC_NAME  64
#define VRB_DOC_NAMES 512
#define VRB_DOC_CPUS  4096

struct vrb_doc_names {
	unsigned n;
	char name[VRB_DOC_NAMES][VRB_DOC_NAME];
};

struct vrb_cpus {
	uint64_t word[VRB_DOC_CPUS / 64];
};

#define VRB_DOC_PATH(f, a) __attribute__((format(printf, f, a)))

bool vrb_doc_exists(const struct vrb_doc *d, const char *fmt, ...) VRB_DOC_PATH(2, 3);
/* The first line, without blanks at its end. */
bool vrb_doc_line(const struct vrb_doc *d, char *out, size_t size, const char *fmt, ...)
	VRB_DOC_PATH(4, 5);
bool vrb_doc_number(const struct vrb_doc *d, long long *out, const char *fmt, ...)
	VRB_DOC_PATH(3, 4);
/* The whole file up to 1 MiB, to be freed; bytes of value 0 are newlines. */
char *vrb_doc_slurp(const struct vrb_doc *d, const char *fmt, ...) VRB_DOC_PATH(2, 3);
/* What a symbolic link points to; not recorded by itself. */
bool vrb_doc_link(const struct vrb_doc *d, char *out, size_t size, const char *fmt, ...)
	VRB_DOC_PATH(4, 5);
/* The names in a folder, sorted, numbers by value. */
unsigned vrb_doc_names(const struct vrb_doc *d, struct vrb_doc_names *out, const char *fmt, ...)
	VRB_DOC_PATH(3, 4);
/* Mode and owner; whether the process may read and write it, by owner and groups alone. */
bool vrb_doc_access(const struct vrb_doc *d, unsigned *mode, bool *may, const char *fmt, ...)
	VRB_DOC_PATH(4, 5);

/* The next line of a text that vrb_doc_slurp gave, cut at its end; NULL after the last. */
char *vrb_doc_next_line(char **cursor);
/* The value behind key (with its colon or equal sign) at the start of a line of text. */
bool vrb_doc_field(const char *text, const char *key, char *out, size_t size);

/* A variable of the process. */
bool vrb_doc_env(const struct vrb_doc *d, const char *name, char *out, size_t size);
/* A row of /proc/PID/limits; -1 is unlimited. */
bool vrb_doc_limit(const struct vrb_doc *d, const char *row, long long *soft, long long *hard);
/* Calls f for each process until it returns true. */
void vrb_doc_each_pid(const struct vrb_doc *d,
		      bool (*f)(const struct vrb_doc *d, const char *pid, void *arg), void *arg);
/* Whether a process has this name of its command. */
bool vrb_doc_running(const struct vrb_doc *d, const char *comm);

/* "0-3,8" */
bool vrb_cpus_parse(struct vrb_cpus *c, const char *list);
bool vrb_doc_cpus(const struct vrb_doc *d, struct vrb_cpus *out, const char *fmt, ...)
	VRB_DOC_PATH(3, 4);
bool vrb_doc_allowed(const struct vrb_doc *d, struct vrb_cpus *out, char *list, size_t size);
unsigned vrb_cpus_count(const struct vrb_cpus *c);
bool vrb_cpus_has(const struct vrb_cpus *c, unsigned cpu);
/* How many of a are also in b. */
unsigned vrb_cpus_common(const struct vrb_cpus *a, const struct vrb_cpus *b);

/* The statistics of an interface's driver as lines "name: value", to be freed. */
char *vrb_doc_ethtool(const struct vrb_doc *d, const char *netdev);
/* One of them, or the sum of those of all priorities: "rx_prio*_pause". */
bool vrb_doc_ethtool_sum(const char *text, const char *name, long long *out);

/* What --record keeps of what was read; nothing without it. Paths are with the root. */
void vrb_record_file(const struct vrb_doc *d, const char *path, const char *bytes, size_t n);
void vrb_record_link(const struct vrb_doc *d, const char *path, const char *target);
void vrb_record_exists(const struct vrb_doc *d, const char *path, bool folder, unsigned mode);
void vrb_record_env(const struct vrb_doc *d, const char *name, const char *value);

/* "64 KiB" */
const char *vrb_doc_size(char *out, size_t size, long long bytes);

#endif
