/* SPDX-License-Identifier: BSD-2-Clause */
#include "kit.h"

extern const struct k_group k_lkey_group, k_rkey_group, k_recv_group, k_post_group, k_modify_group,
	k_object_group, k_peer_group, k_ud_group;

const struct k_group *const k_groups[] = {
	&k_lkey_group,	 &k_rkey_group,	  &k_recv_group, &k_post_group,
	&k_modify_group, &k_object_group, &k_peer_group, &k_ud_group,
};
const size_t k_n_groups = sizeof(k_groups) / sizeof(k_groups[0]);
