/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive doubly linked list. A node that is not on a list points at itself; del leaves it so. */
#ifndef VRB_BASE_LIST_H
#define VRB_BASE_LIST_H

#include "base/types.h"

struct vrb_list {
	struct vrb_list *next, *prev;
};

static inline void vrb_list_init(struct vrb_list *l)
{
	l->next = l->prev = l;
}

static inline bool vrb_list_empty(const struct vrb_list *l)
{
	return l->next == l;
}

static inline void vrb_list_add_tail(struct vrb_list *head, struct vrb_list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void vrb_list_del(struct vrb_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	n->next = n->prev = n;
}

#define vrb_list_entry(n, type, member) vrb_container_of(n, type, member)

#endif
