/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/*
 * Admits one thread at a time to an object of libtroupe, and nobody in a child after fork(). All
 * calls need the GIL, which guards the gate itself.
 */
struct gate {
    PyThreadState *outside; /* of the thread inside, while the library runs without the GIL */
    unsigned long thread;   /* inside, if depth > 0 */
    unsigned depth;         /* callbacks may call again */
    unsigned generation;    /* of processes; 0 = closed */
};

/* Registers the hook that counts generations. Returns 0, or -1 after raising. */
int gate_prepare(void);

void gate_open(struct gate *gate);
void gate_close(struct gate *gate);

/* Returns whether this process has inherited the object by fork(): nothing of it may be touched. */
bool gate_is_foreign(const struct gate *gate);

/* Returns whether any thread may make calls that are safe for all; else false after raising. */
bool gate_is_open(const struct gate *gate);

/* Returns whether this thread may call; else false after raising. gate_leave() ends the call. */
bool gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);

/* Give up the GIL around a call that waits, and around a callback of such a call take it. */
void gate_unlock(struct gate *gate);
void gate_lock(struct gate *gate);

/* After a callback: ends a child of fork() that returns from it, and must not go on as its parent.
 */
void gate_survive(const struct gate *gate);
