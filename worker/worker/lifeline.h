/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Tells the supervisor of this worker's death at once: a robust, process-shared mutex of the C
 * library in the outbox, held by the working thread. When that thread ends without unlocking it,
 * the kernel marks the word and wakes the supervisor before it frees what may be gigabytes of
 * memory.
 *
 * The kernel knows one list of such locks per thread, which belongs to the C library: another list
 * would break the program's own robust mutexes.
 */

#include "shared/ring/memory.h"
#include <pthread.h>
#include <stdbool.h>

struct lifeline {
    struct memory_header *outbox; /* NULL = not held */
    pthread_t holder;
};

/* Locks it by the calling thread. If that is impossible, the supervisor learns of a death when the
 * process has ended. */
void lifeline_hold(struct lifeline *lifeline, struct memory_header *outbox);

/* Disarms the lifeline if another thread than before works now: the end of the first thread is not
 * the worker's. */
void lifeline_check(struct lifeline *lifeline);

/* Unlocks it. Returns false if the outbox must stay mapped, because a thread has it in its list. */
bool lifeline_release(struct lifeline *lifeline);
