#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# purity.sh OBJECT...: base, wire, rules and core together may need nothing from outside but the
# names below. This is what "sans I/O" means, proved by the linker's view. Not for sanitizer builds.
set -eu
allowed='^(memcpy|memmove|memset|memcmp|libdeflate_crc32|vrb_assert_failed|_GLOBAL_OFFSET_TABLE_)$'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nm --defined-only -P -g "$@" | awk 'NF > 1 {print $1}' | sort -u >"$dir/defined"
nm -u -P "$@" | awk 'NF > 1 {print $1}' | sort -u >"$dir/wanted"
bad=$(comm -13 "$dir/defined" "$dir/wanted" | grep -Ev "$allowed" || true)
if [ -n "$bad" ]; then
	echo "the pure layers reach outside:" $bad
	exit 1
fi
echo "$# objects, pure"
