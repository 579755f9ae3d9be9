/* SPDX-License-Identifier: MIT */
#include "worker/python/module/actor.h"
#include "worker/python/module/failure.h"
#include "worker/python/module/future.h"
#include "worker/python/module/message.h"
#include "worker/python/module/moment.h"
#include "worker/python/module/submission.h"
#include <errno.h>

struct actor {
    PyObject_HEAD struct troupe_actor *actor;
    PyObject *owner; /* borrowed: it keeps this object. NULL = gone */
    struct gate *gate;
    PyObject *on_message, *on_restart; /* NULL = none */
};

static PyTypeObject *type;

PyObject *actor_new(struct troupe_actor *actor, PyObject *owner, struct gate *gate)
{
    struct actor *self = PyObject_GC_New(struct actor, type);

    if (!self)
        return NULL;
    self->actor = actor;
    self->owner = owner;
    self->gate = gate;
    self->on_message = self->on_restart = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void actor_end(PyObject *actor)
{
    ((struct actor *)actor)->owner = NULL;
}

static int actor_traverse(struct actor *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)Py_TYPE((PyObject *)self));
    Py_VISIT(self->on_message);
    Py_VISIT(self->on_restart);
    return 0;
}

static int actor_clear(struct actor *self)
{
    Py_CLEAR(self->on_message);
    Py_CLEAR(self->on_restart);
    return 0;
}

static void actor_dealloc(struct actor *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    PyObject_GC_UnTrack(self);
    (void)actor_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)cls);
}

static bool is_open(const struct actor *self)
{
    if (self->owner)
        return gate_is_open(self->gate);
    PyErr_SetString(PyExc_RuntimeError, "the owner of this actor is gone");
    return false;
}

static bool enter(struct actor *self)
{
    return is_open(self) && gate_enter(self->gate);
}

static bool begin(struct actor *self)
{
    if (!enter(self))
        return false;
    gate_unlock(self->gate);
    return true;
}

/* Returns what the library's call returned, or -1 after raising. */
static int end(struct actor *self, int r, const char *reason)
{
    gate_lock(self->gate);
    gate_leave(self->gate);
    if (PyErr_Occurred())
        return -1;
    if (r < 0)
        (void)failure_raise(r, reason);
    return r < 0 ? -1 : r;
}

static PyObject *none(int r)
{
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- handling ---- */

/* Returns enum troupe_handling, or a negative value. */
static int settle(struct troupe_message *message, PyObject *returned)
{
    char reason[256];

    if (returned == Py_NotImplemented)
        return TROUPE_NOT_HANDLED;
    if (returned == Py_None)
        return TROUPE_HANDLED;
    if (returned)
        return (int)PyLong_AsLong(returned);
    failure_describe(reason, sizeof(reason));
    return troupe_message_fail(message, ECANCELED, reason);
}

static int handle(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct actor *self = userdata;
    PyObject *python, *callable, *returned = NULL;
    int r;

    (void)actor;
    gate_lock(self->gate);
    callable = Py_XNewRef(self->on_message); /* the handler may set another one */
    python = PyErr_Occurred() || !callable ? NULL : message_new(message, self->owner, self->gate);
    if (python)
        returned = PyObject_CallFunctionObjArgs(callable, python, NULL);
    gate_survive(self->gate);
    if (python)
        message_end(python);
    Py_XDECREF(python);
    Py_XDECREF(callable);
    r = settle(message, returned);
    Py_XDECREF(returned);
    gate_unlock(self->gate);
    return r;
}

static void restarted(struct troupe_actor *actor, void *userdata)
{
    struct actor *self = userdata;
    PyObject *callable;

    (void)actor;
    gate_lock(self->gate);
    callable = PyErr_Occurred() ? NULL : Py_XNewRef(self->on_restart);
    if (callable)
        Py_XDECREF(PyObject_CallFunctionObjArgs(callable, NULL));
    gate_survive(self->gate);
    Py_XDECREF(callable);
    gate_unlock(self->gate);
}

/* Keeps the callable in `*kept`, which may be running. Returns whether the library may be told. */
static bool keep(struct actor *self, PyObject *callable, PyObject **kept)
{
    PyObject *before = *kept;

    if (!PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "a handler must be callable");
        return false;
    }
    if (!enter(self))
        return false;
    *kept = Py_NewRef(callable);
    Py_XDECREF(before);
    return true;
}

static PyObject *on_message(struct actor *self, PyObject *callable)
{
    int r;

    if (!keep(self, callable, &self->on_message))
        return NULL;
    r = troupe_actor_on_message(self->actor, "", handle, self);
    gate_leave(self->gate);
    return failure_none(r);
}

static PyObject *on_restart(struct actor *self, PyObject *callable)
{
    if (!keep(self, callable, &self->on_restart))
        return NULL;
    troupe_actor_on_restart(self->actor, restarted, self);
    gate_leave(self->gate);
    Py_RETURN_NONE;
}

static PyObject *turn(struct actor *self, PyObject *args)
{
    uint64_t timeout = TROUPE_USEC_INFINITY;
    int r;

    if (!PyArg_ParseTuple(args, "|O&:turn", moment_or_never, &timeout) || !begin(self))
        return NULL;
    r = end(self, troupe_actor_turn(self->actor, timeout), NULL);
    if (r < 0 || PyErr_CheckSignals() < 0)
        return NULL;
    return PyBool_FromLong(r);
}

static PyObject *unstash_all(struct actor *self, PyObject *unused)
{
    int r = -1;

    (void)unused;
    if (begin(self))
        r = end(self, troupe_actor_unstash_all(self->actor), NULL);
    return r < 0 ? NULL : PyLong_FromLong(r);
}

/* ---- addresses ---- */

static PyObject *lookup(struct actor *self, PyObject *args)
{
    const char *address;
    troupe_ref found;

    if (!PyArg_ParseTuple(args, "s:lookup", &address) || !begin(self) ||
        end(self, troupe_actor_lookup(self->actor, address, &found), address) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(found);
}

static PyObject *own(struct actor *self, PyObject *unused)
{
    troupe_ref found;

    (void)unused;
    if (!begin(self) || end(self, troupe_actor_self(self->actor, &found), NULL) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(found);
}

static PyObject *address(struct actor *self, PyObject *unused)
{
    (void)unused;
    return is_open(self) ? PyUnicode_FromString(troupe_actor_address(self->actor)) : NULL;
}

static PyObject *add_name(struct actor *self, PyObject *args)
{
    const char *name;

    if (!PyArg_ParseTuple(args, "s:register", &name) || !begin(self))
        return NULL;
    return none(end(self, troupe_actor_register(self->actor, name), name));
}

static PyObject *remove_name(struct actor *self, PyObject *args)
{
    const char *name;
    int r = -1;

    if (PyArg_ParseTuple(args, "s:deregister", &name) && begin(self))
        r = end(self, troupe_actor_deregister(self->actor, name), name);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *leave(struct actor *self, PyObject *args)
{
    const char *reason = "";

    if (!PyArg_ParseTuple(args, "|s:leave", &reason) || !begin(self))
        return NULL;
    return none(end(self, troupe_actor_leave(self->actor, reason), NULL));
}

/* ---- sending ---- */

struct content {
    uint64_t to;
    Py_buffer data, key;
    struct troupe_message_options options;
};

static void content_release(struct content *content)
{
    PyBuffer_Release(&content->data);
    PyBuffer_Release(&content->key);
}

/* Parses (to, type, data, *, key, timeout, reply_type), and for timers (to, when, …, period). */
static bool content_parse(struct content *content, PyObject *args, PyObject *kwargs,
                          uint64_t *ret_when)
{
    static char *sending[] = {"to", "type", "data", "key", "timeout", "reply_type", NULL},
                *timing[] = {"to", "when", "type", "data", "key", "period", NULL};
    struct troupe_message_options *options = &content->options;
    int r;

    *content = (struct content){.options = TROUPE_MESSAGE_DEFAULTS};
    r = ret_when ? PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&sy*|$z*O&", timing,
                                               submission_number, &content->to, moment_or_zero,
                                               ret_when, &options->type, &content->data,
                                               &content->key, moment_or_zero, &options->period_usec)
                 : PyArg_ParseTupleAndKeywords(args, kwargs, "O&sy*|$z*O&z", sending,
                                               submission_number, &content->to, &options->type,
                                               &content->data, &content->key, moment_or_zero,
                                               &options->timeout_usec, &options->reply_type);
    options->data = content->data.buf;
    options->size = (size_t)content->data.len;
    options->key = content->key.buf;
    options->key_size = (size_t)content->key.len;
    return r;
}

static PyObject *tell(struct actor *self, PyObject *args, PyObject *kwargs)
{
    struct content content;
    int r = -1;

    if (!content_parse(&content, args, kwargs, NULL))
        return NULL;
    if (begin(self))
        r = end(self, troupe_actor_tell_with(self->actor, content.to, &content.options), NULL);
    content_release(&content);
    return none(r);
}

static PyObject *ask(struct actor *self, PyObject *args, PyObject *kwargs)
{
    struct troupe_future *future;
    struct content content;
    int r = -1;

    if (!content_parse(&content, args, kwargs, NULL))
        return NULL;
    if (begin(self))
        r = end(self, troupe_actor_ask_with(self->actor, content.to, &future, &content.options),
                NULL);
    content_release(&content);
    return r < 0 ? NULL : future_new(future, self->owner, self->gate);
}

static PyObject *reply(struct actor *self, PyObject *args)
{
    unsigned long long handle_of_ask;
    const char *name;
    Py_buffer data;
    int r = -1;

    if (!PyArg_ParseTuple(args, "Ksy*:reply", &handle_of_ask, &name, &data))
        return NULL;
    if (begin(self))
        r = end(self,
                troupe_actor_reply(self->actor, handle_of_ask, name, data.buf, (size_t)data.len),
                NULL);
    PyBuffer_Release(&data);
    return none(r);
}

static PyObject *set_timer(struct actor *self, PyObject *args, PyObject *kwargs,
                           int (*set)(struct troupe_actor *, troupe_ref, uint64_t, uint64_t *,
                                      const struct troupe_message_options *))
{
    uint64_t when = 0, id = 0;
    struct content content;
    int r = -1;

    if (!content_parse(&content, args, kwargs, &when))
        return NULL;
    if (begin(self))
        r = end(self, set(self->actor, content.to, when, &id, &content.options), NULL);
    content_release(&content);
    return r < 0 ? NULL : PyLong_FromUnsignedLongLong(id);
}

static PyObject *timer_after(struct actor *self, PyObject *args, PyObject *kwargs)
{
    return set_timer(self, args, kwargs, troupe_actor_timer_after_with);
}

static PyObject *timer_at(struct actor *self, PyObject *args, PyObject *kwargs)
{
    return set_timer(self, args, kwargs, troupe_actor_timer_at_with);
}

static PyObject *timer_cancel(struct actor *self, PyObject *args)
{
    unsigned long long id;
    int r = -1;

    if (PyArg_ParseTuple(args, "K:timer_cancel", &id) && begin(self))
        r = end(self, troupe_actor_timer_cancel(self->actor, id), NULL);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

/* ---- exchanges ---- */

typedef int (*subscription_fn)(struct troupe_actor *, troupe_ref, const char *, const void *,
                               size_t);

static PyObject *change(struct actor *self, PyObject *args, subscription_fn change_it)
{
    unsigned long long exchange;
    const char *name = "";
    Py_buffer key = {0};
    int r = -1;

    if (!PyArg_ParseTuple(args, "K|sz*", &exchange, &name, &key))
        return NULL;
    if (begin(self))
        r = end(self, change_it(self->actor, exchange, name, key.buf, (size_t)key.len), NULL);
    PyBuffer_Release(&key);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *subscribe(struct actor *self, PyObject *args)
{
    PyObject *changed = change(self, args, troupe_actor_subscribe);

    Py_XDECREF(changed);
    return changed ? Py_NewRef(Py_None) : NULL;
}

static PyObject *unsubscribe(struct actor *self, PyObject *args)
{
    return change(self, args, troupe_actor_unsubscribe);
}

static PyMethodDef METHODS[] = {
    {"on_message", METHOD(on_message), METH_O,
     "on_message(callable): handles every message. None: handled; NotImplemented: not; or what "
     "Message.fail() returned."},
    {"on_restart", METHOD(on_restart), METH_O,
     "on_restart(callable): called once after each crash of the supervisor."},
    {"turn", METHOD(turn), METH_VARARGS, "turn(timeout=None): handles at most one message."},
    {"unstash_all", METHOD(unstash_all), METH_NOARGS, "unstash_all(): returns their number."},
    {"lookup", METHOD(lookup), METH_VARARGS, "lookup(address): the reference of an actor."},
    {"self", METHOD(own), METH_NOARGS, "self(): this actor's reference."},
    {"address", METHOD(address), METH_NOARGS, "address(): of this actor."},
    {"register", METHOD(add_name), METH_VARARGS, "register(name): one more name."},
    {"deregister", METHOD(remove_name), METH_VARARGS, "deregister(name): whether it had it."},
    {"leave", METHOD(leave), METH_VARARGS, "leave(reason=''): ends a worker."},
    {"tell", METHOD(tell), METH_VARARGS | METH_KEYWORDS, "tell(to, type, data, *, key=None)"},
    {"ask", METHOD(ask), METH_VARARGS | METH_KEYWORDS,
     "ask(to, type, data, *, key=None, timeout=None, reply_type=None): a Future."},
    {"reply", METHOD(reply), METH_VARARGS, "reply(ask, type, data): to Message.ask, later."},
    {"timer_after", METHOD(timer_after), METH_VARARGS | METH_KEYWORDS,
     "timer_after(to, seconds, type, data, *, key=None, period=None): the id of a timer."},
    {"timer_at", METHOD(timer_at), METH_VARARGS | METH_KEYWORDS,
     "timer_at(to, seconds_since_1970, type, data, *, key=None, period=None)"},
    {"timer_cancel", METHOD(timer_cancel), METH_VARARGS, "timer_cancel(id): whether it was."},
    {"subscribe", METHOD(subscribe), METH_VARARGS, "subscribe(exchange, type='', key=None)"},
    {"unsubscribe", METHOD(unsubscribe), METH_VARARGS, "unsubscribe(exchange, type='', key=None)"},
    {NULL, NULL, 0, NULL},
};

int actor_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A worker or client that sends and receives messages."},
        {Py_tp_dealloc, SLOT(actor_dealloc)},
        {Py_tp_traverse, SLOT(actor_traverse)},
        {Py_tp_clear, SLOT(actor_clear)},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "troupe._troupe.Actor", sizeof(struct actor), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return type ? PyModule_AddObjectRef(module, "Actor", (PyObject *)type) : -1;
}
