/* SPDX-License-Identifier: MIT */
#pragma once

/* Faults on demand, for tests: dying at a chosen step, and system calls that fail the Nth time.
 * Only builds with -DTROUPE_FAULTS contain any of it; elsewhere points vanish and fault_inject() is
 * 0.
 *
 * The environment, read at the first use (the functions below override it):
 *
 *     TROUPE_FAULT_POINT=NAME:N       SIGKILL at the Nth passage of that point; NAME "any" counts
 * them all TROUPE_FAULT=WHAT:N[+][=ERRNO][,…] the Nth call of that kind fails; with "+" all later
 * ones too; ERRNO is a number, by default what that call would say when its resource has run out
 *
 * Kinds: alloc memfd mmap eventfd clone pipe accept open write receive, and whatever else a caller
 * names. Not thread-safe. A malformed specification ends the process: a test must not pass by not
 * testing. */

#ifdef TROUPE_FAULTS

/* Passing the step called `name`. */
#define FAULT_POINT(name) fault_point(name)

/* What FAULT_POINT() calls: counts the passage, and does not return from the armed one. `name` is a
 * literal. */
void fault_point(const char *name);

/* 0, or the negative errno with which the caller is to pretend to have failed. */
int fault_inject(const char *what);

/* As the environment variables; NULL disarms. Counting starts anew. */
void fault_arm_point(const char *specification);
void fault_arm(const char *specification);

/* Called with the point's name just before the process kills itself. */
void fault_on_kill(void (*tell)(const char *name));

#else

#define FAULT_POINT(name) ((void)0)

static inline int fault_inject(const char *what)
{
    (void)what;
    return 0;
}

#endif
