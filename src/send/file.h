/* SPDX-License-Identifier: BSD-2-Clause */
/* Files under way (file.c): what the rest of a channel calls. */
#ifndef VRB_SEND_FILE_H
#define VRB_SEND_FILE_H

#include "send/channel.h"

/* The next windows, as far as there is room. */
void vrb_file_move(struct vrb_channel *ch);
/* The peer is done with a window, or the channel has ended. */
void vrb_file_window_over(struct vrb_channel *ch, uint32_t window, enum vrb_outcome outcome);
/* The channel has ended: so has the file. */
void vrb_file_settle(struct vrb_channel *ch);

#endif
