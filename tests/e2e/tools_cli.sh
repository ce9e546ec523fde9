#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The command line of `verbena`: words, exit codes, environment. tools_cli.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"
copy_tree

says "^verbena $(cat "$(dirname "$0")/../../VERSION")$" "--version" "$verbena" --version
for command in run env demo devinfo explain; do
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
finish
