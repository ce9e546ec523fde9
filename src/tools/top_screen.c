/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A terminal that shows one text after the other: the alternate screen without a cursor, and keys
 * without echo as they are pressed. Lines are cut to the width, the text to the height.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tools/top.h"

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define HOME  "\033[H"
#define REST  "\033[K" /* clears to the end of the line */
#define BELOW "\033[J"

static struct termios before;
static bool has_keys, is_entered;

void vrb_screen_enter(void)
{
	struct termios t;

	has_keys = !tcgetattr(STDIN_FILENO, &before);
	if (has_keys) {
		t = before;
		t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		t.c_cc[VMIN] = 0;
		t.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &t);
	}
	fputs(ENTER, stdout);
	fflush(stdout);
	is_entered = true;
}

void vrb_screen_leave(void)
{
	if (!is_entered)
		return;
	is_entered = false;
	fputs(LEAVE, stdout);
	fflush(stdout);
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void vrb_screen_show(const char *text)
{
	struct winsize w = {.ws_row = 24, .ws_col = 80};
	int rows;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || !w.ws_row || !w.ws_col)
		w = (struct winsize){.ws_row = 24, .ws_col = 80};
	fputs(HOME, stdout);
	for (rows = 0; *text && rows < w.ws_row; rows++) {
		int n = (int)strcspn(text, "\n");

		printf("%s%.*s" REST, rows ? "\r\n" : "", n < w.ws_col ? n : w.ws_col, text);
		text += n;
		text += *text == '\n';
	}
	fputs(BELOW, stdout);
	fflush(stdout);
}
