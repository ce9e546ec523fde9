#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The dynamic symbols that LIBRARY defines, as name, version, default or compat, kind: equal to
# LIST, nothing more.
# usage: exports.sh LIBRARY LIST
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
readelf --dyn-syms -W "$1" | awk '
	$1 ~ /^[0-9]+:$/ && $7 != "UND" {
		name = $8; version = $8; mark = "default(@@)"; kind = "VERNODE"
		if (match(name, /@@?/)) {
			version = substr(name, RSTART + RLENGTH)
			mark = RLENGTH == 2 ? "default(@@)" : "compat(@)"
			name = substr(name, 1, RSTART - 1)
			kind = $4 == "OBJECT" ? "OBJ" : $4
		}
		print name "\t" version "\t" mark "\t" kind
	}' | sort > "$tmp/have"
grep -v '^#' "$2" | sort > "$tmp/want"
if diff -u "$tmp/want" "$tmp/have"; then
	echo "$(wc -l < "$tmp/have") exported names equal the list"
else
	echo "the exported names differ from $2" >&2
	exit 1
fi
