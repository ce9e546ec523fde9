/* SPDX-License-Identifier: BSD-2-Clause */
/* The stress tests of one program; each runs in a forked process under a watchdog. */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include "support/end.h"

#include <sys/types.h>

void test_one_thread(long n);
void test_passive(long n);
void test_wakeup(long n);
void test_wakeup_poll(long n);
void test_wakeup_held(long n);
void test_wakeup_held_poll(long n);
void test_idle(long n);
void test_atomics(long n);
void test_fork(long n);
void test_threads(long n);
void test_huge(long n);

/* A child that dies with its parent, joined to it by a stream socket. Returns its pid, 0 in it. */
pid_t start_child(int *sock);
/* Waits for a child, which must have ended with status 0. */
void join_child(pid_t pid);

#endif
