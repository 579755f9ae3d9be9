/* SPDX-License-Identifier: MIT */

/* An actor's requests to the supervisor, about addresses, names, subscriptions, exchanges and
 * monitors; and its messages: asks, replies and timers. */

#include "worker/python/module/actor.h"
#include "worker/python/module/python.h"
#include "worker/python/module/submission.h"
#include <string.h>

PyObject *actor_lookup(struct actor *self, PyObject *args)
{
    const char *address;
    troupe_ref found;

    if (!PyArg_ParseTuple(args, "s:lookup", &address) || !actor_begin(self) ||
        actor_finish(self, troupe_actor_lookup(self->actor, address, &found), address) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(found);
}

PyObject *actor_own(struct actor *self, PyObject *unused)
{
    troupe_ref found;

    if (!actor_begin(self) || actor_finish(self, troupe_actor_self(self->actor, &found), NULL) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(found);
}

PyObject *actor_address(struct actor *self, PyObject *unused)
{
    return actor_is_open(self) ? PyUnicode_FromString(troupe_actor_address(self->actor)) : NULL;
}

PyObject *actor_add_name(struct actor *self, PyObject *args)
{
    const char *name;

    if (!PyArg_ParseTuple(args, "s:register", &name) || !actor_begin(self))
        return NULL;
    return actor_none(actor_finish(self, troupe_actor_register(self->actor, name), name));
}

PyObject *actor_remove_name(struct actor *self, PyObject *args)
{
    const char *name;
    int r = -1;

    if (PyArg_ParseTuple(args, "s:deregister", &name) && actor_begin(self))
        r = actor_finish(self, troupe_actor_deregister(self->actor, name), name);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

PyObject *actor_leave(struct actor *self, PyObject *args)
{
    const char *reason = "";

    if (!PyArg_ParseTuple(args, "|s:leave", &reason) || !actor_begin(self))
        return NULL;
    return actor_none(actor_finish(self, troupe_actor_leave(self->actor, reason), NULL));
}

typedef int (*subscription_fn)(struct troupe_actor *, troupe_ref, const char *, const void *,
                               size_t);

static PyObject *change(struct actor *self, PyObject *args, subscription_fn change_it)
{
    const char *name = "";
    uint64_t exchange;
    Py_buffer key = {0};
    int r = -1;

    if (!PyArg_ParseTuple(args, "O&|sz*", submission_number, &exchange, &name, &key))
        return NULL;
    if (actor_begin(self))
        r = actor_finish(self, change_it(self->actor, exchange, name, key.buf, (size_t)key.len),
                         NULL);
    PyBuffer_Release(&key);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

PyObject *actor_subscribe(struct actor *self, PyObject *args)
{
    PyObject *changed = change(self, args, troupe_actor_subscribe);

    Py_XDECREF(changed);
    return changed ? Py_NewRef(Py_None) : NULL;
}

PyObject *actor_unsubscribe(struct actor *self, PyObject *args)
{
    return change(self, args, troupe_actor_unsubscribe);
}

static const char *const KINDS[] = {
    [TROUPE_EXCHANGE_SINGLE] = "single",           [TROUPE_EXCHANGE_TYPED_SINGLE] = "typed-single",
    [TROUPE_EXCHANGE_TYPED_MULTI] = "typed-multi", [TROUPE_EXCHANGE_ROUTING_KEY] = "routing-key",
    [TROUPE_EXCHANGE_PATTERN] = "pattern",
};

/* A converter for PyArg_Parse*(): the name of a kind of exchange. */
static int exchange_kind(PyObject *name, enum troupe_exchange_kind *ret)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);

    if (!text)
        return 0;
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++) {
        *ret = (enum troupe_exchange_kind)i;
        if (strcmp(KINDS[i], text) == 0)
            return 1;
    }
    PyErr_Format(PyExc_ValueError,
                 "no kind of exchange: %R; allowed: single, typed-single, typed-multi, "
                 "routing-key, pattern",
                 name);
    return 0;
}

PyObject *actor_exchange_new(struct actor *self, PyObject *args)
{
    enum troupe_exchange_kind kind;
    const char *name;
    troupe_ref found;

    if (!PyArg_ParseTuple(args, "sO&:exchange_new", &name, exchange_kind, &kind) ||
        !actor_begin(self) ||
        actor_finish(self, troupe_actor_exchange_new(self->actor, name, kind, &found), name) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(found);
}

static PyObject *about(struct actor *self, PyObject *which,
                       int (*request)(struct troupe_actor *, troupe_ref))
{
    troupe_ref reference;

    if (!submission_number(which, &reference) || !actor_begin(self))
        return NULL;
    return actor_none(actor_finish(self, request(self->actor, reference), NULL));
}

PyObject *actor_exchange_delete(struct actor *self, PyObject *exchange)
{
    return about(self, exchange, troupe_actor_exchange_delete);
}

PyObject *actor_pause(struct actor *self, PyObject *which)
{
    return about(self, which, troupe_actor_pause);
}

PyObject *actor_resume(struct actor *self, PyObject *which)
{
    return about(self, which, troupe_actor_resume);
}

PyObject *actor_monitor(struct actor *self, PyObject *who)
{
    struct troupe_future *future;
    troupe_ref reference;

    if (!submission_number(who, &reference) || !actor_begin(self))
        return NULL;
    return actor_finish_asking(self, troupe_actor_monitor(self->actor, reference, &future),
                               &future);
}

PyObject *actor_timer_cancel(struct actor *self, PyObject *id)
{
    uint64_t number;
    int r = -1;

    if (submission_number(id, &number) && actor_begin(self))
        r = actor_finish(self, troupe_actor_timer_cancel(self->actor, number), NULL);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

PyObject *actor_timer_cancel_type(struct actor *self, PyObject *args)
{
    const char *name;
    troupe_ref to;
    int r = -1;

    if (PyArg_ParseTuple(args, "O&s:timer_cancel_type", submission_number, &to, &name) &&
        actor_begin(self))
        r = actor_finish(self, troupe_actor_timer_cancel_type(self->actor, to, name), NULL);
    return r < 0 ? NULL : PyLong_FromLong(r);
}

/* ---- messages ---- */

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

PyObject *actor_tell(struct actor *self, PyObject *args, PyObject *kwargs)
{
    struct content content;
    int r = -1;

    if (!content_parse(&content, args, kwargs, NULL))
        return NULL;
    if (actor_begin(self))
        r = actor_finish(self, troupe_actor_tell_with(self->actor, content.to, &content.options),
                         NULL);
    content_release(&content);
    return actor_none(r);
}

PyObject *actor_ask(struct actor *self, PyObject *args, PyObject *kwargs)
{
    struct troupe_future *future;
    PyObject *python = NULL;
    struct content content;

    if (!content_parse(&content, args, kwargs, NULL))
        return NULL;
    if (actor_begin(self))
        python = actor_finish_asking(
            self, troupe_actor_ask_with(self->actor, content.to, &future, &content.options),
            &future);
    content_release(&content);
    return python;
}

PyObject *actor_reply(struct actor *self, PyObject *args)
{
    uint64_t handle_of_ask;
    const char *name;
    Py_buffer data;
    int r = -1;

    if (!PyArg_ParseTuple(args, "O&sy*:reply", submission_number, &handle_of_ask, &name, &data))
        return NULL;
    if (actor_begin(self))
        r = actor_finish(
            self, troupe_actor_reply(self->actor, handle_of_ask, name, data.buf, (size_t)data.len),
            NULL);
    PyBuffer_Release(&data);
    return actor_none(r);
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
    if (actor_begin(self))
        r = actor_finish(self, set(self->actor, content.to, when, &id, &content.options), NULL);
    content_release(&content);
    return r < 0 ? NULL : PyLong_FromUnsignedLongLong(id);
}

PyObject *actor_timer_after(struct actor *self, PyObject *args, PyObject *kwargs)
{
    return set_timer(self, args, kwargs, troupe_actor_timer_after_with);
}

PyObject *actor_timer_at(struct actor *self, PyObject *args, PyObject *kwargs)
{
    return set_timer(self, args, kwargs, troupe_actor_timer_at_with);
}
