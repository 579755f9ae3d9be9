/* SPDX-License-Identifier: MIT */
#include "worker/python/module/query.h"
#include "worker/python/module/connect.h"
#include "worker/python/module/failure.h"
#include "worker/python/module/moment.h"
#include "worker/python/module/type.h"
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

static PyObject *end(struct query *self, int r)
{
    return gate_end(&self->gate, r, NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

static bool begin(struct query *self)
{
    return gate_begin(&self->gate);
}

static PyObject *job(struct query *self, PyObject *args)
{
    const char *id;

    if (!PyArg_ParseTuple(args, "s:job", &id) || !begin(self))
        return NULL;
    return end(self, troupe_query_job(self->query, id));
}

static PyObject *jobs(struct query *self, PyObject *args)
{
    const char *group;
    int ended = 0;

    if (!PyArg_ParseTuple(args, "z|p:jobs", &group, &ended) || !begin(self))
        return NULL;
    return end(self, troupe_query_jobs(self->query, group, ended ? TROUPE_QUERY_ENDED : 0));
}

static PyObject *dead_letters(struct query *self, PyObject *args)
{
    const char *recipient;

    if (!PyArg_ParseTuple(args, "z:dead_letters", &recipient) || !begin(self))
        return NULL;
    return end(self, troupe_query_dead_letters(self->query, recipient));
}

static PyObject *deaths(struct query *self, PyObject *args)
{
    const char *target, *job = NULL;

    if (!PyArg_ParseTuple(args, "z|z:deaths", &target, &job) || !begin(self))
        return NULL;
    return end(self, troupe_query_deaths(self->query, target, job));
}

static PyObject *events(struct query *self, PyObject *args)
{
    const char *target;
    int with_jobs = 0;

    if (!PyArg_ParseTuple(args, "z|p:events", &target, &with_jobs) || !begin(self))
        return NULL;
    return end(self,
               troupe_query_events(self->query, target, with_jobs ? TROUPE_QUERY_JOB_EVENTS : 0));
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
        if (!begin(self))
            return NULL;
        r = troupe_query_next(self->query, moment_left(end_at));
        gate_lock(&self->gate);
        gate_leave(&self->gate);
    } while (r == -EINTR && PyErr_CheckSignals() == 0);
    if (PyErr_Occurred())
        return NULL;
    if (r <= 0)
        return failure_none(r);
    json = troupe_query_json(self->query, &size);
    return PyBytes_FromStringAndSize(json, (Py_ssize_t)size);
}

static PyObject *fd(struct query *self, PyObject *unused)
{
    (void)unused;
    return gate_is_open(&self->gate) ? PyLong_FromLong(troupe_query_fd(self->query)) : NULL;
}

static PyMethodDef METHODS[] = {
    {"job", METHOD(job), METH_VARARGS, "job(id): begins a query for one job."},
    {"jobs", METHOD(jobs), METH_VARARGS, "jobs(group, ended=False): begins one for jobs."},
    {"dead_letters", METHOD(dead_letters), METH_VARARGS,
     "dead_letters(recipient): begins one for dead letters."},
    {"deaths", METHOD(deaths), METH_VARARGS,
     "deaths(target, job=None): begins one for the deaths of workers."},
    {"events", METHOD(events), METH_VARARGS, "events(target, jobs=False): begins one for events."},
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
        {Py_tp_doc, "Query(socket_path=None): what the supervisor knows."},
        {Py_tp_new, SLOT(query_new)},
        {Py_tp_dealloc, SLOT(query_dealloc)},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Query", sizeof(struct query), 0, Py_TPFLAGS_DEFAULT,
                               slots};

    return type_register(module, &spec, &type);
}
