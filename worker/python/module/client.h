/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* Adds the type Client to the module. Returns 0, or -1 after raising. */
int client_register(PyObject *module);
