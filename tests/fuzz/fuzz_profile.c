/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a profile: either values in their ranges, or an error that points into the text and
 * can be said. */
#include "fuzz/fuzz.h"

#include "base/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vrb_words_error e;
	struct vrb_profile p;
	char text[256];
	size_t n;

	if (vrb_profile_parse((const char *)data, size, &p, &e)) {
		for (uint32_t i = 0; i < vrb_profile_n_knobs; i++) {
			uint32_t v = vrb_profile_value(&p, &vrb_profile_knobs[i]);

			FZ_CHECK(v >= vrb_profile_knobs[i].min && v <= vrb_profile_knobs[i].max);
		}
		return 0;
	}
	FZ_CHECK(e.line >= 1 && e.column >= 1 && e.expected);
	FZ_CHECK(e.at >= (const char *)data && e.at + e.at_len <= (const char *)data + size);
	n = vrb_words_error_format(text, sizeof(text), &e);
	FZ_CHECK(n > 0 && n < sizeof(text));
	return 0;
}
