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

/* Finds the index of the name, or of None: 0. `problem`: for other values. */
static int choice(PyObject *name, const char *const *names, const char *problem, unsigned *ret)
{
    *ret = 0;
    if (name == Py_None)
        return 1;
    for (unsigned i = 0; names[i]; i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, names[i]) == 0) {
            *ret = i;
            return 1;
        }
    PyErr_SetString(PyExc_ValueError, problem);
    return 0;
}

static int conflict_or_none(PyObject *name, enum troupe_conflict *ret)
{
    static const char *const names[] = {"", "existing", "reject", "replace", "requeue", NULL};
    unsigned i;
    int r = choice(name, names, "on_conflict must be existing, reject, replace or requeue", &i);

    *ret = (enum troupe_conflict)i;
    return r;
}

static int condition_or_none(PyObject *name, enum troupe_condition *ret)
{
    static const char *const names[] = {"success", "failure", "end", NULL};
    unsigned i;
    int r = choice(name, names, "condition must be success, failure or end", &i);

    *ret = (enum troupe_condition)i;
    return r;
}

/* A text, or several that are joined. Called again without a value, if another argument is wrong.
 */
static int ids_or_none(PyObject *ids, PyObject **ret)
{
    PyObject *comma;

    if (!ids) {
        Py_CLEAR(*ret);
        return 1;
    }
    if (ids == Py_None)
        return Py_CLEANUP_SUPPORTED;
    if (PyUnicode_Check(ids)) {
        *ret = Py_NewRef(ids);
        return Py_CLEANUP_SUPPORTED;
    }
    comma = PyUnicode_FromString(",");
    *ret = comma ? PyUnicode_Join(comma, ids) : NULL;
    Py_XDECREF(comma);
    return *ret ? Py_CLEANUP_SUPPORTED : 0;
}

#define OPTIONS                                                                                    \
    "id", "key", "max_retries", "timeout", "backoff_min", "backoff_max", "priority", "delay",      \
        "at", "wait", "deadline", "keep_result", "unique", "on_conflict", "debounce",              \
        "debounce_max", "cost", "after", "condition", "batch", "tags", "traceparent", NULL
#define FORMAT "|$zz*LO&O&O&iO&O&O&O&pz*O&O&O&IO&O&zzz"

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
        &options->debounce_max_usec, &options->cost, ids_or_none, &submission->after,              \
        condition_or_none, &options->condition, &options->batch, &options->tags,                   \
        &options->traceparent

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
    options->after = submission->after ? PyUnicode_AsUTF8AndSize(submission->after, NULL) : NULL;
    if (!submission->after || options->after)
        return 0;
    submission_release(submission);
    return -1;
}

void submission_release(struct submission *submission)
{
    PyBuffer_Release(&submission->data);
    PyBuffer_Release(&submission->key);
    PyBuffer_Release(&submission->unique);
    Py_CLEAR(submission->after);
}
