/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands between the checker and our device and gives two answers that another one would give. */
#include "other.h"

#include <dlfcn.h>

#undef ibv_query_port

int other_fork = -1;
int other_mtu;

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return other_fork < 0 ? IBV_FORK_UNNEEDED : (enum ibv_fork_status)other_fork;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	__typeof__(&ibv_query_port) real =
		(__typeof__(&ibv_query_port))dlsym(RTLD_NEXT, "ibv_query_port");
	int err = real(ctx, port, attr);

	if (!err && other_mtu)
		((struct ibv_port_attr *)attr)->active_mtu = (enum ibv_mtu)other_mtu;
	return err;
}
