/* SPDX-License-Identifier: MIT */
/* The type Result. */
#include "worker/python/module/types.h"

static PyTypeObject *type;

static PyStructSequence_Field FIELDS[] = {
    {"cookie", "as given to submit() or wait()"},
    {"error", "0, or the errno with which the job was refused or lost; then only reason is valid"},
    {"end", "succeeded, rejected, cancelled or dead"},
    {"code", "of the handler that rejected or retried"},
    {"attempts", "that were made"},
    {"id", "of the job"},
    {"reason", "why it was retried, rejected, cancelled or refused"},
    {"data", "the result"},
    {"cause", "why it was cancelled or is dead: requested, withdrawn, deadline, group, attempts or "
              "payload_lost; else none"},
    {NULL, NULL},
};
static PyStructSequence_Desc DESCRIPTION = {"troupe._troupe.Result", "The end of a job.", FIELDS,
                                            sizeof(FIELDS) / sizeof(*FIELDS) - 1};

int result_register(PyObject *module)
{
    type = PyStructSequence_NewType(&DESCRIPTION);
    return type ? PyModule_AddObjectRef(module, "Result", (PyObject *)type) : -1;
}

PyObject *result_new(struct troupe_result *result)
{
    PyObject *self = PyStructSequence_New(type);
    PyObject *values[] = {
        PyLong_FromUnsignedLongLong(result->cookie),
        PyLong_FromLong(-result->error),
        PyUnicode_InternFromString(troupe_end_name(result->end)),
        PyLong_FromLong(result->code),
        PyLong_FromUnsignedLong(result->attempts),
        text_new(result->id),
        text_new(result->reason),
        PyBytes_FromStringAndSize(result->data, (Py_ssize_t)result->size),
        PyUnicode_InternFromString(troupe_cause_name(result->cause)),
    };
    bool complete = self;

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        complete = complete && values[i];
        if (self)
            PyStructSequence_SetItem(self, (Py_ssize_t)i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    troupe_result_release(result);
    if (!complete)
        Py_CLEAR(self);
    return self;
}
