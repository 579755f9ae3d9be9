/* SPDX-License-Identifier: MIT */
#include "worker/python/module/message.h"
#include "worker/python/module/failure.h"

struct message {
    PyObject_HEAD struct troupe_message *message; /* NULL = its handler has returned */
    PyObject *owner;
    struct gate *gate;
};

static PyTypeObject *type;

PyObject *message_new(struct troupe_message *message, PyObject *owner, struct gate *gate)
{
    struct message *self = PyObject_New(struct message, type);

    if (!self)
        return NULL;
    self->message = message;
    self->owner = Py_NewRef(owner);
    self->gate = gate;
    return (PyObject *)self;
}

void message_end(PyObject *self)
{
    ((struct message *)self)->message = NULL;
}

static void message_dealloc(struct message *self)
{
    PyTypeObject *cls = Py_TYPE((PyObject *)self);

    Py_DECREF(self->owner);
    PyObject_Free(self);
    Py_DECREF((PyObject *)cls);
}

static bool is_in_hand(const struct message *self)
{
    if (!gate_is_open(self->gate))
        return false;
    if (!self->message)
        PyErr_SetString(PyExc_RuntimeError, "the handler of this message has returned");
    return self->message;
}

static PyObject *get_type(struct message *self, void *unused)
{
    (void)unused;
    return is_in_hand(self) ? PyUnicode_FromString(troupe_message_type(self->message)) : NULL;
}

static PyObject *get_key(struct message *self, void *unused)
{
    const char *key;
    size_t size;

    (void)unused;
    if (!is_in_hand(self))
        return NULL;
    key = troupe_message_key(self->message, &size);
    return key ? PyBytes_FromStringAndSize(key, (Py_ssize_t)size) : Py_NewRef(Py_None);
}

static PyObject *get_payload(struct message *self, void *unused)
{
    const char *data;
    size_t size;

    (void)unused;
    if (!is_in_hand(self))
        return NULL;
    data = troupe_message_payload(self->message, &size);
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

/* Attributes that are numbers have the library's function as closure. */
static PyObject *get_number(struct message *self, void *closure)
{
    uint64_t (*const function)(const struct troupe_message *) =
        *(uint64_t(**)(const struct troupe_message *))closure;

    return is_in_hand(self) ? PyLong_FromUnsignedLongLong(function(self->message)) : NULL;
}

static PyObject *get_sent_at(struct message *self, void *unused)
{
    (void)unused;
    return is_in_hand(self)
               ? PyFloat_FromDouble((double)troupe_message_sent_at(self->message) / 1e6)
               : NULL;
}

static PyObject *get_redelivered(struct message *self, void *unused)
{
    (void)unused;
    return is_in_hand(self) ? PyBool_FromLong(troupe_message_is_redelivered(self->message)) : NULL;
}

typedef uint64_t (*number_fn)(const struct troupe_message *);
static number_fn sender = troupe_message_sender, id = troupe_message_id,
                 timer = troupe_message_timer, ask = troupe_message_ask;

static PyGetSetDef ATTRIBUTES[] = {
    {"type", (getter)get_type, NULL, "The dotted name.", NULL},
    {"key", (getter)get_key, NULL, "The routing key, or None.", NULL},
    {"payload", (getter)get_payload, NULL, "A new copy of the payload.", NULL},
    {"sender", (getter)get_number, NULL, "A reference; 0 = from outside.", &sender},
    {"id", (getter)get_number, NULL, "Of the message.", &id},
    {"timer", (getter)get_number, NULL, "The timer that sent it, or 0.", &timer},
    {"ask", (getter)get_number, NULL, "For Actor.reply(); 0 = a tell.", &ask},
    {"sent_at", (getter)get_sent_at, NULL, "Seconds since 1970.", NULL},
    {"redelivered", (getter)get_redelivered, NULL, "Whether a worker died with it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static bool begin(struct message *self)
{
    if (!is_in_hand(self) || !gate_enter(self->gate))
        return false;
    gate_unlock(self->gate);
    return true;
}

static PyObject *end(struct message *self, int r)
{
    gate_lock(self->gate);
    gate_leave(self->gate);
    return PyErr_Occurred() ? NULL : failure_none(r);
}

static PyObject *reply(struct message *self, PyObject *args)
{
    PyObject *result = NULL;
    const char *name;
    Py_buffer data;

    if (!PyArg_ParseTuple(args, "sy*:reply", &name, &data))
        return NULL;
    if (begin(self))
        result = end(self, troupe_message_reply(self->message, name, data.buf, (size_t)data.len));
    PyBuffer_Release(&data);
    return result;
}

static PyObject *fail(struct message *self, PyObject *args)
{
    const char *text;
    int code;

    if (!PyArg_ParseTuple(args, "is:fail", &code, &text) || !is_in_hand(self))
        return NULL;
    return PyLong_FromLong(troupe_message_fail(self->message, code, text));
}

static PyObject *forward(struct message *self, PyObject *args)
{
    unsigned long long to;

    if (!PyArg_ParseTuple(args, "K:forward", &to) || !begin(self))
        return NULL;
    return end(self, troupe_message_forward(self->message, to));
}

static PyObject *stash(struct message *self, PyObject *unused)
{
    (void)unused;
    return begin(self) ? end(self, troupe_message_stash(self->message)) : NULL;
}

static PyMethodDef METHODS[] = {
    {"reply", METHOD(reply), METH_VARARGS, "reply(type, data)"},
    {"fail", METHOD(fail), METH_VARARGS,
     "fail(code, text): the handler's error; return what this returns."},
    {"forward", METHOD(forward), METH_VARARGS, "forward(to): with its sender, ask and key."},
    {"stash", METHOD(stash), METH_NOARGS, "stash(): puts it aside until Actor.unstash_all()."},
    {NULL, NULL, 0, NULL},
};

int message_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "The message in hand, until its handler returns."},
        {Py_tp_dealloc, SLOT(message_dealloc)},
        {Py_tp_getset, ATTRIBUTES},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Message", sizeof(struct message), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return type ? PyModule_AddObjectRef(module, "Message", (PyObject *)type) : -1;
}
