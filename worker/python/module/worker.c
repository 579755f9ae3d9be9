/* SPDX-License-Identifier: MIT */
/* The type Worker. */
#include "worker/python/module/types.h"
#include <errno.h>

struct worker {
    PyObject_HEAD struct troupe_worker *worker;
    struct gate gate;
    PyObject *on_job; /* NULL = none */
    PyObject *actor;  /* NULL = not requested yet */
};

static PyTypeObject *type;

/* Retries the job if its handler raised, and leaves the exception set. */
static int settle(struct troupe_job *job, PyObject *returned)
{
    char reason[256];

    if (returned)
        return 0;
    failure_describe(reason, sizeof(reason));
    (void)troupe_job_retry(job, ECANCELED, reason); /* -EALREADY: the handler has ended it */
    return 0;
}

static int handle_job(struct troupe_job *job, void *userdata)
{
    struct worker *self = userdata;
    PyObject *handle, *returned = NULL;
    int r;

    gate_lock(&self->gate);
    handle = PyErr_Occurred() ? NULL : job_new(job, (PyObject *)self, &self->gate);
    if (handle) {
        PyObject *callable = Py_NewRef(self->on_job); /* the handler may set another one */

        returned = PyObject_CallFunctionObjArgs(callable, handle, NULL);
        Py_DECREF(callable);
    }
    gate_survive(&self->gate);
    if (handle)
        held_end(handle);
    Py_XDECREF(handle);
    r = settle(job, returned);
    Py_XDECREF(returned);
    gate_unlock(&self->gate);
    return r;
}

static PyObject *worker_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    struct worker *self;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Worker", names))
        return NULL;
    self = PyObject_GC_New(struct worker, cls);
    if (!self)
        return NULL;
    self->gate = (struct gate){0};
    self->on_job = NULL;
    self->actor = NULL;
    self->worker = NULL;
    PyObject_GC_Track(self);
    r = troupe_worker_new(&self->worker);
    if (r == 0) {
        gate_open(&self->gate);
        return (PyObject *)self;
    }
    Py_DECREF((PyObject *)self);
    return failure_raise(r, r == -ENOTCONN ? "not started by trouped" : NULL);
}

static int worker_traverse(struct worker *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)Py_TYPE((PyObject *)self));
    Py_VISIT(self->on_job);
    Py_VISIT(self->actor);
    return gate_traverse(&self->gate, visit, arg);
}

static int worker_clear(struct worker *self)
{
    Py_CLEAR(self->on_job);
    gate_clear(&self->gate);
    return 0;
}

static void worker_dealloc(struct worker *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    PyObject_GC_UnTrack(self);
    if (!gate_is_foreign(&self->gate))
        troupe_worker_free(self->worker);
    gate_close(&self->gate);
    if (self->actor)
        actor_end(self->actor);
    Py_CLEAR(self->actor);
    (void)worker_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)cls);
}

/* Returns whether a turn may begin with that handler, or with the previous one if NULL. */
static bool begin(struct worker *self, PyObject *on_job)
{
    if (on_job && !PyCallable_Check(on_job)) {
        PyErr_SetString(PyExc_TypeError, "a handler of jobs must be callable");
        return false;
    }
    if (!gate_enter(&self->gate))
        return false;
    if (on_job) {
        PyObject *before = self->on_job;

        self->on_job = Py_NewRef(on_job);
        Py_XDECREF(before);
        troupe_worker_on_job(self->worker, handle_job, self);
    }
    return true;
}

/* Returns the result of `turn`, or -1 after raising. */
static int end(struct worker *self, int r)
{
    gate_leave(&self->gate);
    if (PyErr_Occurred() || PyErr_CheckSignals() < 0)
        return -1;
    if (r < 0)
        (void)failure_raise(r, r == -ESHUTDOWN ? "the worker must stop" : NULL);
    return r < 0 ? -1 : r;
}

static int turn(struct worker *self, uint64_t timeout)
{
    int r;

    gate_unlock(&self->gate);
    r = troupe_worker_turn(self->worker, timeout);
    gate_lock(&self->gate);
    return r;
}

static PyObject *on_job(struct worker *self, PyObject *callable)
{
    if (!begin(self, callable))
        return NULL;
    gate_leave(&self->gate);
    Py_RETURN_NONE;
}

static PyObject *run(struct worker *self, PyObject *args)
{
    PyObject *callable = NULL;
    int r;

    if (!PyArg_ParseTuple(args, "|O:run", &callable) || !begin(self, callable))
        return NULL;
    do
        r = turn(self, TROUPE_USEC_INFINITY);
    while (r >= 0 && !PyErr_Occurred() && (r > 0 || PyErr_CheckSignals() == 0));
    if (end(self, r == -ESHUTDOWN ? 0 : r) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *worker_turn(struct worker *self, PyObject *args)
{
    uint64_t timeout = TROUPE_USEC_INFINITY;
    int r;

    if (!PyArg_ParseTuple(args, "|O&:turn", moment_or_never, &timeout) || !begin(self, NULL))
        return NULL;
    r = end(self, turn(self, timeout));
    return r < 0 ? NULL : PyBool_FromLong(r);
}

/* Workers that handle only messages have no handler of jobs. */
static PyObject *get_actor(struct worker *self, PyObject *unused)
{
    if (!gate_enter(&self->gate))
        return NULL;
    if (!self->actor) {
        struct troupe_actor *actor = troupe_worker_actor(self->worker);

        gate_handle_signals(&self->gate, actor);
        self->actor = actor_new(actor, (PyObject *)self, &self->gate);
    }
    gate_leave(&self->gate);
    return Py_XNewRef(self->actor);
}

static PyObject *process(struct worker *self, PyObject *unused)
{
    int r;

    if (!begin(self, NULL))
        return NULL;
    gate_unlock(&self->gate);
    r = troupe_worker_process(self->worker);
    gate_lock(&self->gate);
    r = end(self, r);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *fd(struct worker *self, PyObject *unused)
{
    int r;

    if (!gate_enter(&self->gate))
        return NULL;
    r = troupe_worker_fd(self->worker);
    gate_leave(&self->gate);
    return r < 0 ? failure_raise(r, NULL) : PyLong_FromLong(r);
}

static PyObject *timeout(struct worker *self, PyObject *unused)
{
    return gate_is_open(&self->gate) ? moment_to_python(troupe_worker_timeout(self->worker)) : NULL;
}

static PyObject *wake(struct worker *self, PyObject *unused)
{
    if (!gate_is_open(&self->gate))
        return NULL;
    troupe_worker_wake(self->worker);
    Py_RETURN_NONE;
}

static PyObject *heartbeat(struct worker *self, PyObject *unused)
{
    if (!gate_is_open(&self->gate))
        return NULL;
    troupe_worker_heartbeat(self->worker);
    Py_RETURN_NONE;
}

static PyObject *publish(struct worker *self, PyObject *args)
{
    Py_buffer data;
    int r = -1;

    if (!PyArg_ParseTuple(args, "y*:publish", &data))
        return NULL;
    if (gate_enter(&self->gate)) {
        r = troupe_worker_publish_state(self->worker, data.buf, (size_t)data.len);
        gate_leave(&self->gate);
    }
    PyBuffer_Release(&data);
    return PyErr_Occurred() ? NULL : failure_none(r);
}

static PyObject *get_name(struct worker *self, void *unused)
{
    return gate_is_open(&self->gate) ? PyUnicode_FromString(troupe_worker_name(self->worker))
                                     : NULL;
}

static PyObject *get_generation(struct worker *self, void *unused)
{
    return gate_is_open(&self->gate)
               ? PyLong_FromUnsignedLongLong(troupe_worker_generation(self->worker))
               : NULL;
}

static PyGetSetDef ATTRIBUTES[] = {
    {"name", (getter)get_name, NULL, "\"group/cell/slot\" or \"group/slot\".", NULL},
    {"generation", (getter)get_generation, NULL, "Increases with each process in the slot.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef METHODS[] = {
    {"actor", METHOD(get_actor), METH_NOARGS, "actor(): the worker as an actor."},
    {"on_job", METHOD(on_job), METH_O, "on_job(callable): handles all further jobs."},
    {"run", METHOD(run), METH_VARARGS,
     "run([on_job]): handles jobs and messages until the worker must stop. Raises what a handler "
     "or a signal handler raised."},
    {"turn", METHOD(worker_turn), METH_VARARGS,
     "turn(timeout=None): handles at most one job or message, and waits for it. Returns whether "
     "there was one."},
    {"process", METHOD(process), METH_NOARGS,
     "process(): handles at most one job or message without waiting. Call it until it returns "
     "False."},
    {"fd", METHOD(fd), METH_NOARGS, "fd(): a descriptor that is readable when to process."},
    {"timeout", METHOD(timeout), METH_NOARGS,
     "timeout(): when to process, by time.monotonic(); None = never."},
    {"wake", METHOD(wake), METH_NOARGS, "wake(): ends a wait of turn(). Any thread."},
    {"heartbeat", METHOD(heartbeat), METH_NOARGS,
     "heartbeat(): restarts WatchdogSec=. Any thread."},
    {"publish", METHOD(publish), METH_VARARGS, "publish(data): publishes up to 4096 bytes."},
    {NULL, NULL, 0, NULL},
};

int worker_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "The worker that this process is: one per process."},
        {Py_tp_new, SLOT(worker_new)},
        {Py_tp_dealloc, SLOT(worker_dealloc)},
        {Py_tp_traverse, SLOT(worker_traverse)},
        {Py_tp_clear, SLOT(worker_clear)},
        {Py_tp_getset, ATTRIBUTES},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Worker", sizeof(struct worker), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

    return type_register(module, &spec, &type);
}
