/* SPDX-License-Identifier: MIT */
#pragma once

/* The types of the module. */

#include "worker/python/module/gate.h"

/* Each adds a type to the module. Returns 0, or -1 after raising. */
int result_register(PyObject *module);
int job_register(PyObject *module);
int message_register(PyObject *module);
int worker_register(PyObject *module);
int client_register(PyObject *module);
int query_register(PyObject *module);
int future_register(PyObject *module);
int actor_register(PyObject *module);

/* Returns a new Result with copies of all members, or NULL after raising; releases `result`. */
PyObject *result_new(struct troupe_result *result);

/* Return a new object for a handler, like held_new(). */
PyObject *job_new(struct troupe_job *job, PyObject *owner, struct gate *gate);
PyObject *message_new(struct troupe_message *message, PyObject *owner, struct gate *gate);

/* Returns a new Future that owns `future`, or frees that and returns NULL after raising. `owner`
 * holds the gate. */
PyObject *future_new(struct troupe_future *future, PyObject *owner, struct gate *gate);

/* Returns a new Actor whose calls pass `gate`, or NULL after raising. `owner`, a worker or a
 * client, holds the gate and must live as long as a handler may run: it keeps this object. */
PyObject *actor_new(struct troupe_actor *actor, PyObject *owner, struct gate *gate);

/* Detaches the owner, which is about to end, or to break a circle of references. */
void actor_end(PyObject *self);
