/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Adds the type Worker to the module. Returns 0, or -1 after raising. */
int worker_register(PyObject *module);
