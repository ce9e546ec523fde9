#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# An installed tree works from any folder, for any user. tools_install.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016
. "$(dirname "$0")/tools_lib.sh"

check "install" cmake --install "$build" --prefix "$tmp/first"
mv "$tmp/first" "$tmp/moved"
chmod -R a+rX "$tmp/moved"
for file in bin/verbena lib/verbena/libibverbs.so.1 lib/verbena/libverbena-preload.so \
	include/verbena/stats.h lib/pkgconfig/verbena-hca.pc share/man/man1/verbena.1 \
	share/man/man1/verbena-run.1 share/man/man7/verbena.7; do
	check "$file is there" test -r "$tmp/moved/$file"
done
for file in bin/verbena lib/verbena/libibverbs.so.1 lib/verbena/libverbena-preload.so; do
	check "$file does not name the build tree" \
		sh -c "! readelf -d '$tmp/moved/$file' | grep -F '$build'"
done
check "no text names the build tree" \
	sh -c "! grep -rlF '$build' '$tmp/moved/share' '$tmp/moved/lib/pkgconfig'"
says "All of it verified" "demo from the moved tree" as_user "$tmp/moved/bin/verbena" demo
says "^    verbena0" "an unmodified program" as_user "$tmp/moved/bin/verbena" run -- ibv_devices
ln -s "$tmp/moved/bin/verbena" "$tmp/link"
says "^    verbena0" "through a symbolic link" as_user "$tmp/link" run -- ibv_devices
says "^$tmp/moved/lib/pkgconfig/../../lib/verbena$" "pkg-config knows its place" \
	env PKG_CONFIG_PATH="$tmp/moved/lib/pkgconfig" pkg-config --variable=hcadir verbena-hca
finish
