/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/gate.h"

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

/* Returns whether any thread may read; else false after raising. `noun`: "job" or "message". */
bool held_is_open(const struct held *self, const char *noun);

/* Like gate_begin() and gate_end(); the latter returns None or NULL. */
bool held_begin(struct held *self, const char *noun);
PyObject *held_done(struct held *self, int r);
