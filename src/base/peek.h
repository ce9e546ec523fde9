/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words that are written under a lock and looked at without it: a look is a hint and may be old.
 * Whoever writes pokes, whoever looks without the lock peeks; with the lock plain reads will do.
 * Both are plain moves to the processor.
 */
#ifndef VRB_BASE_PEEK_H
#define VRB_BASE_PEEK_H

#define vrb_peek(p)    __atomic_load_n((p), __ATOMIC_RELAXED)
#define vrb_poke(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

#endif
