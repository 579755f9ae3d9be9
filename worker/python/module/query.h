/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Adds the type Query to the module. Returns 0, or -1 after raising. */
int query_register(PyObject *module);
