/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reports this worker's death to the supervisor immediately: a robust, process-shared mutex of the
 * C library in the outbox, held by the working thread. When that thread ends without unlocking it,
 * the kernel marks the word and wakes the supervisor before it frees the process's memory, which
 * may be gigabytes.
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

/* Locks the mutex by the calling thread. If that is impossible, the supervisor notices a death when
 * the process has ended. */
void lifeline_hold(struct lifeline *lifeline, struct memory_header *outbox);

/* Disarms the lifeline if a different thread works now: the end of the first thread is then not the
 * worker's. */
void lifeline_check(struct lifeline *lifeline);

/* Unlocks the mutex. Returns false if the outbox must stay mapped, because it is in a thread's
 * list. */
bool lifeline_release(struct lifeline *lifeline);
