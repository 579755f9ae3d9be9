/* SPDX-License-Identifier: MIT */
#include "worker/python/module/failure.h"
#include "worker/python/module/python.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *words_of(int error)
{
    return error == -EPIPE || error == -ECONNRESET
               ? "the supervisor closed the connection, or is gone"
               : strerror(-error);
}

PyObject *failure_raise(int error, const char *reason)
{
    PyObject *value;

    if (error == -ENOMEM)
        return PyErr_NoMemory();
    /* OSError chooses the subclass by the number. */
    value = PyObject_CallFunction(PyExc_OSError, "iN", -error,
                                  text_new(reason && *reason ? reason : words_of(error)));
    if (value)
        PyErr_SetObject((PyObject *)Py_TYPE(value), value);
    Py_XDECREF(value);
    return NULL;
}

PyObject *failure_none(int result)
{
    if (result < 0)
        return failure_raise(result, NULL);
    Py_RETURN_NONE;
}

void failure_describe(char *text, size_t size)
{
    PyObject *type, *value, *traceback, *name, *words;
    const char *shown_name, *shown_words;

    PyErr_Fetch(&type, &value, &traceback);
    name = type ? PyType_GetName((PyTypeObject *)type) : NULL;
    words = value ? PyObject_Str(value) : NULL;
    shown_name = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    shown_words = words ? PyUnicode_AsUTF8AndSize(words, NULL) : NULL;
    (void)snprintf(text, size, "%s%s%s", shown_name ? shown_name : "exception",
                   shown_words && *shown_words ? ": " : "", shown_words ? shown_words : "");
    Py_XDECREF(name);
    Py_XDECREF(words);
    PyErr_Restore(type, value, traceback); /* also forgets errors of this function */
}
