#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `verbena perf`: each mode over both faces, with --self and with two processes; what it prints, its
# exit codes, interruption, and peers that are not what they should be. tools_perf.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
copy_tree
port=$((20000 + $$ % 10000))

cat >"$tmp/look.py" <<'PY'
"""look.py [EXPRESSION]: a report on stdin makes sense, and the expression holds for each result r."""
import json, sys
report = json.load(sys.stdin)
env, results = report["environment"], report["results"]
assert env["cpus"] > 0 and env["kernel"] and env["libibverbs"] and 1 < env["clock_read_ns"] < 1e5
assert results
for r in results:
    p, lat, c, s = r["parameters"], r["latency_ns"], r["client"], r["server"]
    assert r["messages"] > 0 and r["seconds"] > 0
    assert abs(r["messages"] / r["seconds"] / r["messages_per_s"] - 1) < 0.01
    assert abs(r["messages_per_s"] * p["size"] / 1e6 / r["MB_per_s"] - 1) < 0.01
    if p["mode"] == "lat":
        assert lat["samples"] == r["messages"]
    if lat["samples"]:
        line = [lat[k] for k in ("min", "p50", "p90", "p99", "p99.9", "p99.99", "max")]
        assert line == sorted(line) and line[0] > 0, line
        assert sum(b[2] for b in r["histogram_ns"]) == lat["samples"]
    assert c["completed"] == c["posted"] >= r["messages"]
    if s and p["verb"] == "send":
        assert s["completed"] == c["completed"], (s, c)
    assert c["cpu_percent"] > 0 and p["device"] and p["mtu"]
    assert eval(sys.argv[1] if len(sys.argv) > 1 else "True"), (sys.argv[1], r)
PY

# look NAME EXPRESSION ARGUMENTS: runs perf --json with them
look() {
	what=$1
	want=$2
	shift 2
	if timeout 60 "$verbena" perf --warmup 50 "$@" --json >"$tmp/out" 2>"$tmp/err" </dev/null &&
		out=$(python3 "$tmp/look.py" "$want" <"$tmp/out" 2>&1); then
		pass "$what"
	else
		fail "$what" "$(cat "$tmp/err")" "$out" "$(head -c 400 "$tmp/out")"
	fi
}

for api in raw send; do
	for verb in send write read; do
		for mode in lat bw rate; do
			[ $api/$verb/$mode = send/write/lat ] && continue
			look "$mode $verb $api" "p['api'] == '$api' and p['mode'] == '$mode'" \
				$mode --self --api $api --verb $verb --seconds 0.05
		done
	done
	for engine in event adaptive; do
		look "lat $engine $api" "p['engine'] == '$engine'" \
			lat --self --api $api --engine $engine --seconds 0.05
		look "bw $engine $api" "p['engine'] == '$engine'" \
			bw --self --api $api --engine $engine --seconds 0.05
	done
	look "sizes $api" "r['messages'] == 50" \
		lat --self --api $api -s 1,300,5000,64k --iterations 50 --warmup 10
	look "4 QPs of 3 pieces $api" "p['qps'] == 4 and p['sges'] == 3" \
		bw --self --api $api --qps 4 --sges 3 -s 3,4096,100000 --seconds 0.05
	look "nothing inline $api" "p['inline'] == 0" \
		lat --self --api $api --inline 0 --seconds 0.05
	look "one at a time $api" "p['depth'] == 2" \
		bw --self --api $api --depth 2 --signal 1 --recv-depth 8 --seconds 0.05
	look "odd batches $api" "r['messages'] == 1001" \
		rate --self --api $api --batch 7 --iterations 1001 --warmup 100
	look "at a pace $api" "r['messages_per_s'] < 2200" \
		rate --self --api $api --pace 2000 --batch 1 --warmup 20 --seconds 0.3
done
look "moderation makes fewer events" "s['completions_per_event'] > 2" \
	bw --self --engine event --mod-count 32 --mod-us 1000 -s 64 --seconds 0.2
look "memory registered for each message" "p['register-each'] == 1" \
	lat --self --register-each 1 --seconds 0.05
look "malloc and registration for each message of libverbena" "p['register-each'] == 1" \
	lat --self --api send --register-each 1 -s 4096 --iterations 50 --warmup 5
look "from all over an area" "p['span'] == 1 << 20 and p['pages'] == 'small'" \
	rate --self --span 1m --pages small --seconds 0.05
look "to all over an area" "p['recv-span'] == 1 << 20" \
	bw --self --recv-span 1m -s 4096 --seconds 0.05
look "aligned to a byte" "p['align'] == 1" lat --self --align 1 -s 4096 --seconds 0.05
look "over the wire" "c['retries'] is not None" lat --self --seconds 0.1 --warmup 50
look "on the first CPU" "env['affinity'] == [0]" lat --self --cpus 0,0 --iterations 20 --warmup 5

check "as an ordinary user" as_user "$verbena" perf lat --self --seconds 0.05
check "under verbena run" "$verbena" run -- "$verbena" perf bw --self --seconds 0.05
says "^ *bytes +messages +min +p50" "the table" "$verbena" perf lat --self --seconds 0.05
says "^65536 " "the table of bw" "$verbena" perf bw --self --seconds 0.05
check "--csv" sh -c "'$verbena' perf rate --self -s 8,64 --seconds 0.05 --csv | python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
assert [r[\"parameters.size\"] for r in rows] == [\"8\", \"64\"]
assert all(float(r[\"messages_per_s\"]) > 0 and None not in r and None not in r.values() for r in rows)'"
check "--html" "$verbena" perf lat --self -s 8,64 --seconds 0.05 --html "$tmp/report.html"
check "the page is whole, and refers to nothing" python3 -c "
import html.parser
text = open('$tmp/report.html').read()
assert text.count('<svg') == 4 and text.count('class=\"curve\"') == 2 and 'http' not in text
assert 'nan' not in text and 'inf' not in text
class P(html.parser.HTMLParser):
    open = []
    def handle_starttag(self, tag, attrs):
        if tag != 'meta': self.open.append(tag)
    def handle_startendtag(self, tag, attrs): pass
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
p = P(); p.feed(text); assert not p.open"

# ---- devices that offer less
says "more than the device offers: .*--depth" "small queues" \
	env VERBENA_PROFILE=small "$verbena" perf lat --self
VERBENA_PROFILE=small look "in small queues" "p['depth'] == 2" lat --self --depth 2 --signal 1 \
	--recv-depth 8 --seconds 0.05
for api in raw send; do
	VERBENA_PROFILE=noinline look "without inline $api" "p['inline'] == 0" \
		lat --self --api $api --seconds 0.05
	VERBENA_PROFILE=sge1 look "one SGE $api" "True" rate --self --api $api --seconds 0.05
done
says "the device has at most 1" "more SGEs than there are" \
	env VERBENA_PROFILE=sge1 "$verbena" perf lat --self --sges 2

# ---- claims
for claim in inline prefetch events moderation registration; do
	check "the claim $claim" sh -c "timeout 100 '$verbena' perf --claims=$claim --rounds 2 --seconds 0.02 --warmup 20 --json |
		python3 -c '
import json, sys
claim, = json.load(sys.stdin)[\"claims\"]
assert claim[\"verdict\"].startswith(\"cannot be told\")
for v in claim[\"variants\"]:
    assert v[\"samples\"] == 2 and v[\"to_first\"] == sorted(v[\"to_first\"]) and v[\"p50 ns\"] > 0, v'"
done
says "^-> cannot be told" "claims as a table" \
	"$verbena" perf --claims=batch --rounds 1 --seconds 0.02 --warmup 20
status 2 "a claim that nobody makes" "$verbena" perf --claims=magic

# ---- two processes
timeout 60 "$verbena" perf --server --forever -p $port --quiet >"$tmp/server" 2>&1 &
server=$!
"$port_is" listening $port $server
look "two processes" "p['size'] in (8, 4096)" lat 127.0.0.1 -p $port -s 8,4096 --seconds 0.05
look "two processes, libverbena" "True" bw localhost -p $port --api send --seconds 0.05
says "settle|--mtu takes" "the client refuses before it connects" \
	"$verbena" perf lat 127.0.0.1 -p $port --mtu 1500
says "the server: .*no device" "what the server cannot do" sh -c "
	'$verbena' perf --server -p $((port + 1)) --device none7 --quiet & '$port_is' listening $((port + 1))
	'$verbena' perf lat 127.0.0.1 -p $((port + 1)); wait"
kill -INT $server
wait $server
same $? 130 "a server ends when it is interrupted"

# ---- interruption
"$verbena" perf lat --self --seconds 300 --warmup 20 --json >"$tmp/out" 2>"$tmp/err" &
pid=$!
i=0 # it polls: after a second of CPU time it measures
while [ $i -lt 600 ] && kill -0 $pid &&
	[ "$(awk '{ sub(/.*[)]/, ""); print $12 + $13 }' /proc/$pid/stat)" -lt "$(getconf CLK_TCK)" ]; do
	sleep 0.1
	i=$((i + 1))
done
kill -INT $pid
wait $pid
same $? 130 "interrupted: the status says so"
check "interrupted: what was measured is printed" \
	sh -c "python3 '$tmp/look.py' \"r['interrupted'] and r['seconds'] < 250\" <'$tmp/out'"
for face in "raw event" "send event" "send poll"; do
	# shellcheck disable=SC2086 # two words
	set -- $face
	"$verbena" perf bw --self --seconds 30 --api "$1" --engine "$2" --json >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	sleep 0.7
	kill -INT $pid
	wait $pid
	same $? 130 "interrupted: $face"
done
for mode in lat bw; do
	for face in "raw poll" "raw event" "send poll"; do
		# shellcheck disable=SC2086 # two words
		set -- $face
		"$verbena" perf --server -p $((port + 2)) --quiet 2>/dev/null &
		server=$!
		"$port_is" listening $((port + 2)) $server
		timeout 60 "$verbena" perf $mode 127.0.0.1 -p $((port + 2)) --seconds 15 --api "$1" \
			--engine "$2" --json >"$tmp/out" 2>"$tmp/err" &
		pid=$!
		"$port_is" connected $((port + 2)) $pid
		sleep 0.7
		kill -KILL $server
		wait $server 2>/dev/null
		wait $pid
		same $? 1 "the server is killed: $mode $face"
		says "the server ended|has ended|closed" "the server is killed: $mode $face says so" \
			cat "$tmp/err"
	done
done

# ---- peers that are not what they should be
cat >"$tmp/peer.py" <<'PY'
"""peer.py PORT BYTES READY: makes the file READY, then serves one connection with these bytes."""
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(1)
s.settimeout(60)
open(sys.argv[3], "w").close()
c, _ = s.accept()
c.recv(65536)
c.sendall(eval(sys.argv[2]))
c.settimeout(30)
try:
    while c.recv(65536): pass
except OSError: pass
PY
odd() {
	rm -f "$tmp/ready"
	python3 "$tmp/peer.py" $((port + 3)) "$2" "$tmp/ready" &
	pid=$!
	while [ ! -e "$tmp/ready" ] && kill -0 $pid; do sleep 0.1; done
	says "$3" "$1" timeout 60 "$verbena" perf lat 127.0.0.1 -p $((port + 3))
	wait $pid 2>/dev/null
}
odd "a server of another version" 'b"VPRF\0\2\0\0"' "protocol 2, this one 1"
odd "a server of something else" 'b"SSH-2.0-OpenSSH"' "no .verbena perf"
odd "a server that hangs up" 'b""' "closed the connection|does not answer"
odd "a server that says no JSON" 'b"VPRF\0\1\0\4oops"' "no JSON"
odd "a server without an address" 'b"VPRF\0\1\0\2{}"' "nothing of its end"
odd "a server with a senseless address" \
	'b"VPRF\0\1\0\x28" + b"{\"end\": {\"qps\": [], \"gid\": \"zz\"}}".ljust(40)' "makes no sense"
says "protocol 9, this one 1" "a client of another version" sh -c "
	timeout 60 '$verbena' perf --server -p $((port + 4)) --quiet & '$port_is' listening $((port + 4))
	printf 'VPRF\0\11\0\0' | timeout 60 python3 -c '
import socket, sys
s = socket.create_connection((\"127.0.0.1\", $((port + 4))))
s.sendall(sys.stdin.buffer.read())
s.settimeout(30)
s.recv(100)'
	wait"
says "Connection refused.*--server" "nobody serves" "$verbena" perf lat 127.0.0.1 -p $((port + 5))
status 1 "nobody serves: status" "$verbena" perf lat 127.0.0.1 -p $((port + 5))
status 1 "a device that is not there" "$verbena" perf lat --self --device none7

# ---- the command line
for arguments in "" "lat" "fast --self" "lat --self --server" "lat host host" "lat --self host" \
	"lat --self --nonsense" "lat --self --qps 0" "lat --self --size 0" "lat --self --size 8,x" \
	"lat --self --seconds never" "lat --self --batch 4" "lat --self --engine warp" \
	"lat --self --mod-count 4" "lat --self --sges 9 -s 8" "lat --self --json --csv" \
	"lat --self --forever" "--server --json" "lat --cpus 0,1 host" "lat --self --cpus x" \
	"--claims lat" "--claims --rounds 0" "--claims --csv" "bw --self --signal 200 --depth 100" "lat --self --api send --gid-index 0"; do
	# shellcheck disable=SC2086 # words
	status 2 "refused: perf $arguments" "$verbena" perf $arguments
done
for option in $("$verbena" perf lat --self --iterations 5 --warmup 0 --json | python3 -c '
import json, sys
print(*(k for k in json.load(sys.stdin)["results"][0]["parameters"] if k != "mode"))'); do
	says "--${option}[ =]" "--help tells of --$option" "$verbena" perf --help
done
if [ -e /usr/lib/x86_64-linux-gnu/libibverbs.so.1 ] && ! grep -q __asan_init "$verbena"; then
	says "there is no RDMA device|/usr/lib/" "--system" \
		"$verbena" perf lat --self --system --iterations 5 --warmup 0 --json
fi
says "no libibverbs.so.1" "--system with a file that is not there" \
	"$verbena" perf lat --self --system=/nonexistent
finish
