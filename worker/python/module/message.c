/* SPDX-License-Identifier: MIT */
/* The type Message. */
#include "worker/python/module/submission.h"
#include "worker/python/module/types.h"

static PyTypeObject *type;

PyObject *message_new(struct troupe_message *message, PyObject *owner, struct gate *gate)
{
    return held_new(type, message, owner, gate);
}

enum attribute {
    TYPE,
    KEY,
    PAYLOAD,
    SENDER,
    ID,
    TIMER,
    ASK,
    SENT_AT,
    REDELIVERED,
};

/* Bytes are copies: a view could outlive them. */
static PyObject *get(struct held *self, void *attribute)
{
    const char *data;
    size_t size;

    if (!held_is_open(self))
        return NULL;
    switch ((enum attribute)(uintptr_t)attribute) {
    case TYPE:
        return PyUnicode_FromString(troupe_message_type(self->thing));
    case KEY:
        data = troupe_message_key(self->thing, &size);
        return data ? PyBytes_FromStringAndSize(data, (Py_ssize_t)size) : Py_NewRef(Py_None);
    case PAYLOAD:
        data = troupe_message_payload(self->thing, &size);
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    case SENDER:
        return PyLong_FromUnsignedLongLong(troupe_message_sender(self->thing));
    case ID:
        return PyLong_FromUnsignedLongLong(troupe_message_id(self->thing));
    case TIMER:
        return PyLong_FromUnsignedLongLong(troupe_message_timer(self->thing));
    case ASK:
        return PyLong_FromUnsignedLongLong(troupe_message_ask(self->thing));
    case SENT_AT:
        return PyFloat_FromDouble((double)troupe_message_sent_at(self->thing) / 1e6);
    default:
        return PyBool_FromLong(troupe_message_is_redelivered(self->thing));
    }
}

static PyGetSetDef ATTRIBUTES[] = {
    {"type", (getter)get, NULL, "The dotted name.", (void *)TYPE},
    {"key", (getter)get, NULL, "The routing key, or None.", (void *)KEY},
    {"payload", (getter)get, NULL, "A new copy of the payload.", (void *)PAYLOAD},
    {"sender", (getter)get, NULL, "A reference; 0 = from outside.", (void *)SENDER},
    {"id", (getter)get, NULL, "Of the message.", (void *)ID},
    {"timer", (getter)get, NULL, "The timer that sent it, or 0.", (void *)TIMER},
    {"ask", (getter)get, NULL, "For Actor.reply(); 0 = a tell.", (void *)ASK},
    {"sent_at", (getter)get, NULL, "Seconds since 1970.", (void *)SENT_AT},
    {"redelivered", (getter)get, NULL, "Whether a worker died while handling it.",
     (void *)REDELIVERED},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *reply(struct held *self, PyObject *args)
{
    PyObject *result = NULL;
    const char *name;
    Py_buffer data;

    if (!PyArg_ParseTuple(args, "sy*:reply", &name, &data))
        return NULL;
    if (held_begin(self))
        result =
            held_done(self, troupe_message_reply(self->thing, name, data.buf, (size_t)data.len));
    PyBuffer_Release(&data);
    return result;
}

static PyObject *fail(struct held *self, PyObject *args)
{
    const char *text;
    int code;

    if (!PyArg_ParseTuple(args, "is:fail", &code, &text) || !held_is_open(self))
        return NULL;
    return PyLong_FromLong(troupe_message_fail(self->thing, code, text));
}

/* A key as second argument, even None, replaces the message's own. */
static PyObject *forward(struct held *self, PyObject *args)
{
    const bool new_key = PyTuple_Size(args) > 1;
    PyObject *result = NULL;
    Py_buffer key = {0};
    uint64_t to;

    if (!PyArg_ParseTuple(args, "O&|z*:forward", submission_number, &to, &key))
        return NULL;
    if (held_begin(self))
        result = held_done(self, new_key ? troupe_message_forward_with_key(self->thing, to, key.buf,
                                                                           (size_t)key.len)
                                         : troupe_message_forward(self->thing, to));
    PyBuffer_Release(&key);
    return result;
}

static PyObject *stash(struct held *self, PyObject *unused)
{
    return held_begin(self) ? held_done(self, troupe_message_stash(self->thing)) : NULL;
}

static PyMethodDef METHODS[] = {
    {"reply", METHOD(reply), METH_VARARGS, "reply(type, data)"},
    {"fail", METHOD(fail), METH_VARARGS,
     "fail(code, text): sets the handler's error; return its return value."},
    {"forward", METHOD(forward), METH_VARARGS,
     "forward(to[, key]): with its sender and ask, and its own or another key."},
    {"stash", METHOD(stash), METH_NOARGS, "stash(): puts it aside until Actor.unstash_all()."},
    {NULL, NULL, 0, NULL},
};

int message_register(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "The current message, until its handler returns."},
        {Py_tp_dealloc, SLOT(held_dealloc)},
        {Py_tp_getset, ATTRIBUTES},
        {Py_tp_methods, METHODS},
        {0, NULL},
    };
    static PyType_Spec spec = {"troupe._troupe.Message", sizeof(struct held), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_register(module, &spec, &type);
}
