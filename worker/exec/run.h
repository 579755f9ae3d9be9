/* SPDX-License-Identifier: MIT */
#pragma once

/* The job handler of troupe-exec: runs the command for a job. */

#include "worker/exec/options.h"
#include "worker/exec/reader.h"
#include "worker/troupe.h"

struct run_context {
    struct exec_options options;
    char *path; /* of the command */
    struct reader *reader;
};

/* troupe_job_fn; `userdata` is a struct run_context. */
int run_job(struct troupe_job *job, void *userdata);
