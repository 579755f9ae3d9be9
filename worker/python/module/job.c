/* SPDX-License-Identifier: MIT */
#include "worker/python/module/job.h"
#include "worker/python/module/failure.h"

struct job {
    PyObject_HEAD struct troupe_job *job; /* NULL = its handler has returned */
    PyObject *owner;
    struct gate *gate;
};

static PyTypeObject *type;

PyObject *job_new(struct troupe_job *job, PyObject *owner, struct gate *gate)
{
    struct job *self = PyObject_New(struct job, type);

    if (!self)
        return NULL;
    self->job = job;
    self->owner = Py_NewRef(owner);
    self->gate = gate;
    return (PyObject *)self;
}

void job_end(PyObject *self)
{
    ((struct job *)self)->job = NULL;
}

static void job_dealloc(struct job *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    Py_DECREF(self->owner);
    PyObject_Free(self);
    Py_DECREF((PyObject *)cls);
}

static bool is_in_hand(const struct job *self)
{
    if (!gate_is_open(self->gate))
        return false;
    if (!self->job)
        PyErr_SetString(PyExc_RuntimeError, "the handler of this job has returned");
    return self->job;
}

static bool enter(struct job *self)
{
    return is_in_hand(self) && gate_enter(self->gate);
}

static PyObject *get_id(struct job *self, void *unused)
{
    (void)unused;
    return is_in_hand(self) ? PyUnicode_FromString(troupe_job_id(self->job)) : NULL;
}

static PyObject *get_key(struct job *self, void *unused)
{
    const char *key;
    size_t size;

    (void)unused;
    if (!is_in_hand(self))
        return NULL;
    key = troupe_job_key(self->job, &size);
    return PyBytes_FromStringAndSize(key, (Py_ssize_t)size);
}

static PyObject *get_attempt(struct job *self, void *unused)
{
    (void)unused;
    return is_in_hand(self) ? PyLong_FromUnsignedLong(troupe_job_attempt(self->job)) : NULL;
}

static PyObject *get_max_attempts(struct job *self, void *unused)
{
    (void)unused;
    return is_in_hand(self) ? PyLong_FromUnsignedLong(troupe_job_max_attempts(self->job)) : NULL;
}

/* A copy: a view of the payload could outlive it. */
static PyObject *get_payload(struct job *self, void *unused)
{
    const char *data;
    size_t size;

    (void)unused;
    if (!is_in_hand(self))
        return NULL;
    data = troupe_job_payload(self->job, &size);
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

static PyObject *get_cancelled(struct job *self, void *unused)
{
    (void)unused;
    return is_in_hand(self) ? PyBool_FromLong(troupe_job_is_cancelled(self->job)) : NULL;
}

static PyGetSetDef ATTRIBUTES[] = {
    {"id", (getter)get_id, NULL, "The id as text.", NULL},
    {"key", (getter)get_key, NULL, "The routing key, or b\"\".", NULL},
    {"attempt", (getter)get_attempt, NULL, "Counts from 1.", NULL},
    {"max_attempts", (getter)get_max_attempts, NULL, "1 + the retries allowed.", NULL},
    {"payload", (getter)get_payload, NULL, "A new copy of the payload.", NULL},
    {"cancelled", (getter)get_cancelled, NULL, "Whether to give up. Any thread.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *succeed(struct job *self, PyObject *args)
{
    Py_buffer data;
    int r;

    if (!PyArg_ParseTuple(args, "y*:succeed", &data))
        return NULL;
    if (!enter(self)) {
        PyBuffer_Release(&data);
        return NULL;
    }
    gate_unlock(self->gate);
    r = troupe_job_succeed(self->job, data.buf, (size_t)data.len);
    gate_lock(self->gate);
    gate_leave(self->gate);
    PyBuffer_Release(&data);
    return failure_none(r);
}

static PyObject *reject(struct job *self, PyObject *args)
{
    Py_buffer data;
    int code, r;

    if (!PyArg_ParseTuple(args, "iy*:reject", &code, &data))
        return NULL;
    if (!enter(self)) {
        PyBuffer_Release(&data);
        return NULL;
    }
    gate_unlock(self->gate);
    r = troupe_job_reject(self->job, code, data.buf, (size_t)data.len);
    gate_lock(self->gate);
    gate_leave(self->gate);
    PyBuffer_Release(&data);
    return failure_none(r);
}

static PyObject *retry(struct job *self, PyObject *args)
{
    const char *reason;
    int code, r;

    if (!PyArg_ParseTuple(args, "is:retry", &code, &reason) || !enter(self))
        return NULL;
    gate_unlock(self->gate);
    r = troupe_job_retry(self->job, code, reason);
    gate_lock(self->gate);
    gate_leave(self->gate);
    return failure_none(r);
}

static PyObject *cancel(struct job *self, PyObject *unused)
{
    int r;

    (void)unused;
    if (!enter(self))
        return NULL;
    gate_unlock(self->gate);
    r = troupe_job_cancelled(self->job);
    gate_lock(self->gate);
    gate_leave(self->gate);
    return failure_none(r);
}

static PyMethodDef METHODS[] = {
    {"succeed", METHOD(succeed), METH_VARARGS, "succeed(data): ends the job."},
    {"reject", METHOD(reject), METH_VARARGS, "reject(code, data): ends the job for good."},
    {"retry", METHOD(retry), METH_VARARGS, "retry(code, reason): asks for another attempt."},
    {"cancel", METHOD(cancel), METH_NOARGS, "cancel(): ends the job as cancelled."},
    {NULL, NULL, 0, NULL},
};

int job_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "The job in hand, until its handler returns."},
        {Py_tp_dealloc, SLOT(job_dealloc)},
        {Py_tp_getset, ATTRIBUTES},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Job", sizeof(struct job), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return type ? PyModule_AddObjectRef(module, "Job", (PyObject *)type) : -1;
}
