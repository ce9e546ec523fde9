/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stories of queue pairs (hca/story.h): lines of JSON, asked of a process that lives, or read
 * from the file that VERBENA_STORY has named.
 */
#ifndef VRB_TOOLS_EXPLAIN_STORY_H
#define VRB_TOOLS_EXPLAIN_STORY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/types.h"

/* The word is a queue pair number; *qpn. */
bool vrb_story_is_qpn(const char *word, vrb_qpn *qpn);
/* The word names a regular file. */
bool vrb_story_is_file(const char *word);

/* An array of stories, the newest line of each queue pair; NULL, having said why. */
json_t *vrb_story_ask(vrb_qpn qpn);
json_t *vrb_story_read(const char *path);

void vrb_story_print(const json_t *story);

#endif
