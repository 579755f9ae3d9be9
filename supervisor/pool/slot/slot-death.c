/* SPDX-License-Identifier: MIT */
/* Handles the end of a worker: its cause, its report, its jobs and messages; and reports the deaths
 * of processes that workers ran. */

#include "shared/base/probe.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event-id.h"
#include "supervisor/job/job.h"
#include "supervisor/pool/slot/slot-private.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reports ---- */

static void slot_report_state(struct slot *slot, struct death *death)
{
    uint8_t page[MEMORY_STATE_MAX];
    size_t size = 0;

    if (!slot->worker.endpoint_open)
        return;
    /* The page may be torn if death interrupted a write. */
    (void)memory_state_read(&slot->worker.endpoint.channel.theirs, page, &size);
    if (size == 0)
        return;
    death->state = malloc(size);
    if (!death->state)
        return;
    memcpy(death->state, page, size);
    death->state_size = size;
}

static void slot_report_job(const struct slot *slot, struct death *death)
{
    struct list *node = list_first(&slot->jobs);
    const struct job *job;

    if (!node)
        return;
    job = list_entry(node, struct job, link);
    if (!job->started && slot->worker.kill_reason != DEATH_JOB_TIMEOUT)
        return; /* not begun, so it is not the cause */
    job_format_id(job, death->job);
    death->attempt = job->attempt;
    death->submitter_uid = job->submitter_uid;
    death->state_of_job = slot_has_published(slot, job);
}

/* Adds the output since the job in hand began, or since the worker started. */
static void slot_report_output(const struct slot *slot, struct death *death)
{
    char output[CAPTURE_TAIL_MAX + 1];
    size_t since = death->job[0] != '\0' ? slot->worker.output_mark : 0;
    size_t size = process_last_output(&slot->worker.process, since, output, sizeof(output));

    death->stderr_size = size;
    death->stderr_text = size > 0 ? malloc(size) : NULL;
    if (death->stderr_text)
        memcpy(death->stderr_text, output, size);
}

/* Returns a report of the worker and its job in hand, without the cause of death; the caller owns
 * one reference. NULL when out of memory. */
static struct death *slot_new_report(struct slot *slot)
{
    struct death *death = death_new(slot_context(slot)->deaths);

    if (!death)
        return NULL;
    (void)snprintf(death->worker, sizeof(death->worker), "%s", slot->name);
    death->owner_uid = slot->pool->config->user ? slot->pool->config->uid : 0;
    death->generation = slot->generation;
    death->at = clock_realtime();
    death->jobs_done = slot->worker.jobs_done;
    slot_report_state(slot, death);
    slot_report_job(slot, death);
    slot_report_output(slot, death);
    return death;
}

static struct event death_event(const struct death *death)
{
    if (death->command[0] != '\0')
        return (struct event){.level = LOG_LEVEL_WARNING,
                              .type = "command.died",
                              .message_id = EVENT_ID_COMMAND_DIED};
    if (death->cause == DEATH_STOP)
        return (struct event){.level = LOG_LEVEL_INFO, .type = "worker.died"};
    return (struct event){.level = LOG_LEVEL_WARNING,
                          .type = "worker.died",
                          .message_id = death->cause == DEATH_VIOLATION ? EVENT_ID_VIOLATION
                                                                        : EVENT_ID_WORKER_DIED};
}

static void slot_tell_death(struct slot *slot, struct death *death)
{
    const bool command = death->command[0] != '\0';
    struct event event = death_event(death);

    event.job = death->job[0] ? death->job : NULL;
    event.quotes = command;
    event.death = death;
    slot_tell(slot, event, "%s%s%s%s%s%s%s", command ? "ran '" : "", death->command,
              command ? "', which " : "", death->cause == DEATH_STOP ? "" : "died: ", death->detail,
              death->job[0] ? ", in hand: job " : "", death->job);
}

void slot_publish_report(struct slot *slot, struct death *death)
{
    bool expected = death->cause == DEATH_STOP;
    /* The report of a predecessor, which is about to be freed, goes to the member. */
    struct slot *place =
        slot->role == SLOT_PREDECESSOR && !expected ? slot->pool->slots[slot->index] : slot;

    death_unref(place->last_death);
    place->last_death = death_ref(death);
    death_log_add(slot_context(slot)->deaths, death);
    if (!expected) {
        slot->pool->n_deaths++;
        slot->pool->set->n_deaths++;
    }
    slot_tell_death(slot, death);
    if (death->command[0] == '\0')
        PROBE(worker_died, slot->pool->config->name, (const char *)slot->name, death->pid,
              death_cause_to_string(death->cause),
              death->exit.signalled ? -death->exit.code : death->exit.code, death->uptime);
    event_locate(slot_context(slot)->events, death);
}

/* Whether the program has ended like one that is no actor, and does not know of the supervisor. */
static bool is_no_actor(const struct slot *slot, const struct death *death)
{
    return death->cause == DEATH_EXIT && death->exit.code == 0 &&
           slot->worker.readiness != WORKER_CAME_UP && slot->pool->config->type == CONFIG_ACTOR;
}

/* Fills in `detail` by the cause of a death that has just happened. */
static void slot_describe(const struct slot *slot, struct death *death)
{
    death_describe(death, death->cause == DEATH_OOM ? process_oom(&slot->worker.process) : NULL);
    if (is_no_actor(slot, death))
        (void)snprintf(death->detail, sizeof(death->detail),
                       "exited with status 0 before it was ready; is it a program of libtroupe, or "
                       "troupe-exec?");
    if (death->cause == DEATH_SYSTEM_CALL)
        (void)snprintf(death->detail, sizeof(death->detail), "killed: %s",
                       process_forbidden_call(&slot->worker.process, death->pid));
}

/* ---- of a process that the worker ran ---- */

static struct timeval timeval_of(usec_t time)
{
    return (struct timeval){
        .tv_sec = (time_t)(time / USEC_PER_SEC),
        .tv_usec = (suseconds_t)(time % USEC_PER_SEC),
    };
}

static enum death_cause slot_cause_of_crash(struct slot *slot,
                                            const struct protocol_crashed *crashed)
{
    if (crashed->signal == SIGKILL && process_take_oom_kill(&slot->worker.process))
        return DEATH_OOM;
    if (process_forbidden_call(&slot->worker.process, crashed->pid))
        return DEATH_SYSTEM_CALL;
    return DEATH_SIGNAL;
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
        .usage = {.user = timeval_of(crashed->user),
                  .system = timeval_of(crashed->system),
                  .max_rss = (long)(crashed->max_rss / 1024)},
    };
    death->cause = slot_cause_of_crash(slot, crashed);
    slot_describe(slot, death);
}

struct death *slot_report_crash(struct slot *slot, const struct watch_crash *crash)
{
    struct death *death = slot_new_report(slot);

    if (!death)
        return NULL;
    (void)snprintf(death->command, sizeof(death->command), "%s", crash->name);
    death->pid = crash->inner_pid;
    death->exit = (struct spawn_exit){.signalled = true, .code = crash->signal};
    death->cause = DEATH_SIGNAL;
    slot_describe(slot, death);
    return death;
}

int slot_on_crashed(struct slot *slot, const struct ring_record *record)
{
    struct protocol_crashed crashed;
    struct death *death;
    struct job *job;
    int r = protocol_get_crashed(record->body, record->size, &crashed);

    if (r < 0)
        return r;
    job = slot_job_in_hand(slot, crashed.handle, crashed.attempt);
    if (!job)
        return 0;
    /* Only the job at work can run a process, and only one. */
    if (list_first(&slot->jobs) != &job->link || job->crashed)
        return -EBADMSG;
    /* The worker forwarded the output before it sent the record. */
    capture_catch_up(&slot->worker.process.output);
    death = slot_new_report(slot);
    job->crashed = true;
    job->crash = DEATH_SIGNAL;
    slot_counts(slot)->n_commands_died++;
    if (!death)
        return 0;
    slot_describe_crash(slot, &crashed, death);
    slot_trace_claim(slot, death);
    job->crash = (uint8_t)death->cause;
    slot_hand_update(slot, job);
    slot_publish_report(slot, death);
    death_unref(death);
    return 0;
}

/* ---- of the worker ---- */

static enum death_cause slot_cause_of_death(struct slot *slot)
{
    const struct spawn_exit *how = &slot->worker.process.exit;
    bool ours = how->signalled && slot->worker.signalled != SIGNALLED_NOT;

    if (how->signalled && how->code == SIGKILL && process_take_oom_kill(&slot->worker.process))
        return DEATH_OOM;
    if (how->signalled && process_forbidden_call(&slot->worker.process, slot->worker.process.pid))
        return DEATH_SYSTEM_CALL;
    if (slot->worker.lifeline == LIFELINE_FEIGNED && how->signalled && how->code == SIGKILL) {
        slot->worker.violation = "marked itself as dead while it ran";
        return DEATH_VIOLATION;
    }
    if (slot->worker.endpoint.gone && !(how->signalled && how->code == SIGKILL))
        return how->signalled ? DEATH_SIGNAL : DEATH_EXIT; /* it ended before it was killed */
    if (slot->worker.kill_reason == DEATH_STOP && how->signalled && !ours && how->code != SIGKILL)
        return DEATH_SIGNAL;
    if (slot->worker.kill_reason != DEATH_EXIT)
        return slot->worker.kill_reason;
    return how->signalled ? DEATH_SIGNAL : DEATH_EXIT;
}

/* Quotes a worker that ended itself, if it did as it said. */
static void slot_quote_reason(const struct slot *slot, struct death *death)
{
    const bool early = death->cause == DEATH_EXIT && death->exit.code == 0;

    if (!slot_is_actor(slot) || !slot->status_text || (death->cause != DEATH_STOP && !early))
        return;
    (void)snprintf(death->detail, sizeof(death->detail), "ended itself%s",
                   early ? " right after its start" : "");
    (void)snprintf(death->reason, sizeof(death->reason), "%s", slot->status_text);
}

static void slot_write_report(struct slot *slot, struct death *death)
{
    death->pid = slot->worker.process.pid;
    death->exit = slot->worker.process.exit;
    death->uptime = usec_sub(slot_now(slot), slot->worker.started_at);
    death->cause = slot->died_of;
    slot_describe(slot, death);
    if (death->cause == DEATH_VIOLATION)
        (void)snprintf(death->detail, sizeof(death->detail), "broke the protocol: %s",
                       slot->worker.violation);
    slot_quote_reason(slot, death);
    slot_trace_report(slot, death);
    slot_report_messages(slot, death);
}

/* Jobs still in hand are lost. */
void slot_action_reap(struct slot *slot)
{
    struct death fallback = {.references = 2, .cause = DEATH_EXIT}, *death;

    slot_health_note_death(slot);
    capture_finish(&slot->worker.process.output);
    slot->died_of = slot_cause_of_death(slot);
    slot_counts(slot)->n_died_of[slot->died_of]++;
    death = slot_new_report(slot);
    if (!death) {
        list_init(&fallback.link);
        fallback.cause = slot->died_of;
        death_describe(&fallback, NULL);
    } else {
        slot_write_report(slot, death);
        slot_publish_report(slot, death);
    }
    slot_set_status(slot, "");
    slot_keep_attempt(slot, death ? death : &fallback); /* the inbox goes with the process */
    slot_disarm(slot);
    timer_disarm(slot_timers(slot), &slot->age_timer);
    timer_disarm(slot_timers(slot), &slot->reclaim_timer);
    process_release(&slot->worker.process);
    slot_recover_messages(slot, death);
    slot_close_endpoint(slot);
    slot_rest_notify(slot);
    slot_lose_jobs(slot, death ? death : &fallback);
    death_unref(death);
}
