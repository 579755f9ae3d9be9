/* SPDX-License-Identifier: MIT */
/* The type Job. */
#include "worker/python/module/types.h"

static PyTypeObject *type;

PyObject *job_new(struct troupe_job *job, PyObject *owner, struct gate *gate)
{
    return held_new(type, job, owner, gate);
}

enum attribute {
    ID,
    KEY,
    ATTEMPT,
    MAX_ATTEMPTS,
    PAYLOAD,
    LAST_CHECKPOINT,
    PARENTS,
    TRACEPARENT,
    CANCELLED,
};

/* Bytes are copies: a view could outlive them. */
static PyObject *get(struct held *self, void *attribute)
{
    const char *data;
    size_t size;

    if (!held_is_open(self))
        return NULL;
    switch ((enum attribute)(uintptr_t)attribute) {
    case ID:
        return PyUnicode_FromString(troupe_job_id(self->thing));
    case KEY:
        data = troupe_job_key(self->thing, &size);
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    case ATTEMPT:
        return PyLong_FromUnsignedLong(troupe_job_attempt(self->thing));
    case MAX_ATTEMPTS:
        return PyLong_FromUnsignedLong(troupe_job_max_attempts(self->thing));
    case PAYLOAD:
        data = troupe_job_payload(self->thing, &size);
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    case LAST_CHECKPOINT:
        data = troupe_job_last_checkpoint(self->thing, &size);
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    case PARENTS:
        data = troupe_job_parents(self->thing, &size);
        return PyUnicode_FromStringAndSize(data, (Py_ssize_t)size);
    case TRACEPARENT:
        data = troupe_job_traceparent(self->thing);
        return data ? PyUnicode_FromString(data) : Py_NewRef(Py_None);
    default:
        return PyBool_FromLong(troupe_job_is_cancelled(self->thing));
    }
}

static PyGetSetDef ATTRIBUTES[] = {
    {"id", (getter)get, NULL, "The id as text.", (void *)ID},
    {"key", (getter)get, NULL, "The routing key, or b\"\".", (void *)KEY},
    {"attempt", (getter)get, NULL, "Counts from 1.", (void *)ATTEMPT},
    {"max_attempts", (getter)get, NULL, "1 + the number of retries.", (void *)MAX_ATTEMPTS},
    {"payload", (getter)get, NULL, "A new copy of the payload.", (void *)PAYLOAD},
    {"last_checkpoint", (getter)get, NULL, "The last checkpoint of an earlier attempt, or b\"\".",
     (void *)LAST_CHECKPOINT},
    {"parents", (getter)get, NULL, "Ids of the jobs that it has waited for, separated by commas.",
     (void *)PARENTS},
    {"traceparent", (getter)get, NULL, "The span of this attempt, or None.", (void *)TRACEPARENT},
    {"cancelled", (getter)get, NULL, "Whether cancellation was requested. Any thread.",
     (void *)CANCELLED},
    {NULL, NULL, NULL, NULL, NULL},
};

/* Calls a function of the job with the bytes that are the only argument. */
static PyObject *give(struct held *self, PyObject *args, const char *format,
                      int (*fn)(struct troupe_job *job, const void *data, size_t size))
{
    PyObject *result = NULL;
    Py_buffer data;

    if (!PyArg_ParseTuple(args, format, &data))
        return NULL;
    if (held_begin(self))
        result = held_done(self, fn(self->thing, data.buf, (size_t)data.len));
    PyBuffer_Release(&data);
    return result;
}

static PyObject *succeed(struct held *self, PyObject *args)
{
    return give(self, args, "y*:succeed", troupe_job_succeed);
}

static PyObject *checkpoint(struct held *self, PyObject *args)
{
    return give(self, args, "y*:checkpoint", troupe_job_checkpoint);
}

static PyObject *emit(struct held *self, PyObject *args)
{
    return give(self, args, "y*:emit", troupe_job_emit);
}

static PyObject *reject(struct held *self, PyObject *args)
{
    PyObject *result = NULL;
    Py_buffer data;
    int code;

    if (!PyArg_ParseTuple(args, "iy*:reject", &code, &data))
        return NULL;
    if (held_begin(self))
        result = held_done(self, troupe_job_reject(self->thing, code, data.buf, (size_t)data.len));
    PyBuffer_Release(&data);
    return result;
}

static PyObject *retry(struct held *self, PyObject *args)
{
    double after = -1;
    const char *reason;
    int code;

    if (!PyArg_ParseTuple(args, "is|d:retry", &code, &reason, &after) || !held_begin(self))
        return NULL;
    if (after < 0)
        return held_done(self, troupe_job_retry(self->thing, code, reason));
    return held_done(self,
                     troupe_job_retry_after(self->thing, (uint64_t)(after * 1e6), code, reason));
}

static PyObject *cancel(struct held *self, PyObject *unused)
{
    return held_begin(self) ? held_done(self, troupe_job_cancelled(self->thing)) : NULL;
}

static PyObject *crashed(struct held *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pid", "signal", "core_dumped", "command", NULL};
    struct troupe_crash crash = {.struct_size = sizeof(crash)};
    int core_dumped = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ii|pz:crashed", names, &crash.pid,
                                     &crash.signal, &core_dumped, &crash.command) ||
        !held_begin(self))
        return NULL;
    crash.core_dumped = core_dumped;
    return held_done(self, troupe_job_crashed(self->thing, &crash));
}

static PyMethodDef METHODS[] = {
    {"succeed", METHOD(succeed), METH_VARARGS, "succeed(data): ends the job."},
    {"reject", METHOD(reject), METH_VARARGS, "reject(code, data): ends the job, without a retry."},
    {"retry", METHOD(retry), METH_VARARGS,
     "retry(code, reason, after=-1): asks for another attempt, after this pause in seconds."},
    {"checkpoint", METHOD(checkpoint), METH_VARARGS,
     "checkpoint(data): bytes from which the next attempt is to continue."},
    {"emit", METHOD(emit), METH_VARARGS, "emit(data): an item for clients that watch the job."},
    {"cancel", METHOD(cancel), METH_NOARGS, "cancel(): ends the job as cancelled."},
    {"crashed", METHOD(crashed), METH_VARARGS | METH_KEYWORDS,
     "crashed(pid, signal, core_dumped=False, command=None): reports the death of a process that "
     "this worker ran."},
    {NULL, NULL, 0, NULL},
};

int job_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "The current job, until its handler returns."},
        {Py_tp_dealloc, SLOT(held_dealloc)},
        {Py_tp_getset, ATTRIBUTES},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Job", sizeof(struct held), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_register(module, &spec, &type);
}
