/* SPDX-License-Identifier: MIT */
#include "worker/python/module/submission.h"
#include "worker/python/module/python.h"

int submission_number(PyObject *number, uint64_t *ret)
{
    *ret = PyLong_AsUnsignedLongLong(number);
    return *ret != UINT64_MAX || !PyErr_Occurred();
}

int submission_cookie(PyObject *number, uint64_t *ret)
{
    if (!submission_number(number, ret))
        return 0;
    if (*ret < SUBMISSION_COOKIES)
        return 1;
    PyErr_SetString(PyExc_OverflowError, "a cookie must be below 2**63");
    return 0;
}

static int conflict_or_none(PyObject *name, enum troupe_conflict *ret)
{
    static const char *const names[] = {NULL, "existing", "reject", "replace", "requeue"};

    *ret = TROUPE_CONFLICT_DEFAULT;
    for (unsigned i = 1; name != Py_None && i < sizeof(names) / sizeof(names[0]); i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            *ret = (enum troupe_conflict)i;
    if (name == Py_None || *ret != TROUPE_CONFLICT_DEFAULT)
        return 1;
    PyErr_SetString(PyExc_ValueError, "on_conflict must be existing, reject, replace or requeue");
    return 0;
}

#define OPTIONS                                                                                    \
    "id", "key", "max_retries", "timeout", "backoff_min", "backoff_max", "priority", "delay",      \
        "at", "wait", "deadline", "keep_result", "unique", "on_conflict", "debounce",              \
        "debounce_max", "cost", NULL
#define FORMAT "|$zz*LO&O&O&iO&O&O&O&pz*O&O&O&I"

int submission_parse(struct submission *submission, PyObject *args, PyObject *kwargs,
                     bool with_cookie)
{
    static char *with[] = {"group", "data", "cookie", OPTIONS},
                *without[] = {"group", "data", OPTIONS};
    struct troupe_job_options *options = &submission->options;
    long long max_retries = -1;
    int keep_result = 0, r;

#define TARGETS                                                                                    \
    &options->id, &submission->key, &max_retries, moment_or_zero, &options->timeout_usec,          \
        moment_or_zero, &options->backoff_min_usec, moment_or_zero, &options->backoff_max_usec,    \
        &options->priority, moment_or_zero, &options->delay_usec, moment_or_zero,                  \
        &options->at_usec, moment_or_zero, &options->wait_usec, moment_or_zero,                    \
        &options->deadline_usec, &keep_result, &submission->unique, conflict_or_none,              \
        &options->on_conflict, moment_or_zero, &options->debounce_usec, moment_or_zero,            \
        &options->debounce_max_usec, &options->cost

    *submission = (struct submission){.options = TROUPE_JOB_DEFAULTS};
    r = with_cookie
            ? PyArg_ParseTupleAndKeywords(args, kwargs, "O&y*O&" FORMAT, with, submission_number,
                                          &submission->group, &submission->data, submission_cookie,
                                          &submission->cookie, TARGETS)
            : PyArg_ParseTupleAndKeywords(args, kwargs, "O&y*" FORMAT, without, submission_number,
                                          &submission->group, &submission->data, TARGETS);
    if (!r)
        return -1;
    options->max_retries = max_retries;
    options->keep_result = keep_result;
    options->key = submission->key.buf;
    options->key_size = (size_t)submission->key.len;
    options->unique = submission->unique.buf;
    options->unique_size = (size_t)submission->unique.len;
    return 0;
}

void submission_release(struct submission *submission)
{
    PyBuffer_Release(&submission->data);
    PyBuffer_Release(&submission->key);
    PyBuffer_Release(&submission->unique);
}
