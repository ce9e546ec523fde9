/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results as a JSON array of flat objects, printed either as JSON or as an aligned table whose
 * columns are the keys of the first object in their order. One model, two forms.
 */
#ifndef VRB_TOOLS_OUT_H
#define VRB_TOOLS_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void vrb_out_json(FILE *f, const json_t *any);
void vrb_out_table(FILE *f, const json_t *rows);

#endif
