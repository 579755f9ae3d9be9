/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Adds the type Result to the module. Returns 0, or -1 after raising. */
int result_register(PyObject *module);

/* Returns a new Result with copies of all members, or NULL after raising; releases `result`. */
PyObject *result_new(struct troupe_result *result);
