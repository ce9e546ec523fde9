/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that the HCA keeps about a process (traces, totals), in a folder of the test's own, and two
 * queue pairs of this process that give it something to write.
 */
#ifndef TESTS_HCA_RECORDS_H
#define TESTS_HCA_RECORDS_H

#include "kit.h"

extern char records_folder[];

/* How often the engine has said so. */
uint64_t said(enum vrb_verdict v);

/* Makes the folder; env is set to a prefix in it. */
void records_begin(const char *env);
/* f reads and closes each file of the folder; last: files and folder are removed. */
void records_read(void (*f)(void *arg, int fd), void *arg, bool last);

struct loop {
	struct node n;
	struct vrb_hqp *a, *b;
};

void loop_open(struct loop *l);
void loop_close(struct loop *l);

#endif
