/* SPDX-License-Identifier: MIT */
/* The type Query. */
#include "worker/python/module/types.h"
#include "worker/troupe-query.h"
#include <errno.h>

struct query {
    PyObject_HEAD struct troupe_query *query;
    struct gate gate;
};

static PyTypeObject *type;

static int open_query(void *ret, const char *socket_path)
{
    return troupe_query_new(ret, socket_path);
}

static PyObject *query_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    struct query *self = PyObject_New(struct query, cls);

    if (!self)
        return NULL;
    self->query = NULL;
    self->gate = (struct gate){0};
    if (connect_by(open_query, &self->query, &self->gate, args, kwargs) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void query_dealloc(struct query *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    if (!gate_is_foreign(&self->gate))
        troupe_query_free(self->query);
    PyObject_Free(self);
    Py_DECREF((PyObject *)cls);
}

static PyObject *call(struct query *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"method", "member", "parameters", "more", NULL};
    const char *method, *member, *parameters;
    int more = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "szs|p:call", names, &method, &member,
                                     &parameters, &more) ||
        !gate_begin(&self->gate) ||
        gate_end(&self->gate,
                 troupe_query_call(self->query, method, member, parameters,
                                   more ? TROUPE_QUERY_MORE : 0),
                 NULL) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *next(struct query *self, PyObject *args)
{
    uint64_t timeout = TROUPE_USEC_INFINITY, end_at;
    const char *json;
    size_t size;
    int r;

    if (!PyArg_ParseTuple(args, "|O&:next", moment_or_never, &timeout))
        return NULL;
    end_at = moment_end(timeout);
    do {
        if (!gate_begin(&self->gate))
            return NULL;
        r = troupe_query_next(self->query, moment_left(end_at));
        gate_lock(&self->gate);
        gate_leave(&self->gate);
    } while (r == -EINTR && PyErr_CheckSignals() == 0);
    if (PyErr_Occurred())
        return NULL;
    if (r < 0)
        return failure_raise(r, troupe_query_reason(self->query));
    if (r == 0)
        Py_RETURN_NONE;
    json = troupe_query_json(self->query, &size);
    return PyBytes_FromStringAndSize(json, (Py_ssize_t)size);
}

static PyObject *fd(struct query *self, PyObject *unused)
{
    return gate_is_open(&self->gate) ? PyLong_FromLong(troupe_query_fd(self->query)) : NULL;
}

static PyMethodDef METHODS[] = {
    {"call", METHOD(call), METH_VARARGS | METH_KEYWORDS,
     "call(method, member, parameters, more=False): calls a method with a JSON object; next() "
     "returns the records in that member of the answer, or for None the whole answer."},
    {"next", METHOD(next), METH_VARARGS,
     "next(timeout=None): the next record as JSON; None after the last one. BlockingIOError: "
     "nothing within that time."},
    {"fd", METHOD(fd), METH_NOARGS,
     "fd(): a descriptor; when it is readable, next(0) until "
     "BlockingIOError."},
    {NULL, NULL, 0, NULL},
};

int query_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Query(socket_path=None): queries to the supervisor."},
        {Py_tp_new, SLOT(query_new)},
        {Py_tp_dealloc, SLOT(query_dealloc)},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Query", sizeof(struct query), 0, Py_TPFLAGS_DEFAULT,
                               slots};

    return type_register(module, &spec, &type);
}
