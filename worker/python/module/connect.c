/* SPDX-License-Identifier: MIT */
#include "worker/python/module/connect.h"
#include "worker/python/module/failure.h"

#define SENTENCE_SIZE 512

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
        char text[SENTENCE_SIZE];

        (void)failure_raise(r, troupe_explain_connect(r, path, text, sizeof(text)));
        return -1;
    }
    gate_open(gate);
    return 0;
}
