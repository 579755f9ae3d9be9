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
