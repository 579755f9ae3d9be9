/* SPDX-License-Identifier: MIT */
#pragma once

/* Maps the end of a command to the outcome of its job. */

#include "worker/exec/command.h"
#include "worker/troupe.h"

struct outcome_policy {
    bool rejected[256]; /* exit statuses that reject the job */
};

/*
 * Ends the job:
 *
 *   exit status 0           succeeded, with the output
 *   one of `rejected`       rejected, the status as code, with the output, or if there is none,
 *                           the end of standard error
 *   any other               retried, the status as code: "exited with status 3: last words"
 *   death by signal         retried, 128 + signal as code: "killed by SIGSEGV (core dumped): …"
 *   too much output         retried, EFBIG as code
 *   lost output             retried, EIO as code
 *   cancelled               cancelled
 *   signal to this process  retried, EINTR as code
 *
 * Returns the result of the troupe_job_*() function.
 */
int outcome_end_job(struct troupe_job *job, const struct command_end *end,
                    const struct outcome_policy *policy);

/*
 * Reports the death of a command by a signal that this process did not send; does nothing after
 * any other end. `argv`: the command as configured. Call it before outcome_end_job(). Returns 0 or
 * -errno.
 */
int outcome_report_crash(struct troupe_job *job, const struct command_end *end, char *const *argv);

/* The program of a command; both borrowed. */
struct outcome_program {
    const char *name; /* as configured */
    const char *path; /* the file that was found for it */
};

/*
 * Ends the job of a command that could not be started: rejected after -E2BIG, -EFBIG and -EINVAL,
 * which another attempt would not help, otherwise retried. Returns the result of the troupe_job_*()
 * function.
 */
int outcome_end_unstarted(struct troupe_job *job, const struct outcome_program *program, int error);

/*
 * Writes the reason of a command's failure, with the end of its standard error, cut to `size`.
 * Returns `text`.
 */
char *outcome_describe(const struct command_end *end, char *text, size_t size);
