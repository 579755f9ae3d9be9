/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How the supervisor hears of this worker's death at once: a lock in the outbox that the working
 * thread holds for as long as it works. When that thread ends without having let go of it, however
 * that came about, the kernel marks the word and wakes the supervisor, before it begins to tear
 * down what may be gigabytes of memory.
 *
 * It is a robust mutex of the C library's, process-shared: the kernel knows one list of such locks
 * per thread, and the library owns its head. Registering another list would take away the
 * program's own robust mutexes.
 */

#include "shared/ring/memory.h"
#include <pthread.h>
#include <stdbool.h>

struct lifeline {
    struct memory_header *outbox; /* NULL = none is held */
    pthread_t holder;
};

/*
 * Has the calling thread hold it. Best effort: where it is not to be had, the supervisor learns of
 * a death when the process has ended.
 */
void lifeline_hold(struct lifeline *lifeline, struct memory_header *outbox);

/*
 * The calling thread works now: another one than before makes the lifeline say nothing any more,
 * for the first one's end is not the worker's.
 */
void lifeline_check(struct lifeline *lifeline);

/* Before the outbox is unmapped. False: it must stay mapped, since a thread still has it in its
 * list. */
bool lifeline_release(struct lifeline *lifeline);
