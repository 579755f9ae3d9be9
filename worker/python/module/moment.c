/* SPDX-License-Identifier: MIT */
#include "worker/python/module/moment.h"
#include <math.h>

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
    /* Rounded up: a small time must not become none. */
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

PyObject *moment_to_python(uint64_t usec)
{
    if (usec == TROUPE_USEC_INFINITY)
        Py_RETURN_NONE;
    return PyFloat_FromDouble((double)usec / 1e6);
}
