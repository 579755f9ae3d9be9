/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/gate.h"

/* Adds the type Actor to the module. Returns 0, or -1 after raising. */
int actor_register(PyObject *module);

/* Returns a new Actor whose calls pass `gate`, or NULL after raising. `owner`, a worker or a
 * client, holds the gate and must live as long as a handler may run: it keeps this object. */
PyObject *actor_new(struct troupe_actor *actor, PyObject *owner, struct gate *gate);

/* Detaches the owner, which is about to end, or to break a circle of references. */
void actor_end(PyObject *self);
