/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"

#include "shared/base/cleanup.h"
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
    [DEATH_SYSTEM_CALL] = "system_call",
};

/* Texts before the description of the end. NULL: the end itself explains the cause. */
static const char *const PREFIXES[_DEATH_N_CAUSES] = {
    [DEATH_OOM] = "ran out of memory",
    [DEATH_JOB_TIMEOUT] = "its job ran out of time",
    [DEATH_WATCHDOG] = "gave no sign of life within WatchdogSec",
    [DEATH_START_TIMEOUT] = "was not ready within TimeoutStartSec",
    [DEATH_VIOLATION] = "broke the protocol",
    [DEATH_NO_PROGRESS] = "made no progress within NoProgressSec",
    [DEATH_STOP] = "stopped",
    [DEATH_SYSTEM_CALL] = "made a system call that is not allowed",
};

static void death_log_remove(struct death_log *log, struct death *death)
{
    list_cursors_pass(&log->cursors, &death->link);
    list_unlink(&death->link);
    list_unlink(&death->share_link);
    share_sub(death->share, 0, 1);
    death->share = share_unref(death->share);
    log->n_deaths--;
    death_unref(death);
}

void death_log_init(struct death_log *log, size_t max)
{
    *log = (struct death_log){.max = max};
    list_init(&log->deaths);
    list_init(&log->cursors);
    shares_init(&log->shares);
}

void death_log_deinit(struct death_log *log)
{
    list_cursors_end(&log->cursors);
    list_for_each_safe (node, &log->deaths)
        death_log_remove(log, list_entry(node, struct death, link));
    shares_deinit(&log->shares);
}

struct death *death_new(void)
{
    struct death *death = calloc(1, sizeof(*death));

    if (!death)
        return NULL;
    death->references = 1;
    list_init(&death->link);
    list_init(&death->share_link);
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
        const struct share *share = share_victim(&log->shares, 0);
        death_log_remove(log, list_entry(list_first(&share->entries[0]), struct death, share_link));
    }
}

void death_log_resize(struct death_log *log, size_t max)
{
    log->max = max;
    death_log_shrink(log, max);
}

void death_log_add(struct death_log *log, struct death *death)
{
    death->serial = ++log->n_total;
    if (log->max == 0)
        return;
    death->share = share_get(&log->shares, death->worker, share_owner_size(death->worker));
    if (!death->share)
        return;
    share_add(death->share, 0, 1);
    list_push_back(&death->share->entries[0], &death->share_link);
    list_push_front(&log->deaths, &death_ref(death)->link);
    log->n_deaths++;
    death_log_shrink(log, log->max);
}

static bool death_had_in_hand(const struct death *death, uint64_t message)
{
    for (size_t i = 0; i < death->n_messages; i++)
        if (death->messages[i].in_hand && death->messages[i].id == message)
            return true;
    return false;
}

size_t death_log_find_message(const struct death_log *log, uint64_t message, struct death **ret,
                              size_t max)
{
    size_t n = 0, n_searched = 0;

    list_for_each (node, &log->deaths) {
        struct death *death = list_entry(node, struct death, link);

        if (n == max || n_searched++ == DEATHS_SEARCHED)
            break;
        if (death_had_in_hand(death, message))
            ret[n++] = death;
    }
    for (size_t i = 0; i < n / 2; i++) {
        struct death *other = ret[i];
        ret[i] = ret[n - 1 - i];
        ret[n - 1 - i] = other;
    }
    return n;
}

const char *death_cause_text(enum death_cause cause)
{
    return PREFIXES[cause];
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

void death_describe(struct death *death, const char *why)
{
    const char *prefix = death_cause_text(death->cause);
    char signal_name[16], end[64];

    if (death->exit.unknown)
        (void)snprintf(end, sizeof(end), "ended, but another process traces it and hides how");
    else if (death->exit.signalled)
        (void)snprintf(end, sizeof(end), "killed by %s%s",
                       death_signal_name(death->exit.code, signal_name),
                       death->exit.core_dumped ? " (core dumped)" : "");
    else
        (void)snprintf(end, sizeof(end), "exited with status %d", death->exit.code);
    (void)snprintf(death->detail, sizeof(death->detail), "%s%s%s%s%s", prefix ? prefix : "",
                   prefix ? ": " : "", why ? why : "", why ? ": " : "", end);
}
