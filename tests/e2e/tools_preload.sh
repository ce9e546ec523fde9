#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The view of /sys/class/infiniband and /dev/infiniband under `verbena run`. tools_preload.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
copy_tree
ib=/sys/class/infiniband
port=$ib/verbena0/ports/1

run() {
	as_user "$verbena" run -- "$@"
}

# field NAME [DEVICE]: its values in what the library says
field() {
	name=$1
	shift
	run "$verbena" devinfo --json "$@" | sed -n "s/.*\"$name\": \"\(.*\)\",/\1/p"
}

same "$(field device | sort -u)" "$(run ls $ib)" "same devices as the library"
shown=$(run cat $ib/verbena0/node_guid | tr -d ':')
same "$(field guid verbena0)" "$shown" "same GUID as the library"
gid=$(field gid verbena0 | head -1)
shown=$(run cat $port/gids/0)
check "same GID 0 as the library" python3 -c "
import ipaddress, sys
sys.exit(ipaddress.ip_address('$gid') != ipaddress.ip_address('$shown'))"

says "^4: ACTIVE$" "state" run cat $port/state
says "^RoCE v2$" "GID type" run cat $port/gid_attrs/types/0
says "^verbena0$" "uverbs0 names its device" run cat /sys/class/infiniband_verbs/uverbs0/ibdev
check "device node is a character device" run test -c /dev/infiniband/uverbs0
check "device node can be read and written" \
	run sh -c 'cd /dev/infiniband && [ -r uverbs0 ] && [ -w /dev/infiniband/uverbs0 ]'
says "^c" "ls -l of the device node" run ls -l /dev/infiniband/uverbs0
says "^$ib/verbena0/device$" "realpath keeps the shown path" run realpath $ib/verbena0/device
says "verbena0/ports/1/state" "find" run find $ib/verbena0 -name state
says "^4: ACTIVE" "a shell that went there" run sh -c "cd $ib/verbena0 && cat ports/1/state"
says "^$port/state$" "python" run python3 -c "
import glob, os
assert 'verbena0' in os.listdir('$ib')
assert os.stat('/dev/infiniband/uverbs0').st_mode & 0o170000 == 0o020000
print(glob.glob('$ib/verbena0/ports/*/state')[0])"
check "the folder does not exist without it" sh -c "! test -e $ib/verbena0"
says "^root" "other paths are untouched" run head -1 /etc/passwd
check "a device that is not there" run sh -c "! test -e $ib/verbena99"
check "a device node that is not there" run sh -c '! test -e /dev/infiniband/uverbs99'

# counters: idle, then in traffic
says "^0$" "a counter is 0 when nobody has the device open" run cat $port/counters/port_xmit_packets
as_user "$verbena" demo >"$tmp/demo.log" 2>&1 &
demo=$!
top=0
i=0
while [ "$i" -lt 100 ] && kill -0 $demo 2>/dev/null; do
	i=$((i + 1))
	seen=$(run cat $port/counters/port_xmit_packets)
	[ "$seen" -gt "$top" ] 2>/dev/null && top=$seen
done
wait $demo
if [ "$top" -gt 0 ]; then
	pass "a counter moves in traffic"
else
	fail "a counter moves in traffic" "$(cat "$tmp/demo.log")"
fi
finish
