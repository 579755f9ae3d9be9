/* SPDX-License-Identifier: MIT */
#include "worker/python/module/python.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- text ---- */

PyObject *text_new(const char *bytes)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes), "replace");
}

/* ---- type ---- */

int type_register(PyObject *module, PyType_Spec *spec, PyTypeObject **ret)
{
    *ret = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *ret ? PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, (PyObject *)*ret)
                : -1;
}

/* ---- errors ---- */

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

/* ---- times ---- */

static int convert(PyObject *seconds, uint64_t none, uint64_t *ret_usec)
{
    double value;

    *ret_usec = none;
    if (seconds == Py_None)
        return 1;
    value = PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred())
        return 0;
    if (!(value >= 0)) {
        PyErr_SetString(PyExc_ValueError,
                        "a time must be a number of seconds that is not negative");
        return 0;
    }
    /* Rounded up: a small time must not become 0. */
    value = ceil(value * 1e6);
    *ret_usec = value < 0x1p63 ? (uint64_t)value : TROUPE_USEC_INFINITY;
    return 1;
}

int moment_or_zero(PyObject *seconds, uint64_t *ret_usec)
{
    return convert(seconds, 0, ret_usec);
}

int moment_or_never(PyObject *seconds, uint64_t *ret_usec)
{
    return convert(seconds, TROUPE_USEC_INFINITY, ret_usec);
}

static uint64_t now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

uint64_t moment_end(uint64_t timeout)
{
    const uint64_t begin = now();

    return timeout < TROUPE_USEC_INFINITY - begin ? begin + timeout : TROUPE_USEC_INFINITY;
}

uint64_t moment_left(uint64_t end)
{
    const uint64_t at = now();

    if (end == TROUPE_USEC_INFINITY)
        return end;
    return end > at ? end - at : 0;
}

PyObject *moment_to_python(uint64_t usec)
{
    if (usec == TROUPE_USEC_INFINITY)
        Py_RETURN_NONE;
    return PyFloat_FromDouble((double)usec / 1e6);
}
