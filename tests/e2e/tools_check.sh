#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `verbena run --check`: nothing is said of programs that do nothing wrong, and what is said comes by
# exit status, log and suppressions. tools_check.sh BUILD [all]
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
if grep -q '^VRB_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
	echo "skipped: a sanitized library cannot be preloaded"
	exit 77
fi
copy_tree
cp "$build/tests/check/check_faults" "$build"/tests/check/libcheck_other.so "$tmp/tree/lib/verbena/"
chmod -R a+rX "$tmp/tree"
port=$((22000 + $$ % 3000))

cp "$(dirname "$0")/check_suppressed" "$tmp/suppressed"
chmod a+r "$tmp/suppressed"

run() {
	as_user "$verbena" run --check=fatal,data --check-suppress "$tmp/suppressed" -- "$@"
}

# clean PROGRAM OPTIONS: both ends end well, and the checker is silent
clean() {
	port=$((port + 1))
	run "$@" -p $port >"$tmp/server" 2>&1 &
	server=$!
	i=0
	while [ $i -lt 300 ] && kill -0 $server 2>/dev/null &&
		! grep -q ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6; do
		sleep 0.1
		i=$((i + 1))
	done
	run "$@" -p $port 127.0.0.1 >"$tmp/client" 2>&1
	ended=$?
	wait $server
	ended="$ended $?"
	if [ "$ended" = "0 0" ]; then
		pass "silent: $*"
	else
		fail "silent: $*" "status $ended" "$(cat "$tmp/server" "$tmp/client")"
	fi
}

clean ibv_rc_pingpong -g 0 -n 100 -e
clean ibv_srq_pingpong -g 0 -n 100
clean ib_send_bw -n 300 -s 4096
clean ib_write_lat -n 200
if [ "${2-}" = all ]; then
	clean ibv_rc_pingpong -g 0 -n 1000
	clean ibv_uc_pingpong -g 0 -n 1000
	clean ibv_ud_pingpong -g 0 -n 1000 -e
	for verb in send write read; do
		clean ib_${verb}_bw -n 1000
		clean ib_${verb}_bw -n 600 -q 4 -b
		clean ib_${verb}_lat -n 1000
	done
	for verb in send write; do
		clean ib_${verb}_bw -n 1000 -c UC
		clean ib_${verb}_bw -n 1024 -l 8
		clean ib_${verb}_lat -a -n 50
	done
	clean ib_atomic_bw -n 1000
	clean ib_atomic_lat -n 1000
	clean ib_send_bw -c UD -n 1000
	clean ib_send_lat -I 64 -n 500
	clean ib_send_lat -e -n 500
	clean ib_send_bw -r 64 --use-srq -n 1000 -q 2
fi

# A program that ends well and has a finding: one leaves its objects behind.
faulty="$tmp/tree/lib/verbena/check_faults lkey_unknown"
export VRB_TEST_DEAF=1 LD_LIBRARY_PATH="$tmp/tree/lib/verbena"
log=$tmp/log/findings
mkdir -p "$tmp/log"
chmod 777 "$tmp/log"
# shellcheck disable=SC2086 # a program and its word
status 122 "fatal" as_user "$verbena" run --no-explain --check=fatal --check-log "$log" -- $faulty
says '^{"finding": "lkey_unknown", .*"call": "ibv_post_send".*"at": \[{"object"' "the log" cat "$log"
check "each line of the log is JSON" python3 -c "
import json, sys
[json.loads(line)['hint'] for line in open('$log')]"
# shellcheck disable=SC2086
status 0 "without fatal" as_user "$verbena" run --no-explain --check -- $faulty
for line in 'lkey_unknown' '*' 'lkey_* check_faults' '* *_faults'; do
	echo "$line # a comment" >"$tmp/some"
	chmod a+r "$tmp/some"
	# shellcheck disable=SC2086
	status 0 "suppressed by $line" as_user "$verbena" run --no-explain --check=fatal \
		--check-suppress "$tmp/some" -- $faulty
done
echo 'lkey_unknown libother*' >"$tmp/some"
# shellcheck disable=SC2086
status 122 "suppressed elsewhere only" as_user "$verbena" run --no-explain --check=fatal \
	--check-suppress "$tmp/some" -- $faulty
unset LD_LIBRARY_PATH
status 2 "an unknown word" "$verbena" run --check=nonsense true
status 2 "--system without --check" "$verbena" run --system true
status 2 "a suppressions file that is not there" "$verbena" run --check --check-suppress /nowhere true
status 42 "the exit status of the command" "$verbena" run --check=fatal -- sh -c 'exit 42'
says "^none$" "--system leaves the library alone" "$verbena" run --check --system -- \
	sh -c 'echo ${LD_LIBRARY_PATH:-none}'
says "libverbena-check.so$" "and preloads the checker only" "$verbena" run --check --system -- \
	sh -c 'echo $LD_PRELOAD'
finish
