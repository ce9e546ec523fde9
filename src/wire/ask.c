/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ask.h"

#include <string.h>

#include "base/bytes.h"

#define VERSION 1u

enum { AT_VERSION = 1, AT_MAGIC = 2, AT_KIND = 4, AT_QPN = 5, AT_NONCE = 8, AT_FROM = 16 };
enum { AT_WHAT = 19, AT_STATE = 20, AT_TYPE = 21, AT_EPSN = 22 };

void vrb_ask_emit(const struct vrb_ask *a, uint8_t out[VRB_ASK_LEN])
{
	memset(out, 0, VRB_ASK_LEN);
	out[0] = VRB_ASK_OPCODE;
	out[AT_VERSION] = VERSION;
	out[AT_MAGIC] = 'V';
	out[AT_MAGIC + 1] = 'a';
	out[AT_KIND] = a->is_answer;
	vrb_put_be24(out + AT_QPN, a->qpn);
	vrb_put_be64(out + AT_NONCE, a->nonce);
	vrb_put_be24(out + AT_FROM, a->from);
	out[AT_WHAT] = a->is_answer ? a->what : a->flags;
	out[AT_STATE] = a->state;
	out[AT_TYPE] = a->type;
	vrb_put_be24(out + AT_EPSN, a->epsn.v);
	memcpy(out + VRB_ASK_NAME, a->name, VRB_ASK_NAME_SIZE - 1);
}

bool vrb_ask_parse(const uint8_t *b, size_t len, struct vrb_ask *out)
{
	if (len < VRB_ASK_LEN || b[0] != VRB_ASK_OPCODE || b[AT_VERSION] != VERSION ||
	    b[AT_MAGIC] != 'V' || b[AT_MAGIC + 1] != 'a' || b[AT_KIND] > 1)
		return false;
	*out = (struct vrb_ask){
		.is_answer = b[AT_KIND],
		.flags = b[AT_WHAT],
		.what = b[AT_WHAT],
		.state = b[AT_STATE],
		.type = b[AT_TYPE],
		.qpn = vrb_get_be24(b + AT_QPN),
		.from = vrb_get_be24(b + AT_FROM),
		.nonce = vrb_get_be64(b + AT_NONCE),
		.epsn = vrb_psn(vrb_get_be24(b + AT_EPSN)),
	};
	memcpy(out->name, b + VRB_ASK_NAME, VRB_ASK_NAME_SIZE - 1);
	return true;
}
