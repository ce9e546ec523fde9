#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `verbena demo` as an ordinary user, on each device, in a namespace of its own, on one CPU.
# tools_demo.sh BUILD [ROUNDS]
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
copy_tree
rounds=${2:-1}

says "All of it verified" "demo" as_user "$verbena" demo
says "run 12 bytes past the end" "demo explains the wrong request" as_user "$verbena" demo
check "demo --json" sh -c "'$verbena' demo --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert len(r[\"steps\"]) == 6 and all(s[\"ok\"] for s in r[\"steps\"])
assert [x[\"bytes\"] for x in r[\"latency\"]] == [8, 64, 256, 4096]
assert [x[\"bytes\"] for x in r[\"throughput\"]] == [65536, 1048576, 64]
assert r[\"wrong_request_refused\"]'"
for device in $("$verbena" devinfo --json | sed -n 's/.*"device": "\(.*\)",/\1/p'); do
	check "demo on $device" as_user "$verbena" demo --device "$device"
done
check "demo on one CPU" as_user taskset -c 0 "$verbena" demo
status 1 "demo on a device that is not there" "$verbena" demo --device none7
if unshare -rn true 2>/dev/null; then
	check "demo in a namespace with only lo" \
		unshare -rn sh -c "ip link set lo up && exec '$verbena' demo"
	status 1 "demo without any interface" unshare -rn "$verbena" demo
	says "ip link set lo up" "demo without any interface says what to do" \
		unshare -rn "$verbena" demo
else
	skip "demo in a namespace" "unshare is not permitted here"
fi
i=1
while [ "$i" -lt "$rounds" ]; do
	i=$((i + 1))
	check "demo, round $i" as_user "$verbena" demo
done
finish
