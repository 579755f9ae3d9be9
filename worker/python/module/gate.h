/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/*
 * Admits one thread at a time to an object of libtroupe, and no thread in a child after fork(). All
 * calls need the GIL, which guards the gate itself.
 */
struct gate {
    PyThreadState *outside; /* of the thread inside, while it has released the GIL; else NULL */
    unsigned long thread;   /* inside, if depth > 0 */
    unsigned depth;         /* callbacks may call again */
    unsigned generation;    /* of processes; 0 = closed */
    bool handles_signals;   /* in the middle of a call of the library */
    struct unused *unused;  /* futures to drop when no thread is inside */
    PyObject *called;       /* set of Futures whose then() has not called yet; NULL = none */
};

/* Registers the hook that counts generations. Returns 0, or -1 after raising. */
int gate_prepare(void);

void gate_open(struct gate *gate);
/* Forgets futures that wait to be dropped, since they end with the object. */
void gate_close(struct gate *gate);

/* Returns whether this process has inherited the object by fork() and must not touch it. */
bool gate_is_foreign(const struct gate *gate);

/* Returns whether any thread may make calls that are safe for all; else false after raising. */
bool gate_is_open(const struct gate *gate);

/* Returns whether this thread may call; else false after raising. gate_leave() ends the call. */
bool gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);

/* Release the GIL around a call that waits, and take it around a callback of such a call. */
void gate_unlock(struct gate *gate);
void gate_lock(struct gate *gate);

/* Enters and releases the GIL. Returns false after raising; else gate_end() ends the call. */
bool gate_begin(struct gate *gate);
/* Returns `r`, the return value of the library's call, or -1 after raising: a callback's exception,
 * or the error with `reason` (NULL = the system's text). */
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

/* Makes Python's signal handlers run while a call of this worker or client waits. Their exceptions
 * end the call. They cannot call the same object. */
void gate_handle_signals(struct gate *gate, struct troupe_actor *actor);

/* Call it after a callback: ends a child of fork() that returns from it, since it must not continue
 * as its parent. */
void gate_survive(const struct gate *gate);

/* Connects, as troupe_client_connect() and troupe_query_new() do. */
typedef int (*connect_fn)(void *ret, const char *socket_path);

/* Parses (socket_path=None), connects while other threads run, and opens the gate. Returns 0, or -1
 * after raising. */
int connect_by(connect_fn fn, void *ret, struct gate *gate, PyObject *args, PyObject *kwargs);

/* ---- what a handler gets ---- */

/* The current job or message, until its handler returns. */
struct held {
    PyObject_HEAD void *thing; /* NULL = its handler has returned */
    PyObject *owner;           /* holds the gate; NULL = the handler has returned */
    struct gate *gate;
};

/* Returns a new object for a handler, or NULL after raising. */
PyObject *held_new(PyTypeObject *type, void *thing, PyObject *owner, struct gate *gate);
void held_dealloc(struct held *self);

/* Detaches it: its handler has returned, and all calls raise from now on. */
void held_end(PyObject *self);

/* Returns whether any thread may read; else false after raising. */
bool held_is_open(const struct held *self);

/* Like gate_begin() and gate_end(); the latter returns None or NULL. */
bool held_begin(struct held *self);
PyObject *held_done(struct held *self, int r);
