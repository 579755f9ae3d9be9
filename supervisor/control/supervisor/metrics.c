/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetMetrics: numbers for monitoring, from counters that are kept anyway. The
 * time for a group does not depend on the number of its cells or jobs. */

#include "supervisor/config/config.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/control.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/event/latency.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/history/history.h"
#include "supervisor/message/message-context.h"
#include "supervisor/schedule/plans.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/varlink/request-parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- numbers of groups ---- */

static void report_histogram(struct reply *reply, const char *key,
                             const struct histogram *histogram)
{
    unsigned n = HISTOGRAM_BOUNDS + 1;

    while (n > 0 && histogram->counts[n - 1] == 0)
        n--;
    reply_object(reply, key);
    reply_array(reply, "buckets");
    for (unsigned i = 0; i < n; i++)
        reply_uint(reply, NULL, histogram->counts[i]);
    reply_end_array(reply);
    reply_uint(reply, "sum_usec", histogram->sum);
    reply_end_object(reply);
}

static void report_workers(struct reply *reply, const struct pool_tally *tally)
{
    reply_object(reply, "workers");
    for (unsigned i = 0; i < _LIFECYCLE_N_STATES; i++)
        reply_uint(reply, lifecycle_state_to_string((enum lifecycle_state)i), tally->n_in_state[i]);
    reply_end_object(reply);
    reply_object(reply, "deaths");
    for (unsigned i = 0; i < _DEATH_N_CAUSES; i++)
        reply_uint(reply, death_cause_to_string((enum death_cause)i), tally->n_died_of[i]);
    reply_end_object(reply);
    reply_uint(reply, "command_deaths", tally->n_commands_died);
    reply_uint(reply, "forks", tally->n_forks);
    reply_uint(reply, "restarts", tally->n_restarts);
}

static void report_counts(struct reply *reply, const uint64_t *n)
{
    reply_object(reply, "ended");
    reply_uint(reply, "succeeded", n[JOBS_SUCCEEDED]);
    reply_uint(reply, "rejected", n[JOBS_REJECTED]);
    reply_uint(reply, "cancelled", n[JOBS_CANCELLED]);
    reply_uint(reply, "dead", n[JOBS_DEAD]);
    reply_end_object(reply);
    reply_uint(reply, "accepted", n[JOBS_ACCEPTED]);
    reply_uint(reply, "retries", n[JOBS_RETRIES]);
    reply_uint(reply, "refused", n[JOBS_REFUSED]);
    reply_uint(reply, "running", n[JOBS_RUNNING]);
    reply_uint(reply, "waiting", n[JOBS_BACKOFF]);
    reply_uint_if(reply, "pending", n[JOBS_PENDING]);
    reply_uint(reply, "ending", n[JOBS_ENDING]);
    reply_uint(reply, "queue_bytes", n[JOBS_BYTES]);
    reply_uint(reply, "senders", n[JOBS_WAITERS]);
}

static void report_jobs(struct reply *reply, const struct group *group)
{
    const struct config_group *config = group->config;

    report_counts(reply, group->counts.n);
    reply_uint(reply, "queued", job_counts_queued(&group->counts));
    reply_uint(reply, "queue_max", config->queue_max);
    reply_uint(reply, "queue_memory_max", config->queue_memory_max);
    report_histogram(reply, "wait", &group->wait);
    report_histogram(reply, "run", &group->run);
    reply_uint(reply, "results", group->results.n_jobs);
    reply_uint(reply, "results_max", config->results_max);
    reply_uint(reply, "results_bytes", group->results.bytes);
    reply_uint(reply, "results_memory_max", config->results_memory_max);
}

static void report_metrics(struct reply *reply, const struct control_context *context,
                           const struct group *group)
{
    const usec_t oldest = report_oldest(group);

    reply_string(reply, "type", group->config->type == CONFIG_ACTOR ? "actor" : "service");
    reply_string(reply, "state", group_state(group));
    reply_uint(reply, "size", group->size);
    if (config_is_elastic(group->config))
        reply_uint(reply, "wanted", group->n_wanted);
    report_workers(reply, &group->pools.tally);
    if (group->config->type == CONFIG_ACTOR) {
        report_jobs(reply, group);
        reply_uint(reply, "oldest_usec",
                   oldest > 0 ? usec_sub(loop_realtime(context->loop), oldest) : 0);
    }
    if (group_is_keyed(group)) {
        reply_uint(reply, "cells", group->cells.n_cells);
        reply_uint(reply, "cells_max", group->config->cells_max);
    }
}

/* ---- numbers of the supervisor ---- */

static void report_bounds(struct reply *reply)
{
    reply_array(reply, "bounds_usec");
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++)
        reply_uint(reply, NULL, HISTOGRAM_LEAST << i);
    reply_end_array(reply);
}

static void report_schedule(struct reply *reply, const struct plan *plan)
{
    reply_object(reply, NULL);
    reply_string(reply, "name", plan->config->name);
    reply_string(reply, "state", plan_state(plan));
    reply_object(reply, "slots");
    report_slots(reply, plan);
    reply_end_object(reply);
    reply_uint(reply, "failures", plan->row->failures);
    reply_end_object(reply);
}

static void report_schedules(struct reply *reply, const struct plans *plans)
{
    reply_array(reply, "schedules");
    for (size_t i = 0; i < plans->n_plans; i++)
        report_schedule(reply, plans->sorted[i]);
    reply_end_array(reply);
}

static void report_store(struct reply *reply, struct store *store)
{
    struct store_stats stats;

    if (!store)
        return;
    stats = store_stats(store);
    reply_object(reply, "store");
    reply_string(reply, "state", store_state_to_string(store_state(store)));
    reply_uint(reply, "commits", stats.n_commits);
    report_histogram(reply, "sync", &stats.sync);
    reply_uint(reply, "waiting", stats.n_waiting);
    reply_uint(reply, "bytes", stats.bytes);
    reply_uint(reply, "free_bytes", stats.free_bytes);
    reply_end_object(reply);
}

static void report_history(struct reply *reply, struct history *history)
{
    struct history_stats stats;

    if (!history)
        return;
    stats = history_stats(history);
    reply_object(reply, "history");
    reply_uint(reply, "rows", stats.n_rows);
    reply_uint(reply, "bytes", stats.bytes);
    reply_uint(reply, "dropped", stats.n_dropped);
    reply_bool(reply, "problem", *history_problem(history) != '\0');
    reply_end_object(reply);
}

static void report_letters(struct reply *reply, const struct dead_letters *letters)
{
    reply_object(reply, "dead_letters");
    reply_object(reply, "kept");
    reply_uint(reply, "dead_letters", letters->shares.used[DEAD_LETTERS]);
    reply_uint(reply, "errors", letters->shares.used[DEAD_ERRORS]);
    reply_end_object(reply);
    reply_uint(reply, "max", letters->max);
    reply_uint(reply, "bytes", letters->shares.used[DEAD_SHARE_MEMORY]);
    reply_uint(reply, "memory_max", letters->memory_max);
    reply_object(reply, "added");
    for (unsigned i = 0; i < _DEAD_N_REASONS; i++)
        reply_uint(reply, dead_letter_reason_to_string((enum dead_letter_reason)i),
                   letters->tally->counts[i]);
    reply_end_object(reply);
    reply_uint(reply, "evicted", letters->tally->n_evicted);
    reply_end_object(reply);
}

/* Returns 0 if the kernel does not say. */
static uint64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%*u %llu", &pages) != 1) /* NOLINT(cert-err34-c): the kernel's text */
        pages = 0;
    (void)fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Kernels before 6.2 do not say how many descriptors there are without a walk over all. */
static void report_process(struct reply *reply)
{
    struct rlimit limit = {0};
    struct rusage usage = {0};
    struct stat fds;

    (void)getrusage(RUSAGE_SELF, &usage);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    reply_uint(reply, "cpu_usec",
               usec_of_timeval(usage.ru_utime) + usec_of_timeval(usage.ru_stime));
    reply_uint(reply, "resident_bytes", resident_bytes());
    if (stat("/proc/self/fd", &fds) == 0 && fds.st_size > 0)
        reply_uint(reply, "open_fds", (uint64_t)fds.st_size);
    reply_uint(reply, "max_fds", limit.rlim_cur);
}

static void report_supervisor(struct reply *reply, const struct control_context *context,
                              const struct control *control)
{
    const struct loop_turns turns = loop_turns(context->loop);

    reply_object(reply, "supervisor");
    reply_string(reply, "version", TROUPE_VERSION);
    reply_uint(reply, "started_at", context->started_at);
    reply_string(reply, "state", report_state(context));
    reply_bool(reply, "safe_mode", context->predecessors.safe_mode);
    reply_bool(reply, "config_problem", context->config_problem != NULL);
    reply_uint(reply, "restarts", context->predecessors.n_restarts);
    reply_uint(reply, "upgrades", context->predecessors.n_upgrades);
    reply_uint(reply, "failed_upgrades", context->predecessors.n_failed_upgrades);
    reply_uint(reply, "clients", control_n_clients(control));
    reply_uint(reply, "clients_max", context->config->clients_max);
    reply_uint(reply, "turns", turns.n);
    reply_uint(reply, "longest_turn_usec", turns.longest);
    reply_uint(reply, "recent_turn_usec", turns.recent);
    report_process(reply);
    reply_end_object(reply);
}

/* ---- the last two minutes ---- */

static void report_samples(struct reply *reply, const struct control_context *context,
                           const struct group *group)
{
    const struct job_samples *samples = &group->samples;
    const unsigned first = samples->n < JOB_SAMPLES_MAX ? 0 : samples->n - JOB_SAMPLES_MAX;

    reply_array(reply, "samples");
    for (unsigned i = first; i != samples->n; i++) {
        const struct job_sample *sample = &samples->ring[i % JOB_SAMPLES_MAX];

        reply_object(reply, NULL);
        reply_uint(reply, "second", sample->second);
        reply_uint(reply, "ended", sample->ended);
        reply_uint(reply, "dead", sample->dead);
        reply_uint(reply, "waiting", sample->waiting);
        reply_uint(reply, "running", sample->running);
        reply_end_object(reply);
    }
    reply_end_array(reply);
}

/* ---- group by group ---- */

/* Writes what a group has beside its name. */
typedef void (*report_group_fn)(struct reply *reply, const struct control_context *context,
                                const struct group *group);

struct walk {
    struct request_parts parts;
    report_group_fn report;
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of the group that was written last */
};

static bool step(struct request_parts *parts)
{
    const struct control_context *context = parts->request->context;
    struct reply *reply = request_part_reply(parts);
    struct walk *walk = list_entry(parts, struct walk, parts);
    const struct group *group = registry_after(context->registry, walk->name);

    if (!group)
        return false;
    (void)snprintf(walk->name, sizeof(walk->name), "%s", group->name);
    reply_object(reply, NULL);
    reply_string(reply, "name", group->name);
    walk->report(reply, context, group);
    reply_end_object(reply);
    return true;
}

/* Replies with an object for each group, then with the fields of finish(). `finish` NULL = there
 * are no other fields. */
static void answer_by_group(struct request *request, report_group_fn report,
                            void (*finish)(struct request_parts *))
{
    struct walk *walk = request_allocate(request, sizeof(*walk));

    if (!walk)
        return;
    walk->report = report;
    walk->parts = (struct request_parts){
        .array = "groups",
        .may_continue = true,
        .step = step,
        .finish = finish,
    };
    request_in_parts(request, &walk->parts);
}

static void finish_metrics(struct request_parts *parts)
{
    const struct control_context *context = parts->request->context;
    struct reply *reply = request_part_reply(parts);

    report_bounds(reply);
    report_schedules(reply, context->plans);
    report_limits(reply, context);
    report_store(reply, context->durable->store);
    report_history(reply, context->history);
    report_letters(reply, &context->messages->dead_letters);
    report_supervisor(reply, context, parts->request->control);
}

static void get_metrics(struct request *request)
{
    answer_by_group(request, report_metrics, finish_metrics);
}

static void get_history(struct request *request)
{
    answer_by_group(request, report_samples, NULL);
}

const struct request_method control_metrics_methods[] = {
    {"GetHistory", get_history, .changes = false},
    {"GetMetrics", get_metrics, .changes = false, .always = true},
    {0},
};
