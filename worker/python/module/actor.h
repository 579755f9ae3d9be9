/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of an actor. */

#include "worker/python/module/types.h"

struct actor {
    PyObject_HEAD struct troupe_actor *actor;
    PyObject *owner; /* borrowed: it keeps this object. NULL = gone */
    struct gate *gate;
    PyObject *on_message, *on_restart, *on_silence; /* NULL = none */
};

/* Returns whether the owner exists; else false after raising. */
bool actor_is_open(const struct actor *self);

/* Like gate_begin() and gate_end(); the owner lives until then. */
bool actor_begin(struct actor *self);
int actor_finish(struct actor *self, int r, const char *reason);
/* Returns the Future of `*future`, which the library made unless `r` is negative; NULL after
 * raising. */
PyObject *actor_finish_asking(struct actor *self, int r, struct troupe_future **future);

/* Returns None, or NULL if `r` is negative. */
PyObject *actor_none(int r);

/* Methods; METHODS in actor.c describes them. */
PyObject *actor_lookup(struct actor *self, PyObject *args);
PyObject *actor_own(struct actor *self, PyObject *unused);
PyObject *actor_address(struct actor *self, PyObject *unused);
PyObject *actor_add_name(struct actor *self, PyObject *args);
PyObject *actor_remove_name(struct actor *self, PyObject *args);
PyObject *actor_leave(struct actor *self, PyObject *args);
PyObject *actor_tell(struct actor *self, PyObject *args, PyObject *kwargs);
PyObject *actor_ask(struct actor *self, PyObject *args, PyObject *kwargs);
PyObject *actor_reply(struct actor *self, PyObject *args);
PyObject *actor_timer_after(struct actor *self, PyObject *args, PyObject *kwargs);
PyObject *actor_timer_at(struct actor *self, PyObject *args, PyObject *kwargs);
PyObject *actor_timer_cancel(struct actor *self, PyObject *id);
PyObject *actor_timer_cancel_type(struct actor *self, PyObject *args);
PyObject *actor_subscribe(struct actor *self, PyObject *args);
PyObject *actor_unsubscribe(struct actor *self, PyObject *args);
PyObject *actor_exchange_new(struct actor *self, PyObject *args);
PyObject *actor_exchange_delete(struct actor *self, PyObject *exchange);
PyObject *actor_pause(struct actor *self, PyObject *which);
PyObject *actor_resume(struct actor *self, PyObject *which);
PyObject *actor_monitor(struct actor *self, PyObject *who);
