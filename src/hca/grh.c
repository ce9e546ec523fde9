/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the GRH of a UD frame that came by shared memory, from the headers the wire would have
 * had. */
#include "hca/grh.h"

#include "wire/net.h"

#define TRANSPORT_BYTES (12 + 8 + 4) /* BTH, DETH, ICRC */

bool vrb_grh_is_v4_group(const struct vrb_gid *g)
{
	return vrb_gid_is_ipv4(g) && (g->raw[12] & 0xf0) == 0xe0;
}

void vrb_grh_build(uint8_t out[VRB_GRH_LEN], const struct vrb_shm_frame *f, uint32_t payload)
{
	struct vrb_net n = {.src = f->sgid,
			    .dst = f->dgid,
			    .tclass = f->traffic_class,
			    .ttl = f->hop_limit,
			    .df = true,
			    .dport = 4791};
	uint8_t headers[48];
	bool v4 = vrb_gid_is_ipv4(&f->dgid);

	memset(out, 0, VRB_GRH_LEN);
	vrb_net_emit(&n, TRANSPORT_BYTES + ((payload + 3) & ~3u), headers);
	memcpy(out + (v4 ? 20 : 0), headers, v4 ? 20 : 40);
}
