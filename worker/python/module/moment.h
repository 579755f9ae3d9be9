/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Converters for PyArg_Parse*(): seconds, an int or a float, to microseconds; infinity is
 * TROUPE_USEC_INFINITY. None is 0, or means no limit. Return 1, or 0 after raising. */
int moment_or_zero(PyObject *seconds, uint64_t *ret_usec);
int moment_or_never(PyObject *seconds, uint64_t *ret_usec);

/* Return the end of a time-out that begins now, and the time left until an end. */
uint64_t moment_end(uint64_t timeout);
uint64_t moment_left(uint64_t end);

/* Returns a time as seconds; None for TROUPE_USEC_INFINITY. */
PyObject *moment_to_python(uint64_t usec);
