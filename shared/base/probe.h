/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Probes for tracers such as bpftrace: user statically-defined tracing (USDT). Each is a nop in the
 * code, a counter of the tracers that listen, and an ELF note that says where these and the
 * arguments are. A tracer replaces the nop by a breakpoint and lets the kernel count it. Arguments
 * are evaluated only while a tracer listens. Without <sys/sdt.h> (systemtap-sdt-dev) at build time
 * there are none. A name stands in one place of the code, where its counter is defined.
 *
 *     job_accepted    JOB  priority
 *     job_started     JOB  worker  microseconds since it was accepted
 *     job_ended       JOB  state  microseconds since it was accepted
 *     job_died        JOB  cause of the last failure  attempts
 *     worker_started  group  worker  pid  generation  1 = forked by a template
 *     worker_died     group  worker  pid  cause  exit status, or minus the signal
 *                     microseconds of its life
 *     store_synced    microseconds of a commit to disk
 *
 * bpftrace reads six arguments on x86, so none has more.
 * JOB: group, the id's high and low half, and the id if the submitter chose it, else NULL. All
 * names are pointers to text. trouped(8) documents this list; a test compares it with the program.
 */

#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#define SDT_USE_VARIADIC
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#endif
#endif

#ifdef STAP_PROBEV
#define PROBE(name, ...)                                                                           \
    do {                                                                                           \
        static volatile unsigned short troupe_##name##_semaphore __asm__(                          \
            "troupe_" #name "_semaphore") __attribute__((section(".probes"), used));               \
        if (__builtin_expect(troupe_##name##_semaphore != 0, 0))                                   \
            STAP_PROBEV(troupe, name, __VA_ARGS__);                                                \
    } while (0)
#else
#define PROBE(name, ...) ((void)0)
#endif
