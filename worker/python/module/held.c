/* SPDX-License-Identifier: MIT */
#include "worker/python/module/held.h"

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

bool held_is_open(const struct held *self, const char *noun)
{
    if (self->thing)
        return gate_is_open(self->gate);
    PyErr_Format(PyExc_RuntimeError, "the handler of this %s has returned", noun);
    return false;
}

bool held_begin(struct held *self, const char *noun)
{
    return held_is_open(self, noun) && gate_begin(self->gate);
}

PyObject *held_done(struct held *self, int r)
{
    return gate_end(self->gate, r, NULL) < 0 ? NULL : Py_NewRef(Py_None);
}
