/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `verbena run --check` hands over, and the two ends of the checker's life: the first thing
 * done in the process, and the last, behind the destructors of all libraries, since those may
 * destroy objects yet.
 */
#include "check/check.h"
#include "check/end.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_MS 500

struct vrb_chk_options vrb_chk_options = {.wait_ms = WAIT_MS};

static __attribute__((constructor)) void begin(void)
{
	const char *mode = getenv("VERBENA_CHECK"), *wait = getenv("VERBENA_CHECK_WAIT_MS");

	vrb_chk_options.data = mode && strstr(mode, "data");
	vrb_chk_options.log = getenv("VERBENA_CHECK_LOG");
	vrb_chk_options.suppress = getenv("VERBENA_CHECK_SUPPRESS");
	if (wait && atoi(wait) > 0)
		vrb_chk_options.wait_ms = (unsigned int)atoi(wait);
	vrb_chk_end_watch();
}
