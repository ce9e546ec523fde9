/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts in the language of the environment (LANGUAGE, LC_ALL, LC_MESSAGES, LANG), for the faces
 * that print. Texts of machines (JSON, captures, names) stay English.
 */
#ifndef VRB_LANG_LANG_H
#define VRB_LANG_LANG_H

#include "base/catalog.h"

/* The translation of text, or text itself. Lasts as long as the process; any thread. The first call
 * reads a file, so none belongs on a way that succeeds. */
const char *vrb_tr(const char *text) __attribute__((format_arg(1)));

#endif
