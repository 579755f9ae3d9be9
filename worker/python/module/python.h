/* SPDX-License-Identifier: MIT */
#pragma once

/* Python's stable ABI (Py_LIMITED_API comes from the build), and libtroupe. */

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* first: it chooses features of the C library */

#include "worker/troupe.h"

/* Methods that take keywords or no arguments have another type than PyMethodDef wants. */
#define METHOD(function) ((PyCFunction)(void (*)(void))(function))
#define SLOT(function)   ((void *)(function))
