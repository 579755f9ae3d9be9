/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/held.h"

/* Adds the type Message to the module. Returns 0, or -1 after raising. */
int message_register(PyObject *module);

/* Returns a new Message for a handler, like held_new(). */
PyObject *message_new(struct troupe_message *message, PyObject *owner, struct gate *gate);
