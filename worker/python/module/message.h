/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/gate.h"

/* Adds the type Message to the module. Returns 0, or -1 after raising. */
int message_register(PyObject *module);

/* Returns a new Message for a handler, whose calls pass `gate`, or NULL after raising. `owner`
 * holds the gate. */
PyObject *message_new(struct troupe_message *message, PyObject *owner, struct gate *gate);

/* Detaches it from the message, whose handler has returned: all calls raise from now on. */
void message_end(PyObject *self);
