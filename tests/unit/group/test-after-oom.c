/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "tests/unit/parts-fixture.h"
#include "tests/unit/suite.h"

/*
 * Two groups that are never started: the tests say when a worker dies, and when a pause is over.
 */

static struct parts parts;
static struct config_daemon daemon_config;
static struct group *from, *big;
static char events[1024]; /* "type group, " … of jobs */

static void on_event(struct job_subscriber *subscriber, const struct event *event)
{
    const size_t size = strlen(events);

    (void)snprintf(events + size, sizeof(events) - size, "%s %s, ", event->type, event->group);
}

static struct job_subscriber subscriber = {.fn = on_event, .untraced = true};

static enum config_cells cells;

static struct group *make_group(const char *name, const char *on_oom)
{
    struct config_group *config = new_group_config(name);

    config->cells = cells;
    config->on_oom = on_oom ? strdup(on_oom) : NULL;
    config->timeout = on_oom ? USEC_PER_SEC : 9 * USEC_PER_SEC;
    return add_group(&parts, config);
}

static void setup(void)
{
    set_up_parts(&parts, &daemon_config, -1);
    event_subscribe_jobs(&parts.events, &subscriber, NULL);
    from = make_group("small", "big");
    big = make_group("big", NULL);
}

static void teardown(void)
{
    remove_group(&parts, from);
    if (big)
        remove_group(&parts, big);
    event_unsubscribe_jobs(&parts.events, &subscriber);
    tear_down_parts(&parts);
}

static struct job *submit(uint32_t max_retries)
{
    struct cell_request request = {.name = "it",
                                   .key = "key",
                                   .key_size = 3,
                                   .keep_result = true,
                                   .options = JOB_OPTIONS_DEFAULT,
                                   .data = "data",
                                   .size = 4};
    struct job *job;

    request.options.max_retries = max_retries;
    ck_assert_int_eq(group_submit(from, &request, &job), 0);
    return job;
}

/* A worker takes the job, and dies. */
static void die_of(struct job *job, enum death_cause cause)
{
    struct cell *cell = job->cell;
    struct death death = {.cause = cause, .worker = "worker/0", .detail = "died"};

    queue_remove(&cell->queue, job);
    job_set_state(job, JOB_RUNNING);
    job->attempt++;
    job_count(&cell->counts, JOBS_RUNNING, 1);
    cell_job_lost(&cell->pool, job, &death);
}

static void end_pause(struct job *job)
{
    struct alarm *alarm = &job->pause->alarm;

    ck_assert_int_eq(job->state, JOB_BACKOFF);
    alarm_stop(alarm);
    alarm->fn(alarm);
}

static void expect_in(const struct group *group, const struct job *job)
{
    const struct group *other = group == big ? from : big;

    ck_assert_ptr_eq(job->group, group);
    ck_assert_ptr_eq(job->cell, group->cell);
    ck_assert_int_eq(job->state, JOB_QUEUED);
    ck_assert_ptr_eq(queue_first(&group->cell->queue), job);
    ck_assert_uint_eq(group->counts.n[JOBS_LIVE], 1);
    ck_assert_uint_eq(group->counts.n[JOBS_BYTES], 4);
    ck_assert_uint_eq(group->counts.n[JOBS_BACKOFF], 0);
    if (!other)
        return;
    ck_assert_uint_eq(other->counts.n[JOBS_LIVE], 0);
    ck_assert_uint_eq(other->counts.n[JOBS_BYTES], 0);
    ck_assert_uint_eq(other->counts.n[JOBS_BACKOFF], 0);
    ck_assert_ptr_null(queue_first(&other->cell->queue));
}

TEST(I5_a_job_that_ran_out_of_memory_goes_on_in_the_group_that_is_named)
{
    struct job *job = submit(3);

    die_of(job, DEATH_OOM);
    ck_assert_ptr_eq(job->group, from);
    end_pause(job);
    expect_in(big, job);
    ck_assert(job->moved);
    ck_assert_uint_eq(job->attempt, 1);
    ck_assert_uint_eq(job->n_failed, 1);
    ck_assert_uint_eq(job->max_retries, 3);
    ck_assert_uint_eq(job->timeout, 9 * USEC_PER_SEC);
    ck_assert_mem_eq(job->key, "key", 3);
    ck_assert_mem_eq(payload_data(&job->payload), "data", 4);
    ck_assert_str_eq(events, "job.accepted small, job.retried small, job.moved small, ");
}

TEST(I5_it_moves_even_without_retries_and_only_once)
{
    struct job *job = submit(0);

    die_of(job, DEATH_OOM);
    end_pause(job);
    expect_in(big, job);
    die_of(job, DEATH_OOM);
    ck_assert_int_eq(job->state, JOB_DEAD);
    ck_assert_str_eq(job->reason, "tried with more memory already: died");
    ck_assert_ptr_eq(job->group, big);
    ck_assert_uint_eq(job->attempt, 2);
    ck_assert_uint_eq(big->counts.n[JOBS_DEAD], 1);
    ck_assert_uint_eq(from->counts.n[JOBS_DEAD], 0);
}

TEST(I5_out_of_memory_twice_is_the_end_also_with_retries_left)
{
    struct job *job = submit(5);

    die_of(job, DEATH_OOM);
    end_pause(job);
    die_of(job, DEATH_SIGNAL);
    end_pause(job);
    expect_in(big, job);
    die_of(job, DEATH_OOM);
    ck_assert_int_eq(job->state, JOB_DEAD);
}

TEST(I5_other_deaths_do_not_move_a_job)
{
    struct job *job = submit(1);

    die_of(job, DEATH_SIGNAL);
    end_pause(job);
    expect_in(from, job);
    die_of(job, DEATH_OOM);
    end_pause(job);
    expect_in(big, job);
    die_of(job, DEATH_SIGNAL); /* the third attempt that failed, of two: the move was one more */
    ck_assert_int_eq(job->state, JOB_DEAD);
    ck_assert_str_eq(job->reason, "died");
}

TEST(I5_without_room_there_it_follows_its_policy_here)
{
    struct job *job = submit(1);

    big->config->queue_memory_max = 3;
    die_of(job, DEATH_OOM);
    end_pause(job);
    expect_in(from, job);
    ck_assert(!job->moved);
    die_of(job, DEATH_OOM);
    end_pause(job);
    ck_assert_int_eq(job->state, JOB_DEAD);
    ck_assert_ptr_nonnull(strstr(job->reason, "OnOom="));
    ck_assert_ptr_eq(job->group, from);
}

TEST(I5_jobs_of_a_submitter_leave_half_of_the_queue_there_to_others)
{
    struct cell_request request = {.name = "",
                                   .submitter_uid = 7,
                                   .bounded = true,
                                   .options = JOB_OPTIONS_DEFAULT,
                                   .data = ""};
    struct job *job = NULL;

    big->config->queue_max = 4;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(group_submit(from, &request, &job), 0);
        die_of(job, DEATH_OOM);
        end_pause(job);
    }
    ck_assert_uint_eq(big->counts.n[JOBS_LIVE], 2);
    ck_assert_ptr_eq(job->group, from);
}

TEST(I5_jobs_of_a_submitter_leave_half_of_the_cells_there_to_others)
{
    char key[2] = "a";
    struct cell_request request = {.name = "",
                                   .key = key,
                                   .key_size = 1,
                                   .submitter_uid = 7,
                                   .bounded = true,
                                   .options = JOB_OPTIONS_DEFAULT,
                                   .data = ""};
    struct job *job = NULL;

    remove_group(&parts, from);
    remove_group(&parts, big);
    cells = CONFIG_CELLS_BY_KEY;
    from = make_group("small", "big");
    big = make_group("big", NULL);
    big->config->cells_max = 4;
    for (; key[0] < 'd'; key[0]++) {
        ck_assert_int_eq(group_submit(from, &request, &job), 0);
        die_of(job, DEATH_OOM);
        end_pause(job);
    }
    ck_assert_uint_eq(big->cells.n_cells, 2);
    ck_assert_ptr_eq(job->group, from);
}

TEST(I5_a_job_that_is_not_taken_leaves_no_cell_behind)
{
    remove_group(&parts, from);
    remove_group(&parts, big);
    cells = CONFIG_CELLS_BY_KEY;
    from = make_group("small", "big");
    big = make_group("big", NULL);
    big->config->queue_memory_max = 3;
    struct job *job = submit(3);
    die_of(job, DEATH_OOM);
    end_pause(job);
    ck_assert_ptr_eq(job->group, from);
    ck_assert_uint_eq(big->cells.n_cells, 0);
    ck_assert_int_eq(group_move_job(big, job), CELL_E_TOO_LARGE);
    ck_assert_uint_eq(big->cells.n_cells, 0);
}

TEST(I5_a_group_that_drains_or_is_gone_takes_none)
{
    struct job *job = submit(3);

    group_drain(big);
    die_of(job, DEATH_OOM);
    end_pause(job);
    expect_in(from, job);
    remove_group(&parts, TAKE_PTR(big));
    die_of(job, DEATH_OOM);
    end_pause(job);
    expect_in(from, job);
}

TEST(I5_with_cells_it_goes_on_in_that_of_its_key)
{
    remove_group(&parts, from);
    remove_group(&parts, big);
    cells = CONFIG_CELLS_BY_KEY;
    from = make_group("small", "big");
    big = make_group("big", NULL);
    struct job *job = submit(3);
    struct cell *own = job->cell;
    die_of(job, DEATH_OOM);
    end_pause(job);
    struct cell *other = group_find_cell(big, "key", 3);
    ck_assert_ptr_nonnull(other);
    ck_assert_ptr_eq(job->cell, other);
    ck_assert_str_eq(other->name, "big/key");
    ck_assert_ptr_eq(queue_first(&other->queue), job);
    ck_assert_uint_eq(big->counts.n[JOBS_LIVE], 1);
    ck_assert_uint_eq(other->counts.n[JOBS_LIVE], 1);
    ck_assert_uint_eq(own->counts.n[JOBS_LIVE], 0);
    ck_assert_uint_eq(from->counts.n[JOBS_LIVE], 0);
    ck_assert(!list_linked(&own->live_link));
    ck_assert(list_linked(&other->live_link));
}

/* As if so many other cells had been visited that the turn for this one comes later. */
static void delay_visits(void)
{
    parts.registry.walks.at = loop_now(parts.loop);
    parts.registry.walks.left = 0;
}

TEST(I5_a_cell_that_has_not_been_told_of_a_reload_still_has_its_group)
{
    struct config_group *config = new_group_config("small");

    config->cells = cells = CONFIG_CELLS_BY_KEY;
    remove_group(&parts, from);
    from = make_group("small", "big");
    struct job *job = submit(3);
    die_of(job, DEATH_OOM);
    delay_visits();
    ck_assert_int_eq(group_reconfigure(from, config), 0);
    end_pause(job);
    ck_assert_ptr_eq(job->group, big);
}

TEST(I5_it_can_be_cancelled_before_and_after_it_has_moved)
{
    struct job *job = submit(3);

    die_of(job, DEATH_OOM);
    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    ck_assert_uint_eq(from->counts.n[JOBS_CANCELLED], 1);
    kept_results_drop(job);
    job = submit(3);
    die_of(job, DEATH_OOM);
    end_pause(job);
    ck_assert_int_eq(cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(job->state, JOB_CANCELLED);
    ck_assert_uint_eq(big->counts.n[JOBS_CANCELLED], 1);
    ck_assert_uint_eq(big->counts.n[JOBS_LIVE], 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
