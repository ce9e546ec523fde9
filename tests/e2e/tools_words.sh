#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The user's language: chosen by the environment, found beside the program and the library, printed
# where no locale but C.UTF-8 is installed. tools_words.sh BUILD
# shellcheck source=tests/e2e/tools_lib.sh disable=SC2016,SC2317
. "$(dirname "$0")/tools_lib.sh"
copy_tree
mkdir "$tmp/tree/share"
cp -r "$build/share/locale" "$tmp/tree/share/"
cp "$build"/lib/libverbena.so* "$tmp/tree/lib/"
chmod -R a+rX "$tmp/tree"
source=$(cd "$(dirname "$0")/../.." && pwd)
unset LANGUAGE LC_ALL LC_MESSAGES LANG
english='run 12 bytes|runs? N bytes past the end'
chinese='字节超出 lkey .*的内存区域末尾 [N0-9]+ 字节'

# in LANG=... NAME=...: explain with that environment speaks the language of the pattern
in_chinese() {
	says "$chinese" "Chinese: $*" env "$@" "$verbena" explain lkey_range_end
}
in_english() {
	says "$english" "English: $*" env "$@" "$verbena" explain lkey_range_end
}

in_english TERM=dumb
in_chinese LANG=zh_CN.UTF-8
in_chinese LC_ALL=zh_CN.utf8 LANG=C
in_chinese LC_MESSAGES=zh_CN.UTF-8 LANG=de_DE.UTF-8
in_chinese LANG=C.UTF-8 LANGUAGE=zh_CN
in_chinese LANG=de_DE.UTF-8 LANGUAGE=xx:zh_CN:en
in_english LANG=C
in_english LC_ALL=C LANG=zh_CN.UTF-8 LANGUAGE=zh_CN
in_english LANG=xx_YY.UTF-8
in_english LANG=zh_CN.GB18030
in_english LANG=zh_CN.UTF-8 LANGUAGE=en:zh_CN
in_english LANG=../../../../../tmp.UTF-8
in_chinese LANG=zh_CN.UTF-8 PATH="$tmp/tree/bin:$PATH"
says "$chinese" "Chinese, by a symbolic link" env LANG=zh_CN.UTF-8 \
	sh -c "ln -s '$verbena' '$tmp/link' && '$tmp/link' explain lkey_range_end"
says "$chinese" "Chinese, found in PATH from another folder" \
	env LANG=zh_CN.UTF-8 PATH="$tmp/tree/bin:$PATH" sh -c 'cd / && verbena explain lkey_range_end'

export LANG=zh_CN.UTF-8
says '^LKEY_STALE: 工作请求在本地失败$' "explain: kind" "$verbena" explain lkey_stale
says '^  做法 +在最后一个完成项被取走之前' "explain: what to do" "$verbena" explain lkey_stale
says '^  含义 +QP 无法处理自己的工作请求。$' "explain: a status" "$verbena" explain LOC_QP_OP_ERR
says '不是已知的拒绝名称' "explain: an unknown word" "$verbena" explain gibberish
longest=$("$verbena" explain 12 | awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }')
check "lines are wrapped without blanks to wrap at" test "$longest" -lt 200

says '^(失败|警告|提示|正常) .*[^ -~]' "doctor" "$verbena" doctor --root "$tmp"
says '^ {8}影响 +[^ -~]' "doctor: what it costs" "$verbena" doctor --root "$tmp"
says '^失败 [0-9]+，警告 [0-9]+' "doctor: the sum" "$verbena" doctor --root "$tmp"
says '"sentence": "the kernel has no RDMA device"' "doctor --json stays English" \
	"$verbena" doctor --json --root "$tmp"

cat >"$tmp/wrong.c" <<'C'
#include <stdio.h>
#include <infiniband/verbs.h>
int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(c, 4, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	if (!qp)
		return 1;
	printf("refused: %d\n", ibv_create_cq(c, 1 << 30, NULL, NULL, 0) == NULL);
	printf("refused: %d\n", ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0);
	return 0;
}
C
cat >"$tmp/none.c" <<'C'
#include <stdio.h>
#include <verbena/verbena.h>
int main(void)
{
	struct vrb_domain_options o = {.device = "none7"};
	struct vrb_domain *d;

	return vrb_open(&o, &d) ? puts(vrb_error_text()) < 0 : 1;
}
C
cc -o "$tmp/wrong" "$tmp/wrong.c" -libverbs || exit 1
cc -I"$source/include" -o "$tmp/none" "$tmp/none.c" -L"$tmp/tree/lib" -lverbena -libverbs || exit 1
# run_wrong NAME=...: in that environment
run_wrong() {
	env "$@" "$verbena" run --story "$tmp/story" -- "$tmp/wrong"
}
says '^verbena: create_limit: 完成队列的 cqe：申请了 1073741824，上限是 ' \
	"libibverbs: values in the order of the language" run_wrong LANG=zh_CN.UTF-8
says '^verbena:   提示：申请的数目不要超过' "libibverbs: a hint" run_wrong LANG=zh_CN.UTF-8
says '不能从状态 RESET 转换到状态 RTS' "explain: a story" "$verbena" explain "$tmp/story"
says 'no transition from state RESET to state RTS' "explain: the same in English" \
	env LANG=C "$verbena" explain "$tmp/story"
says '^verbena: create_limit: cqe of the completion queue: 1073741824 asked for' \
	"libibverbs: English" run_wrong LANG=C
says '^verbena: leak: 程序结束时有 1 个队列对没有销毁' "the checker" \
	"$verbena" run --check "$tmp/wrong"
says '^verbena:   创建它的调用，位于 ' "the checker: places" "$verbena" run --check "$tmp/wrong"
says '^send_no_device: 没有这个 RDMA 设备' "libverbena" \
	env LD_LIBRARY_PATH="$tmp/tree/lib" "$verbena" run "$tmp/none"

mo=$tmp/tree/share/locale/zh_CN/LC_MESSAGES/verbena.mo
head -c 20000 "$mo" >"$tmp/cut" && cp "$tmp/cut" "$mo"
status 0 "a catalogue that is cut off" "$verbena" explain lkey_range_end
: >"$mo"
in_english LANG=zh_CN.UTF-8
rm "$mo"
in_english LANG=zh_CN.UTF-8
finish
