/* SPDX-License-Identifier: MIT */
#pragma once

/* The types of the module. */

#include "worker/python/module/actor.h"

/* Each adds a type to the module. Returns 0, or -1 after raising. */
int result_register(PyObject *module);
int job_register(PyObject *module);
int message_register(PyObject *module);
int worker_register(PyObject *module);
int client_register(PyObject *module);
int query_register(PyObject *module);
int future_register(PyObject *module);

/* Returns a new Result with copies of all members, or NULL after raising; releases `result`. */
PyObject *result_new(struct troupe_result *result);

/* Return a new object for a handler, like held_new(). */
PyObject *job_new(struct troupe_job *job, PyObject *owner, struct gate *gate);
PyObject *message_new(struct troupe_message *message, PyObject *owner, struct gate *gate);

/* Returns a new Future that owns `future`, or frees that and returns NULL after raising. `owner`
 * holds the gate. */
PyObject *future_new(struct troupe_future *future, PyObject *owner, struct gate *gate);
