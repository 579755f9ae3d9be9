/* SPDX-License-Identifier: MIT */
/* The type Client. */
#include "worker/python/module/submission.h"
#include "worker/python/module/types.h"
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>

struct client {
    PyObject_HEAD struct troupe_client *client;
    struct gate gate;
    uint64_t cookie;           /* of the last do() */
    unsigned doing;            /* calls of do(): signal handlers may call it again */
    _Atomic unsigned n_visits; /* calls of collect() that may wait */
    PyObject *kept;            /* list of results that arrived while do() waited for its own */
    PyObject *actor;           /* NULL = not requested yet */
};

static PyTypeObject *type;

static int open_client(void *ret, const char *socket_path)
{
    return troupe_client_connect(ret, socket_path);
}

static PyObject *client_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    struct client *self = PyObject_GC_New(struct client, cls);

    if (!self)
        return NULL;
    self->client = NULL;
    self->gate = (struct gate){0};
    self->cookie = SUBMISSION_COOKIES;
    self->doing = 0;
    atomic_init(&self->n_visits, 0);
    self->actor = NULL;
    self->kept = PyList_New(0);
    PyObject_GC_Track(self);
    if (self->kept && connect_by(open_client, &self->client, &self->gate, args, kwargs) == 0) {
        gate_handle_signals(&self->gate, troupe_client_actor(self->client));
        return (PyObject *)self;
    }
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* A handler of the actor may refer to the client, and clearing the actor ends the circle. */
static int client_traverse(struct client *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)Py_TYPE((PyObject *)self));
    Py_VISIT(self->kept);
    Py_VISIT(self->actor);
    return gate_traverse(&self->gate, visit, arg);
}

static int client_clear(struct client *self)
{
    gate_clear(&self->gate);
    return 0;
}

static void client_dealloc(struct client *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    PyObject_GC_UnTrack(self);
    if (!gate_is_foreign(&self->gate))
        troupe_client_free(self->client);
    gate_close(&self->gate);
    if (self->actor)
        actor_end(self->actor);
    Py_XDECREF(self->actor);
    Py_XDECREF(self->kept);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)cls);
}

static PyObject *client_close(struct client *self, PyObject *unused)
{
    if (self->gate.generation == 0)
        Py_RETURN_NONE;
    if (!gate_enter(&self->gate))
        return NULL;
    gate_leave(&self->gate);
    if (self->gate.depth > 0) {
        PyErr_SetString(PyExc_RuntimeError, "a call of this client has not returned");
        return NULL;
    }
    gate_close(&self->gate);
    troupe_client_free(self->client);
    self->client = NULL;
    Py_RETURN_NONE;
}

static PyObject *group(struct client *self, PyObject *args)
{
    const char *name;
    uint64_t found;

    if (!PyArg_ParseTuple(args, "s:group", &name) || !gate_begin(&self->gate) ||
        gate_end(&self->gate, troupe_client_group(self->client, name, &found), NULL) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(found);
}

static int send(struct client *self, const struct submission *submission, uint64_t cookie)
{
    return troupe_client_submit(self->client, submission->group, &submission->options,
                                submission->data.buf, (size_t)submission->data.len, cookie);
}

static PyObject *submit(struct client *self, PyObject *args, PyObject *kwargs)
{
    struct submission submission;
    int r = -1;

    if (submission_parse(&submission, args, kwargs, true) < 0)
        return NULL;
    /* Does not wait, so it keeps the GIL. */
    if (gate_enter(&self->gate)) {
        r = send(self, &submission, submission.cookie);
        gate_leave(&self->gate);
    }
    submission_release(&submission);
    return PyErr_Occurred() ? NULL : failure_none(r);
}

static PyObject *create(struct client *self, PyObject *args, PyObject *kwargs)
{
    struct submission submission;
    char id[TROUPE_ID_SIZE];
    int r = -1;

    if (submission_parse(&submission, args, kwargs, false) < 0)
        return NULL;
    if (gate_begin(&self->gate))
        r = gate_end(&self->gate,
                     troupe_client_create(self->client, submission.group, &submission.options,
                                          submission.data.buf, (size_t)submission.data.len, id),
                     NULL);
    submission_release(&submission);
    return r < 0 ? NULL : PyUnicode_FromString(id);
}

static PyObject *refusal(struct client *self, PyObject *unused)
{
    return self->client ? text_new(troupe_client_refusal(self->client)) : PyUnicode_FromString("");
}

/* Waits once. Returns 0, or -errno of the library. */
static int wait(struct client *self, struct troupe_result *result, uint64_t timeout)
{
    int r;

    /* Without a wait, this keeps the GIL: another thread might take it for milliseconds. */
    if (timeout == 0)
        return troupe_client_next(self->client, result, 0);
    gate_unlock(&self->gate);
    r = troupe_client_next(self->client, result, timeout);
    gate_lock(&self->gate);
    return r;
}

/* Returns a kept result with this cookie, or (0) one that no do() waits for, or NULL. */
static PyObject *take_kept(struct client *self, uint64_t cookie)
{
    for (Py_ssize_t i = 0; i < PyList_Size(self->kept); i++) {
        PyObject *result = PyList_GetItem(self->kept, i);
        uint64_t its = PyLong_AsUnsignedLongLong(PyTuple_GetItem(result, 0));

        if (cookie != 0 ? its != cookie : its >= SUBMISSION_COOKIES)
            continue;
        Py_INCREF(result);
        if (PyList_SetSlice(self->kept, i, i + 1, NULL) < 0)
            Py_CLEAR(result);
        return result;
    }
    return NULL;
}

/* Waits for the result with this cookie, and keeps other results. Returns NULL after raising. */
static PyObject *await(struct client *self, uint64_t cookie)
{
    for (;;) {
        struct troupe_result result = TROUPE_RESULT_INIT;
        PyObject *python = take_kept(self, cookie);
        int r;

        if (python || PyErr_Occurred())
            return python;
        r = wait(self, &result, TROUPE_USEC_INFINITY);
        if (r == -EINTR && PyErr_CheckSignals() < 0)
            return NULL;
        if (r == -EINTR || r == -EAGAIN)
            continue;
        if (r < 0)
            return failure_raise(r, NULL);
        if (result.cookie == cookie && result.error < 0) {
            (void)failure_raise(result.error, result.reason);
            troupe_result_release(&result);
            return NULL;
        }
        if (result.cookie == cookie)
            return result_new(&result);
        python = result_new(&result);
        r = python ? PyList_Append(self->kept, python) : -1;
        Py_XDECREF(python);
        if (r < 0)
            return NULL;
    }
}

/* Unlike troupe_client_do(), lets signal handlers run and end the call. */
static PyObject *client_do(struct client *self, PyObject *args, PyObject *kwargs)
{
    struct submission submission;
    PyObject *result = NULL;

    if (submission_parse(&submission, args, kwargs, false) < 0)
        return NULL;
    if (gate_enter(&self->gate)) {
        const uint64_t cookie = ++self->cookie;
        const int r = send(self, &submission, cookie);

        self->doing++;
        result = r < 0 ? failure_raise(r, NULL) : await(self, cookie);
        self->doing--;
        gate_leave(&self->gate);
    }
    submission_release(&submission);
    return result;
}

/* Returns a result for next(), or NULL: none within that time, or after raising. */
static PyObject *receive(struct client *self, uint64_t timeout)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    PyObject *python = take_kept(self, 0);
    int r;

    if (python || PyErr_Occurred())
        return python;
    r = wait(self, &result, timeout);
    if (r == -EINTR)
        (void)PyErr_CheckSignals();
    else if (r == 0)
        python = result_new(&result);
    else if (r != -EAGAIN)
        (void)failure_raise(r, NULL);
    if (python && result.cookie >= SUBMISSION_COOKIES) {
        /* It belongs to a do() that an exception has ended, or to one that waits for it. */
        if (self->doing > 0)
            (void)PyList_Append(self->kept, python);
        Py_CLEAR(python);
    }
    return python;
}

static PyObject *next(struct client *self, PyObject *args)
{
    uint64_t timeout = TROUPE_USEC_INFINITY;
    PyObject *result;

    if (!PyArg_ParseTuple(args, "|O&:next", moment_or_never, &timeout) || !gate_enter(&self->gate))
        return NULL;
    result = receive(self, timeout);
    gate_leave(&self->gate);
    if (!result && !PyErr_Occurred())
        Py_RETURN_NONE;
    return result;
}

/* Waits for a result and takes all that have arrived, at most `most`. Returns their number. */
static Py_ssize_t receive_all(struct client *self, PyObject *put, Py_ssize_t most, uint64_t timeout)
{
    Py_ssize_t n = 0;

    while (n < most) {
        PyObject *returned, *result = receive(self, n == 0 ? timeout : 0);

        if (!result)
            break;
        returned = PyObject_CallFunctionObjArgs(put, result, NULL);
        Py_DECREF(result);
        if (!returned)
            break;
        Py_DECREF(returned);
        n++;
    }
    return PyErr_Occurred() ? -1 : n;
}

static PyObject *collect(struct client *self, PyObject *args)
{
    uint64_t timeout;
    PyObject *put;
    Py_ssize_t most, n;

    if (!PyArg_ParseTuple(args, "OnO&:collect", &put, &most, moment_or_never, &timeout) ||
        !gate_enter(&self->gate))
        return NULL;
    if (timeout > 0)
        (void)atomic_fetch_add_explicit(&self->n_visits, 1, memory_order_relaxed);
    n = receive_all(self, put, most, timeout);
    gate_leave(&self->gate);
    return n < 0 ? NULL : PyLong_FromSsize_t(n);
}

/* Sleeps until no visit has begun for `period` ms: 0; or until `fd` is readable or a signal comes:
 * 1; or returns -errno. Without the GIL, for which it would otherwise have to wait. */
static int sleep_through_visits(const struct client *self, int fd, int period)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    unsigned before;
    int r;

    do { /* Partner: the addition in collect(). No other data depends on it. */
        before = atomic_load_explicit(&self->n_visits, memory_order_relaxed);
        r = poll(&poller, 1, period);
    } while (r == 0 && atomic_load_explicit(&self->n_visits, memory_order_relaxed) != before);
    return r < 0 && errno != EINTR ? -errno : r != 0;
}

/* Touches nothing that the gate guards. */
static PyObject *await_idle(struct client *self, PyObject *args)
{
    PyThreadState *state;
    int fd, period, r;

    if (!PyArg_ParseTuple(args, "ii:await_idle", &fd, &period))
        return NULL;
    state = PyEval_SaveThread();
    r = sleep_through_visits(self, fd, period);
    PyEval_RestoreThread(state);
    if (r < 0)
        return failure_raise(r, NULL);
    return PyErr_CheckSignals() < 0 ? NULL : PyBool_FromLong(r == 0);
}

static PyObject *flush(struct client *self, PyObject *unused)
{
    if (!gate_enter(&self->gate))
        return NULL;
    troupe_client_flush(self->client);
    gate_leave(&self->gate);
    Py_RETURN_NONE;
}

static PyObject *cancel(struct client *self, PyObject *args)
{
    const char *id;

    if (!PyArg_ParseTuple(args, "s:cancel", &id) || !gate_begin(&self->gate) ||
        gate_end(&self->gate, troupe_client_cancel(self->client, id), NULL) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Sends a request about a job. Does not wait, so it keeps the GIL. */
static PyObject *send_id(struct client *self, PyObject *id,
                         int (*request)(struct troupe_client *, const char *))
{
    const char *text = PyUnicode_AsUTF8AndSize(id, NULL);
    int r;

    if (!text || !gate_enter(&self->gate))
        return NULL;
    r = request(self->client, text);
    gate_leave(&self->gate);
    return failure_none(r);
}

static PyObject *abandon(struct client *self, PyObject *id)
{
    return send_id(self, id, troupe_client_abandon);
}

static PyObject *withdraw(struct client *self, PyObject *id)
{
    return send_id(self, id, troupe_client_withdraw);
}

static PyObject *client_wait(struct client *self, PyObject *args)
{
    const char *id;
    uint64_t cookie;
    int r;

    if (!PyArg_ParseTuple(args, "sO&:wait", &id, submission_cookie, &cookie) ||
        !gate_enter(&self->gate))
        return NULL;
    r = troupe_client_wait(self->client, id, cookie);
    gate_leave(&self->gate);
    return failure_none(r);
}

static PyObject *fd(struct client *self, PyObject *unused)
{
    int r;

    if (!gate_enter(&self->gate))
        return NULL;
    r = troupe_client_fd(self->client);
    gate_leave(&self->gate);
    return r < 0 ? failure_raise(r, NULL) : PyLong_FromLong(r);
}

static PyObject *timeout(struct client *self, PyObject *unused)
{
    return gate_is_open(&self->gate) ? moment_to_python(troupe_client_timeout(self->client)) : NULL;
}

static PyObject *process(struct client *self, PyObject *unused)
{
    int r;

    if (!gate_begin(&self->gate))
        return NULL;
    r = gate_end(&self->gate, troupe_client_process(self->client), NULL);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *get_actor(struct client *self, PyObject *unused)
{
    if (!gate_enter(&self->gate))
        return NULL;
    if (!self->actor)
        self->actor = actor_new(troupe_client_actor(self->client), (PyObject *)self, &self->gate);
    gate_leave(&self->gate);
    return Py_XNewRef(self->actor);
}

static PyObject *wake(struct client *self, PyObject *unused)
{
    if (!gate_is_open(&self->gate))
        return NULL;
    troupe_client_wake(self->client);
    Py_RETURN_NONE;
}

#define OPTIONS                                                                                    \
    "*, id=None, key=None, max_retries=-1, timeout=None, backoff_min=None, backoff_max=None, "     \
    "priority=-1, delay=0, at=0, wait=0, deadline=0, keep_result=False, cost=1, tags=None, "       \
    "traceparent=None)"

static PyMethodDef METHODS[] = {
    {"actor", METHOD(get_actor), METH_NOARGS, "actor(): the client as an actor."},
    {"group", METHOD(group), METH_VARARGS, "group(name): finds a group."},
    {"submit", METHOD(submit), METH_VARARGS | METH_KEYWORDS,
     "submit(group, data, cookie, " OPTIONS
     ": next() returns its end. BlockingIOError: the ring is "
     "full."},
    {"create", METHOD(create), METH_VARARGS | METH_KEYWORDS,
     "create(group, data, " OPTIONS ": returns the id when the job is accepted."},
    {"refusal", METHOD(refusal), METH_NOARGS, "refusal(): why the last job was refused, or ''."},
    {"do", METHOD(client_do), METH_VARARGS | METH_KEYWORDS,
     "do(group, data, " OPTIONS ": returns the Result when the job has ended."},
    {"flush", METHOD(flush), METH_NOARGS, "flush(): publishes submissions to the supervisor now."},
    {"next", METHOD(next), METH_VARARGS,
     "next(timeout=None): the next Result. None: none within that time, wake(), or a signal."},
    {"collect", METHOD(collect), METH_VARARGS,
     "collect(put, most, timeout): waits as next() does, and calls put(result) for each result "
     "that is there. Returns how many."},
    {"await_idle", METHOD(await_idle), METH_VARARGS,
     "await_idle(fd, ms): waits until no collect() that may wait has begun for so long: True; or "
     "until `fd` is readable or a signal comes: False. Any thread."},
    {"cancel", METHOD(cancel), METH_VARARGS, "cancel(id): requests the cancellation of a job."},
    {"abandon", METHOD(abandon), METH_O,
     "abandon(id): like cancel(), but does not wait for the answer. BlockingIOError: the ring is "
     "full."},
    {"withdraw", METHOD(withdraw), METH_O,
     "withdraw(id): like abandon(), but cancels the job only if no worker has it."},
    {"wait", METHOD(client_wait), METH_VARARGS,
     "wait(id, cookie): next() returns the end of any job."},
    {"fd", METHOD(fd), METH_NOARGS, "fd(): a descriptor that is readable when to process."},
    {"timeout", METHOD(timeout), METH_NOARGS,
     "timeout(): when to process, by time.monotonic(); None = never."},
    {"process", METHOD(process), METH_NOARGS,
     "process(): call it until it returns False; after True also next(0) until None."},
    {"wake", METHOD(wake), METH_NOARGS, "wake(): ends a wait of next(). Any thread."},
    {"close", METHOD(client_close), METH_NOARGS, "close(): disconnects. Idempotent."},
    {NULL, NULL, 0, NULL},
};

int client_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Client(socket_path=None): a connection to the supervisor."},
        {Py_tp_new, SLOT(client_new)},
        {Py_tp_dealloc, SLOT(client_dealloc)},
        {Py_tp_traverse, SLOT(client_traverse)},
        {Py_tp_clear, SLOT(client_clear)},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Client", sizeof(struct client), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

    return type_register(module, &spec, &type);
}
