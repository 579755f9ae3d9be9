/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/gate.h"

/* Adds the type Future to the module. Returns 0, or -1 after raising. */
int future_register(PyObject *module);

/* Returns a new Future that owns `future`, or frees that and returns NULL after raising. `owner`
 * holds the gate. */
PyObject *future_new(struct troupe_future *future, PyObject *owner, struct gate *gate);
