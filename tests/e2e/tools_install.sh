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
	lib/libverbena.so.0 include/verbena/verbena.h include/verbena/error.h include/verbena/sgl.h include/verbena/histogram.h \
	lib/pkgconfig/verbena.pc share/man/man3/libverbena.3 share/verbena/examples/Makefile \
	share/man/man1/verbena-run.1 share/man/man7/verbena.7 share/locale/zh_CN/LC_MESSAGES/verbena.mo; do
	check "$file is there" test -r "$tmp/moved/$file"
done
for file in bin/verbena lib/verbena/libibverbs.so.1 lib/verbena/libverbena-preload.so lib/libverbena.so.0; do
	check "$file does not name the build tree" \
		sh -c "! readelf -d '$tmp/moved/$file' | grep -F '$build'"
done
if echo "#include <sys/sdt.h>" | cc -E - >"$tmp/sdt" 2>&1 && readelf -n "$tmp/moved/lib/libverbena.so.0" >"$tmp/notes"; then
	says "Name: doorbell" "libverbena has its probes" cat "$tmp/notes"
fi
check "no text names the build tree" \
	sh -c "! grep -rlF '$build' '$tmp/moved/share' '$tmp/moved/lib/pkgconfig'"
says "All of it verified" "demo from the moved tree" as_user "$tmp/moved/bin/verbena" demo
says "^    verbena0" "an unmodified program" as_user "$tmp/moved/bin/verbena" run -- ibv_devices
ln -s "$tmp/moved/bin/verbena" "$tmp/link"
says "^    verbena0" "through a symbolic link" as_user "$tmp/link" run -- ibv_devices
says "^$tmp/moved/lib/pkgconfig/../../lib/verbena$" "pkg-config knows its place" \
	env PKG_CONFIG_PATH="$tmp/moved/lib/pkgconfig" pkg-config --variable=hcadir verbena-hca
cat >"$tmp/open.c" <<'C'
#include <stdio.h>
#include <verbena/verbena.h>
int main(void)
{
	struct vrb_domain *d;

	if (vrb_open(NULL, &d))
		return puts(vrb_error_text());
	return puts("opened") < 0 || vrb_close(d);
}
C
for compiler in cc c++; do
	command -v $compiler >/dev/null || continue
	# shellcheck disable=SC2046 # words
	check "a program of libverbena by $compiler" $compiler -Wall -Wextra -Werror \
		-x "$([ $compiler = cc ] && echo c || echo c++)" -o "$tmp/open" "$tmp/open.c" -x none \
		$(PKG_CONFIG_PATH=$tmp/moved/lib/pkgconfig pkg-config --cflags --libs verbena)
	says "^opened$" "it runs" \
		env LD_LIBRARY_PATH="$tmp/moved/lib" "$tmp/moved/bin/verbena" run "$tmp/open"
done
check "the installed examples, built against the tree" \
	make -C "$tmp/moved/share/verbena/examples" PKG_CONFIG_PATH="$tmp/moved/lib/pkgconfig" CFLAGS="-Wall -Wextra -Werror"
says "^received 21 bytes: header, body, trailer$" "one of them runs" \
	env LD_LIBRARY_PATH="$tmp/moved/lib" "$tmp/moved/bin/verbena" run "$tmp/moved/share/verbena/examples/sgl_three_chunks"
finish
