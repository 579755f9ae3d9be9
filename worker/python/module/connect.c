/* SPDX-License-Identifier: MIT */
#include "worker/python/module/connect.h"
#include "worker/python/module/failure.h"

int connect_by(connect_fn fn, void *ret, struct gate *gate, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"socket_path", NULL};
    const char *path = NULL;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z", names, &path))
        return -1;
    gate_unlock(gate);
    r = fn(ret, path);
    gate_lock(gate);
    if (r < 0) {
        (void)failure_raise(r, NULL);
        return -1;
    }
    gate_open(gate);
    return 0;
}
