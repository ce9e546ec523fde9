/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes (USDT) of the provider libverbena for perf, bpftrace and systemtap: a nop each
 * until somebody looks. Without <sys/sdt.h> at build time they are left out.
 */
#ifndef VRB_SEND_PROBES_H
#define VRB_SEND_PROBES_H

#if defined(__has_include) && !defined(__cppcheck__)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define VRB_PROBE(name, a, b, c) DTRACE_PROBE3(libverbena, name, a, b, c)
#endif
#endif

#ifndef VRB_PROBE
#define VRB_PROBE(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
