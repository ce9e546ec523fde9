/* SPDX-License-Identifier: BSD-2-Clause */
/* What users have reported, as cases of the runner of tests/errors; `reports` says which is which.
 */
#include "kit.h"

extern const struct k_group k_silent_group, k_report_group;

const struct k_group *const k_groups[] = {&k_silent_group, &k_report_group};
const size_t k_n_groups = sizeof(k_groups) / sizeof(k_groups[0]);
