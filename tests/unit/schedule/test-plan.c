/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/schedule/plan-private.h"
#include "supervisor/schedule/plans.h"
#include "supervisor/store/store.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/parts-fixture.h"
#include "tests/unit/store/fake-disk.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <errno.h>
#include <sys/stat.h>

/* 2026-11-22 00:00:00 UTC, a Sunday. */
#define MIDNIGHT INT64_C(1795305600)
#define HOUR     3600
#define DAY      (24 * HOUR)

static const struct config_daemon daemon_config = {.deaths_max = 10};
static struct parts parts;
static struct group *group;
static struct plan *plan;
static int64_t clock_shows;

static usec_t fake_realtime(void)
{
    return (usec_t)clock_shows * USEC_PER_SEC;
}

static void set_up(void)
{
    config_test_enter();
    set_up_parts(&parts, &daemon_config, -1);
    parts.alarms.realtime = fake_realtime;
    clock_shows = MIDNIGHT - 1;
    group = add_group(&parts, new_group_config("a"));
    plan = NULL;
}

static void tear_down(void)
{
    plans_deinit(&parts.plans);
    remove_group(&parts, group);
    tear_down_parts(&parts);
    config_test_leave();
}

static struct config_schedule *read_schedule(const char *name, const char *text)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config_schedule *schedule;
    char file[64];

    snprintf(file, sizeof(file), "%s.schedule", name);
    write_file(file, text);
    ck_assert_int_eq(config_file_read(CONFIG_SCHEDULE, file, &problems, &schedule), 0);
    ck_assert_str_eq(describe(&problems), "");
    return schedule;
}

/* Makes the schedule "s", whose group is "a". */
static void begin(const char *text)
{
    char whole[1024];
    struct config_schedule *schedule;

    snprintf(whole, sizeof(whole), "[Job]\nGroup=a\n[Schedule]\n%s", text);
    schedule = read_schedule("s", whole);
    struct config config = {.files[CONFIG_SCHEDULE] = {(void *[]){schedule}, 1}};
    ck_assert_int_eq(plans_take(&parts.plans, &config, NULL, NULL, NULL), 0);
    plans_start(&parts.plans);
    plan = plans_find(&parts.plans, "s");
    ck_assert_ptr_nonnull(plan);
}

/* Has the clock show this, and the schedule do what is due. */
static void at(int64_t time)
{
    clock_shows = time;
    alarms_review(&parts.alarms);
    for (unsigned i = 0; i < 5; i++)
        plan_step(plan);
}

/* All seconds until `time`. */
static void run_until(int64_t time)
{
    while (clock_shows < time)
        at(clock_shows + 1);
}

static struct job *job_of(int64_t slot)
{
    struct protocol_id id = {0};

    slot_format_id("s", slot, id.name);
    return job_by_id(&parts.jobs, &id);
}

static void end_job(int64_t slot)
{
    ck_assert_ptr_nonnull(job_of(slot));
    (void)cell_cancel(job_of(slot), PROTOCOL_CAUSE_REQUESTED, JOB_NOBODY);
    at(clock_shows);
}

/* "fired skipped missed paused refused" */
static const char *counts(void)
{
    static char text[128];

    text[0] = '\0';
    for (unsigned i = 0; i < _SLOT_N_OUTCOMES; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i > 0 ? " " : "",
                 (unsigned)plan->row->counts[i]);
    return text;
}

static struct decided_slot last(unsigned i)
{
    struct decided_slot slot = {0};

    (void)slot_unpack(plan->row->last[i], &slot);
    return slot;
}

#define HOURLY "OnCalendar=*:00 UTC\n"

TEST(a_zone_that_has_gone_leaves_the_times_as_they_were)
{
    struct config_schedule *config;

    begin(HOURLY);
    config = read_schedule("s", "[Job]\nGroup=a\n[Schedule]\nOnCalendar=*:00 UTC\n");
    free(config->on_calendar.strings[0]);
    config->on_calendar.strings[0] = strdup("*:30 Nowhere/Else");
    ck_assert_int_eq(plan_reconfigure(plan, config), -EINVAL);
    config_file_free(CONFIG_SCHEDULE, config);
    ck_assert_int_eq(plan_next(plan, MIDNIGHT - 1), MIDNIGHT);
}

TEST(a_slot_is_fired_at_its_time_and_its_job_has_its_id)
{
    begin(HOURLY);
    at(MIDNIGHT - 1);
    ck_assert_str_eq(counts(), "0 0 0 0 0");
    ck_assert_int_eq(plan_next(plan, plan->row->reached), MIDNIGHT);
    at(MIDNIGHT);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    struct job *job = job_of(MIDNIGHT);
    ck_assert_ptr_nonnull(job);
    ck_assert_str_eq(job->name, "s@2026-11-22T00:00:00Z");
    ck_assert(job->keep_result);
    ck_assert_int_eq(last(0).time, MIDNIGHT);
    at(MIDNIGHT + 1);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
}

/* Its days are those on which clocks skip that time, so each search goes through all years. */
#define NEVER  "OnCalendar=Sun *-3-25..31 2:30 Europe/Berlin\n"
#define NEVER5 NEVER NEVER NEVER NEVER NEVER

TEST(times_that_never_come_are_searched_once)
{
    int64_t n = 0;

    begin("OnUnitActiveSec=1s\n" NEVER5 NEVER5 NEVER5 NEVER5);
    while (n < 400000 && plan_next(plan, MIDNIGHT + n) == MIDNIGHT + n + 1)
        n++;
    ck_assert_int_eq(n, 400000);
}

TEST(times_are_found_in_any_order)
{
    begin("OnCalendar=*:00 UTC\nOnCalendar=*:0/20 UTC\n");
    ck_assert_int_eq(plan_next(plan, MIDNIGHT), MIDNIGHT + 1200);
    ck_assert_int_eq(plan_next(plan, MIDNIGHT + 1199), MIDNIGHT + 1200);
    ck_assert_int_eq(plan_next(plan, MIDNIGHT + 1200), MIDNIGHT + 2400);
    ck_assert_int_eq(plan_next(plan, MIDNIGHT - 1), MIDNIGHT);
    ck_assert_int_eq(plan_next(plan, MIDNIGHT - HOUR), MIDNIGHT - 2400);
    ck_assert_int_eq(plan_next(plan, MIDNIGHT + HOUR - 1), MIDNIGHT + HOUR);
}

TEST(an_interval_counts_from_the_slot_before)
{
    begin("OnUnitActiveSec=10s\nOverlap=allow\n");
    run_until(MIDNIGHT + 40);
    ck_assert_str_eq(counts(), "4 0 0 0 0");
    ck_assert_int_eq(last(0).time, MIDNIGHT - 1 + 40);
}

TEST(an_interval_after_the_end_waits_for_it)
{
    begin("OnUnitInactiveSec=10s\n");
    at(MIDNIGHT + 9);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    at(MIDNIGHT + 100);
    ck_assert_int_eq(plan_next(plan, plan->row->reached), 0);
    end_job(MIDNIGHT + 9);
    ck_assert_int_eq(plan_next(plan, plan->row->reached), MIDNIGHT + 110);
    at(MIDNIGHT + 110);
    ck_assert_str_eq(counts(), "2 0 0 0 0");
}

TEST(no_slot_comes_after_until)
{
    begin(HOURLY "Until=2026-11-22 01:00 UTC\n");
    at(MIDNIGHT);
    end_job(MIDNIGHT);
    at(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "2 0 0 0 0");
    ck_assert_int_eq(plan_next(plan, plan->row->reached), 0);
}

/* ---- jitter ---- */

TEST(a_delay_is_random_bounded_and_always_the_same)
{
    usec_t sum = 0;

    for (int64_t i = 0; i < 1000; i++) {
        const usec_t delay = slot_jitter("s", MIDNIGHT + i * HOUR, HOUR * USEC_PER_SEC);

        ck_assert_uint_lt(delay, HOUR * USEC_PER_SEC);
        ck_assert_uint_eq(delay, slot_jitter("s", MIDNIGHT + i * HOUR, HOUR * USEC_PER_SEC));
        sum += delay / USEC_PER_SEC;
    }
    ck_assert_uint_gt(sum / 1000, HOUR * 4 / 10);
    ck_assert_uint_lt(sum / 1000, HOUR * 6 / 10);
    /* The value is part of what users see. */
    ck_assert_uint_eq(slot_jitter("s", MIDNIGHT, 1000), slot_jitter("s", MIDNIGHT, 1000));
    ck_assert_uint_ne(slot_jitter("s", MIDNIGHT, HOUR * USEC_PER_SEC),
                      slot_jitter("t", MIDNIGHT, HOUR * USEC_PER_SEC));
}

TEST(delays_that_cross_make_no_slot_late)
{
    begin("OnCalendar=*:0/10 UTC\nRandomizedDelaySec=1h\nCatchUp=none\nOverlap=allow\n");
    run_until(MIDNIGHT + 4 * HOUR);
    ck_assert_uint_eq(plan->row->counts[SLOT_MISSED], 0);
    ck_assert_uint_ge(plan->row->counts[SLOT_FIRED], 18);
    ck_assert_uint_le(plan->row->counts[SLOT_FIRED], 25);
}

/* ---- catch-up ---- */

TEST(the_last_of_the_late_slots_is_fired)
{
    begin(HOURLY);
    at(MIDNIGHT + 5 * HOUR + 600);
    ck_assert_str_eq(counts(), "1 0 5 0 0");
    ck_assert_int_eq(last(0).time, MIDNIGHT + 5 * HOUR);
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_LATE);
}

TEST(all_late_slots_are_fired_in_their_order)
{
    begin(HOURLY "CatchUp=all\nOverlap=allow\n");
    at(MIDNIGHT + 5 * HOUR + 600);
    ck_assert_str_eq(counts(), "6 0 0 0 0");
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(last(i).time, MIDNIGHT + (5 - i) * HOUR);
}

TEST(no_late_slot_is_fired)
{
    begin(HOURLY "CatchUp=none\n");
    at(MIDNIGHT + 5 * HOUR + 600);
    ck_assert_str_eq(counts(), "0 0 6 0 0");
    at(MIDNIGHT + 6 * HOUR + 10);
    ck_assert_str_eq(counts(), "1 0 6 0 0");
}

TEST(late_slots_that_are_too_old_are_missed)
{
    begin("OnCalendar=00:00 UTC\nCatchUp=all\nCatchUpWithinSec=36h\nOverlap=allow\n");
    at(MIDNIGHT + 10 * DAY + HOUR);
    ck_assert_str_eq(counts(), "2 0 9 0 0");
}

TEST(late_slots_that_wait_stay_late_when_others_come_on_time)
{
    begin("OnCalendar=*:*:0/5 UTC\nCatchUp=all\nOverlap=buffer\n");
    at(MIDNIGHT);
    at(MIDNIGHT + 22);
    end_job(MIDNIGHT);
    ck_assert_int_eq(last(0).time, MIDNIGHT + 5);
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_LATE);
}

TEST(slots_that_the_clock_jumps_over_are_late_while_another_one_waits)
{
    begin(HOURLY "CatchUp=none\nOverlap=buffer\n");
    at(MIDNIGHT);
    at(MIDNIGHT + HOUR); /* waits */
    at(MIDNIGHT + HOUR + 60);
    at(MIDNIGHT + 10 * HOUR + 60);
    end_job(MIDNIGHT);
    end_job(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "2 0 9 0 0");
}

TEST(very_many_late_slots_take_several_turns)
{
    begin("OnCalendar=*:*:* UTC\n");
    clock_shows = MIDNIGHT + DAY;
    for (unsigned n = 0; plan->row->reached < clock_shows; n++) {
        plan_step(plan);
        ck_assert_uint_le(plan->row->counts[SLOT_MISSED], 100 * (n + 1));
    }
    /* The last seconds are not late. */
    ck_assert_str_eq(counts(), "1 10 86390 0 0");
}

#define MANY 300

/* Stops the loop after the turn in which the first schedule was looked at. */
static void watch_first(struct loop_deferred *deferred)
{
    if (parts.plans.sorted[0]->row->counts[SLOT_MISSED] > 0)
        loop_stop(parts.loop);
    else
        loop_defer(parts.loop, deferred);
}

TEST(late_slots_of_very_many_schedules_take_several_turns)
{
    void *schedules[MANY];
    struct config config = {.files[CONFIG_SCHEDULE] = {schedules, MANY}};
    struct loop_deferred watch;
    char name[8];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        schedules[i] = read_schedule(name, "[Job]\nGroup=a\n[Schedule]\nOnCalendar=*:*:* UTC\n");
    }
    ck_assert_int_eq(plans_take(&parts.plans, &config, NULL, NULL, NULL), 0);
    plans_start(&parts.plans);
    clock_shows = MIDNIGHT + DAY;
    loop_deferred_init(&watch, watch_first);
    loop_defer(parts.loop, &watch);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_uint_eq(parts.plans.sorted[MANY - 1]->row->counts[SLOT_MISSED], 0);
}

/* ---- overlap ---- */

TEST(a_slot_is_skipped_while_a_job_is_live)
{
    begin(HOURLY);
    at(MIDNIGHT);
    at(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "1 1 0 0 0");
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_OVERLAP);
    end_job(MIDNIGHT);
    at(MIDNIGHT + 2 * HOUR);
    ck_assert_str_eq(counts(), "2 1 0 0 0");
}

TEST(Q3_the_slot_of_a_live_job_stays_known)
{
    begin(HOURLY);
    for (int64_t i = 0; i <= 2 * SCHEDULE_LAST_MAX; i++)
        at(MIDNIGHT + i * HOUR);
    ck_assert_str_eq(counts(), "1 20 0 0 0");
    ck_assert_int_eq(last(0).time, MIDNIGHT + 20 * HOUR);
    ck_assert_int_eq(last(SCHEDULE_LAST_MAX - 1).time, MIDNIGHT);
}

TEST(one_slot_waits_however_long)
{
    begin(HOURLY "Overlap=buffer-one\nCatchUp=none\n");
    at(MIDNIGHT);
    at(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    at(MIDNIGHT + 2 * HOUR);
    at(MIDNIGHT + 3 * HOUR);
    ck_assert_str_eq(counts(), "1 2 0 0 0");
    end_job(MIDNIGHT);
    ck_assert_str_eq(counts(), "2 2 0 0 0");
    ck_assert_ptr_nonnull(job_of(MIDNIGHT + HOUR));
}

TEST(all_slots_wait_however_long)
{
    begin(HOURLY "Overlap=buffer\nCatchUp=none\n");
    for (int64_t i = 0; i <= 5; i++)
        at(MIDNIGHT + i * HOUR);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    at(MIDNIGHT + 5 * HOUR + 1800);
    for (int64_t i = 0; i < 5; i++) {
        end_job(MIDNIGHT + i * HOUR);
        ck_assert_uint_eq(plan->row->counts[SLOT_FIRED], (uint64_t)i + 2);
        ck_assert_ptr_nonnull(job_of(MIDNIGHT + (i + 1) * HOUR));
    }
    ck_assert_str_eq(counts(), "6 0 0 0 0");
}

TEST(a_live_job_makes_way)
{
    begin(HOURLY "Overlap=cancel\n");
    at(MIDNIGHT);
    struct job *job = job_ref(job_of(MIDNIGHT));
    at(MIDNIGHT + HOUR);
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    job_unref(&parts.jobs, job);
    ck_assert_str_eq(counts(), "2 0 0 0 0");
    ck_assert_ptr_nonnull(job_of(MIDNIGHT + HOUR));
}

/* ---- pause ---- */

TEST(slots_of_a_pause_are_paused_but_the_last)
{
    begin(HOURLY);
    plan_pause(plan, PLAN_PAUSED);
    for (int64_t i = 0; i < 3; i++)
        at(MIDNIGHT + i * HOUR);
    ck_assert_str_eq(counts(), "0 0 0 2 0");
    at(MIDNIGHT + 2 * HOUR + 1800);
    plan_resume(plan);
    at(clock_shows);
    ck_assert_str_eq(counts(), "1 0 0 2 0");
    ck_assert_int_eq(last(0).time, MIDNIGHT + 2 * HOUR);
}

TEST(without_catching_up_all_slots_of_a_pause_are_paused)
{
    begin(HOURLY "CatchUp=none\n");
    plan_pause(plan, PLAN_PAUSED);
    for (int64_t i = 0; i < 3; i++)
        at(MIDNIGHT + i * HOUR);
    ck_assert_str_eq(counts(), "0 0 0 3 0");
    plan_resume(plan);
    at(MIDNIGHT + 3 * HOUR);
    ck_assert_str_eq(counts(), "1 0 0 3 0");
}

TEST(failures_in_a_row_pause)
{
    begin(HOURLY "PauseOnFailure=2\n");
    plan->row->failures = 2;
    at(MIDNIGHT);
    end_job(MIDNIGHT); /* cancelled: no failure, and no success */
    ck_assert_int_eq(plan->row->pause, PLAN_PAUSED_FAILED);
    plan_resume(plan);
    ck_assert_uint_eq(plan->row->failures, 0);
}

/* ---- the clock ---- */

TEST(a_clock_that_is_set_back_fires_nothing_twice)
{
    begin(HOURLY "Overlap=allow\n");
    at(MIDNIGHT);
    at(MIDNIGHT + HOUR);
    for (int64_t time = MIDNIGHT - HOUR; time <= MIDNIGHT + HOUR + 1800; time += 600)
        at(time);
    ck_assert_str_eq(counts(), "2 0 0 0 0");
    at(MIDNIGHT + 2 * HOUR);
    ck_assert_str_eq(counts(), "3 0 0 0 0");
}

TEST(a_clock_that_was_years_ahead_does_not_stop_the_schedule)
{
    begin(HOURLY "Overlap=allow\n");
    at(MIDNIGHT);
    at(MIDNIGHT + 60 * DAY);
    while (plan->row->reached < clock_shows)
        at(clock_shows);
    task_cancel(&plan->step);
    clock_shows = MIDNIGHT + 1;
    alarms_review(&parts.alarms);
    ck_assert(list_linked(&plan->step.link));
    at(MIDNIGHT + 1);
    end_job(MIDNIGHT + 60 * DAY);
    uint64_t fired = plan->row->counts[SLOT_FIRED];
    at(MIDNIGHT + HOUR);
    ck_assert_uint_eq(plan->row->counts[SLOT_FIRED], fired + 1);
    ck_assert_ptr_nonnull(job_of(MIDNIGHT + HOUR));
}

/* ---- refusal ---- */

TEST(a_refused_slot_has_a_reason)
{
    begin(HOURLY);
    group_drain(group);
    at(MIDNIGHT);
    ck_assert_str_eq(counts(), "0 0 0 0 1");
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_DRAINING);
    ck_assert_ptr_nonnull(strstr(slot_cause_to_string(last(0).cause), "drained"));
    group_end_drain(group);
    at(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "1 0 0 0 1");
}

TEST(a_slot_whose_key_another_job_holds_is_refused_and_says_so)
{
    group->config->unique = CONFIG_UNIQUE_PAYLOAD;
    begin(HOURLY "Overlap=allow\n");
    at(MIDNIGHT);
    for (unsigned conflict = PROTOCOL_CONFLICT_EXISTING; conflict <= PROTOCOL_CONFLICT_REJECT;
         conflict++) {
        group->config->on_conflict = conflict - 1;
        at(clock_shows + HOUR);
        ck_assert_int_eq(last(0).outcome, SLOT_REFUSED);
        ck_assert_str_eq(slot_cause_to_string(last(0).cause),
                         "another live job has the same unique key");
    }
}

TEST(a_slot_without_a_group_is_refused)
{
    begin(HOURLY);
    registry_remove(&parts.registry, group);
    at(MIDNIGHT);
    ck_assert_str_eq(counts(), "0 0 0 0 1");
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_NO_GROUP);
    ck_assert_int_eq(registry_add(&parts.registry, group), 0);
}

/* ---- on request ---- */

TEST(a_slot_to_come_can_be_skipped)
{
    begin(HOURLY);
    ck_assert_int_eq(plan_skip(plan, MIDNIGHT + 1), PLAN_E_NO_SLOT);
    ck_assert_int_eq(plan_skip(plan, MIDNIGHT - HOUR), PLAN_E_NO_SLOT);
    ck_assert_int_eq(plan_skip(plan, MIDNIGHT), 0);
    ck_assert_int_eq(plan_skip(plan, MIDNIGHT), 0);
    at(MIDNIGHT);
    ck_assert_str_eq(counts(), "0 1 0 0 0");
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_REQUEST);
    at(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "1 1 0 0 0");
    for (int64_t i = 2; i < 2 + SCHEDULE_SKIPS_MAX; i++)
        ck_assert_int_eq(plan_skip(plan, MIDNIGHT + i * HOUR), 0);
    ck_assert_int_eq(plan_skip(plan, MIDNIGHT + 20 * HOUR), PLAN_E_TOO_MANY);
}

TEST(nobody_else_can_take_the_id_of_a_slot)
{
    const struct cell_request request = {.name = "s@2026-11-22T00:00:00Z", .data = ""};
    struct job *job;

    ck_assert_int_eq(group_submit(group, &request, &job), CELL_E_BAD_ID);
    ck_assert(!protocol_name_is_slot("@2026-11-22T00:00:00Z", 21));
    ck_assert(!protocol_name_is_slot("s@2026-11-22T00:00:00", 21));
}

/* ---- a crash between two stores into the row ---- */

/* Has the row say that a decided slot is not. */
static void crash_after_note(int64_t slot, enum slot_outcome outcome)
{
    begin(HOURLY "Overlap=allow\n");
    plan_note(plan, slot, outcome, SLOT_CAUSE_NONE);
}

TEST(a_decided_slot_is_not_fired_again_after_a_crash)
{
    crash_after_note(MIDNIGHT, SLOT_FIRED);
    plan->row->firing = MIDNIGHT;
    at(MIDNIGHT);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    ck_assert_ptr_null(job_of(MIDNIGHT));
    ck_assert_int_eq(plan->row->firing, 0);
    at(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "2 0 0 0 0");
}

TEST(a_slot_is_not_decided_twice_after_a_crash)
{
    crash_after_note(MIDNIGHT, SLOT_SKIPPED);
    at(MIDNIGHT);
    ck_assert_str_eq(counts(), "0 1 0 0 0");
    ck_assert_int_eq(plan->row->reached, MIDNIGHT);
}

TEST(a_decided_slot_does_not_wait_after_a_crash)
{
    crash_after_note(MIDNIGHT, SLOT_SKIPPED);
    plan->row->waiting = MIDNIGHT;
    at(MIDNIGHT);
    ck_assert_str_eq(counts(), "0 1 0 0 0");
    ck_assert_int_eq(plan->row->waiting, 0);
}

TEST(a_slot_that_was_being_fired_is_fired_after_a_crash)
{
    begin(HOURLY "CatchUp=none\n");
    plan->row->reached = plan->row->waiting = plan->row->firing = MIDNIGHT;
    at(MIDNIGHT + 1);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    ck_assert_ptr_nonnull(job_of(MIDNIGHT));
    ck_assert_int_eq(plan->row->waiting, 0);
}

/* ---- a power cut ---- */

static void stop_on_change(void *userdata, enum store_state state)
{
    if (state == STORE_OPEN || state == STORE_UNUSABLE)
        loop_stop(parts.loop);
}

static int note_row(void *userdata, const char *name, const void *row)
{
    memcpy(userdata, row, sizeof(struct schedule_row));
    return 0;
}

/* Reads the row when all that was added before is written. */
struct look {
    struct store_task task;
    struct schedule_row row;
    int result;
};

static int apply_look(struct store_task *task, struct database *database)
{
    struct look *look = list_entry(task, struct look, task);

    return setting_rows_scan(database, &SCHEDULE_ROWS, note_row, &look->row);
}

static void on_looked(struct store_task *task, int result)
{
    list_entry(task, struct look, task)->result = result;
    loop_stop(parts.loop);
}

static struct look look(void)
{
    struct look look = {.task = {.apply = apply_look, .done = on_looked}};

    list_init(&look.task.link);
    store_add(parts.durable.store, &look.task);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    return look;
}

static struct schedule_row look_at_disk(void)
{
    const struct look found = look();

    ck_assert_int_eq(found.result, 0);
    return found.row;
}

static void open_file(struct scratch *scratch)
{
    struct durable_jobs *durable = &parts.durable;
    const struct store_options options = {
        .path = scratch->path, .vfs = FAKE_DISK, .changed = stop_on_change};

    fake_disk_init();
    list_init(&durable->unread);
    list_init(&durable->queries);
    names_on_disk_init(&durable->names);
    names_on_disk_init(&durable->unique);
    parts.jobs.free_record = durable_job_free;
    ck_assert_int_eq(store_new(&durable->store, parts.loop, &options), 0);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    group->config->durable = true;
    begin(HOURLY);
    plan_begin(plan, NULL);
}

static void open_store(struct scratch *scratch)
{
    scratch_init(scratch);
    open_file(scratch);
}

static void close_store(struct scratch *scratch)
{
    struct durable_jobs *durable = &parts.durable;

    close_group(group, "it is over");
    durable->store = store_free(durable->store);
    durable_jobs_close(durable);
    names_on_disk_deinit(&durable->names);
    names_on_disk_deinit(&durable->unique);
    scratch_deinit(scratch);
    fake_disk_deinit();
}

TEST(a_slot_is_written_with_its_job)
{
    struct scratch scratch;
    struct schedule_row row;

    open_store(&scratch);
    at(MIDNIGHT + 2 * HOUR + 60); /* the two slots before that are missed in the same turn */
    ck_assert_ptr_nonnull(plan->submission);
    row = look_at_disk();
    ck_assert_int_eq(row.firing, MIDNIGHT + 2 * HOUR);
    ck_assert_int_eq(row.reached, MIDNIGHT + 2 * HOUR);
    ck_assert_uint_eq(row.counts[SLOT_MISSED], 2);
    row = look_at_disk();
    ck_assert_int_eq(row.firing, 0);
    ck_assert_uint_eq(row.counts[SLOT_FIRED], 1);
    close_store(&scratch);
}

TEST(a_run_on_request_is_written_with_its_job)
{
    struct cell_request request = {0};
    struct schedule_row row;
    struct scratch scratch;
    struct job_waiter *waiter;
    struct job *job;

    open_store(&scratch);
    ck_assert_int_eq(plan_run(plan, clock_shows, &request, &job, &waiter), 0);
    ck_assert(plan_is_running(plan));
    ck_assert_str_eq(counts(), "0 0 0 0 0");
    row = look_at_disk();
    ck_assert_uint_eq(row.counts[SLOT_FIRED], 1);
    ck_assert_int_eq(row.last[0], plan->row->last[0]);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    ck_assert_uint_eq(look_at_disk().counts[SLOT_FIRED], 1);
    ck_assert(plan_is_running(plan));
    close_store(&scratch);
}

TEST(a_run_that_is_cancelled_before_it_is_written_is_noted)
{
    struct cell_request request = {0};
    struct scratch scratch;
    struct job_waiter *waiter;
    struct job *job;

    open_store(&scratch);
    group->config->results_max = 0;
    ck_assert_int_eq(plan_run(plan, clock_shows, &request, &job, &waiter), 0);
    (void)cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, JOB_NOBODY);
    ck_assert(!plan_is_running(plan));
    ck_assert_uint_eq(look_at_disk().counts[SLOT_FIRED], 1);
    close_store(&scratch);
}

TEST(a_job_that_is_not_durable_waits_for_the_row)
{
    struct scratch scratch;

    open_store(&scratch);
    group->config->durable = false;
    while (plan->write)
        (void)look_at_disk();
    at(MIDNIGHT);
    ck_assert_ptr_null(job_of(MIDNIGHT));
    ck_assert_int_eq(look_at_disk().firing, MIDNIGHT);
    at(MIDNIGHT);
    ck_assert_ptr_nonnull(job_of(MIDNIGHT));
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    close_store(&scratch);
}

TEST(a_store_that_is_unusable_is_not_asked_again_and_again)
{
    struct scratch scratch;

    scratch_init(&scratch);
    ck_assert_int_eq(mkdir(scratch.directory, 0700), 0);
    write_file(scratch.path, "this is no database, and is larger than the header of one: it has "
                             "more than a hundred bytes, after which it is looked at");
    open_file(&scratch);
    ck_assert_int_eq(store_state(parts.durable.store), STORE_UNUSABLE);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(look().result, -EUCLEAN);
    ck_assert_ptr_null(plan->write);
    close_store(&scratch);
}

TEST(a_slot_that_was_being_fired_when_everything_ended_is_not_fired_again)
{
    const struct schedule_row row = {.reached = MIDNIGHT, .firing = MIDNIGHT};

    begin(HOURLY);
    plan->known = false;
    plan_begin(plan, &row);
    at(MIDNIGHT + 60);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_LOST);
    ck_assert_ptr_null(job_of(MIDNIGHT));
}

static void on_refused(struct store_task *task, int result)
{
    ck_assert_int_eq(result, -EIO);
    loop_stop(parts.loop);
}

TEST(slots_do_not_wait_for_a_store_that_has_failed)
{
    struct look refused = {.task = {.apply = apply_look, .done = on_refused, .addition = true}};
    struct scratch scratch;

    open_store(&scratch);
    (void)look_at_disk();
    fake_disk_fail(FAKE_EIO_ON_SYNC, 1, UINT32_MAX);
    at(MIDNIGHT);
    list_init(&refused.task.link);
    store_add(parts.durable.store, &refused.task); /* behind the job */
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_int_eq(store_state(parts.durable.store), STORE_FAILED);
    ck_assert_str_eq(counts(), "0 0 0 0 1");
    at(MIDNIGHT + HOUR);
    ck_assert_str_eq(counts(), "0 0 0 0 2");
    ck_assert_int_eq(last(0).cause, SLOT_CAUSE_STORE_FAILED);
    close_store(&scratch);
}

/* ---- configuration ---- */

TEST(other_times_begin_at_the_change)
{
    begin(HOURLY);
    at(MIDNIGHT + 10);
    at(MIDNIGHT + 1800);
    begin("OnCalendar=*:0/10 UTC\nOverlap=allow\n");
    at(MIDNIGHT + 1801);
    ck_assert_str_eq(counts(), "1 0 0 0 0");
    ck_assert_int_eq(plan_next(plan, plan->row->reached), MIDNIGHT + 2400);
}

TEST(a_schedule_without_a_file_ends)
{
    struct config config = {0};

    begin(HOURLY);
    ck_assert_int_eq(plans_take(&parts.plans, &config, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(parts.plans.n_plans, 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
