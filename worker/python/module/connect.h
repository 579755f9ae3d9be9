/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/gate.h"

/* Connects, as troupe_client_connect() and troupe_query_new() do. */
typedef int (*connect_fn)(void *ret, const char *socket_path);

/* Parses (socket_path=None), connects while other threads run, and opens the gate. Returns 0, or -1
 * after raising. */
int connect_by(connect_fn fn, void *ret, struct gate *gate, PyObject *args, PyObject *kwargs);
