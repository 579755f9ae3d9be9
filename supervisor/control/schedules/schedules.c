/* SPDX-License-Identifier: MIT */

/* io.troupe.Schedules: List, Get, Pause, Resume, Run, Backfill, Skip. */

#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/suggest.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/schedule/plans.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/removal.h"
#include "supervisor/varlink/request-parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Slots of one backfill, and future slots that are listed. */
#define BACKFILL_MAX 1000
#define COMING_MAX   10

/* Returns the mistake in the file that keeps the schedule from existing, or NULL. */
static const char *find_mistake(const struct request *request, const char *name)
{
    char file[CONFIG_SCHEDULE_NAME_MAX + sizeof("/" CONFIG_SCHEDULE_SUFFIX ":")];

    if (strlen(name) > CONFIG_SCHEDULE_NAME_MAX)
        return NULL;
    (void)snprintf(file, sizeof(file), "/%s" CONFIG_SCHEDULE_SUFFIX ":", name);
    for (char **mistake = request->context->kept_back; mistake && *mistake; mistake++)
        if (strstr(*mistake, file))
            return *mistake;
    return NULL;
}

static struct plan *find_plan(struct request *request)
{
    struct plans *plans = request->context->plans;
    const char *name = request_string(request, "name");
    struct plan *plan = plans_find(plans, name);
    const char *mistake = plan ? NULL : find_mistake(request, name);
    _cleanup_free_ const char **names = NULL;

    if (plan)
        return plan;
    if (mistake) {
        request_fail_strings(request, "NoSuchSchedule", "name", name, "mistake", mistake);
        return NULL;
    }
    names = calloc(plans->n_plans + 1, sizeof(*names));
    for (size_t i = 0; names && i < plans->n_plans; i++)
        names[i] = plans->sorted[i]->config->name;
    request_fail_strings(request, "NoSuchSchedule", "name", name, "nearest",
                         names ? suggest_nearest(name, names) : NULL);
    return NULL;
}

/* ---- replies ---- */

static int64_t usec_of(int64_t slot)
{
    return slot * (int64_t)USEC_PER_SEC;
}

static void report_slot(struct reply *reply, const struct plan *plan, int64_t slot)
{
    char id[PROTOCOL_ID_TEXT];

    reply_int(reply, "slot", usec_of(slot));
    reply_string(reply, "id", slot_format_id(plan->config->name, slot, id));
}

/* Writes nothing for an empty place. */
static void report_decided(struct reply *reply, const char *key, const struct plan *plan,
                           int64_t packed)
{
    struct decided_slot slot;

    if (!slot_unpack(packed, &slot))
        return;
    reply_object(reply, key);
    report_slot(reply, plan, slot.time);
    reply_string(reply, "outcome", slot_outcome_to_string(slot.outcome));
    reply_string_if(reply, "cause", slot_cause_to_string(slot.cause));
    reply_end_object(reply);
}

static bool is_to_be_skipped(const struct plan *plan, int64_t slot)
{
    for (unsigned i = 0; i < SCHEDULE_SKIPS_MAX; i++)
        if (plan->row->skips[i] == slot)
            return true;
    return false;
}

static void report_coming(struct reply *reply, const struct plan *plan)
{
    int64_t slot = plan_next(plan, plan->row->reached);

    reply_array(reply, "coming");
    for (unsigned i = 0; i < COMING_MAX && slot != 0; i++) {
        reply_object(reply, NULL);
        report_slot(reply, plan, slot);
        reply_uint(reply, "due_at", plan_due(plan, slot));
        if (is_to_be_skipped(plan, slot))
            reply_bool(reply, "skip", true);
        reply_end_object(reply);
        slot = plan_next(plan, slot);
    }
    reply_end_array(reply);
}

static void report_interval(struct reply *reply, const char *key, usec_t interval)
{
    char text[64];

    if (interval == USEC_INFINITY)
        return;
    (void)snprintf(text, sizeof(text), "%s=%llus", key,
                   (unsigned long long)(interval / USEC_PER_SEC));
    reply_string(reply, NULL, text);
}

static void report_times(struct reply *reply, const struct config_schedule *config)
{
    reply_array(reply, "times");
    for (size_t i = 0; i < config->on_calendar.n; i++)
        reply_string(reply, NULL, config->on_calendar.strings[i]);
    report_interval(reply, "OnUnitActiveSec", config->on_active);
    report_interval(reply, "OnUnitInactiveSec", config->on_inactive);
    reply_end_array(reply);
}

void report_slots(struct reply *reply, const struct plan *plan)
{
    for (unsigned i = 0; i < _SLOT_N_OUTCOMES; i++)
        reply_uint(reply, slot_outcome_to_string((enum slot_outcome)i), plan->row->counts[i]);
}

static void report_plan(struct reply *reply, const struct plan *plan)
{
    const struct schedule_row *row = plan->row;
    const int64_t next = plan->known ? plan_next(plan, row->reached) : 0;

    reply_string(reply, "name", plan->config->name);
    reply_string_if(reply, "description", plan->config->description);
    reply_string(reply, "group", config_schedule_group(plan->config));
    report_times(reply, plan->config);
    reply_string(reply, "state", plan_state(plan));
    reply_string_if(reply, "obstacle", plan_obstacle(plan));
    reply_uint_if(reply, "next_at", (uint64_t)usec_of(next));
    report_decided(reply, "last", plan, row->last[0]);
    reply_uint(reply, "live", plan->n_jobs + (plan->submission != NULL));
    reply_uint_if(reply, "waiting", (uint64_t)usec_of(row->waiting));
    reply_uint(reply, "failures", row->failures);
    if (row->pause != PLAN_RUNS)
        reply_int(reply, "paused_at", usec_of(row->paused_at));
    reply_uint_if(reply, "ended_at", (uint64_t)usec_of(row->ended_at));
    report_slots(reply, plan);
}

/* ---- List and Get ---- */

static void write_plan(struct request_parts *parts, const void *object)
{
    struct reply *reply = request_part_item(parts);

    reply_object(reply, NULL);
    report_plan(reply, object);
    reply_end_object(reply);
}

static void list_all(struct request *request)
{
    request_list_table(request, "schedules", &request->context->plans->handles, write_plan);
}

static void get(struct request *request)
{
    const struct plan *plan = find_plan(request);
    struct reply *reply;

    if (!plan)
        return;
    reply = request_begin(request);
    reply_object(reply, "schedule");
    report_plan(reply, plan);
    reply_end_object(reply);
    reply_array(reply, "decided");
    for (unsigned i = 0; i < SCHEDULE_LAST_MAX; i++)
        report_decided(reply, NULL, plan, plan->row->last[i]);
    reply_end_array(reply);
    report_coming(reply, plan);
    request_end(request);
}

/* ---- changes ---- */

static void pause_plan(struct request *request)
{
    struct plan *plan = find_plan(request);

    if (!plan)
        return;
    plan_pause(plan, PLAN_PAUSED);
    request_done(request);
}

static void resume_plan(struct request *request)
{
    struct plan *plan = find_plan(request);

    if (!plan)
        return;
    plan_resume(plan);
    request_done(request);
}

static void skip(struct request *request)
{
    struct plan *plan = find_plan(request);
    int r;

    if (!plan)
        return;
    r = plan_skip(plan, request_int(request, "slot", 0) / (int64_t)USEC_PER_SEC);
    if (r == PLAN_E_NO_SLOT)
        request_fail_string(request, "NoSuchSlot", "name", plan->config->name);
    else if (r == PLAN_E_TOO_MANY)
        request_fail_int(request, "TooManySlots", "maximum", SCHEDULE_SKIPS_MAX);
    else
        request_done(request);
}

/* ---- Run ---- */

static void refuse(struct request *request, int r)
{
    const char *name = request_string(request, "name");
    const char *cause = r == CELL_E_EXISTS ? "a job with the id of this second exists"
                                           : slot_cause_to_string(slot_cause_of(r));

    request_fail_strings(request, "Refused", "name", name, "cause", cause);
}

static void drop_waiter(struct request *request)
{
    job_waiter_free(request->context->jobs, request->state);
}

static void answer_run(struct request *request, const struct job *job)
{
    reply_string(request_begin(request), "id", job->name);
    request_end(request);
}

static void on_accepted(struct job_waiter *waiter, struct job *job)
{
    if (job->refusal != 0)
        refuse(waiter->owner, job->refusal);
    else
        answer_run(waiter->owner, job);
}

static void run(struct request *request)
{
    struct cell_request wanted = {.changed = on_accepted, .owner = request};
    struct plan *plan = find_plan(request);
    struct job_waiter *waiter;
    struct job *job;
    int r;

    if (!plan)
        return;
    r = plan_run(plan, plan_now(plan), &wanted, &job, &waiter);
    if (r != 0) {
        refuse(request, r);
        return;
    }
    request->state = waiter;
    request->drop = drop_waiter;
    if (job->record)
        durable_job_await(job, request->state);
    else
        answer_run(request, job);
}

/* ---- Backfill ---- */

struct backfill {
    struct removal_wait *wait;
    uint64_t n_slots, n_created, n_existing;
    const char *cause;
};

static void drop_backfill(struct request *request)
{
    struct backfill *backfill = request->state;

    removal_wait_free(backfill->wait);
    free(backfill);
}

static void answer_backfill(struct request *request, const struct backfill *backfill)
{
    struct reply *reply = request_begin(request);

    reply_uint(reply, "slots", backfill->n_slots);
    reply_uint(reply, "created", backfill->n_created);
    reply_uint(reply, "existing", backfill->n_existing);
    reply_string_if(reply, "cause", backfill->cause);
    request_end(request);
}

static void on_written(void *userdata, int result)
{
    struct request *request = userdata;
    struct backfill *backfill = request->state;

    if (result < 0)
        backfill->cause = slot_cause_to_string(SLOT_CAUSE_STORE_FAILED);
    answer_backfill(request, backfill);
}

static uint64_t count_slots(const struct plan *plan, int64_t from, int64_t to)
{
    uint64_t n = 0;

    for (int64_t slot = from - 1; n <= BACKFILL_MAX; n++) {
        slot = plan_next_by_calendar(plan, slot);
        if (slot == 0 || slot > to)
            break;
    }
    return n;
}

static void create_all(struct plan *plan, int64_t from, struct backfill *backfill)
{
    int64_t slot = from - 1;

    for (uint64_t i = 0; i < backfill->n_slots; i++) {
        struct cell_request wanted = {0};
        struct job *job;
        int r;

        slot = plan_next_by_calendar(plan, slot);
        r = plan_submit(plan, slot, &wanted, &job);
        if (r == 0) {
            backfill->n_created++;
        } else if (r == CELL_E_EXISTS) {
            backfill->n_existing++;
        } else {
            backfill->cause = slot_cause_to_string(slot_cause_of(r));
            return;
        }
    }
}

static bool is_durable(const struct plan *plan)
{
    const struct group *group = plan_group(plan);

    return group && group->config->durable;
}

static void backfill(struct request *request)
{
    const int64_t second = (int64_t)USEC_PER_SEC;
    int64_t from = (request_int(request, "from", 0) + second - 1) / second,
            to = request_int(request, "to", 0) / second;
    struct plan *plan = find_plan(request);
    struct backfill *state;

    if (!plan)
        return;
    state = request_allocate(request, sizeof(*state));
    if (!state)
        return;
    request->state = state;
    request->drop = drop_backfill;
    to = to < plan_now(plan) ? to : plan_now(plan);
    from = from > 0 ? from : 1;
    state->n_slots = count_slots(plan, from, to);
    if (state->n_slots > BACKFILL_MAX) {
        request_fail_int(request, "TooManySlots", "maximum", BACKFILL_MAX);
        return;
    }
    if (!request_bool(request, "dry_run"))
        create_all(plan, from, state);
    if (state->n_created > 0 && is_durable(plan))
        state->wait = removal_await(request->context->durable->store, false, on_written, request);
    if (!state->wait)
        answer_backfill(request, state);
}

const struct request_method control_schedule_methods[] = {
    {"List", list_all, .changes = false},
    {"Get", get, .changes = false},
    {"Pause", pause_plan, .changes = true},
    {"Resume", resume_plan, .changes = true},
    {"Run", run, .changes = true, .begins = true},
    {"Backfill", backfill, .changes = true, .begins = true},
    {"Skip", skip, .changes = true},
    {0},
};
