/* SPDX-License-Identifier: MIT */
/* Reports the death of a process that the worker ran for a job. */

#include "shared/protocol/protocol.h"
#include "supervisor/job/job.h"
#include "supervisor/pool/slot/slot-private.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>

static struct timeval timeval_of(usec_t time)
{
    return (struct timeval){
        .tv_sec = (time_t)(time / USEC_PER_SEC),
        .tv_usec = (suseconds_t)(time % USEC_PER_SEC),
    };
}

/* The contents cannot be checked: the worker reports about its own job. */
static void slot_describe_crash(struct slot *slot, const struct protocol_crashed *crashed,
                                struct death *death)
{
    (void)snprintf(death->command, sizeof(death->command), "%.*s", (int)crashed->command_size,
                   crashed->command_size > 0 ? (const char *)crashed->command : "");
    if (death->command[0] == '\0')
        (void)snprintf(death->command, sizeof(death->command), "a process of its own");
    death->pid = crashed->pid;
    death->uptime = crashed->uptime;
    death->exit = (struct spawn_exit){
        .signalled = true,
        .core_dumped = crashed->core_dumped,
        .code = crashed->signal,
        .usage = {.ru_utime = timeval_of(crashed->user),
                  .ru_stime = timeval_of(crashed->system),
                  .ru_maxrss = (long)(crashed->max_rss / 1024)},
    };
    death->cause = crashed->signal == SIGKILL && process_take_oom_kill(&slot->worker.process)
                       ? DEATH_OOM
                       : DEATH_SIGNAL;
    death_describe(death);
}

int slot_on_crashed(struct slot *slot, const struct ring_record *record)
{
    struct protocol_crashed crashed;
    struct death *death;
    struct job *job;
    int r;

    r = protocol_get_crashed(record->body, record->size, &crashed);
    if (r < 0)
        return r;
    job = slot_job_in_hand(slot, crashed.handle, crashed.attempt);
    if (!job)
        return 0;
    /* Only the job at work can run a process, and only one. */
    if (list_first(&slot->jobs) != &job->link || job->crash)
        return -EBADMSG;
    /* The worker forwarded the output before it sent the record. */
    capture_catch_up(&slot->worker.process.output);
    death = slot_new_report(slot);
    job->crash = death_cause_to_string(DEATH_SIGNAL);
    if (!death)
        return 0;
    slot_describe_crash(slot, &crashed, death);
    job->crash = death_cause_to_string(death->cause);
    slot_publish_report(slot, death);
    death_unref(death);
    return 0;
}
