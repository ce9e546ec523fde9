/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of the numbers in reports: states, types, opcodes, mask bits, objects. Numbers are those of
 * verbs.h and of the enums in rules/object.h and rules/post.h (a test holds them together).
 */
#ifndef VRB_BASE_NAMES_H
#define VRB_BASE_NAMES_H

#include "base/catalog.h"
#include "base/text.h"

/* Writes the name of v; kind is the letter of the placeholder (base/verdict.h). False: no such
 * kind. A number without a name is written as it is. */
bool vrb_name_put(struct vrb_text *t, char kind, uint64_t v);
bool vrb_name_put_in(struct vrb_text *t, char kind, uint64_t v, vrb_translate tr);

#endif
