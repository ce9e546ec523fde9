/* SPDX-License-Identifier: BSD-2-Clause */
/* The command as a child of `verbena run`, for those options that have something to say afterwards.
 */
#ifndef VRB_TOOLS_RUN_CHILD_H
#define VRB_TOOLS_RUN_CHILD_H

#include <limits.h>
#include <stdbool.h>

/* Runs it to its end, handing on what asks for the end of it; the exit status as a shell gives it.
 */
int vrb_run_child(char **argv);

/* An empty record that the child will fill: the file `asked`, by its whole path, or a temporary one
 * of that stem, which is then ours to remove. False when it has said why it cannot be made. */
bool vrb_run_log(const char *asked, const char *stem, char path[PATH_MAX], bool *is_ours);

/* With the files in it; "": there is none. */
void vrb_run_drop_folder(const char *folder);

#endif
