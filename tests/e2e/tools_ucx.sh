#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# UCX over the software HCA, and Open MPI over UCX: they need the view of /dev and /sys, UD with
# the packet type in its completions, RC. tools_ucx.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
copy_tree
device=verbena0:1

if ! command -v ucx_perftest >/dev/null; then
	echo "package ucx-utils is not installed"
	exit 77
fi
for transport in rc_verbs ud_verbs; do
	says "Transport: $transport" "ucx_info finds $transport" \
		as_user "$verbena" run -- ucx_info -d
done

# perftest TRANSPORTS TEST SIZE ROUNDS
port=$((20000 + $$ % 10000))
perftest() {
	port=$((port + 1))
	what="ucx_perftest $2 -s $3 over $1"
	export UCX_TLS="$1,self" UCX_NET_DEVICES=$device UCX_WARN_UNUSED_ENV_VARS=n
	as_user timeout 60 "$verbena" run -- ucx_perftest -p $port >"$tmp/server.log" 2>&1 &
	server=$!
	i=0
	while [ $i -lt 200 ] && ! ss -ltn | grep -q ":$port "; do
		i=$((i + 1))
		sleep 0.05
	done
	out=$(as_user timeout 60 "$verbena" run -- \
		ucx_perftest -p $port 127.0.0.1 -t "$2" -s "$3" -n "$4" 2>&1)
	status=$?
	wait $server || status=$?
	if [ $status = 0 ] && echo "$out" | grep -q '^Final:'; then
		pass "$what"
	else
		fail "$what" "status $status" "$out" "$(cat "$tmp/server.log")"
	fi
}

for transports in ud_verbs rc_verbs,ud_verbs; do
	perftest $transports tag_lat 8 1000
	perftest $transports tag_bw 65536 200
	perftest $transports tag_bw 1048576 20
	perftest $transports ucp_put_lat 8 1000
	perftest $transports ucp_get 65536 200
	perftest $transports ucp_fadd 8 1000
done

cat >"$tmp/ring.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	int rank, n, bytes = 1 << 20, bad = 0;
	char *out = malloc(bytes), *in = malloc(bytes);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int len = 1; len <= bytes; len *= 4) {
		for (int i = 0; i < len; i++)
			out[i] = (char)(rank * 31 + i);
		MPI_Sendrecv(out, len, MPI_CHAR, (rank + 1) % n, 0, in, len, MPI_CHAR,
			     (rank + n - 1) % n, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < len; i++)
			bad += in[i] != (char)((rank + n - 1) % n * 31 + i);
	}
	MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d bytes differ\n", n, bad);
	MPI_Finalize();
	return bad != 0;
}
C
if command -v mpicc >/dev/null && mpicc -o "$tmp/ring" "$tmp/ring.c" 2>"$tmp/mpicc.log"; then
	export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=$device
	export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_opal_common_ucx_devices=any
	export OMPI_MCA_rmaps_base_oversubscribe=1 HOME="$tmp"
	says "2 ranks, 0 bytes differ" "Open MPI over UCX, two ranks" \
		as_user timeout 100 "$verbena" run -- mpirun -n 2 "$tmp/ring"
else
	skip "Open MPI over UCX" "package libopenmpi-dev is not installed"
fi
finish
