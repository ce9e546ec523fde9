/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/slab.h"

const uint16_t vrb_slab_size[VRB_SLAB_CLASSES] = {64,  128,  192,  256,	 384,  512,
						  768, 1024, 1536, 2048, 3072, 4096};
