#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `verbena run --faults` with unmodified programs: what it says of a plan, and that the programs get
# through what the plan does to them. faults.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
copy_tree

# ---- the plan
says "^  qp 3 rx send 5 rnr-nak times 2 " "--faults help" "$verbena" run --faults help
status 0 "--faults help ends with 0" "$verbena" run --faults help
says "line 1, column 13: .ty., but expected tx, rx, both" "a wrong plan: where and what" \
	"$verbena" run --faults 'tx loss 1%; ty loss 2%' true
status 2 "a wrong plan ends with 2" "$verbena" run --faults 'tx losss 1%' true
status 2 "a plan that is not there ends with 2" "$verbena" run --faults "$tmp/none" true
status 125 "--faults-log without a plan" "$verbena" run --faults-log "$tmp/log" true
status 125 "a record that cannot be made" "$verbena" run --faults 'tx loss 1%' \
	--faults-log "$tmp/none/log" true
mkfifo "$tmp/pipe"
status 125 "a record in a pipe that nobody reads" timeout 20 "$verbena" run --faults 'tx loss 1%' \
	--faults-log "$tmp/pipe" true
printf '# a file\nseed 7\ntx loss 1%% # one in a hundred\n' >"$tmp/a plan"
says "^tx loss 1% # one in a hundred$" "a plan in a file" \
	"$verbena" run --faults "$tmp/a plan" sh -c 'echo "$VERBENA_FAULTS"'
says "^tx loss 1%.*rx loss 2%" "a plan that comes in parts" sh -c "{ echo 'tx loss 1%'; sleep 0.3
	echo 'rx loss 2%'; } | $verbena run --faults /dev/stdin sh -c 'echo \$VERBENA_FAULTS'"
says "^partition$" "a plan of one word" \
	"$verbena" run --faults partition sh -c 'echo "$VERBENA_FAULTS"'
{
	seq 1 5000 | sed 's/^/# /'
	echo "tx loss 1%"
} >"$tmp/long"
says "a plan of at most 16384 bytes" "a plan that is too long" \
	"$verbena" run --faults "$tmp/long" true
says "^$tmp/log$" "the record's place" sh -c "cd $tmp &&
	$verbena run --faults 'tx loss 1%' --faults-log log sh -c 'echo \$VERBENA_FAULTS_LOG'"
status 42 "the command's status" "$verbena" run --faults 'tx loss 1%' -- sh -c 'exit 42'
status 42 "the command's status, watched" \
	"$verbena" run --faults 'tx loss 1%' --faults-strict -- sh -c 'exit 42'
status 143 "the command's signal, watched" \
	"$verbena" run --faults 'tx loss 1%' --faults-strict -- sh -c 'kill $$'
status 127 "no command, watched" "$verbena" run --faults 'tx loss 1%' --faults-strict nothing-here
status 123 "an exact fault that does not strike" \
	"$verbena" run --faults 'tx send 1 drop' --faults-strict true
says "rule 2 .tx send 1 drop. of the fault plan has not struck" "and which it was" \
	"$verbena" run --faults 'tx loss 1%; tx send 1 drop' --faults-strict true
says "fault plan: line 1, column 1: .loss., but expected" "a wrong plan in the environment" \
	env VERBENA_FAULTS='loss 1%' "$verbena" run -- ibv_devinfo

# ---- traffic, in a network of its own
command -v ibv_rc_pingpong >/dev/null || { skip "traffic" "no ibv_rc_pingpong here"; finish; }
unshare -rn true 2>/dev/null || { skip "traffic" "no namespaces here"; finish; }

# pair PLAN LOG COMMAND...: server and client under the plan, each with an address of its own
cat >"$tmp/pair" <<'SH'
#!/bin/sh
{ ip link set lo up && ip addr add 127.0.0.2/8 dev lo; } || exit 1
gid=-g
[ "$3" != ib_send_bw ] || gid=-x
plan=$1
log=$2
shift 2
: >"$log.server"
timeout 60 "$VERBENA" run --faults "$plan" --faults-log "$log.server" -- "$@" $gid 1 \
	>"$log.out" 2>&1 &
server=$!
"$PORT_IS" listening 18515 $server
timeout 60 "$VERBENA" run --faults "$plan" --faults-strict --faults-log "$log.client" -- \
	"$@" $gid 0 127.0.0.1
status=$?
wait $server || status=$?
cat "$log.out"
exit $status
SH
chmod +x "$tmp/pair"
pair() {
	what=$1
	plan=$2
	shift 2
	check "$what" env VERBENA="$verbena" PORT_IS="$port_is" unshare -rn "$tmp/pair" "$plan" "$tmp/log" "$@"
}

# recorded PATTERN NAME: both sides' records have such a line
recorded() {
	if grep -Eq "$1" "$tmp/log.server" && grep -Eq "$1" "$tmp/log.client"; then
		pass "$2"
	else
		fail "$2" "$(head -20 "$tmp/log.server" "$tmp/log.client")"
	fi
}

# A pingpong ends when it has what it wants, and with it whoever could repeat its last
# acknowledgement: the losses stop before (600 packets, 30 losses without a limit).
pair "a pingpong, one packet in twenty lost" 'tx loss 5% times 12' ibv_rc_pingpong -m 1024 -n 100
recorded 'rule=1 fault=drop dir=tx qp=1 qpn=0x[0-9a-f]+ psn=0x[0-9a-f]+ opcode="RC ' "its record"
pair "the fifth SEND is answered RNR NAK twice" 'qp 1 rx send 5 rnr-nak times 2' \
	ibv_rc_pingpong -m 1024 -n 20 -s 64
recorded 'fault=rnr-nak dir=rx qp=1 .* opcode="RC SEND Only"' "its record"
pair "the next ACK is dropped" 'qp 1 tx ack next drop' ibv_rc_pingpong -m 1024 -n 20 -s 64
recorded 'fault=drop dir=tx qp=1 .* opcode="RC ACK"' "its record"
pair "everything at once" \
	'both loss 3% times 4; both duplicate 2%; both corrupt 3% times 4; tx reorder 1% 200us' \
	ibv_rc_pingpong -m 1024 -n 100
if command -v ib_send_bw >/dev/null; then
	pair "ib_send_bw, one packet in twenty lost" 'tx loss 5%' ib_send_bw -F -m 1024 -n 100
	says 'faults: rule 1 .tx loss 5%.: struck [1-9][0-9]* of [0-9]+ packets' "its summary" \
		cat "$tmp/log.out"
else
	skip "ib_send_bw" "not here"
fi
finish
