/* SPDX-License-Identifier: MIT */

/* Sends messages, asks, replies and timers of an actor. */

#include "worker/python/module/actor-private.h"
#include "worker/python/module/python.h"
#include "worker/python/module/submission.h"

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
