/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Raises the OSError of `error` (-errno) with `reason`, or the system's text if that is "" or NULL.
 * Returns NULL. */
PyObject *failure_raise(int error, const char *reason);

/* Returns None, or NULL after raising if `result` is an error. */
PyObject *failure_none(int result);

/* Writes the exception that is set as "Type: text" into `text`, and leaves it set. */
void failure_describe(char *text, size_t size);
