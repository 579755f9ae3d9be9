/* SPDX-License-Identifier: MIT */
#include "death.h"

#include "../shared/cleanup.h"
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const CAUSES[_DEATH_N_CAUSES] = {
    [DEATH_EXIT] = "exit",
    [DEATH_SIGNAL] = "signal",
    [DEATH_OOM] = "oom",
    [DEATH_JOB_TIMEOUT] = "job_timeout",
    [DEATH_WATCHDOG] = "watchdog",
    [DEATH_START_TIMEOUT] = "start_timeout",
    [DEATH_VIOLATION] = "violation",
    [DEATH_NO_PROGRESS] = "no_progress",
    [DEATH_STOP] = "stop",
};

/* What is said before how the process ended. NULL: the end speaks for itself. */
static const char *const PREFIXES[_DEATH_N_CAUSES] = {
    [DEATH_OOM] = "ran out of memory",
    [DEATH_JOB_TIMEOUT] = "its job ran out of time",
    [DEATH_WATCHDOG] = "gave no sign of life within WatchdogSec",
    [DEATH_START_TIMEOUT] = "was not ready within TimeoutStartSec",
    [DEATH_VIOLATION] = "broke the protocol",
    [DEATH_NO_PROGRESS] = "made no progress within NoProgressSec",
    [DEATH_STOP] = "stopped",
};

void death_log_init(struct death_log *log, size_t max)
{
    *log = (struct death_log){.max = max};
    list_init(&log->deaths);
}

void death_log_deinit(struct death_log *log)
{
    list_for_each_safe (node, &log->deaths) {
        list_unlink(node);
        death_unref(list_entry(node, struct death, link));
    }
    log->n_deaths = 0;
}

struct death *death_new(void)
{
    struct death *death = calloc(1, sizeof(*death));

    if (!death)
        return NULL;
    death->references = 1;
    list_init(&death->link);
    return death;
}

struct death *death_ref(struct death *death)
{
    death->references++;
    return death;
}

struct death *death_unref(struct death *death)
{
    if (!death || --death->references > 0)
        return NULL;
    assert(!list_linked(&death->link));
    free(death->messages);
    free(death->state);
    free(death->stderr_text);
    free(death);
    return NULL;
}

static void death_log_shrink(struct death_log *log, size_t n)
{
    while (log->n_deaths > n) {
        struct death *oldest = list_entry(log->deaths.prev, struct death, link);
        list_unlink(&oldest->link);
        death_unref(oldest);
        log->n_deaths--;
    }
}

void death_log_resize(struct death_log *log, size_t max)
{
    log->max = max;
    death_log_shrink(log, max);
}

void death_log_add(struct death_log *log, struct death *death)
{
    log->n_total++;
    if (log->max == 0)
        return;
    death_log_shrink(log, log->max - 1);
    list_push_front(&log->deaths, &death_ref(death)->link);
    log->n_deaths++;
}

const char *death_cause_to_string(enum death_cause cause)
{
    return CAUSES[cause];
}

const char *death_signal_name(int signal, char *buffer)
{
    const char *name = sigabbrev_np(signal);

    if (name)
        (void)snprintf(buffer, 16, "SIG%s", name);
    else
        (void)snprintf(buffer, 16, "signal %d", signal);
    return buffer;
}

void death_describe(struct death *death)
{
    const char *prefix = PREFIXES[death->cause];
    char signal_name[16], end[64];

    if (death->exit.signalled)
        (void)snprintf(end, sizeof(end), "killed by %s%s",
                       death_signal_name(death->exit.code, signal_name),
                       death->exit.core_dumped ? " (core dumped)" : "");
    else
        (void)snprintf(end, sizeof(end), "exited with status %d", death->exit.code);
    (void)snprintf(death->detail, sizeof(death->detail), "%s%s%s", prefix ? prefix : "",
                   prefix ? ": " : "", end);
}
