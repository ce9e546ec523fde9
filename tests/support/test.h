/* SPDX-License-Identifier: BSD-2-Clause */
/* What every test program includes first: cmocka with the headers it wants before itself. */
#ifndef VRB_TESTS_SUPPORT_TEST_H
#define VRB_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define VRB_RUN_TESTS(tests) cmocka_run_group_tests(tests, NULL, NULL)

#endif
