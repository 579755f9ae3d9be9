/* SPDX-License-Identifier: MIT */

#include "supervisor/control/report.h"

#include "supervisor/control/control-context.h"
#include "supervisor/event/event.h"
#include "supervisor/event/stack.h"
#include "supervisor/group/group.h"
#include "supervisor/history/history.h"
#include "supervisor/pool/slot/slot-template.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/varlink/request.h"
#include <stdio.h>
#include <string.h>

const char *report_state(const struct control_context *context)
{
    static const char *const states[] = {
        [CONTROL_STARTING] = "starting",
        [CONTROL_RUNNING] = "running",
        [CONTROL_RELOADING] = "reloading",
        [CONTROL_STOPPING] = "stopping",
    };

    return states[context->state];
}

/* The messages that the worker was handling. */
static void report_messages(struct reply *reply, const struct death *death)
{
    if (death->n_messages == 0)
        return;
    reply_array(reply, "messages");
    for (size_t i = 0; i < death->n_messages; i++) {
        const struct death_message *message = &death->messages[i];

        reply_object(reply, NULL);
        reply_uint(reply, "id", message->id);
        reply_string(reply, "sender", message->sender);
        reply_string(reply, "type", message->type);
        reply_uint(reply, "sent_at", message->sent_at);
        reply_end_object(reply);
    }
    reply_end_array(reply);
}

/* The worker's published state, its output, and its command. */
static void report_contents(struct reply *reply, const struct death *death, bool stack)
{
    bool details = reply->size < REPORT_DETAIL_MAX;

    reply_string_if(reply, "command", death->command);
    if (details && death->state_size > 0)
        reply_payload(reply, "state", death->state, death->state_size);
    if (details && (death->stderr_text || death->stderr_size == 0))
        reply_text(reply, "stderr", death->stderr_text, death->stderr_size);
    if (details && death->stack && stack) {
        report_stack(reply, death->stack, death->stack_size);
        return;
    }
    reply_string_if(reply, "top", death->top);
    reply_string_if(reply, "stack_missing",
                    death->stack ? "it is too large for this answer: see ListDeaths"
                                 : death->stack_missing);
}

static void report_frame(struct reply *reply, const struct stack_line *line)
{
    reply_object(reply, NULL);
    reply_string(reply, "language", line->python ? "python" : "c");
    reply_string_if(reply, "module", line->module);
    reply_string_if(reply, "function", line->function);
    reply_int(reply, "offset", (int64_t)line->offset);
    reply_string_if(reply, "file", line->file);
    if (line->line > 0)
        reply_int(reply, "line", line->line);
    reply_end_object(reply);
}

static void report_thread(struct reply *reply, const struct stack_line *line)
{
    reply_object(reply, NULL);
    reply_int(reply, "thread", line->thread);
    reply_string(reply, "name", line->name);
    reply_string(reply, "state", line->crashed ? "crashed" : line->running ? "running" : "stopped");
    reply_array(reply, "frames");
}

static void report_thread_end(struct reply *reply)
{
    reply_end_array(reply);
    reply_end_object(reply);
}

void report_stack(struct reply *reply, const char *text, size_t size)
{
    struct stack_reader reader = {text, text + size};
    char top[REPORT_TOP_MAX];
    struct stack_line line;
    bool in_thread = false;

    if (stack_top(text, size, top, sizeof(top)))
        reply_string(reply, "top", top);
    reply_array(reply, "stack");
    while (stack_next(&reader, &line)) {
        if (line.is_thread && in_thread)
            report_thread_end(reply);
        in_thread = in_thread || line.is_thread;
        if (line.is_thread)
            report_thread(reply, &line);
        else if (in_thread)
            report_frame(reply, &line);
    }
    if (in_thread)
        report_thread_end(reply);
    reply_end_array(reply);
}

const char *report_top(const struct request *request, const struct death *death)
{
    return access_death(request, death) ? death->top : NULL;
}

/* Reports how the worker ended, followed by its own words if the client may read them (`open`). */
static void report_detail(struct reply *reply, const struct death *death, bool open)
{
    char text[2 * DEATH_DETAIL_MAX + 2];

    (void)snprintf(text, sizeof(text), "%s: %s", death->detail, death->reason);
    reply_string(reply, "detail", open && death->reason[0] ? text : death->detail);
}

void report_exit(struct reply *reply, const struct death *death)
{
    char buffer[16];

    if (death->exit.signalled)
        reply_string(reply, "signal", death_signal_name(death->exit.code, buffer));
    else if (!death->exit.unknown)
        reply_int(reply, "exit_status", death->exit.code);
}

void report_death(struct reply *reply, const char *key, const struct request *request,
                  const struct death *death, bool stack)
{
    const struct spawn_usage *usage = &death->exit.usage;
    const bool open = access_death(request, death);

    reply_object(reply, key);
    reply_string(reply, "worker", death->worker);
    reply_uint(reply, "generation", death->generation);
    reply_int(reply, "pid", death->pid);
    reply_uint(reply, "at", death->at);
    reply_string(reply, "cause", death_cause_to_string(death->cause));
    report_detail(reply, death, open);
    report_exit(reply, death);
    reply_bool(reply, "core_dumped", death->exit.core_dumped);
    reply_uint(reply, "uptime_usec", death->uptime);
    reply_uint(reply, "user_usec", usec_of_timeval(usage->user));
    reply_uint(reply, "system_usec", usec_of_timeval(usage->system));
    reply_uint(reply, "max_rss_bytes", (uint64_t)usage->max_rss * 1024);
    reply_uint(reply, "jobs_done", death->jobs_done);
    if (death->job[0] != '\0') {
        reply_string(reply, "job", death->job);
        reply_uint(reply, "attempt", death->attempt);
    }
    report_messages(reply, death);
    if (open)
        report_contents(reply, death, stack);
    else
        reply_bool(reply, "restricted", true);
    reply_end_object(reply);
}

/* Returns NULL, or why the page cannot be shown. */
static const char *report_state_page(struct reply *reply, struct slot *slot)
{
    uint8_t page[MEMORY_STATE_MAX];
    size_t size = 0;

    if (reply->size >= REPORT_DETAIL_MAX)
        return "published: the answer would be too large";
    if (slot_read_state(slot, page, &size) == -EAGAIN)
        return "published: the worker was writing its state page";
    if (size > 0)
        reply_payload(reply, "published", page, size);
    return NULL;
}

static void report_worker_job(struct reply *reply, const struct slot *slot)
{
    const struct job *job = list_first_entry(&slot->jobs, struct job, link);
    char id[PROTOCOL_ID_TEXT];

    if (!job)
        return;
    reply_string(reply, "job", job_format_id(job, id));
    reply_uint_if(reply, "job_since_at", job->started_at);
}

/* NULL = an ordinary member of the pool. */
static const char *const ROLES[] = {
    [SLOT_MEMBER] = NULL,
    [SLOT_SPARE] = "spare",
    [SLOT_SUCCESSOR] = "successor",
    [SLOT_PREDECESSOR] = "predecessor",
};

static void report_template(struct reply *reply, const struct request *request,
                            const struct slot *slot)
{
    const struct slot_template *template = slot->template;

    if (!template)
        return;
    reply_object(reply, "template");
    reply_string(reply, "state", template_state_to_string(template->state));
    reply_uint(reply, "since_at", template->since_at);
    if (template->process.pid > 0)
        reply_int(reply, "pid", template->process.pid);
    if (template->reason[0] != '\0' && access_group(request, cell_of_pool(slot->pool)->group))
        reply_string(reply, "reason", template->reason);
    else if (template->reason[0] != '\0')
        reply_bool(reply, "restricted", true);
    reply_uint_if(reply, "exec_usec", slot->start_took[false]);
    reply_uint_if(reply, "fork_usec", slot->start_took[true]);
    reply_end_object(reply);
}

/*
 * The worker's status and state page. Without a process, the status is the supervisor's text why
 * there is none.
 */
static void report_words(struct reply *reply, const struct request *request, struct slot *slot)
{
    if (slot->worker.process.pid <= 0)
        reply_string_if(reply, "status", slot->status_text);
    if (!access_group(request, cell_of_pool(slot->pool)->group)) {
        reply_bool(reply, "restricted", true);
        return;
    }
    if (slot->worker.process.pid > 0)
        reply_string_if(reply, "status", slot->status_text);
    (void)report_state_page(reply, slot);
}

void report_worker(struct reply *reply, const struct request *request, struct slot *slot)
{
    reply_object(reply, NULL);
    reply_string(reply, "name", slot->name);
    reply_uint(reply, "slot", slot->index);
    reply_uint(reply, "generation", slot->generation);
    reply_string(reply, "state", lifecycle_state_to_string(slot->state));
    if (slot->worker.process.pid > 0)
        reply_int(reply, "pid", slot->worker.process.pid);
    report_confinement(reply, &slot->worker.process);
    reply_uint(reply, "since_at", slot->since_at);
    reply_uint(reply, "restarts", slot->n_restarts);
    if (slot->state == LIFECYCLE_BACKOFF)
        reply_uint_if(reply, "restart_at", clock_steady_to_realtime(slot->restart_at));
    if (slot->health.n_failures > 0) {
        reply_uint(reply, "failures", slot->health.n_failures);
        reply_uint(reply, "failing_since_at", slot->health.since_at);
    }
    report_worker_job(reply, slot);
    reply_uint(reply, "jobs_done", slot->worker.jobs_done);
    reply_uint(reply, "recycled", slot->n_recycled);
    reply_string_if(reply, "replacement", ROLES[slot->role]);
    report_template(reply, request, slot);
    report_words(reply, request, slot);
    if (slot->last_death)
        report_death(reply, "last_death", request, slot->last_death, true);
    reply_end_object(reply);
}

static void report_latency(struct reply *reply, const struct latency *latency,
                           const struct latency *work)
{
    if (latency->n == 0)
        return;
    reply_uint(reply, "p50_usec", latency_percentile(latency, 50));
    reply_uint(reply, "p99_usec", latency_percentile(latency, 99));
    reply_uint(reply, "p50_work_usec", latency_percentile(work, 50));
    reply_uint(reply, "p99_work_usec", latency_percentile(work, 99));
}

static void report_outcomes(struct reply *reply, const struct outcomes *outcomes)
{
    if (outcomes->n == 0)
        return;
    reply_uint(reply, "last_jobs", outcomes->n);
    reply_uint(reply, "last_jobs_dead", outcomes_count_dead(outcomes));
    if (outcomes_failing(outcomes))
        reply_uint(reply, "failing_since_at", outcomes->since);
}

static void report_last_dead(struct reply *reply, const struct request *request,
                             const struct group *group)
{
    const struct group_dead *dead = &group->last_dead;
    char id[PROTOCOL_ID_TEXT];

    if (dead->at == 0)
        return;
    reply_object(reply, "last_dead");
    reply_string(reply, "job", protocol_id_format(&dead->id, id));
    reply_uint(reply, "at", dead->at);
    if (access_group(request, group))
        reply_string(reply, "reason", dead->reason);
    else
        reply_bool(reply, "restricted", true);
    reply_end_object(reply);
}

/* What cells and groups report of their jobs. */
static void report_jobs(struct reply *reply, const struct job_counts *counts,
                        const struct job_history *history, uint64_t deaths)
{
    const uint64_t *n = counts->n;

    reply_uint(reply, "queued", job_counts_queued(counts));
    reply_uint_if(reply, "ending", n[JOBS_ENDING]);
    reply_uint(reply, "queue_bytes", n[JOBS_BYTES]);
    reply_uint(reply, "running", n[JOBS_RUNNING]);
    reply_uint(reply, "waiting", n[JOBS_BACKOFF]);
    reply_uint_if(reply, "pending", n[JOBS_PENDING]);
    reply_uint(reply, "senders", n[JOBS_WAITERS]);
    reply_uint(reply, "succeeded", n[JOBS_SUCCEEDED]);
    reply_uint(reply, "rejected", n[JOBS_REJECTED]);
    reply_uint(reply, "cancelled", n[JOBS_CANCELLED]);
    reply_uint(reply, "dead", n[JOBS_DEAD]);
    reply_uint(reply, "retries", n[JOBS_RETRIES]);
    reply_uint(reply, "refused", n[JOBS_REFUSED]);
    reply_uint(reply, "deaths", deaths);
    report_outcomes(reply, &history->outcomes);
    report_latency(reply, &history->latency, &history->work);
}

static void report_census(struct reply *reply, const struct census *census)
{
    reply_uint(reply, "members", census->n[CENSUS_MEMBER]);
    reply_uint(reply, "up", census->n[CENSUS_UP]);
}

/* Of an elastic pool. */
static void report_elastic(struct reply *reply, const struct cell *cell)
{
    static const char *const HOLDS[] = {
        [ELASTIC_STARTING] = "starting", [ELASTIC_SETTLING] = "settling",
        [ELASTIC_HIGHEST] = "highest",   [ELASTIC_PRESSURE] = "pressure",
        [ELASTIC_SHARE] = "share",
    };
    const struct group_pressure *pressure = &cell->group->pressure;
    const struct elastic *elastic = &cell->elastic;
    struct loop *loop = cell->context->loop;

    reply_uint(reply, "wanted", elastic->wanted);
    if (elastic->hold == ELASTIC_FREE)
        return;
    reply_string(reply, "held", HOLDS[elastic->hold]);
    reply_uint(reply, "held_since_at",
               usec_sub(loop_realtime(loop), usec_sub(loop_now(loop), elastic->hold_since)));
    if (elastic->hold == ELASTIC_SHARE) {
        reply_uint(reply, "pool_max", cell->config->pool_max);
        reply_uint(reply, "sharing", budget_n_pools(&cell->group->budget));
    }
    if (elastic->hold != ELASTIC_PRESSURE)
        return;
    reply_string(reply, "pressure", pressure_kind_to_string(pressure->kind));
    reply_uint(reply, "pressure_usec", pressure->rate);
    reply_uint(reply, "pressure_since_at",
               usec_sub(loop_realtime(loop), usec_sub(loop_now(loop), pressure->since)));
}

/* `cell` NULL = all cells of a group. */
static void report_size(struct reply *reply, const struct config_group *config, size_t size,
                        const struct cell *cell)
{
    reply_uint(reply, "size", size);
    if (!config_is_elastic(config))
        return;
    reply_uint(reply, "size_min", config->size.low);
    reply_uint(reply, "size_max", config->size.high);
    if (cell)
        report_elastic(reply, cell);
}

void report_cell_begin(struct reply *reply, const struct cell *cell)
{
    reply_object(reply, NULL);
    reply_string(reply, "key", cell->key);
    reply_string(reply, "state", cell_state(cell));
    report_size(reply, cell->config, cell->pool.size, cell);
    report_census(reply, &cell->pool.census);
    report_jobs(reply, &cell->counts, &cell->history, cell->pool.n_deaths);
    reply_uint_if(reply, "oldest_queued_at", queue_oldest(&cell->queue));
}

usec_t report_oldest(const struct group *group)
{
    return group->cell ? queue_oldest(&group->cell->queue) : cell_table_oldest(&group->cells);
}

void report_group_begin(struct reply *reply, const struct request *request,
                        const struct group *group)
{
    const char *description = group->config->description;

    reply_object(reply, NULL);
    reply_string(reply, "name", group->name);
    reply_string(reply, "description", description ? description : "");
    reply_string(reply, "type", group->config->type == CONFIG_ACTOR ? "actor" : "service");
    reply_string(reply, "state", group_state(group));
    reply_string_if(reply, "fault", group_fault_text(group));
    reply_string_if(reply, "store_problem", group_store_problem(group));
    if (group->config->history > 0)
        reply_string_if(reply, "history_problem", history_problem(request->context->history));
    if (group->config->durable && group_awaits_restore(group))
        reply_bool(reply, "restoring", true);
    report_limits_of(reply, group);
    report_unmet(reply, group);
    report_sandbox(reply, group);
    if (group->config->durable)
        reply_uint(reply, "ids_known_usec",
                   group->config->results_max > 0 ? group->config->result_ttl : 0);
    if (group->drain != GROUP_OPEN)
        reply_bool(reply, "drained", group->drain == GROUP_WORKED_OFF);
    if (group_stays_stopped(group))
        reply_bool(reply, "stays_stopped", true);
    if (group_is_behind(group))
        reply_bool(reply, "behind", true);
    report_size(reply, group->config, group->size, group->cell);
    report_census(reply, &group->pools.census);
    reply_uint_if(reply, "oldest_queued_at", report_oldest(group));
    report_jobs(reply, &group->counts, group_history(group), group->pools.n_deaths);
    reply_uint(reply, "results", group->results.n_jobs);
    reply_uint(reply, "results_bytes", group->results.bytes);
    report_last_dead(reply, request, group);
}

void report_event(struct reply *reply, const struct request *request, const struct event *event)
{
    reply_object(reply, NULL);
    reply_uint(reply, "id", event->id);
    reply_uint(reply, "at", event->at);
    reply_string(reply, "type", event->type);
    reply_string_if(reply, "group", event->group);
    reply_string_if(reply, "cell", event->cell);
    reply_string_if(reply, "worker", event->worker);
    reply_uint_if(reply, "generation", event->generation);
    reply_string_if(reply, "job", event->job);
    reply_string_if(reply, "job_state", event->job_state);
    reply_uint_if(reply, "attempt", event->attempt);
    reply_string_if(reply, "cause", event->cause);
    reply_string_if(reply, "traceparent", event->traceparent);
    reply_string_if(reply, "span", event->span);
    if (event->quotes && !access_event(request, event))
        reply_bool(reply, "restricted", true);
    else
        reply_string(reply, "message", event->message ? event->message : "");
    if (event->death) /* without its stacks: each watcher gets the event in the same turn */
        report_death(reply, "death", request, event->death, false);
    reply_end_object(reply);
}

static bool is_same(const char *name, const char *target)
{
    return name && strcmp(name, target) == 0;
}

bool report_event_matches(const struct event *event, const char *target)
{
    return !target || is_same(event->group, target) || is_same(event->cell, target) ||
           is_same(event->worker, target);
}

bool report_is_below(const char *address, const char *target)
{
    const size_t size = strlen(target);

    return strncmp(address, target, size) == 0 && (address[size] == '\0' || address[size] == '/');
}
