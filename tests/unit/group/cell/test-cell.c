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

    if (strcmp(what, "crash") == 0)
        raise(SIGKILL);
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
    config->size = (struct config_size){size, size};
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
        bool wanted = slot->plan != SLOT_OFF;
        bool stays = slot->index < group->cell->pool.size;

        census.n[CENSUS_SLOT]++;
        census.n[CENSUS_DOWN] += slot_is_down(slot);
        census.n[CENSUS_PLACE] += stays;
        census.n[CENSUS_EMPTY] += stays && slot_is_down(slot);
        census.n[CENSUS_FAILED] += slot->state == LIFECYCLE_FAILED;
        census.n[CENSUS_TROUBLE] += slot->state == LIFECYCLE_FAILED ||
                                    slot->state == LIFECYCLE_BACKOFF ||
                                    (stays && slot_is_failing(slot)) ||
                                    (slot->state == LIFECYCLE_STARTING && slot->last_death &&
                                     slot->last_death->cause == DEATH_START_TIMEOUT);
        census.n[CENSUS_MEMBER] += member && (stays || !slot_is_down(slot));
        census.n[CENSUS_UP] += member && slot_is_up(slot);
        census.n[CENSUS_WANTED] += member && wanted;
        census.n[CENSUS_UNWANTED] += member && !wanted && !slot->retired;
        census.n[CENSUS_UNDECIDED] +=
            member && wanted &&
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
        if (slot->plan == SLOT_AGAIN || !(slot_is_up(slot) || slot_is_down(slot)))
            return false;
        if (slot->plan == SLOT_ON && slot->state == LIFECYCLE_STOPPED)
            return false;
    }
    return true;
}

static void teardown(void)
{
    close_group(group, "it is over");
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

TEST(J5_a_queued_job_is_cancelled_at_once_and_only_once)
{
    struct job *job = accepted("hello");

    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), CELL_CANCEL_E_ENDED);
    ck_assert_uint_eq(n_ended, 1);
}

/* ---- memory of idle workers ---- */

static char directory[32];

static int open_file(const char *name, int flags)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Returns whether all memory was taken back since the last call. */
static bool is_reclaimed(void)
{
    int fd = open_file("memory.reclaim", O_RDWR);
    char text[16] = "";
    const bool has = read(fd, text, sizeof(text) - 1) > 0;

    ck_assert_int_eq(ftruncate(fd, 0), 0);
    close_fd(fd);
    ck_assert_str_eq(text, has ? "4096" : "");
    return has;
}

static bool rests(void)
{
    return !timer_armed(&group->cell->pool.slots[0]->reclaim_timer) && is_reclaimed();
}

TEST(memory_is_reclaimed_once_whenever_a_worker_has_become_idle)
{
    struct slot *slot;
    int fd;

    strcpy(directory, "/tmp/test-cell-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    fd = open_file("memory.current", O_WRONLY);
    ck_assert_int_eq(write(fd, "4096", 4), 4);
    close_fd(fd);
    ck_assert(!is_reclaimed()); /* makes the file */
    config->memory_reclaim = USEC_PER_MSEC;
    group_resize(group, 1);
    group_start(group);
    slot = group->cell->pool.slots[0];
    run_until(is_settled);
    slot->worker.process.cgroup.fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 3; i++) {
        accepted("hello");
        run_jobs();
        run_until(rests);
    }
    slot->worker.process.cgroup.fd = close_fd(slot->worker.process.cgroup.fd);
    (void)is_reclaimed();
    for (size_t i = 0; i < 2; i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "%s/%s", directory,
                       i == 0 ? "memory.current" : "memory.reclaim");
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_int_eq(rmdir(directory), 0);
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

/* ---- spares ---- */

/* Whose end was told last goes without a word. */
static const struct slot *standby_of(const struct slot *slot)
{
    const struct slot *standby = slot->standby;

    return standby && (standby->plan != SLOT_OFF || !slot_is_down(standby)) ? standby : NULL;
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

/* ---- limits: jobs are set aside, and return, in parts ---- */

static struct loop_deferred probe;
static uint64_t n_aside, n_aside_wanted, largest_rise, largest_fall;

static void on_probe(struct loop_deferred *deferred)
{
    const uint64_t now = group->limits.n_aside;

    if (now > n_aside && now - n_aside > largest_rise)
        largest_rise = now - n_aside;
    if (now < n_aside && n_aside - now > largest_fall)
        largest_fall = n_aside - now;
    n_aside = now;
    if (now == n_aside_wanted)
        loop_stop(parts.loop);
    else
        loop_defer(parts.loop, deferred);
}

/* Runs turns until so many jobs are set aside, or all have ended. */
static void run_until_aside(uint64_t wanted)
{
    n_aside_wanted = wanted;
    loop_deferred_init(&probe, on_probe);
    loop_defer(parts.loop, &probe);
    ck_assert_int_eq(loop_run(parts.loop), 0);
    loop_undefer(&probe);
}

static void submit_with_key(const char *what, const char *key)
{
    struct cell_request request = request_of(what, "");
    struct job *job;

    request.changed = on_change;
    request.key = key;
    request.key_size = (uint32_t)strlen(key);
    ck_assert_int_eq(cell_submit(group->cell, &request, &job), 0);
    n_expected++;
}

static void change_limits(void)
{
    limits_change(&group->limits, config);
    limits_end_change(&group->limits);
}

TEST(Q7_a_long_queue_of_a_key_at_its_limit_takes_several_turns)
{
    config->limits.running = 1;
    config->running_per = CONFIG_LIMIT_PER_KEY;
    change_limits();
    for (unsigned i = 0; i < 5001; i++)
        submit_with_key("until cancelled", "key");
    group_start(group);
    run_until_aside(5000);
    ck_assert_uint_le(largest_rise, 1024);
}

static void start_with_keys(usec_t period)
{
    char key[16];

    config->limits.rate = (struct config_rate){.n = 1, .period = period};
    config->rate_per = CONFIG_LIMIT_PER_KEY;
    change_limits();
    limits_take_over(&group->limits);
    for (unsigned i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof(key), "%u", i);
        submit_with_key("hello", key);
    }
    group_start(group);
}

TEST(Q7_many_keys_whose_rates_permit_a_job_at_the_same_time_take_several_turns)
{
    start_with_keys(300 * USEC_PER_MSEC);
    run_until_aside(UINT64_MAX);
    ck_assert_uint_eq(n_ended, 2000);
    ck_assert_uint_le(largest_fall, 256);
}

TEST(Q7_a_change_of_limits_looks_at_many_keys_in_several_turns)
{
    start_with_keys(3600 * USEC_PER_SEC);
    run_until_aside(2000);
    config->limits.rate.n = 0;
    change_limits();
    run_until_aside(UINT64_MAX);
    ck_assert_uint_eq(n_ended, 2000);
    ck_assert_uint_le(largest_fall, 256);
    ck_assert(!limits_exist(&group->limits));
}

TEST(Q7_keys_without_jobs_are_remembered_up_to_a_number)
{
    char key[16];
    struct job job = {.key = key, .cell = group->cell};

    config->limits.rate = (struct config_rate){.n = 1, .period = 24 * 3600 * USEC_PER_SEC};
    config->rate_per = CONFIG_LIMIT_PER_KEY;
    change_limits();
    for (unsigned i = 0; i <= LIMIT_IDLE_MAX; i++) {
        job.key_size = (uint8_t)snprintf(key, sizeof(key), "%u", i);
        ck_assert_int_eq(limits_begin(&group->limits, &job, true), 0);
        limits_end(&group->limits, &job, true);
    }
    ck_assert_int_eq(limits_of_job(&group->limits, &job).gate, LIMIT_RATE);
    job.key_size = (uint8_t)snprintf(key, sizeof(key), "1");
    ck_assert_int_eq(limits_of_job(&group->limits, &job).gate, LIMIT_RATE);
    job.key_size = (uint8_t)snprintf(key, sizeof(key), "0");
    ck_assert_int_eq(limits_of_job(&group->limits, &job).gate, LIMIT_NONE);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
