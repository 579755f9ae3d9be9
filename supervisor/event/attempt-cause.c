/* SPDX-License-Identifier: MIT */
#include "supervisor/event/attempt-cause.h"

#include "shared/base/cleanup.h"
#include <string.h>

static const char *const WORDS[] = {
    [ATTEMPT_CAUSE_NONE] = "",
    [ATTEMPT_CAUSE_RETRY] = "retry",
    [ATTEMPT_CAUSE_EXIT] = "exit",
    [ATTEMPT_CAUSE_SIGNAL] = "signal",
    [ATTEMPT_CAUSE_OOM] = "oom",
    [ATTEMPT_CAUSE_JOB_TIMEOUT] = "job_timeout",
    [ATTEMPT_CAUSE_WATCHDOG] = "watchdog",
    [ATTEMPT_CAUSE_START_TIMEOUT] = "start_timeout",
    [ATTEMPT_CAUSE_VIOLATION] = "violation",
    [ATTEMPT_CAUSE_NO_PROGRESS] = "no_progress",
    [ATTEMPT_CAUSE_STOP] = "stop",
    [ATTEMPT_CAUSE_SUPERVISOR] = "supervisor",
    [ATTEMPT_CAUSE_SYSTEM_CALL] = "system_call",
    [ATTEMPT_CAUSE_RESULT_TOO_LARGE] = "result_too_large",
};

_Static_assert(ELEMENTS(WORDS) == _ATTEMPT_N_CAUSES, "a word for each cause");

enum attempt_cause attempt_cause_from_string(const char *word)
{
    for (unsigned i = 1; i < ELEMENTS(WORDS); i++)
        if (strcmp(WORDS[i], word) == 0)
            return (enum attempt_cause)i;
    return ATTEMPT_CAUSE_NONE;
}
