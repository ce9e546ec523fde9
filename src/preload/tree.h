/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder that stands for /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband: small files made from the list of interfaces, in a private folder of the user.
 * The folder's name is a hash of its contents: processes that see the same interfaces share it, a
 * change of an address makes another one, and nobody has to update or lock anything.
 */
#ifndef VRB_PRELOAD_TREE_H
#define VRB_PRELOAD_TREE_H

#include <limits.h>

#include "base/types.h"

/* Writes the path of the tree that fits the present interfaces, made when it is missing. */
bool vrb_tree_make(char out[PATH_MAX]);

#endif
