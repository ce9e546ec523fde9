# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the tools_*.sh tests: TAP lines, a private folder, a readable copy of the build, an
# ordinary user. $1 is the build folder.
set -u
build=$(cd "$1" && pwd)
port_is=$(cd "$(dirname "$0")" && pwd)/port_is
n=0
bad=0
tmp=$(mktemp -d /tmp/verbena-test.XXXXXX)
chmod 755 "$tmp"
trap 'rm -rf "$tmp" /tmp/verbena-64123' EXIT
unset LD_PRELOAD LD_LIBRARY_PATH VERBENA_EXPLAIN XDG_RUNTIME_DIR
export LANGUAGE=en

pass() {
	n=$((n + 1))
	echo "ok $n - $1"
}

fail() {
	n=$((n + 1))
	bad=$((bad + 1))
	echo "not ok $n - $1"
	shift
	for line; do echo "# $line"; done
}

skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# check NAME COMMAND...: the command succeeds
check() {
	what=$1
	shift
	if out=$("$@" 2>&1 </dev/null); then pass "$what"; else fail "$what" "status $?" "$out"; fi
}

# status WANTED NAME COMMAND...: the command ends with that status
status() {
	wanted=$1
	what=$2
	shift 2
	out=$("$@" 2>&1 </dev/null)
	got=$?
	if [ "$got" = "$wanted" ]; then pass "$what"; else fail "$what" "status $got" "$out"; fi
}

# says PATTERN NAME COMMAND...: the command's output has a line that matches
says() {
	pattern=$1
	what=$2
	shift 2
	out=$("$@" 2>&1 </dev/null)
	if echo "$out" | grep -Eq -- "$pattern"; then pass "$what"; else fail "$what" "$out"; fi
}

# same A B NAME: two texts are equal
same() {
	if [ "$1" = "$2" ]; then pass "$3"; else fail "$3" "$1" "$2"; fi
}

# As an ordinary user: root becomes one that nothing else runs as, anybody else stays.
user=64123
as_user() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=$user --regid=$user --clear-groups -- "$@"
	else
		"$@"
	fi
}

# Puts bin and lib of the build into $tmp/tree, where an ordinary user can read them.
copy_tree() {
	mkdir -p "$tmp/tree/bin" "$tmp/tree/lib"
	cp "$build/bin/verbena" "$tmp/tree/bin/"
	cp -r "$build/lib/verbena" "$tmp/tree/lib/"
	chmod -R a+rX "$tmp/tree"
	verbena=$tmp/tree/bin/verbena
}

finish() {
	echo "1..$n"
	[ "$bad" = 0 ]
	exit
}
