/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line of troupe-exec, and its job handler. */

#include "shared/base/clock.h"
#include "worker/exec/outcome.h"
#include "worker/exec/reader.h"
#include <stdbool.h>
#include <stddef.h>

struct exec_options {
    size_t max_output;
    usec_t kill_after;
    struct outcome_policy policy;
    bool literal;  /* replace nothing in arguments */
    bool channels; /* give the command descriptors 3 to 5 */
    char *const *argv;
};

enum {
    _OPTIONS_E_SUCCESS,
    OPTIONS_E_DONE,  /* --help or --version */
    OPTIONS_E_USAGE, /* explained on standard error */
};

int options_parse(struct exec_options *ret, int argc, char *argv[]);

/* Parses "3,4,100": exit statuses from 1 to 255. Returns 0 or -EINVAL. */
int options_parse_statuses(const char *text, struct outcome_policy *ret);

/* ---- run.c ---- */

struct run_context {
    struct exec_options options;
    char *path; /* of the command */
    struct reader *reader;
};

/* Runs the command for a job. A troupe_job_fn; `userdata` is a struct run_context. */
int run_job(struct troupe_job *job, void *userdata);
