/* SPDX-License-Identifier: MIT */
#include "worker/python/module/gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct unused {
    struct unused *next;
    struct troupe_future *future;
};

static unsigned generation = 1;

static void count(void)
{
    generation++;
}

int gate_prepare(void)
{
    static bool prepared;
    int r = prepared ? 0 : pthread_atfork(NULL, NULL, count);

    if (r != 0) {
        (void)failure_raise(-r, NULL);
        return -1;
    }
    prepared = true;
    return 0;
}

void gate_open(struct gate *gate)
{
    gate->generation = generation;
}

void gate_close(struct gate *gate)
{
    struct unused *next;

    gate->generation = 0;
    for (; gate->unused; gate->unused = next) {
        next = gate->unused->next;
        PyMem_Free(gate->unused);
    }
    gate_clear(gate);
}

int gate_traverse(const struct gate *gate, visitproc visit, void *arg)
{
    Py_VISIT(gate->called);
    return 0;
}

void gate_clear(struct gate *gate)
{
    Py_CLEAR(gate->called);
}

int gate_keep(struct gate *gate, PyObject *future)
{
    if (!gate->called)
        gate->called = PySet_New(NULL);
    return gate->called ? PySet_Add(gate->called, future) : -1;
}

void gate_forget(struct gate *gate, PyObject *future)
{
    if (gate->called)
        (void)PySet_Discard(gate->called, future);
}

bool gate_is_foreign(const struct gate *gate)
{
    return gate->generation != 0 && gate->generation != generation;
}

bool gate_is_open(const struct gate *gate)
{
    if (gate->generation == generation)
        return true;
    PyErr_SetString(PyExc_RuntimeError, gate->generation == 0
                                            ? "this object is closed"
                                            : "this object belongs to the process that forked");
    return false;
}

bool gate_enter(struct gate *gate)
{
    const unsigned long here = PyThread_get_thread_ident();

    if (!gate_is_open(gate))
        return false;
    if (gate->depth > 0 && gate->thread != here) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this object now");
        return false;
    }
    if (gate->handles_signals) {
        PyErr_SetString(PyExc_RuntimeError, "a call of this object waits");
        return false;
    }
    gate->thread = here;
    gate->depth++;
    return true;
}

void gate_leave(struct gate *gate)
{
    if (gate->depth == 1) {
        while (gate->unused) {
            struct unused *unused = gate->unused;

            gate->unused = unused->next;
            troupe_future_drop(unused->future);
            PyMem_Free(unused);
        }
    }
    gate->depth--;
}

void gate_unlock(struct gate *gate)
{
    gate->outside = PyEval_SaveThread();
}

void gate_lock(struct gate *gate)
{
    PyThreadState *outside = gate->outside;

    gate->outside = NULL;
    PyEval_RestoreThread(outside);
}

bool gate_begin(struct gate *gate)
{
    if (!gate_enter(gate))
        return false;
    gate_unlock(gate);
    return true;
}

int gate_end(struct gate *gate, int r, const char *reason)
{
    gate_lock(gate);
    gate_leave(gate);
    if (PyErr_Occurred())
        return -1;
    if (r < 0)
        (void)failure_raise(r, reason);
    return r < 0 ? -1 : r;
}

void gate_drop(struct gate *gate, struct troupe_future *future)
{
    struct unused *unused;

    if (gate->generation != generation)
        return; /* closed: it is gone; inherited: it is the parent's */
    if (gate->depth == 0 ||
        (gate->thread == PyThread_get_thread_ident() && !gate->handles_signals)) {
        troupe_future_drop(future);
        return;
    }
    unused = PyMem_Malloc(sizeof(*unused));
    if (!unused)
        return; /* goes with its owner */
    *unused = (struct unused){.next = gate->unused, .future = future};
    gate->unused = unused;
}

static int handle_signals(void *userdata)
{
    struct gate *gate = userdata;
    int r;

    if (!gate->outside)
        return 0; /* a call that keeps the GIL waits for moments only */
    gate_lock(gate);
    gate->handles_signals = true;
    r = PyErr_CheckSignals() < 0 ? -EINTR : 0;
    gate->handles_signals = false;
    gate_unlock(gate);
    return r;
}

void gate_handle_signals(struct gate *gate, struct troupe_actor *actor)
{
    troupe_actor_on_signal(actor, handle_signals, gate);
}

void gate_survive(const struct gate *gate)
{
    if (!gate_is_foreign(gate))
        return;
    if (PyErr_Occurred())
        PyErr_Print(); /* SystemExit ends the process here */
    else
        (void)fprintf(stderr, "troupe: a child of fork() has returned from a handler\n");
    _exit(1);
}

/* ---- connecting ---- */

#define SENTENCE_SIZE 512

int connect_by(connect_fn fn, void *ret, struct gate *gate, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"socket_path", NULL};
    const char *path = NULL;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z", names, &path))
        return -1;
    gate_unlock(gate);
    r = fn(ret, path);
    gate_lock(gate);
    if (r < 0) {
        char text[SENTENCE_SIZE];

        (void)failure_raise(r, troupe_explain_connect(r, path, text, sizeof(text)));
        return -1;
    }
    gate_open(gate);
    return 0;
}

/* ---- what a handler gets ---- */

PyObject *held_new(PyTypeObject *type, void *thing, PyObject *owner, struct gate *gate)
{
    struct held *self = PyObject_New(struct held, type);

    if (!self)
        return NULL;
    self->thing = thing;
    self->owner = Py_NewRef(owner);
    self->gate = gate;
    return (PyObject *)self;
}

void held_end(PyObject *object)
{
    struct held *self = (struct held *)object;

    self->thing = NULL;
    Py_CLEAR(self->owner); /* a program that keeps this object must not keep the owner */
}

void held_dealloc(struct held *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    Py_XDECREF(self->owner);
    PyObject_Free(self);
    Py_DECREF((PyObject *)cls);
}

bool held_is_open(const struct held *self)
{
    if (self->thing)
        return gate_is_open(self->gate);
    PyErr_SetString(PyExc_RuntimeError, "the handler has returned");
    return false;
}

bool held_begin(struct held *self)
{
    return held_is_open(self) && gate_begin(self->gate);
}

PyObject *held_done(struct held *self, int r)
{
    return gate_end(self->gate, r, NULL) < 0 ? NULL : Py_NewRef(Py_None);
}
