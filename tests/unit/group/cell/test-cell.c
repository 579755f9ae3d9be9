/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/pool/slot/slot.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/fixture.h"
#include "tests/unit/parts-fixture.h"
#include "tests/unit/suite.h"
#include "worker/troupe.h"

/*
 * Group, cell, slot, process and mailbox together, with real workers: this program again, which
 * becomes one when a supervisor has started it. The payload tells the worker what to do.
 */

static struct parts parts;
static struct config_daemon daemon_config;
static struct config_group *config;
static struct group *group;

/* ---- the worker ---- */

static int handle(struct troupe_job *job, void *userdata)
{
    size_t size;
    const char *what = troupe_job_payload(job, &size);

    if (strcmp(what, "crash") == 0 ||
        (strcmp(what, "crash once") == 0 && troupe_job_attempt(job) == 1))
        raise(SIGKILL);
    if (strcmp(what, "error") == 0)
        return troupe_job_retry(job, 7, "it is broken");
    if (strcmp(what, "no") == 0)
        return troupe_job_reject(job, 3, "sorry", 5);
    if (strcmp(what, "hang") == 0)
        for (;;)
            pause();
    while (strcmp(what, "until cancelled") == 0)
        if (troupe_job_is_cancelled(job))
            return troupe_job_cancelled(job);
    return troupe_job_succeed(job, what, size);
}

/* This program is its own worker: it then runs no tests. */
__attribute__((constructor)) static void be_worker(void)
{
    struct troupe_worker *worker;

    if (!getenv("TROUPE_INBOX"))
        return;
    int r = troupe_worker_new(&worker);
    if (r < 0)
        exit(troupe_worker_start_error(r));
    troupe_worker_on_job(worker, handle, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    exit(r < 0);
}

/* ---- the supervisor around it ---- */

static void make_config(unsigned size)
{
    static char path[256];

    ck_assert_int_gt(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
    ck_assert_int_eq(config_defaults(&config, "test"), 0);
    char *program = strdup(path);
    config->exec_start = calloc(2, sizeof(char *));
    config->exec_start[0] = program;
    config->size = size;
    config->backoff_min = config->backoff_max = 1;
    config->min = config->max = 1;
    config->start_limit_burst = 0;
}

/* ---- the census, against a look at all slots ---- */

static struct loop_deferred audit;

static struct census count_slots(void)
{
    struct census census = {0};
    const struct slot *slot;
    size_t cursor = 0;

    while ((slot = pool_next_slot(&group->cell->pool, &cursor))) {
        bool member = cursor <= group->cell->pool.n_slots;
        bool wanted = slot->wanted || slot->restart_asked;

        census.n[CENSUS_SLOT]++;
        census.n[CENSUS_DOWN] += slot_is_down(slot);
        census.n[CENSUS_FAILED] += slot->state == LIFECYCLE_FAILED;
        census.n[CENSUS_TROUBLE] += slot->state == LIFECYCLE_FAILED ||
                                    slot->state == LIFECYCLE_BACKOFF || slot_is_failing(slot) ||
                                    (slot->state == LIFECYCLE_STARTING && slot->last_death &&
                                     slot->last_death->cause == DEATH_START_TIMEOUT);
        census.n[CENSUS_MEMBER] += member;
        census.n[CENSUS_UP] += member && slot_is_up(slot);
        census.n[CENSUS_WANTED] += member && wanted;
        census.n[CENSUS_UNWANTED] += member && !wanted && !slot->retired;
        census.n[CENSUS_UNDECIDED] +=
            member && slot->wanted &&
            (slot->generation == slot->born ||
             (slot->generation == slot->born + 1 && slot->state == LIFECYCLE_STARTING));
    }
    return census;
}

/* At the end of a turn: an event comes in the middle of a change. */
static void on_audit(struct loop_deferred *deferred)
{
    const struct census census = count_slots();

    for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++) {
        ck_assert_msg(census.n[i] == group->pools.census.n[i], "trait %u: %zu slots, %zu counted",
                      i, census.n[i], group->pools.census.n[i]);
        ck_assert_uint_eq(census.n[i], parts.registry.census.n[i]);
        ck_assert_uint_eq(census.n[i], group->cell->pool.census.n[i]);
    }
}

static void on_any_event(struct event_subscriber *subscriber, const struct event *event)
{
    loop_defer(parts.loop, &audit);
}

static struct event_subscriber auditor = {.fn = on_any_event};

static void setup(void)
{
    log_nothing();
    set_up_parts(&parts, &daemon_config, go_under_new_keeper().channel);
    parts.runtime_directory = "/tmp";
    parts_connect(&parts);
    backoff_random_seed(&parts.random, 1);
    make_config(2);
    ck_assert_int_eq(group_new(&group, &parts.groups, config), 0);
    ck_assert_int_eq(registry_add(&parts.registry, group), 0);
    loop_deferred_init(&audit, on_audit);
    event_subscribe(&parts.events.subscribers, &auditor);
    give_up_after(parts.loop, 30 * USEC_PER_SEC);
}

/* Runs the loop until `done` says so; it is asked after every event and every change of a job. */
static bool (*done)(void);

static void look(struct event_subscriber *subscriber, const struct event *event)
{
    if (done())
        loop_stop(parts.loop);
}

static void run_until(bool (*condition)(void))
{
    struct event_subscriber subscriber = {.fn = look};

    done = condition;
    if (condition())
        return;
    event_subscribe(&parts.events.subscribers, &subscriber);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    event_unsubscribe(&subscriber);
}

static bool is_down(void)
{
    return group_down(group);
}

/* Nothing is under way: every slot is up, or down and not wanted (failed counts as down). */
static bool is_settled(void)
{
    const struct cell *cell = group->cell;

    for (size_t i = 0; i < cell->pool.n_slots; i++) {
        const struct slot *slot = cell->pool.slots[i];
        if (slot->restart_asked || !(slot_is_up(slot) || slot_is_down(slot)))
            return false;
        if (slot->wanted && slot->state == LIFECYCLE_STOPPED)
            return false;
    }
    return true;
}

static void teardown(void)
{
    group_close(group, "it is over");
    group_stop(group, true);
    run_until(is_down);
    on_audit(&audit);
    event_unsubscribe(&auditor);
    loop_undefer(&audit);
    registry_remove(&parts.registry, group);
    group_free(group);
    tear_down_parts(&parts);
}

/* ---- jobs ---- */

static unsigned n_ended, n_expected;
static bool stop_when_started;

static void on_change(struct job_waiter *waiter, struct job *job)
{
    if (stop_when_started && job->state == JOB_RUNNING && job->started)
        loop_stop(parts.loop);
    if (!job_ended(job))
        return;
    (void)job_waiter_free(&parts.jobs, waiter);
    n_ended++;
    if (n_ended == n_expected)
        loop_stop(parts.loop);
}

static struct cell_request request_of(const char *what, const char *name)
{
    return (struct cell_request){
        .name = name,
        .keep_result = true,
        .options = JOB_OPTIONS_DEFAULT,
        .data = what,
        .size = strlen(what),
    };
}

static int submit(const char *what, const char *name, struct job **ret)
{
    struct cell_request request = request_of(what, name);

    request.changed = on_change;
    return cell_submit(group->cell, &request, ret);
}

static struct job *accepted(const char *what)
{
    struct job *job;

    ck_assert_int_eq(submit(what, "", &job), 0);
    n_expected++;
    return job;
}

static void run_jobs(void)
{
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_uint_eq(n_ended, n_expected);
}

TEST(a_job_succeeds_with_its_result)
{
    struct job *job = accepted("hello");

    group_start(group);
    run_jobs();
    ck_assert_int_eq(job->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(job->attempt, 1);
    ck_assert_uint_eq(job->result.size, 5);
    ck_assert_int_eq(memcmp(payload_data(&job->result), "hello", 5), 0);
    ck_assert_uint_eq(group->cell->counts.n[JOBS_SUCCEEDED], 1);
    ck_assert_uint_eq(group->cell->counts.n[JOBS_BYTES], 0);
}

TEST(J3_a_rejected_job_is_final_and_a_crash_is_retried)
{
    struct job *no = accepted("no"), *once = accepted("crash once");

    group_start(group);
    run_jobs();
    ck_assert_int_eq(no->state, JOB_REJECTED);
    ck_assert_int_eq(no->code, 3);
    ck_assert_uint_eq(no->attempt, 1);
    ck_assert_int_eq(once->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(once->attempt, 2);
    ck_assert_uint_eq(once->n_attempts, 1);
    ck_assert_str_eq(once->attempts[0].cause, "signal");
    ck_assert_uint_eq(parts.deaths.n_total, 1);
}

TEST(J4_a_job_that_fails_on_every_attempt_is_dead_once)
{
    struct job *crash = accepted("crash"), *error = accepted("error");

    group_start(group);
    run_jobs();
    ck_assert_int_eq(crash->state, JOB_DEAD);
    ck_assert_uint_eq(crash->attempt, config->max_retries + 1);
    ck_assert_str_eq(crash->reason, "killed by SIGKILL");
    ck_assert_int_eq(error->state, JOB_DEAD);
    ck_assert_int_eq(error->code, 7);
    ck_assert_str_eq(error->reason, "it is broken");
    ck_assert_uint_eq(group->cell->counts.n[JOBS_DEAD], 2);
}

TEST(J4_a_dead_job_is_one_dead_letter_with_its_payload_and_death_reports)
{
    const struct job *crash = accepted("crash"), *error = accepted("error");
    struct dead_letter_walk walk;
    const struct dead_letter *envelope;
    char id[PROTOCOL_ID_TEXT];
    unsigned n = 0;

    group_start(group);
    run_jobs();
    dead_letter_walk_begin(&walk, &parts.messages.dead_letters, false);
    for (; (envelope = dead_letter_walk_next(&walk)); n++) {
        const bool crashed = strcmp(envelope->job, job_format_id(crash, id)) == 0;

        ck_assert_int_eq(envelope->reason, DEAD_JOB);
        ck_assert_str_eq(envelope->recipient, "test");
        ck_assert_uint_eq(envelope->attempts, config->max_retries + 1);
        if (!crashed)
            ck_assert_str_eq(envelope->job, job_format_id(error, id));
        ck_assert_str_eq(envelope->text, crashed ? "killed by SIGKILL" : "it is broken");
        ck_assert_mem_eq(payload_data(&envelope->payload), crashed ? "crash" : "error", 5);
        ck_assert_uint_eq(envelope->n_deaths, crashed ? config->max_retries + 1 : 0);
        for (uint32_t i = 0; i < envelope->n_deaths; i++)
            ck_assert_uint_eq(envelope->deaths[i]->attempt, i + 1);
    }
    dead_letter_walk_end(&walk);
    ck_assert_uint_eq(n, 2);
}

TEST(every_accepted_job_ends_exactly_once_among_crashing_ones)
{
    enum {
        N = 300
    };
    const uint64_t *n = group->cell->counts.n;

    for (int i = 0; i < N; i++)
        accepted(i % 10 == 0 ? "crash once" : i % 3 == 0 ? "no" : "yes");
    group_start(group);
    run_jobs();
    ck_assert_uint_eq(n[JOBS_SUCCEEDED] + n[JOBS_REJECTED], N);
    ck_assert_uint_eq(n[JOBS_DEAD] + n[JOBS_CANCELLED], 0);
    ck_assert_uint_eq(n[JOBS_RETRIES], N / 10);
    ck_assert_uint_eq(group->cell->counts.n[JOBS_LIVE], 0);
}

TEST(a_job_that_runs_out_of_time_takes_its_worker_with_it)
{
    config->timeout = 20 * USEC_PER_MSEC;
    config->max_retries = 0;
    struct job *job = accepted("hang");
    group_start(group);
    run_jobs();
    ck_assert_int_eq(job->state, JOB_DEAD);
    ck_assert_str_eq(job->reason, "its job ran out of time: killed by SIGTERM");
}

TEST(a_worker_that_gives_no_sign_of_life_is_aborted)
{
    config->watchdog = 20 * USEC_PER_MSEC;
    config->max_retries = 0;
    struct job *job = accepted("hang");
    group_start(group);
    run_jobs();
    ck_assert_int_eq(job->state, JOB_DEAD);
    ck_assert_ptr_nonnull(strstr(job->reason, "WatchdogSec: killed by SIGABRT"));
}

TEST(J5_a_queued_job_is_cancelled_at_once_and_only_once)
{
    struct job *job = accepted("hello");

    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), CELL_CANCEL_E_ENDED);
    ck_assert_uint_eq(n_ended, 1);
}

static struct job *running(const char *what)
{
    struct job *job = accepted(what);

    stop_when_started = true;
    group_start(group);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    stop_when_started = false;
    ck_assert_int_eq(job->state, JOB_RUNNING);
    return job;
}

TEST(J5_a_running_job_sees_the_cancel_flag)
{
    struct job *job = running("until cancelled");

    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), CELL_CANCEL_E_ALREADY);
    run_jobs();
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    ck_assert_uint_eq(parts.deaths.n_total, 0);
}

TEST(J5_a_job_that_ignores_the_flag_goes_down_the_stop_ladder_and_is_not_retried)
{
    config->timeout_stop = 20 * USEC_PER_MSEC;
    struct job *job = running("hang");
    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_jobs();
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    ck_assert_uint_eq(parts.deaths.n_total, 1);
    ck_assert_uint_eq(group->cell->counts.n[JOBS_RETRIES], 0);
}

TEST(J2_a_live_duplicate_is_refused)
{
    struct job *job, *second;

    ck_assert_int_eq(submit("a", "mine", &job), 0);
    ck_assert_int_eq(submit("b", "mine", &second), CELL_E_EXISTS);
    ck_assert_int_eq(submit("b", "bad id", &second), CELL_E_BAD_ID);
    ck_assert_uint_eq(group->cell->queue.n_jobs, 1);
}

TEST(beyond_its_bounds_the_queue_is_busy)
{
    struct job *job;

    config->queue_max = 2;
    ck_assert_int_eq(submit("a", "", &job), 0);
    ck_assert_int_eq(submit("b", "", &job), 0);
    ck_assert_int_eq(submit("c", "", &job), CELL_E_BUSY);
    config->queue_max = 10;
    config->queue_memory_max = 4;
    ck_assert_int_eq(submit("ddd", "", &job), CELL_E_BUSY);
    ck_assert_int_eq(submit("dd", "", &job), 0);
    ck_assert_uint_eq(group->cell->counts.n[JOBS_REFUSED], 2);
}

TEST(kept_results_are_bounded_and_the_oldest_goes_first)
{
    struct protocol_id id = {.name = "first"};
    struct job *job;

    kept_results_set_bounds(&group->results, config->result_ttl, 2, UINT64_MAX);
    ck_assert_int_eq(submit("a", "first", &job), 0);
    n_expected++;
    group_start(group);
    run_jobs();
    ck_assert_ptr_nonnull(job_by_id(&parts.jobs, &id));
    accepted("b");
    accepted("c");
    run_jobs();
    ck_assert_ptr_null(job_by_id(&parts.jobs, &id));
    ck_assert_uint_eq(group->results.n_jobs, 2);
}

TEST(P9_a_busy_worker_stops_after_its_job_and_stopping_twice_changes_nothing)
{
    struct job *job = running("until cancelled");
    struct slot *slot = job->slot;

    group_stop(group, false);
    group_stop(group, false);
    ck_assert_int_eq(slot->state, LIFECYCLE_STOPPING);
    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), 0); /* lets it finish */
    run_jobs();
    run_until(is_down);
    ck_assert_int_eq(slot->state, LIFECYCLE_STOPPED);
    ck_assert_int_eq(slot->last_death->cause, DEATH_STOP);
}

TEST(P7_resize_grows_and_shrinks_by_the_highest_slots)
{
    group_start(group);
    run_until(is_settled);
    ck_assert_int_eq(group_resize(group, 0), GROUP_E_BAD_SIZE);
    ck_assert_int_eq(group_resize(group, 4), 0);
    run_until(is_settled);
    ck_assert_uint_eq(group->cell->pool.n_slots, 4);
    ck_assert_uint_eq(group->cell->pool.slots[0]->generation, 1);
    ck_assert_int_eq(group_resize(group, 1), 0);
    run_until(is_settled);
    accepted("hello");
    run_jobs();
    ck_assert_uint_eq(group->cell->pool.n_slots, 1);
    ck_assert(slot_is_up(group->cell->pool.slots[0]));
    ck_assert_uint_eq(group->cell->pool.slots[0]->generation, 1);
}

TEST(a_paused_cell_accepts_and_hands_out_nothing)
{
    group_set_paused(group, true);
    group_start(group);
    struct job *job = accepted("hello");
    run_until(is_settled);
    ck_assert_int_eq(job->state, JOB_QUEUED);
    group_set_paused(group, false);
    run_jobs();
    ck_assert_int_eq(job->state, JOB_SUCCEEDED);
}

TEST(prefetched_jobs_are_done_in_order_by_one_worker)
{
    struct job *jobs[20];

    group_resize(group, 1);
    config->prefetch = 8;
    for (size_t i = 0; i < ELEMENTS(jobs); i++)
        jobs[i] = accepted("hello");
    group_start(group);
    run_jobs();
    for (size_t i = 0; i < ELEMENTS(jobs); i++) {
        ck_assert_int_eq(jobs[i]->state, JOB_SUCCEEDED);
        ck_assert_uint_eq(jobs[i]->attempt, 1);
        ck_assert(i == 0 || jobs[i]->ended_at >= jobs[i - 1]->ended_at);
    }
}

TEST(what_a_dead_worker_had_not_begun_costs_no_attempt)
{
    struct job *crash, *jobs[5];

    group_resize(group, 1);
    config->prefetch = 8;
    crash = accepted("crash");
    for (size_t i = 0; i < ELEMENTS(jobs); i++)
        jobs[i] = accepted("hello");
    group_start(group);
    run_jobs();
    ck_assert_int_eq(crash->state, JOB_DEAD);
    ck_assert_uint_eq(crash->attempt, config->max_retries + 1);
    for (size_t i = 0; i < ELEMENTS(jobs); i++) {
        ck_assert_int_eq(jobs[i]->state, JOB_SUCCEEDED);
        ck_assert_uint_eq(jobs[i]->attempt, 1);
        ck_assert_uint_eq(jobs[i]->n_attempts, 0);
    }
}

TEST(a_prefetched_job_that_is_cancelled_sees_the_flag_when_its_turn_comes)
{
    group_resize(group, 1);
    config->prefetch = 2;
    group_set_paused(group, true);
    struct job *first = accepted("until cancelled");
    struct job *second = accepted("until cancelled");
    group_set_paused(group, false);
    stop_when_started = true;
    group_start(group);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_int_eq(second->state, JOB_RUNNING);
    ck_assert(!second->started);
    stop_when_started = false;
    ck_assert_int_eq(cell_cancel(first, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(cell_cancel(second, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_jobs();
    ck_assert_int_eq(first->state, JOB_CANCELLED);
    ck_assert_int_eq(second->state, JOB_CANCELLED);
    ck_assert_uint_eq(parts.deaths.n_total, 0);
}

TEST(no_more_are_prefetched_after_the_work_has_run_out_once)
{
    struct job *jobs[5];
    unsigned n_running = 0;

    group_resize(group, 1);
    config->prefetch = 2;
    (void)accepted("hello");
    group_start(group);
    run_jobs();
    for (size_t i = 0; i < ELEMENTS(jobs); i++)
        jobs[i] = accepted("until cancelled");
    stop_when_started = true;
    ck_assert_int_eq(loop_run(parts.loop), 0);
    stop_when_started = false;
    for (size_t i = 0; i < ELEMENTS(jobs); i++)
        n_running += jobs[i]->state == JOB_RUNNING;
    ck_assert_uint_eq(n_running, 2);
    for (size_t i = ELEMENTS(jobs); i > 0; i--)
        ck_assert_int_eq(cell_cancel(jobs[i - 1], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_jobs();
}

TEST(the_clock_of_a_prefetched_job_begins_with_its_work)
{
    struct job *hang, *next;

    group_resize(group, 1);
    config->prefetch = 2;
    config->timeout = 50 * USEC_PER_MSEC;
    config->max_retries = 0;
    hang = accepted("hang");
    next = accepted("hello");
    group_start(group);
    run_jobs();
    ck_assert_int_eq(hang->state, JOB_DEAD);
    ck_assert_int_eq(next->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(next->attempt, 1);
}

static bool has_failed(void)
{
    return strcmp(group_state(group), "failed") == 0;
}

TEST(a_worker_that_dies_too_often_fails_until_it_is_reset)
{
    free(config->exec_start[0]);
    config->exec_start[0] = strdup("/bin/false");
    config->start_limit_burst = 3;
    group_start(group);
    run_until(has_failed);
    ck_assert_uint_eq(parts.deaths.n_total, 2 * 4);
    ck_assert_int_eq(group->cell->pool.slots[0]->state, LIFECYCLE_FAILED);
    group_reset(group);
    ck_assert_int_eq(group->cell->pool.slots[0]->state, LIFECYCLE_STARTING);
    run_until(has_failed);
}

static bool is_backing_off(void)
{
    return group->cell->pool.slots[0]->state == LIFECYCLE_BACKOFF;
}

TEST(J4_poison_jobs_end_dead_and_honest_ones_behind_them_succeed)
{
    struct job *poison[3], *honest;

    group_resize(group, 1);
    config->start_limit_burst = 5;
    config->max_retries = 3;
    for (size_t i = 0; i < ELEMENTS(poison); i++)
        poison[i] = accepted("crash");
    honest = accepted("hello");
    group_start(group);
    run_jobs();
    for (size_t i = 0; i < ELEMENTS(poison); i++)
        ck_assert_int_eq(poison[i]->state, JOB_DEAD);
    ck_assert_int_eq(honest->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(parts.deaths.n_total, 12);
    run_until(is_settled);
    ck_assert_str_ne(group_state(group), "failed");
    ck_assert_uint_eq(group->cell->pool.slots[0]->health.n_failures, 0);
}

static bool is_failing(void)
{
    return slot_is_failing(group->cell->pool.slots[0]);
}

static bool is_healthy(void)
{
    return !is_failing();
}

static bool is_up(void)
{
    return slot_is_up(group->cell->pool.slots[0]);
}

static unsigned count_events(const char *type)
{
    const struct event *event;
    unsigned n = 0;

    for (size_t i = 0; (event = event_kept(&parts.events, i)); i++)
        n += strcmp(event->type, type) == 0;
    return n;
}

TEST(a_worker_that_keeps_dying_is_in_trouble_until_one_has_done_a_job)
{
    char *program = config->exec_start[0];

    group_resize(group, 1);
    config->exec_start[0] = strdup("/bin/false");
    group_start(group);
    run_until(is_failing);
    ck_assert_str_eq(group_state(group), "degraded");
    ck_assert_uint_eq(count_events("worker.failing"), 1);
    ck_assert_uint_gt(group->cell->pool.slots[0]->health.since_at, 0);
    free(config->exec_start[0]);
    config->exec_start[0] = program;
    run_until(is_up);
    ck_assert_str_eq(group_state(group), "degraded");
    accepted("hello");
    run_jobs();
    ck_assert(!is_failing());
    ck_assert_str_eq(group_state(group), "running");
    ck_assert_uint_eq(count_events("worker.failing"), 1);
    ck_assert_uint_eq(count_events("worker.recovered"), 1);
}

TEST(a_worker_that_stays_up_for_long_enough_has_recovered)
{
    char *program = config->exec_start[0];

    group_resize(group, 1);
    config->reset_after = 50 * USEC_PER_MSEC;
    config->exec_start[0] = strdup("/bin/false");
    group_start(group);
    run_until(is_failing);
    free(config->exec_start[0]);
    config->exec_start[0] = program;
    run_until(is_up);
    run_until(is_healthy);
    ck_assert_uint_eq(count_events("worker.recovered"), 1);
}

TEST(a_program_that_is_not_there_is_a_retry_and_no_death)
{
    free(config->exec_start[0]);
    config->exec_start[0] = strdup("/nonexistent/program");
    config->min = config->max = USEC_PER_SEC;
    group_start(group);
    run_until(is_backing_off);
    ck_assert_uint_eq(parts.deaths.n_total, 0);
    ck_assert_uint_gt(group->cell->pool.slots[0]->restart_at, 0);
}

TEST(a_worker_gets_what_it_was_started_for_whatever_the_configuration_says_now)
{
    static char large[5001];

    memset(large, 'x', sizeof(large) - 1);
    group_start(group);
    run_until(is_settled);
    config->inline_max = 1024;
    config->max_retries = 0;
    struct job *job = accepted(large);
    run_jobs();
    ck_assert_int_eq(job->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(job->attempt, 1);
    ck_assert_uint_eq(job->result.size, 5000);
}

static unsigned n_running(void)
{
    unsigned n = 0;

    for (size_t i = 0; i < group->cell->pool.n_slots; i++)
        n += group->cell->pool.slots[i]->n_jobs > 0;
    return n;
}

TEST(a_retired_slot_can_be_neither_started_nor_restarted_nor_reset)
{
    struct job *jobs[2] = {accepted("until cancelled"), accepted("until cancelled")};
    struct slot *last = group->cell->pool.slots[1];

    stop_when_started = true;
    group_start(group);
    while (n_running() < 2)
        ck_assert_int_eq(loop_run(parts.loop), 0);
    stop_when_started = false;
    ck_assert_int_eq(group_resize(group, 1), 0);
    slot_start(last);
    slot_restart(last);
    slot_reset(last);
    ck_assert(!last->wanted);
    ck_assert(!last->restart_asked);
    ck_assert_int_eq(last->state, LIFECYCLE_STOPPING);
    ck_assert_int_eq(cell_cancel(jobs[0], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(cell_cancel(jobs[1], PROTOCOL_CAUSE_REQUESTED, 0), 0);
    run_jobs();
    run_until(is_settled);
    accepted("hello");
    run_jobs();
    ck_assert_uint_eq(group->cell->pool.n_slots, 1);
    ck_assert_uint_eq(group->cell->pool.slots[0]->generation, 1);
}

TEST(J1_no_time_out_is_none_and_a_longer_back_off_than_the_groups_is_given)
{
    struct cell_request request = request_of("error", "");
    struct job *job;

    request.options.timeout = USEC_INFINITY;
    request.options.backoff_min = USEC_PER_SEC;
    config->backoff_max = 1000;
    config->timeout = USEC_PER_SEC;
    ck_assert_int_eq(cell_submit(group->cell, &request, &job), 0);
    ck_assert_uint_eq(job->timeout, USEC_INFINITY);
    ck_assert_uint_eq(job->backoff_min, USEC_PER_SEC);
    ck_assert_uint_eq(job->backoff_max, USEC_PER_SEC);
    request.options.backoff_min = PROTOCOL_DEFAULT_USEC;
    ck_assert_int_eq(cell_submit(group->cell, &request, &job), 0);
    ck_assert_uint_eq(job->backoff_max, 1000);
}

static struct job *watched;

static void stop_in_backoff(struct job_waiter *waiter, struct job *job)
{
    if (job->state == JOB_BACKOFF || job_ended(job))
        loop_stop(parts.loop);
    if (job_ended(job))
        (void)job_waiter_free(&parts.jobs, waiter);
}

TEST(a_hand_over_for_which_there_is_no_descriptor_is_no_attempt)
{
    static char large[5001];
    struct cell_request request = request_of(large, "");
    struct rlimit limit, none;

    memset(large, 'x', sizeof(large) - 1);
    request.size = sizeof(large) - 1;
    request.options.max_retries = 0;
    request.changed = stop_in_backoff;
    config->inline_max = 1024; /* as a memory of its own, hence */
    group_start(group);
    run_until(is_settled);
    ck_assert_int_eq(cell_submit(group->cell, &request, &watched), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(watched->state, JOB_BACKOFF);
    ck_assert_uint_eq(watched->attempt, 0);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    ck_assert_int_eq(watched->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(watched->attempt, 1);
}

/* ---- spares ---- */

/* Whose end was told last goes without a word. */
static const struct slot *standby_of(const struct slot *slot)
{
    const struct slot *standby = slot->standby;

    return standby && (standby->wanted || !slot_is_down(standby)) ? standby : NULL;
}

/* Every place that is to have a spare has a ready one, and no other standby is there. */
static bool spares_stand_by(void)
{
    const struct cell *cell = group->cell;

    if (!is_settled())
        return false;
    for (size_t i = 0; i < cell->pool.size; i++) {
        const struct slot *standby = standby_of(cell->pool.slots[i]);
        if ((standby != NULL) != (i < config->spare) ||
            (standby && (standby->role != SLOT_SPARE || !slot_is_up(standby))))
            return false;
    }
    return true;
}

TEST(a_spare_takes_the_place_of_one_that_dies_and_gets_a_successor)
{
    group_resize(group, 1);
    config->spare = 1;
    group_start(group);
    run_until(spares_stand_by);
    const struct slot *spare = group->cell->pool.slots[0]->standby;
    struct job *job = accepted("crash once");
    run_jobs();
    ck_assert_int_eq(job->state, JOB_SUCCEEDED);
    ck_assert_uint_eq(job->attempt, 2);
    ck_assert_ptr_eq(group->cell->pool.slots[0], spare);
    ck_assert_uint_eq(spare->generation, 2);
    ck_assert_uint_eq(spare->n_restarts, 1);
    ck_assert_uint_eq(spare->worker.jobs_done, 1);
    run_until(spares_stand_by);
    ck_assert_ptr_eq(group->cell->pool.slots[0], spare);
    ck_assert_uint_eq(spare->standby->generation, 3);
}

static pid_t killed;

static bool who_was_killed_is_replaced(void)
{
    return spares_stand_by() && group->cell->pool.slots[0]->worker.process.pid != killed &&
           group->cell->pool.slots[0]->standby->worker.process.pid != killed;
}

static void kill_worker(const struct slot *slot)
{
    killed = slot->worker.process.pid;
    ck_assert_int_eq(kill(killed, SIGKILL), 0);
    run_until(who_was_killed_is_replaced);
}

TEST(no_two_of_a_place_have_the_same_generation_whoever_dies)
{
    group_resize(group, 1);
    config->spare = 1;
    group_start(group);
    run_until(spares_stand_by);
    kill_worker(group->cell->pool.slots[0]->standby);
    ck_assert_uint_eq(group->cell->pool.slots[0]->generation, 1);
    ck_assert_uint_eq(group->cell->pool.slots[0]->standby->generation, 3);
    kill_worker(group->cell->pool.slots[0]);
    const struct slot *place = group->cell->pool.slots[0];
    ck_assert_uint_eq(place->generation, 3);
    ck_assert_uint_eq(place->standby->generation, 4);
    /* The next one is above both, whichever of them it follows. */
    group_restart(group);
    run_until(spares_stand_by);
    ck_assert_uint_gt(group->cell->pool.slots[0]->generation, 4);
    ck_assert_uint_gt(group->cell->pool.slots[0]->standby->generation,
                      group->cell->pool.slots[0]->generation);
}

TEST(spares_go_with_their_places_and_with_the_configuration)
{
    config->spare = 3;
    group_resize(group, 3);
    group_start(group);
    run_until(spares_stand_by);
    group_resize(group, 1);
    run_until(spares_stand_by);
    config->spare = 0;
    pool_take_config(&group->cell->pool, group->config);
    run_until(spares_stand_by);
    ck_assert_ptr_null(standby_of(group->cell->pool.slots[0]));
    group_stop(group, false);
    run_until(is_down);
    config->spare = 1;
    pool_take_config(&group->cell->pool, group->config);
    group_start(group);
    run_until(spares_stand_by);
}

const struct suite suite = {.name = "cell", .setup = setup, .teardown = teardown};
