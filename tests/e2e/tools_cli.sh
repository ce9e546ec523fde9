#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The command line of `verbena`: words, exit codes, environment. tools_cli.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
copy_tree

says "^verbena $(cat "$(dirname "$0")/../../VERSION")$" "--version" "$verbena" --version
for command in run env demo devinfo perf capture explain doctor top metrics; do
	says "^  $command " "--help lists $command" "$verbena" --help
	says "^usage: verbena $command" "help $command" "$verbena" help $command
	says "^usage: verbena $command" "$command --help" "$verbena" $command --help
	status 0 "$command --help ends with 0" "$verbena" $command --help
done
status 2 "no command" "$verbena"
status 2 "unknown command" "$verbena" nonsense
status 2 "unknown option" "$verbena" devinfo --nonsense
status 125 "run without a command" "$verbena" run
status 125 "run with an unknown option" "$verbena" run --nonsense true
status 127 "run a command that is not there" "$verbena" run no-such-command
says "command not found: no-such-command" "run says what is not there" \
	"$verbena" run no-such-command
status 126 "run a file that is no program" "$verbena" run -- /etc/passwd
status 42 "run passes the exit status on" "$verbena" run -- sh -c 'exit 42'
says '^-v$' "run leaves the command's options alone" "$verbena" run echo -v
says "LD_LIBRARY_PATH=$tmp/tree/lib/verbena$" "run -v says what it sets" "$verbena" run -v true
says "^1 $tmp/tree/lib/verbena:/elsewhere$" "run goes in front of LD_LIBRARY_PATH" \
	env LD_LIBRARY_PATH=/elsewhere "$verbena" run -- sh -c 'echo $VERBENA_EXPLAIN $LD_LIBRARY_PATH'
says "^0$" "run --no-explain" "$verbena" run --no-explain -- sh -c 'echo $VERBENA_EXPLAIN'
says "^2$" "run keeps VERBENA_EXPLAIN" \
	env VERBENA_EXPLAIN=2 "$verbena" run -- sh -c 'echo $VERBENA_EXPLAIN'
says "^none$" "run --no-sysfs" "$verbena" run --no-sysfs -- sh -c 'echo ${LD_PRELOAD:-none}'
says "^$tmp/tree/lib/verbena/libverbena-preload.so$" "run within run adds nothing" \
	"$verbena" run -- "$verbena" run -- sh -c 'echo $LD_PRELOAD'

cat >"$tmp/static.c" <<'C'
int main(void) { return 0; }
C
if cc -static -o "$tmp/static" "$tmp/static.c" 2>/dev/null; then
	says "statically linked" "run warns of a static program" "$verbena" run "$tmp/static"
else
	skip "run warns of a static program" "cannot link one"
fi

says "^LD_PRELOAD.*preload" "env --github" "$verbena" env --github
says "^ENV LD_LIBRARY_PATH=" "env --docker" "$verbena" env --docker
eval "env_lines=\$($verbena env)"
# shellcheck disable=SC2154 # set by eval
says "^verbena0$" "env, in a shell" sh -c "$env_lines
ls /sys/class/infiniband"
mkdir "$tmp/a b"
cp -r "$tmp/tree/." "$tmp/a b/"
status 125 "a folder with a space is refused" "$tmp/a b/bin/verbena" run true

says "^  max_send_sge  *1..32 " "run --profile help lists knobs" "$verbena" run --profile help
says "^  sge3 " "run --profile help lists profiles" "$verbena" run --profile help
"$verbena" run --profile help | grep '^  ' >"$tmp/knobs"
sed 's/\\-/-/g' "$(dirname "$0")/../../docs/man/verbena.7" | grep -Fxvf - "$tmp/knobs" >"$tmp/not_in_man"
says "^0$" "verbena(7) has each line of run --profile help" sh -c "wc -l <$tmp/not_in_man"
says "^sge3$" "run --profile" "$verbena" run --profile sge3 -- sh -c 'echo $VERBENA_PROFILE'
echo 'max_send_sge = 3' >"$tmp/mine"
says "^$tmp/mine$" "run --profile FILE gives its whole path" \
	sh -c "cd $tmp && $verbena run --profile mine -- sh -c 'echo \$VERBENA_PROFILE'"
says "^verbena0  mine " "devinfo shows the profile" "$verbena" run --profile "$tmp/mine" "$verbena" devinfo
status 2 "run with a profile that is not there" "$verbena" run --profile nonsense true
echo 'max_send_sge = 33' >"$tmp/mine"
says "line 1, column 16: .33., but expected a number from 1 to 32" "a profile that is wrong" \
	"$verbena" run --profile "$tmp/mine" true
status 2 "run with a profile that is wrong" "$verbena" run --profile "$tmp/mine" true
status 2 "--profile and --profiles" "$verbena" run --profile plain --profiles all true
status 0 "run --profiles, all well" "$verbena" run --profiles sge1,plain true
status 1 "run --profiles, one not" "$verbena" run --profiles sge1,plain -- \
	sh -c '[ $VERBENA_PROFILE = plain ]'
says "^sge1  *3 " "run --profiles tells how each ended" "$verbena" run --profiles sge1 -- sh -c 'exit 3'
says "^harsh  *0 " "run --profiles all" "$verbena" run --profiles all "$verbena" devinfo
says "RoCE v1" "the view of /sys has the profile's GIDs" "$verbena" run --profile gids \
	cat /sys/class/infiniband/verbena0/ports/1/gid_attrs/types/1

file=$tmp/cli.pcapng
status 42 "capture passes the exit status on" "$verbena" capture "$file" -- sh -c 'exit 42'
says "verbena: 0 packets " "capture says how much it was" "$verbena" capture "$file" true
status 143 "capture of a command that a signal ends" "$verbena" capture "$file" sh -c 'kill $$'
says "^$file$" "capture sets VERBENA_CAPTURE" \
	"$verbena" capture "$file" -- sh -c 'echo $VERBENA_CAPTURE'
status 127 "capture of a command that is not there" "$verbena" capture "$file" no-such-command
status 125 "capture without a command" "$verbena" capture "$file"
status 125 "capture without a file" "$verbena" capture
says "not both" "capture of a command and a process" "$verbena" capture --pid 1 "$file" true
says "go with --pid" "capture --count of a command" "$verbena" capture --count 1 "$file" true
says "whole number" "capture --snap wants a number" "$verbena" capture --snap x "$file" true
says "above 0" "capture --seconds wants a time" "$verbena" capture --seconds 0 --pid 1 "$file"
says "no regular file" "capture into a device" "$verbena" capture /dev/null true
says "cannot create" "capture into nowhere" "$verbena" capture /nonexistent/file true

status 2 "top with a delay of nothing" "$verbena" top -d 0
status 2 "top with a count that is none" "$verbena" top -n x
status 2 "top with a word" "$verbena" top word
status 2 "top of process 0" "$verbena" top --pid 0
says "has no device of Verbena open" "top of a process that has none" "$verbena" top --pid 1
status 2 "metrics with two places" "$verbena" metrics --once --port 0
status 2 "metrics on a port that is none" "$verbena" metrics --port 65536
status 2 "metrics of process 0" "$verbena" metrics --once --pid 0
status 2 "metrics with a word" "$verbena" metrics word
status 1 "metrics in a folder that is not there" "$verbena" metrics --unix /nonexistent/socket
says "at most 107 bytes" "metrics on a path that is too long" \
	"$verbena" metrics --unix "/$(printf %0120d 0)"

says "verbena0" "devinfo" "$verbena" devinfo
says '"gid": ' "devinfo --json" "$verbena" devinfo --json
status 1 "devinfo of a device that is not there" "$verbena" devinfo none7
says "LKEY_RANGE_END" "explain a status by number" "$verbena" explain 4
says "C10-73" "explain a verdict" "$verbena" explain lkey-range-end
says "POST_STATE" "explain an errno" "$verbena" explain EINVAL
says "IBV_WC_LOC_PROT_ERR" "explain a status by its text" \
	"$verbena" explain "local protection error"
status 1 "explain an unknown word" "$verbena" explain gibberish
says "RNR_RETRY_EXC" "explain lists all" "$verbena" explain
says "RETRY_MTU" "explain what a status can mean" "$verbena" explain 12
status 1 "explain a queue pair that nobody has" "$verbena" explain 0xfe1234
story=$tmp/story
: >"$story"
status 1 "explain a file without stories" "$verbena" explain "$story"
printf '%s\n' 'no story' '{"events":7}' '[]' \
	'{"pid":1,"qpn":"0x010002","end":{"ms":1.5,"verdict":"lkey_stale"},"events":[{}]}' >"$story"
says "keep the region registered" "explain a file that lacks most" "$verbena" explain "$story"
says '"0x010002"' "explain a file as JSON" "$verbena" explain --json "$story"
finish
