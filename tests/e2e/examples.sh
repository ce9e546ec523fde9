#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
#   example_NAME (server) <== libverbena, or plain verbs ==> example_NAME ADDRESS
#
#   examples.sh BUILD          both processes here, by shared memory
#   examples.sh --wire BUILD   the server behind a veth, as wire_net draws it
#
# Every program of examples/, checked by what it prints and how it ends.
set -u
if [ "$1" = --wire ] && [ -z "${WIRE_THERE-}" ]; then
	build=$(realpath "$2")
	exec "$(dirname "$0")/wire_net" --build "$build" "$(realpath "$0")" --wire "$build"
fi
[ "$1" != --wire ] || shift
build=$(realpath "$1")
there=${WIRE_THERE-}
host=127.0.0.1
[ -z "$there" ] || host=10.77.0.2
passed=0
failed=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

# serve NAME PORT [WORDS]: until it listens
serve() {
	program=$build/examples/example_$1
	listens=":$(printf %04X "$2") [0-9A-F:]* 0A"
	shift 2
	# shellcheck disable=SC2086 # $there is a list of words
	$there timeout 60 "$build/bin/verbena" run -- "$program" "$@" >server 2>&1 &
	server=$!
	# shellcheck disable=SC2086
	until $there grep -q "$listens" /proc/net/tcp /proc/net/tcp6 || ! kill -0 $server 2>/dev/null; do
		sleep 0.05
	done
}

# client [WORDS]: the client of the server; both end with status 0
client() {
	status=0
	timeout 50 "$build/bin/verbena" run -- "$program" "$@" >client 2>&1 || status=$?
	wait $server || status="$status, server $?"
}

# want NAME FILE PATTERN...: status 0, and each pattern is a line of that file
want() {
	what=$1
	file=$2
	shift 2
	for pattern; do
		grep -Eq -- "$pattern" "$file" || status="$status, no line \"$pattern\""
	done
	if [ "$status" = 0 ]; then
		passed=$((passed + 1))
		echo "ok      $what"
	else
		failed=$((failed + 1))
		echo "FAILED  $what: status $status"
		sed 's/^/  server: /' server
		sed 's/^/  client: /' client
	fi
}

for how in "" -s; do
	# shellcheck disable=SC2086 # none or one
	serve send_basic 18600 $how
	# shellcheck disable=SC2086
	client $how $host
	want "send_basic $how" server '^received 20 bytes: a line by RDMA SEND$'
done

: >server
status=0
"$build/bin/verbena" run -- "$build/examples/example_sgl_three_chunks" >client 2>&1 || status=$?
want sgl_three_chunks client '^received 21 bytes: header, body, trailer$' '^sent: done$'

serve echo_rpc 18601
client $host 5000
want echo_rpc server '^served; closed$'
want "echo_rpc's client" client '^5000 calls answered$'

head -c 9000000 /dev/urandom >file
truncate -s 20000001 file
serve file_send 18602
client $host file
want file_send server '^received 20000001 bytes, checksum [0-9a-f]{16}: right$'
cmp file received || status=1
want "file_send: the files are equal" server .

serve multi_qp 18603
client $host 4
want multi_qp server '^8000 messages of 8 flows, each in order$'
want "multi_qp: several queue pairs" client 'queue pair 0 of 4 ' 'queue pair [123] of 4 '

serve event_vs_poll 18604
client $host 30
for way in busy sleepy adaptive 'own loop'; do
	want "event_vs_poll, $way" server "^$way +server: +[0-9]+ % of a CPU$"
	want "event_vs_poll, $way: the client" client "^$way +a call: +[0-9.]+ us$"
done

serve write_read 18605
client $host
want write_read server '^a half written, 1000 bytes copied by the client: right$'
want "write_read's client" client '^read a half into two places$' '^written behind a fence$'

echo "$passed passed, $failed failed"
[ $failed = 0 ]
