/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line of troupe-exec. */

#include "shared/base/clock.h"
#include "worker/exec/outcome.h"
#include <stdbool.h>
#include <stddef.h>

struct exec_options {
    size_t max_output;
    usec_t kill_after;
    struct outcome_policy policy;
    bool literal; /* replace nothing in arguments */
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
