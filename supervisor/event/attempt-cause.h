/* SPDX-License-Identifier: MIT */
#pragma once

/* Why an attempt failed: the values of "cause" of the type Attempt in io.troupe.Jobs, in their
 * order. Rows of durable jobs and of dead letters have the numbers: new ones come last. */

enum attempt_cause {
    ATTEMPT_CAUSE_NONE, /* no attempt has failed, or it is not known why */
    ATTEMPT_CAUSE_RETRY,
    ATTEMPT_CAUSE_EXIT,
    ATTEMPT_CAUSE_SIGNAL,
    ATTEMPT_CAUSE_OOM,
    ATTEMPT_CAUSE_JOB_TIMEOUT,
    ATTEMPT_CAUSE_WATCHDOG,
    ATTEMPT_CAUSE_START_TIMEOUT,
    ATTEMPT_CAUSE_VIOLATION,
    ATTEMPT_CAUSE_NO_PROGRESS,
    ATTEMPT_CAUSE_STOP,
    ATTEMPT_CAUSE_SUPERVISOR,
    ATTEMPT_CAUSE_SYSTEM_CALL,
    ATTEMPT_CAUSE_RESULT_TOO_LARGE, /* ResultMax= */
    _ATTEMPT_N_CAUSES,
};

/* Returns ATTEMPT_CAUSE_NONE for any other word. */
enum attempt_cause attempt_cause_from_string(const char *word);
