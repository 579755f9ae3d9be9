/* SPDX-License-Identifier: MIT */
#pragma once

/* Injects faults for tests: kills the process at a chosen step, or makes the Nth system call fail.
 * Only in builds with -DTROUPE_FAULTS; in others FAULT_POINT() is empty and fault_inject() returns
 * 0.
 *
 * The environment, read at the first use (the functions below override it):
 *
 *     TROUPE_FAULT_POINT=NAME:N
 *         SIGKILL at the Nth passage of that point; NAME "any" counts all points
 *     TROUPE_FAULT_POINT=@FILE
 *         NAME:N is in this file, if it exists; the kill removes the file, so that the next
 *         supervisor survives
 *     TROUPE_FAULT=WHAT:N[+][=ERRNO][,…]
 *         the Nth call of that kind fails, with "+" also all later ones; ERRNO is a number, by
 *         default that of a call whose resource has run out
 *     TROUPE_FAULT=@FILE
 *         the text is in this file, as long as it exists; a fault without "+" removes the file, so
 *         that the next supervisor is spared
 *
 * Kinds: alloc memfd mmap eventfd clone pipe accept open write receive, and others that callers
 * name. Not thread-safe. A malformed specification ends the process, so that a test cannot pass
 * without testing. */

#ifdef TROUPE_FAULTS

/* Marks the step called `name`, a literal. */
#define FAULT_POINT(name) fault_point(name)

/* Called by FAULT_POINT(): counts the passage, and kills the process if it is the armed one. */
void fault_point(const char *name);

/* Returns 0, or -errno: the caller then acts as if its call had failed with this error. */
int fault_inject(const char *what);

/* Like setting the environment variables; NULL disarms. Resets the count. */
void fault_arm_point(const char *specification);
void fault_arm(const char *specification);

/* Called with the point's name just before the process kills itself. */
void fault_on_kill(void (*tell)(const char *name));

#else

#define FAULT_POINT(name) ((void)0)

static inline int fault_inject(const char *what)
{
    return 0;
}

#endif
