/* SPDX-License-Identifier: MIT */

/* Schedules: their configuration, and when their slots come. */

#include "supervisor/schedule/plan-private.h"

#include "shared/base/log.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/succession/record.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(struct schedule_row) <= KEPT_DATA_MAX, "the row is kept in memory");
_Static_assert(_SLOT_N_OUTCOMES == SCHEDULE_N_OUTCOMES, "a count for each outcome");

/* ---- configuration ---- */

static int parse(struct plan *plan, const char *text, struct calendar *ret)
{
    struct calendar_error error;
    int r = calendar_parse(text, &plan->zones, ret, &error);

    return r > 0 ? -EINVAL : r; /* it was checked, but its zone may have gone */
}

static int parse_until(struct plan *plan, const char *text)
{
    struct calendar calendar;
    usec_t moment = usec_of(SLOT_MAX);
    int r = text ? parse(plan, text, &calendar) : 0;

    if (r == 0 && text)
        (void)calendar_next(&calendar, 0, &moment);
    plan->until = (int64_t)(moment / USEC_PER_SEC);
    return r;
}

static void forget_calendars(struct plan *plan)
{
    free(plan->times);
    zones_deinit(&plan->zones);
}

static int parse_all(struct plan *plan, const struct config_schedule *config)
{
    const struct config_strings *texts = &config->on_calendar;
    int r;

    plan->zones = (struct zones)ZONES_NULL;
    plan->n_times = 0;
    plan->times = calloc(texts->n + 1, sizeof(*plan->times));
    r = plan->times ? parse_until(plan, config->until) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < texts->n; i++) {
        r = parse(plan, texts->strings[i], &plan->times[i].calendar);
        plan->n_times += r == 0;
    }
    return r;
}

/* After an error, the schedule has its former calendars. */
static int parse_calendars(struct plan *plan, const struct config_schedule *config)
{
    struct plan former = *plan;
    int r = parse_all(plan, config);

    forget_calendars(r == 0 ? &former : plan);
    if (r == 0)
        return 0;
    plan->zones = former.zones;
    plan->times = former.times;
    plan->n_times = former.n_times;
    plan->until = former.until;
    return r;
}

/* Continues with what is kept in memory, if the last supervisor knew it. */
static void open_kept(struct plan *plan)
{
    char name[KEPT_NAME_MAX + 1];
    bool found;

    (void)snprintf(name, sizeof(name), ":schedule:%s", plan->config->name);
    plan->kept = kept_state_open(plan->context->kept, name, &found);
    if (!plan->kept)
        return;
    plan->row = (struct schedule_row *)(void *)plan->kept->data;
    plan->known =
        found && plan->row->reached > 0 && record_is_sound(&SCHEDULE_ROW_RECORD, plan->row);
    if (!plan->known)
        *plan->row = (struct schedule_row){0};
}

static void on_alarm(struct alarm *alarm)
{
    plan_step(list_entry(alarm, struct plan, alarm));
}

static void on_step(struct task *task)
{
    plan_step(list_entry(task, struct plan, step));
}

int plan_new(struct plan **ret, const struct plan_context *context, struct config_schedule *config)
{
    struct plan *plan = calloc(1, sizeof(*plan));
    int r;

    if (!plan)
        return -ENOMEM;
    plan->context = context;
    plan->row = &plan->own_row;
    list_init(&plan->jobs);
    alarm_init(&plan->alarm, context->groups->alarms, on_alarm);
    task_init(&plan->step, context->steps, on_step);
    r = parse_calendars(plan, config);
    if (r < 0) {
        plan_free(plan);
        return r;
    }
    plan->config = config;
    open_kept(plan);
    *ret = plan;
    return 0;
}

struct plan *plan_free(struct plan *plan)
{
    plan_drop_jobs(plan);
    alarm_stop(&plan->alarm);
    task_cancel(&plan->step);
    plan_forget_write(plan);
    kept_state_free(plan->context->kept, plan->kept);
    forget_calendars(plan);
    config_file_free(CONFIG_SCHEDULE, plan->config);
    free(plan);
    return NULL;
}

/* Slots of the old times that are due and not decided will not come any more. */
static void end_times(struct plan *plan)
{
    const int64_t now = plan_now(plan);
    int64_t slot;

    for (unsigned n = 0; n < 1000 && plan->known; n++) {
        slot = plan_next(plan, plan->row->reached);
        if (slot == 0 || slot > now)
            break;
        plan_decide(plan, slot, plan->row->pause ? SLOT_PAUSED : SLOT_SKIPPED, SLOT_CAUSE_CHANGED);
    }
    if (plan->known && plan->row->reached < now)
        plan->row->reached = now;
}

static bool has_same_times(const struct config_schedule *a, const struct config_schedule *b)
{
    return strv_equal(a->on_calendar.strings, b->on_calendar.strings) &&
           a->on_active == b->on_active && a->on_inactive == b->on_inactive;
}

int plan_reconfigure(struct plan *plan, struct config_schedule *config)
{
    int r;

    if (!has_same_times(plan->config, config))
        end_times(plan);
    r = parse_calendars(plan, config);
    if (r < 0)
        return r;
    config_file_free(CONFIG_SCHEDULE, plan->config);
    plan->config = config;
    plan_review(plan);
    return 0;
}

/* ---- times ---- */

int64_t plan_now(const struct plan *plan)
{
    const int64_t now = (int64_t)(plan->context->groups->alarms->realtime() / USEC_PER_SEC);

    return now > 0 ? now : 1;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static int64_t within(const struct plan *plan, int64_t slot)
{
    return slot <= plan->until ? slot : 0;
}

/* Returns the first second after this one, or INT64_MAX. At most one slot a second: the id has no
 * fractions. */
static int64_t find_time(struct plan_times *times, int64_t after)
{
    usec_t at;

    if (after >= times->after && after < times->next)
        return times->next;
    times->after = after;
    times->next = INT64_MAX;
    if (calendar_next(&times->calendar, usec_of(after) + USEC_PER_SEC - 1, &at) == 0)
        times->next = (int64_t)(at / USEC_PER_SEC);
    return times->next;
}

static int64_t by_calendar(const struct plan *plan, int64_t after)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < plan->n_times; i++) {
        const int64_t at = find_time(&plan->times[i], after);

        next = at < next ? at : next;
    }
    return next == INT64_MAX ? 0 : next;
}

int64_t plan_next_by_calendar(const struct plan *plan, int64_t after)
{
    return within(plan, by_calendar(plan, after));
}

int64_t plan_next(const struct plan *plan, int64_t after)
{
    const usec_t active = plan->config->on_active, inactive = plan->config->on_inactive;
    int64_t next = by_calendar(plan, after);

    if (active != USEC_INFINITY)
        next = earlier(next, after + (int64_t)(active / USEC_PER_SEC));
    if (inactive != USEC_INFINITY && !plan_is_running(plan)) {
        const int64_t ended_at = plan->row->ended_at;

        next = earlier(next,
                       (after > ended_at ? after : ended_at) + (int64_t)(inactive / USEC_PER_SEC));
    }
    return within(plan, next);
}

usec_t plan_due(const struct plan *plan, int64_t slot)
{
    return usec_of(slot) + slot_jitter(plan->config->name, slot, plan->config->randomized_delay);
}

/* ---- state ---- */

struct group *plan_group(const struct plan *plan)
{
    return registry_find(plan->context->groups->registry, config_schedule_group(plan->config));
}

const char *plan_obstacle(const struct plan *plan)
{
    const struct group *group = plan_group(plan);

    if (!plan->known)
        return "what it has decided is being read from disk";
    if (group && group->config->durable &&
        (group_store_is_opening(group) || group_awaits_restore(group)))
        return "the durable jobs of its group are being read from disk";
    if (plan->submission || (plan->row->firing > 0 && plan_awaits_row(plan)))
        return "its job is being written to disk";
    return NULL;
}

const char *plan_state(const struct plan *plan)
{
    static const char *const names[] = {"active", "paused", "failed"};
    const bool runs = plan->row->pause == PLAN_RUNS;

    return runs && plan_obstacle(plan) ? "blocked" : names[plan->row->pause];
}

void plan_review(struct plan *plan)
{
    task_queue(&plan->step);
}

void plan_begin(struct plan *plan, const struct schedule_row *row)
{
    if (!plan->known && row) {
        *plan->row = *row;
        plan->lost = row->firing;
    }
    if (plan->row->reached <= 0)
        plan->row->reached = plan_now(plan);
    plan->known = true;
    plan_write_row(plan);
    plan_review(plan);
}

void plan_pause(struct plan *plan, enum plan_pause why)
{
    if (plan->row->pause != PLAN_RUNS)
        return;
    plan->row->paused_at = plan_now(plan);
    plan->row->pause = (uint8_t)why;
    plan_write_row(plan);
    plan_review(plan);
}

void plan_resume(struct plan *plan)
{
    if (plan->row->pause == PLAN_RUNS)
        return;
    plan->row->resumed_at = plan_now(plan);
    plan->row->pause = PLAN_RUNS;
    plan->row->failures = 0;
    plan_write_row(plan);
    plan_review(plan);
}

static bool is_to_come(const struct plan *plan, int64_t slot)
{
    int64_t next = plan->row->reached;

    if (slot <= plan_now(plan))
        return false;
    if (plan->config->on_active == USEC_INFINITY && plan->config->on_inactive == USEC_INFINITY)
        return plan_next_by_calendar(plan, slot - 1) == slot;
    for (unsigned n = 0; n < 1000 && next != 0 && next < slot; n++)
        next = plan_next(plan, next);
    return next == slot;
}

/* Returns a place for another slot to be skipped: one whose time is over is free. */
static int64_t *find_place(struct plan *plan, int64_t slot)
{
    int64_t *place = NULL;

    for (unsigned i = 0; i < SCHEDULE_SKIPS_MAX; i++) {
        if (plan->row->skips[i] == slot)
            return &plan->row->skips[i];
        if (plan->row->skips[i] <= plan->row->reached)
            place = &plan->row->skips[i];
    }
    return place;
}

int plan_skip(struct plan *plan, int64_t slot)
{
    int64_t *place;

    if (slot > 0 && plan->row->waiting == slot) {
        plan_decide(plan, slot, SLOT_SKIPPED, SLOT_CAUSE_REQUEST);
        return 0;
    }
    if (!is_to_come(plan, slot) || slot <= plan->row->reached)
        return PLAN_E_NO_SLOT;
    place = find_place(plan, slot);
    if (!place)
        return PLAN_E_TOO_MANY;
    *place = slot;
    plan_write_row(plan);
    return 0;
}
