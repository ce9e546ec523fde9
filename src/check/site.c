/* SPDX-License-Identifier: BSD-2-Clause */
/* See site.h. An address is that of the call itself, one byte before the one it returns to: so
 * addr2line names the line of the call, and not the one behind it. The unwinder is linked in: that
 * of libgcc_s is missing in small containers, and loading it would take memory. */
#include "check/site.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

#define DEPTH 32

/* Libraries between the program and the adapter, by the beginning of their file's name. */
static const char *const between[] = {"libverbena-check.", "libibverbs.", "librdmacm.", "libtsan.",
				      "libasan."};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int is_between(const void *pc)
{
	Dl_info info;

	if (!dladdr(pc, &info) || !info.dli_fname)
		return 0;
	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++)
		if (!strncmp(base_name(info.dli_fname), between[i], strlen(between[i])))
			return 1;
	return strstr(info.dli_fname, "-rdmav") != NULL; /* a provider of rdma-core */
}

struct stack {
	void *pc[DEPTH];
	int n;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *frame, void *to)
{
	struct stack *s = to;

	if (s->n == DEPTH)
		return _URC_END_OF_STACK;
	s->pc[s->n++] = (void *)_Unwind_GetIP(frame);
	return _URC_NO_REASON;
}

void vrb_chk_site_take(struct vrb_chk_site *s)
{
	struct stack stack = {.n = 0};
	int from = 1, out = 0;

	_Unwind_Backtrace(step, &stack);
	memset(s, 0, sizeof(*s));
	while (from < stack.n && is_between(stack.pc[from]))
		from++;
	for (; from < stack.n && stack.pc[from] && out < VRB_CHK_FRAMES; from++)
		s->pc[out++] = (char *)stack.pc[from] - 1;
}

int vrb_chk_place(const void *pc, struct vrb_chk_place *p)
{
	struct link_map *map = NULL;
	const ElfW(Ehdr) * head;
	Dl_info info;

	if (!pc || !dladdr1(pc, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fname)
		return 0;
	head = info.dli_fbase;
	p->object = info.dli_fname;
	p->symbol = info.dli_sname;
	p->offset = info.dli_sname ? (uintptr_t)pc - (uintptr_t)info.dli_saddr : 0;
	p->address = (uintptr_t)pc;
	if (head->e_type == ET_DYN)
		p->address -= (uintptr_t)info.dli_fbase;
	return 1;
}
