/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/*
 * Admits one thread at a time to an object of libtroupe, and nobody in a child after fork(). All
 * calls need the GIL, which guards the gate itself.
 */
struct gate {
    PyThreadState *outside; /* of the thread inside, while it has given up the GIL; else NULL */
    unsigned long thread;   /* inside, if depth > 0 */
    unsigned depth;         /* callbacks may call again */
    unsigned generation;    /* of processes; 0 = closed */
    bool handles_signals;   /* in the middle of a call of the library */
    struct unused *unused;  /* futures to drop when nobody is inside */
    PyObject *called;       /* set of Futures whose then() has not called yet; NULL = none */
};

/* Registers the hook that counts generations. Returns 0, or -1 after raising. */
int gate_prepare(void);

void gate_open(struct gate *gate);
/* What waits to be dropped is forgotten: it goes with the object. */
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

/* Enters and gives up the GIL. Returns false after raising; else gate_end() ends the call. */
bool gate_begin(struct gate *gate);
/* Returns `r`, which the library's call returned, or -1 after raising: what a callback raised, or
 * the error with `reason` (NULL = the system's text). */
int gate_end(struct gate *gate, int r, const char *reason);

/* For the owner's tp_traverse and tp_clear. */
int gate_traverse(const struct gate *gate, visitproc visit, void *arg);
void gate_clear(struct gate *gate);

/* Keeps a Future until it has ended, was dropped, or the object is closed. Returns 0, or -1 after
 * raising. */
int gate_keep(struct gate *gate, PyObject *future);
void gate_forget(struct gate *gate, PyObject *future);

/* Drops a future now, or as soon as the thread that is inside has left. Any thread. */
void gate_drop(struct gate *gate, struct troupe_future *future);

/* Has Python's handlers of signals run while a call of this worker or client waits, and end it with
 * what they raise. They cannot call the same object meanwhile. */
void gate_handle_signals(struct gate *gate, struct troupe_actor *actor);

/* After a callback: ends a child of fork() that returns from it, and must not go on as its parent.
 */
void gate_survive(const struct gate *gate);

/* Connects, as troupe_client_connect() and troupe_query_new() do. */
typedef int (*connect_fn)(void *ret, const char *socket_path);

/* Parses (socket_path=None), connects while other threads run, and opens the gate. Returns 0, or -1
 * after raising. */
int connect_by(connect_fn fn, void *ret, struct gate *gate, PyObject *args, PyObject *kwargs);
