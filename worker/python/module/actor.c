/* SPDX-License-Identifier: MIT */
#include "worker/python/module/actor.h"
#include "worker/python/module/types.h"
#include <errno.h>
#include <limits.h>

static PyTypeObject *type;

PyObject *actor_new(struct troupe_actor *actor, PyObject *owner, struct gate *gate)
{
    struct actor *self = PyObject_GC_New(struct actor, type);

    if (!self)
        return NULL;
    self->actor = actor;
    self->owner = owner;
    self->gate = gate;
    self->on_message = self->on_restart = self->on_silence = NULL;
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
    Py_VISIT(self->on_silence);
    return 0;
}

static int actor_clear(struct actor *self)
{
    Py_CLEAR(self->on_message);
    Py_CLEAR(self->on_restart);
    Py_CLEAR(self->on_silence);
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

bool actor_is_open(const struct actor *self)
{
    if (self->owner)
        return gate_is_open(self->gate);
    PyErr_SetString(PyExc_RuntimeError, "the owner of this actor is gone");
    return false;
}

static bool enter(struct actor *self)
{
    return actor_is_open(self) && gate_enter(self->gate);
}

bool actor_begin(struct actor *self)
{
    if (!enter(self))
        return false;
    Py_INCREF(self->owner); /* a handler may drop it */
    gate_unlock(self->gate);
    return true;
}

int actor_finish(struct actor *self, int r, const char *reason)
{
    PyObject *owner = self->owner;

    r = gate_end(self->gate, r, reason);
    Py_DECREF(owner);
    return r;
}

PyObject *actor_finish_asking(struct actor *self, int r, struct troupe_future **future)
{
    PyObject *owner = self->owner, *python = NULL;

    r = gate_end(self->gate, r, NULL);
    if (r >= 0)
        python = future_new(*future, owner, self->gate);
    Py_DECREF(owner);
    return python;
}

PyObject *actor_none(int r)
{
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- handling ---- */

/* Returns enum troupe_handling, or a negative value. */
static int settle(struct troupe_message *message, PyObject *returned)
{
    char reason[256];
    long value = -1;

    if (returned == Py_NotImplemented)
        return TROUPE_NOT_HANDLED;
    if (returned == Py_None)
        return TROUPE_HANDLED;
    if (returned)
        value = PyLong_AsLong(returned);
    if (returned && !PyErr_Occurred() && value < 0 && value >= INT_MIN)
        return (int)value;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a handler must return None, NotImplemented, or what "
                                         "Message.fail() returned");
    failure_describe(reason, sizeof(reason));
    return troupe_message_fail(message, ECANCELED, reason);
}

static int handle(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct actor *self = userdata;
    PyObject *python, *callable, *returned = NULL;
    int r;

    gate_lock(self->gate);
    callable = Py_XNewRef(self->on_message); /* the handler may set another one */
    python = PyErr_Occurred() || !callable ? NULL : message_new(message, self->owner, self->gate);
    if (python)
        returned = PyObject_CallFunctionObjArgs(callable, python, NULL);
    gate_survive(self->gate);
    if (python)
        held_end(python);
    Py_XDECREF(python);
    Py_XDECREF(callable);
    r = settle(message, returned);
    Py_XDECREF(returned);
    gate_unlock(self->gate);
    return r;
}

static void call(struct actor *self, PyObject **kept)
{
    PyObject *callable;

    gate_lock(self->gate);
    callable = PyErr_Occurred() ? NULL : Py_XNewRef(*kept);
    if (callable)
        Py_XDECREF(PyObject_CallFunctionObjArgs(callable, NULL));
    gate_survive(self->gate);
    Py_XDECREF(callable);
    gate_unlock(self->gate);
}

static void restarted(struct troupe_actor *actor, void *userdata)
{
    struct actor *self = userdata;

    call(self, &self->on_restart);
}

static void silent(struct troupe_actor *actor, void *userdata)
{
    struct actor *self = userdata;

    call(self, &self->on_silence);
}

/* Keeps the callable in `*kept`, which may be running. Returns whether to pass it to the library.
 */
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

static PyObject *on_silence(struct actor *self, PyObject *args)
{
    PyObject *callable;
    uint64_t timeout;

    if (!PyArg_ParseTuple(args, "O&O:on_silence", moment_or_zero, &timeout, &callable) ||
        !keep(self, callable, &self->on_silence))
        return NULL;
    troupe_actor_on_silence(self->actor, timeout, silent, self);
    gate_leave(self->gate);
    Py_RETURN_NONE;
}

static PyObject *turn(struct actor *self, PyObject *args)
{
    uint64_t timeout = TROUPE_USEC_INFINITY;
    int r;

    if (!PyArg_ParseTuple(args, "|O&:turn", moment_or_never, &timeout) || !actor_begin(self))
        return NULL;
    r = actor_finish(self, troupe_actor_turn(self->actor, timeout), NULL);
    if (r < 0 || PyErr_CheckSignals() < 0)
        return NULL;
    return PyBool_FromLong(r);
}

static PyObject *unstash_all(struct actor *self, PyObject *unused)
{
    int r = -1;

    if (actor_begin(self))
        r = actor_finish(self, troupe_actor_unstash_all(self->actor), NULL);
    return r < 0 ? NULL : PyLong_FromLong(r);
}

static PyMethodDef METHODS[] = {
    {"on_message", METHOD(on_message), METH_O,
     "on_message(callable): handles every message. None: handled; NotImplemented: not; or what "
     "Message.fail() returned."},
    {"on_restart", METHOD(on_restart), METH_O,
     "on_restart(callable): called once after each crash of the supervisor."},
    {"on_silence", METHOD(on_silence), METH_VARARGS,
     "on_silence(timeout, callable): called whenever no message has arrived for so long. 0 or None "
     "= "
     "never."},
    {"turn", METHOD(turn), METH_VARARGS, "turn(timeout=None): handles at most one message."},
    {"unstash_all", METHOD(unstash_all), METH_NOARGS, "unstash_all(): returns their number."},
    {"lookup", METHOD(actor_lookup), METH_VARARGS, "lookup(address): the reference of an actor."},
    {"self", METHOD(actor_own), METH_NOARGS, "self(): this actor's reference."},
    {"address", METHOD(actor_address), METH_NOARGS, "address(): of this actor."},
    {"register", METHOD(actor_add_name), METH_VARARGS, "register(name): adds a name."},
    {"deregister", METHOD(actor_remove_name), METH_VARARGS,
     "deregister(name): returns whether it had the name."},
    {"leave", METHOD(actor_leave), METH_VARARGS, "leave(reason=''): ends a worker."},
    {"tell", METHOD(actor_tell), METH_VARARGS | METH_KEYWORDS, "tell(to, type, data, *, key=None)"},
    {"ask", METHOD(actor_ask), METH_VARARGS | METH_KEYWORDS,
     "ask(to, type, data, *, key=None, timeout=None, reply_type=None): a Future."},
    {"reply", METHOD(actor_reply), METH_VARARGS, "reply(ask, type, data): to Message.ask, later."},
    {"timer_after", METHOD(actor_timer_after), METH_VARARGS | METH_KEYWORDS,
     "timer_after(to, seconds, type, data, *, key=None, period=None): the id of a timer."},
    {"timer_at", METHOD(actor_timer_at), METH_VARARGS | METH_KEYWORDS,
     "timer_at(to, seconds_since_1970, type, data, *, key=None, period=None)"},
    {"timer_cancel", METHOD(actor_timer_cancel), METH_O, "timer_cancel(id): whether it was set."},
    {"timer_cancel_type", METHOD(actor_timer_cancel_type), METH_VARARGS,
     "timer_cancel_type(to, type): all of that type for that recipient; returns their number."},
    {"subscribe", METHOD(actor_subscribe), METH_VARARGS, "subscribe(exchange, type='', key=None)"},
    {"unsubscribe", METHOD(actor_unsubscribe), METH_VARARGS,
     "unsubscribe(exchange, type='', key=None)"},
    {"exchange_new", METHOD(actor_exchange_new), METH_VARARGS,
     "exchange_new(name, kind): the reference of a new exchange."},
    {"exchange_delete", METHOD(actor_exchange_delete), METH_O, "exchange_delete(exchange)"},
    {"pause", METHOD(actor_pause), METH_O, "pause(which): stops it from handling messages."},
    {"resume", METHOD(actor_resume), METH_O, "resume(which): lets it handle messages again."},
    {"monitor", METHOD(actor_monitor), METH_O,
     "monitor(who): a Future that ends when that actor is permanently gone or has failed."},
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

    return type_register(module, &spec, &type);
}
