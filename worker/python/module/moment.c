/* SPDX-License-Identifier: MIT */
#include "worker/python/module/moment.h"
#include <math.h>
#include <time.h>

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
