/* SPDX-License-Identifier: MIT */
#pragma once

#include "worker/python/module/python.h"

/* The arguments of submit(), create() and do(). */
struct submission {
    uint64_t group, cookie;
    Py_buffer data, key, unique;
    PyObject *after; /* borrowed by the options; NULL = none */
    struct troupe_job_options options;
};

/* Cookies of Python programs are below this one. */
#define SUBMISSION_COOKIES (UINT64_C(1) << 63)

/* Returns 0, or -1 after raising. The caller releases it after 0. */
int submission_parse(struct submission *submission, PyObject *args, PyObject *kwargs,
                     bool with_cookie);
void submission_release(struct submission *submission);

/* A converter for PyArg_Parse*(): a number from 0 to 2^64 - 1. */
int submission_number(PyObject *number, uint64_t *ret);
/* Like submission_number(), but up to SUBMISSION_COOKIES. */
int submission_cookie(PyObject *number, uint64_t *ret);
