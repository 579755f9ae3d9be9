/* SPDX-License-Identifier: MIT */
#pragma once

/* Python's stable ABI (Py_LIMITED_API comes from the build), and libtroupe. */

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* first: it selects features of the C library */

#include "worker/troupe.h"

/* Casts methods that take keywords or no arguments to the type in PyMethodDef. */
#define METHOD(function) ((PyCFunction)(void (*)(void))(function))
#define SLOT(function)   ((void *)(function))

/* Returns arbitrary bytes of another process as a new str, or NULL after raising. */
PyObject *text_new(const char *bytes);

/* Makes the type, and adds it to the module by the last part of its name. Returns 0, or -1 after
 * raising. */
int type_register(PyObject *module, PyType_Spec *spec, PyTypeObject **ret);

/* ---- errors ---- */

/* Raises the OSError of `error` (-errno) with `reason`, or the system's text if that is "" or NULL.
 * Returns NULL. */
PyObject *failure_raise(int error, const char *reason);

/* Returns None, or NULL after raising if `result` is an error. */
PyObject *failure_none(int result);

/* Writes the exception that is set as "Type: text" into `text`, and leaves it set. */
void failure_describe(char *text, size_t size);

/* ---- times ---- */

/* Converters for PyArg_Parse*(): seconds, an int or a float, to microseconds; infinity is
 * TROUPE_USEC_INFINITY. None is 0, or means no limit. Return 1, or 0 after raising. */
int moment_or_zero(PyObject *seconds, uint64_t *ret_usec);
int moment_or_never(PyObject *seconds, uint64_t *ret_usec);

/* Return the end of a time-out that begins now, and the time left until an end. */
uint64_t moment_end(uint64_t timeout);
uint64_t moment_left(uint64_t end);

/* Returns a time as seconds; None for TROUPE_USEC_INFINITY. */
PyObject *moment_to_python(uint64_t usec);
