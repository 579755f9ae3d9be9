/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Makes the type, and adds it to the module by the last part of its name. Returns 0, or -1 after
 * raising. */
int type_register(PyObject *module, PyType_Spec *spec, PyTypeObject **ret);
