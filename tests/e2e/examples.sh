#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
#   example_send (receiver) <== RC SEND == example_send 127.0.0.1, polling and sleeping
#
#   examples.sh BUILD
set -u
build=$1
run="$build/bin/verbena run --"
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

for how in "" -s; do
	# shellcheck disable=SC2086 # $run and $how are lists of words
	timeout 20 $run "$build/examples/example_send" $how >"$out" 2>&1 &
	receiver=$!
	# shellcheck disable=SC2086
	timeout 20 $run "$build/examples/example_send" $how 127.0.0.1 || exit 1
	wait $receiver || { cat "$out"; exit 1; }
	grep -q '^received 20 bytes: a line by RDMA SEND$' "$out" || { cat "$out"; exit 1; }
done
echo "both passed"
