/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Converters for PyArg_Parse*(): seconds, an int or a float, to microseconds; infinity is
 * TROUPE_USEC_INFINITY. None is 0, or leaves out a limit. Return 1, or 0 after raising. */
int moment_or_zero(PyObject *seconds, uint64_t *ret_usec);
int moment_or_never(PyObject *seconds, uint64_t *ret_usec);

/* Returns when a time-out that begins now is over, and how long it still is. */
uint64_t moment_end(uint64_t timeout);
uint64_t moment_left(uint64_t end);

/* Returns a time as seconds; None for TROUPE_USEC_INFINITY. */
PyObject *moment_to_python(uint64_t usec);
