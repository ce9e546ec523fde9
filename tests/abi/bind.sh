#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every installed program and library that links libibverbs.so.1, with all it links, binds
# completely against LIBRARY (ldd -r resolves data and functions, as LD_BIND_NOW=1 does). Which
# packages are not here is printed; none at all: skip.
# usage: bind.sh LIBRARY
set -eu
lib=$1
dir=$(dirname "$lib")
multi=/usr/lib/$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
py=/usr/lib/python3/dist-packages
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# group: glob patterns of its files
groups="
ibverbs-utils:/usr/bin/ibv_*
perftest:/usr/bin/ib_*_bw,/usr/bin/ib_*_lat,/usr/bin/raw_ethernet_*
rdmacm-utils:/usr/bin/rping,/usr/bin/ucmatose,/usr/bin/udaddy,/usr/bin/mckey,/usr/bin/cmtime
rdmacm-utils2:/usr/bin/rdma_*,/usr/bin/r*stream,/usr/bin/rcopy,/usr/bin/udpong
ucx:$multi/ucx/libuct_ib*.so*,$multi/ucx/libuct_rdmacm*.so*,/usr/bin/ucx_perftest
libfabric:$multi/libfabric.so.1,/usr/bin/fi_info
openmpi:$multi/openmpi/lib/openmpi3/mca_btl_openib.so,$multi/libmca_common_verbs.so*
pyverbs:$py/pyverbs/*.so,$py/pyverbs/providers/*/*.so
qperf:/usr/bin/qperf
fio:/usr/bin/fio
qemu:$multi/qemu/*rdma*.so,/usr/bin/qemu-system-x86_64
librpma:$multi/librpma.so.0
libiscsi:$multi/libiscsi.so.*
gloo:$multi/libgloo.so.0
tgt:/usr/sbin/tgtd
dapl:$multi/libdaplofa.so.2
providers:$multi/libmlx5.so.1,$multi/libmlx4.so.1,$multi/libefa.so.1
librdmacm:$multi/librdmacm.so.1,$multi/rsocket/librspreload.so
"

uses_verbs() {
	LD_LIBRARY_PATH=$dir ldd "$1" 2>/dev/null | grep -q "libibverbs.so.1 => $lib_real"
}

check() { # one file
	LD_LIBRARY_PATH=$dir LD_BIND_NOW=1 ldd -r "$1" > "$tmp/out" 2>&1 || true
	# a plug-in takes other symbols from the program that loads it: only verbs' names count
	grep -E "undefined symbol: ($names)|version .IBVERBS|verbs.* not found" "$tmp/out" \
		> "$tmp/bad" || true
	[ ! -s "$tmp/bad" ]
}

names='_*ibv_|_*verbs_|rdma_|mlx[45]|efadv_|execute_ioctl|__ioctl|mult_to_ibv|mbps_to_ibv'
lib_real=$dir/libibverbs.so.1
n=0 failed=0 absent=''
for line in $groups; do
	group=${line%%:*}
	found=0
	for pattern in $(echo "${line#*:}" | tr ',' ' '); do
		# the pattern is meant to expand
		for f in $pattern; do
			if [ ! -f "$f" ] || ! uses_verbs "$f"; then
				continue
			fi
			found=1
			n=$((n + 1))
			if ! check "$f"; then
				failed=$((failed + 1))
				echo "$group $f does not bind:"
				head -5 "$tmp/bad"
			fi
		done
	done
	[ $found = 1 ] || absent="$absent $group"
done
echo "$n files bind-checked, $failed failed; not installed:${absent:- none}"
[ $n -gt 0 ] || exit 77
[ $failed = 0 ]
