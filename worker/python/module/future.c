/* SPDX-License-Identifier: MIT */
/* The type Future. */
#include "worker/python/module/types.h"
#include <errno.h>

struct future {
    PyObject_HEAD struct troupe_future *future; /* NULL = dropped */
    PyObject *owner;
    struct gate *gate;
    unsigned waiting; /* calls of wait() that have not returned */
    PyObject *then;   /* a callable, until it has been called: the gate keeps this object so long */
};

static PyTypeObject *type;

PyObject *future_new(struct troupe_future *future, PyObject *owner, struct gate *gate)
{
    struct future *self = PyObject_GC_New(struct future, type);

    if (!self) {
        troupe_future_free(future);
        return NULL;
    }
    self->future = future;
    self->owner = Py_NewRef(owner);
    self->gate = gate;
    self->waiting = 0;
    self->then = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* A circle through the owner ends where the handlers of its actor are cleared. */
static int future_traverse(struct future *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)Py_TYPE((PyObject *)self));
    Py_VISIT(self->owner);
    Py_VISIT(self->then);
    return 0;
}

static void forget(struct future *self)
{
    if (self->future)
        gate_drop(self->gate, self->future);
    self->future = NULL;
}

static void future_dealloc(struct future *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    PyObject_GC_UnTrack(self);
    forget(self);
    Py_XDECREF(self->then);
    Py_DECREF(self->owner);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)cls);
}

static bool is_open(const struct future *self)
{
    if (self->future)
        return gate_is_open(self->gate);
    PyErr_SetString(PyExc_RuntimeError, "this future was dropped");
    return false;
}

static bool enter(struct future *self)
{
    return is_open(self) && gate_enter(self->gate);
}

/* The futures of a client that was closed are gone with it. */
static bool is_gone(const struct future *self)
{
    return !self->future || gate_is_foreign(self->gate) || self->gate->generation == 0;
}

static PyObject *drop(struct future *self, PyObject *unused)
{
    if (self->waiting > 0) {
        PyErr_SetString(PyExc_RuntimeError, "a call of wait() has not returned");
        return NULL;
    }
    if (!is_gone(self)) {
        if (!gate_enter(self->gate))
            return NULL;
        gate_leave(self->gate);
    }
    forget(self);
    gate_forget(self->gate, (PyObject *)self);
    Py_CLEAR(self->then);
    Py_RETURN_NONE;
}

static PyObject *done(struct future *self, PyObject *unused)
{
    return is_open(self) ? PyBool_FromLong(troupe_future_done(self->future)) : NULL;
}

static PyObject *reply(const struct future *self)
{
    const char *data;
    size_t size;

    data = troupe_future_payload(self->future, &size);
    return Py_BuildValue("(sy#K)", troupe_future_type(self->future), data, (Py_ssize_t)size,
                         (unsigned long long)troupe_future_from(self->future));
}

static PyObject *result(struct future *self, PyObject *unused)
{
    int r;

    if (!enter(self))
        return NULL;
    r = troupe_future_error(self->future);
    gate_leave(self->gate);
    return r < 0 ? failure_raise(r, troupe_future_reason(self->future)) : reply(self);
}

/* In a handler, other messages wait until it returns. */
static PyObject *await(struct future *self, PyObject *args)
{
    uint64_t timeout = TROUPE_USEC_INFINITY;
    int r;

    if (!PyArg_ParseTuple(args, "|O&:wait", moment_or_never, &timeout) || !enter(self))
        return NULL;
    self->waiting++;
    gate_unlock(self->gate);
    r = troupe_future_await_any(&self->future, 1, TROUPE_AWAIT_STASH, timeout);
    gate_lock(self->gate);
    self->waiting--;
    gate_leave(self->gate);
    if (PyErr_Occurred() || (r == -EINTR && PyErr_CheckSignals() < 0))
        return NULL;
    if (r == -EAGAIN)
        return failure_raise(-ETIMEDOUT, "no reply within that time");
    return r < 0 ? failure_raise(r, NULL) : result(self, NULL);
}

static void call(struct troupe_actor *actor, struct troupe_future *future, void *userdata)
{
    struct future *self = userdata;
    PyObject *callable, *returned;
    struct gate *gate;

    gate_lock(self->gate);
    Py_INCREF((PyObject *)self);
    callable = self->then;
    self->then = NULL;
    if (callable && !PyErr_Occurred()) {
        gate_forget(self->gate, (PyObject *)self);
        /* An exception of the callable stays set, and ends the call that waited. */
        returned = PyObject_CallFunctionObjArgs(callable, (PyObject *)self, NULL);
        gate_survive(self->gate);
        Py_XDECREF(returned);
    }
    Py_XDECREF(callable);
    gate = self->gate; /* a waiting caller holds its owner */
    Py_DECREF((PyObject *)self);
    gate_unlock(gate);
}

static PyObject *then(struct future *self, PyObject *callable)
{
    if (!enter(self))
        return NULL;
    if (self->then || !PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "then() takes a callable, once");
    } else if (gate_keep(self->gate, (PyObject *)self) == 0) {
        self->then = Py_NewRef(callable);
        troupe_future_then(self->future, call, self);
    }
    gate_leave(self->gate);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef METHODS[] = {
    {"done", METHOD(done), METH_NOARGS, "done(): whether it has ended."},
    {"result", METHOD(result), METH_NOARGS,
     "result(): (type, data, from), or raises its error; BlockingIOError before its end."},
    {"wait", METHOD(await), METH_VARARGS,
     "wait(timeout=None): waits for the end; then result(). TimeoutError: no end within that time, "
     "or that of the ask."},
    {"then", METHOD(then), METH_O, "then(callable): calls it with this future after the end."},
    {"drop", METHOD(drop), METH_NOARGS, "drop(): ends the ask. Idempotent."},
    {NULL, NULL, 0, NULL},
};

int future_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "The future reply to an ask. The end of this object ends the ask."},
        {Py_tp_dealloc, SLOT(future_dealloc)},
        {Py_tp_traverse, SLOT(future_traverse)},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "troupe._troupe.Future", sizeof(struct future), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_register(module, &spec, &type);
}
