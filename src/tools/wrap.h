/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paragraphs on a terminal, in UTF-8: Chinese characters take two columns, and lines may end
 * between them. Control characters, which files of others may hold, are printed as '?'.
 */
#ifndef VRB_TOOLS_WRAP_H
#define VRB_TOOLS_WRAP_H

/* Prints the label behind indent blanks, in a column that is width wide; returns where it ends. */
int vrb_wrap_label(int indent, int width, const char *label);
/* Prints text from column on, a blank before it, and ends the line; further lines begin behind
 * indent - 1 blanks and the blank. */
void vrb_wrap(int column, int indent, const char *text);
/* On one line, whatever its length, without ending it: a command, to be copied. */
void vrb_wrap_line(const char *text);

#endif
