/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group-private.h"
#include "supervisor/pool/slot/slot.h"
#include "tests/unit/parts-fixture.h"
#include "tests/unit/suite.h"

/*
 * A group with a cell for each key. It is never started: jobs wait, slots are stopped, and time
 * passes only when a test says so.
 */

static struct parts parts;
static struct config_daemon daemon_config;
static struct config_group *config;
static struct group *group;
static char events[1024]; /* "type cell, " … */

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    size_t size = strlen(events);

    snprintf(events + size, sizeof(events) - size, "%s %s, ", event->type,
             event->cell ? event->cell : event->group);
}

static struct event_subscriber subscriber = {.fn = on_event};

static void make_group(enum config_cells cells)
{
    config = new_group_config("mail");
    config->size = (struct config_size){2, 2};
    config->cells = cells;
    config->cells_max = 3;
    config->cell_idle = USEC_PER_SEC;
    group = add_group(&parts, config);
}

/* What the group keeps of its cells, against a look at all of them. */
static void check_sums(void)
{
    uint64_t queued = 0, running = 0, backoff = 0, waiters = 0;
    struct census all = {0};

    group_each_cell (cell, group) {
        queued += cell->queue.n_jobs;
        running += cell->counts.n[JOBS_RUNNING];
        backoff += cell->counts.n[JOBS_BACKOFF];
        waiters += cell->counts.n[JOBS_WAITERS];
        for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++)
            all.n[i] += cell->pool.census.n[i];
        ck_assert_uint_eq(cell->pool.census.n[CENSUS_MEMBER], cell->pool.n_slots);
    }
    ck_assert_uint_eq(job_counts_queued(&group->counts), queued);
    ck_assert_uint_eq(group->counts.n[JOBS_RUNNING], running);
    ck_assert_uint_eq(group->counts.n[JOBS_BACKOFF], backoff);
    ck_assert_uint_eq(group->counts.n[JOBS_WAITERS], waiters);
    for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++) {
        ck_assert_uint_eq(group->pools.census.n[i], all.n[i]);
        ck_assert_uint_eq(parts.registry.census.n[i], all.n[i]);
    }
}

static void drop_group(void)
{
    check_sums();
    remove_group(&parts, group);
}

static void setup(void)
{
    set_up_parts(&parts, &daemon_config, -1);
    event_subscribe(&parts.events.subscribers, &subscriber);
    make_group(CONFIG_CELLS_BY_KEY);
}

static void teardown(void)
{
    drop_group();
    event_unsubscribe(&subscriber);
    tear_down_parts(&parts);
}

static int submit_data(const char *key, size_t size, const char *id, struct job **ret)
{
    static char data[1 << 20];
    struct job *job;
    const struct cell_request request = {
        .name = id,
        .key = key,
        .key_size = (uint32_t)strlen(key),
        .options = JOB_OPTIONS_DEFAULT,
        .data = data,
        .size = size,
    };

    return group_submit(group, &request, ret ? ret : &job);
}

static int submit(const char *key)
{
    return submit_data(key, 4, "", NULL);
}

static struct cell *cell_of(const char *key)
{
    return group_find_cell(group, key, strlen(key));
}

static struct job *first_job(const char *key)
{
    return queue_first(&cell_of(key)->queue);
}

/* What the end of a turn does. */
static void end_turn(struct cell *cell)
{
    loop_undefer(&cell->dispatch);
    cell->dispatch.fn(&cell->dispatch);
}

/* As if so much time had passed for it. */
static void idle_for(struct cell *cell, usec_t time)
{
    timer_disarm(loop_timers(parts.loop), &cell->idle_timer);
    cell->idle_timer.fn(&cell->idle_timer, cell->idle_since + time);
}

TEST(without_cells_a_key_is_only_the_jobs)
{
    struct job *job;

    drop_group();
    make_group(CONFIG_CELLS_NONE);
    ck_assert(!group_is_keyed(group));
    ck_assert_int_eq(submit_data("a/b", 4, "", &job), 0);
    ck_assert_int_eq(submit(""), 0);
    ck_assert_ptr_eq(job->cell, group->cell);
    ck_assert_str_eq(group->cell->name, "mail");
    ck_assert_str_eq(group->cell->pool.slots[0]->name, "mail/0");
    ck_assert_ptr_null(pool_event_name(&group->cell->pool));
    ck_assert_ptr_eq(group_next_cell(group, NULL), group->cell);
    ck_assert_ptr_null(group_next_cell(group, group->cell));
}

TEST(a_refused_job_leaves_no_cell_behind)
{
    ck_assert_int_eq(submit_data("a", 4, "mine", NULL), 0);
    ck_assert_int_eq(submit_data("b", 4, "mine", NULL), CELL_E_EXISTS);
    ck_assert_int_eq(submit_data("b", 4, "bad id", NULL), CELL_E_BAD_ID);
    ck_assert_uint_eq(group->cells.n_cells, 1);
    ck_assert_str_eq(events, "cell.created mail/a, ");
}

TEST(a_group_that_goes_away_makes_no_cells)
{
    ck_assert_int_eq(submit("a"), 0);
    close_group(group, "it is over");
    ck_assert_int_eq(submit("a"), CELL_E_STOPPING);
    ck_assert_int_eq(submit("b"), CELL_E_STOPPING);
    ck_assert_uint_eq(group->counts.n[JOBS_LIVE], 0);
    group_reopen(group);
    ck_assert_int_eq(submit("b"), 0);
}

/* ---- closed cells ---- */

static unsigned n_turned_away;

static void on_turned_away(struct cell_waiter *waiter)
{
    n_turned_away++;
}

static void submit_many(const char *key, unsigned n)
{
    config->queue_max = n;
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(submit(key), 0);
}

/* Returns whether another turn follows. */
static bool close_turn(void)
{
    struct loop_deferred *turn = &parts.registry.closings.turn;

    loop_undefer(turn);
    turn->fn(turn);
    return list_linked(&turn->link);
}

TEST(the_jobs_of_a_closed_group_end_in_several_turns_and_none_begins)
{
    uint64_t before = 3000;
    unsigned n_turns = 1;

    submit_many("a", 2000);
    submit_many("b", 1000);
    group_close(group, "it is over");
    ck_assert_int_eq(submit("a"), CELL_E_STOPPING);
    ck_assert_uint_eq(group->counts.n[JOBS_LIVE], before);
    ck_assert(!cell_of("a")->pool.handler->has_job(&cell_of("a")->pool));
    for (; close_turn(); n_turns++) {
        ck_assert_uint_gt(group->counts.n[JOBS_LIVE], before - 1025);
        before = group->counts.n[JOBS_LIVE];
    }
    ck_assert_uint_eq(n_turns, 3);
    ck_assert_uint_eq(group->counts.n[JOBS_LIVE], 0);
    ck_assert_uint_eq(group->counts.n[JOBS_CANCELLED], 3000);
}

TEST(a_group_that_takes_jobs_again_keeps_those_that_have_not_ended)
{
    submit_many("a", 2000);
    group_close(group, "it is over");
    ck_assert(close_turn());
    group_reopen(group);
    ck_assert(!close_turn());
    ck_assert_uint_gt(group->counts.n[JOBS_LIVE], 900);
    ck_assert(cell_of("a")->pool.handler->has_job(&cell_of("a")->pool));
    ck_assert(!close_turn());
}

TEST(a_group_that_is_removed_is_over_once_its_last_job_has_ended)
{
    submit_many("a", 2000);
    group_remove(group);
    ck_assert(close_turn());
    end_turn(cell_of("a"));
    ck_assert_int_eq(group->removal, GROUP_REMOVED);
    ck_assert(!close_turn());
    end_turn(cell_of("a"));
    ck_assert_int_eq(group->removal, GROUP_OVER);
}

TEST(a_group_that_is_over_is_freed_in_several_turns)
{
    size_t before = 200;
    unsigned n_turns = 1;
    char key[8];

    config->cells_max = before;
    for (size_t i = 0; i < before; i++) {
        (void)snprintf(key, sizeof(key), "%zu", i);
        ck_assert_int_eq(submit(key), 0);
    }
    close_group(group, "it is over");
    for (; !group_clear(group); n_turns++) {
        ck_assert_uint_lt(before - group->cells.n_cells, 100); /* with two slots each */
        before = group->cells.n_cells;
    }
    ck_assert_uint_gt(n_turns, 2);
    ck_assert_uint_eq(group->cells.n_cells, 0);
}

/* ---- commands to very many cells ---- */

#define MANY 1000

static struct cell *many_cells[MANY]; /* with a job each */

static void make_many_cells(void)
{
    char key[24];

    config->cells_max = MANY;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof(key), "%zu", i);
        ck_assert_int_eq(submit(key), 0);
        many_cells[i] = cell_of(key);
        loop_undefer(&many_cells[i]->dispatch);
    }
}

/* Returns whether another turn follows. */
static bool visit_turn(void)
{
    struct loop_deferred *turn = &parts.registry.walks.turn;

    loop_undefer(turn);
    turn->fn(turn);
    return list_linked(&turn->link);
}

static size_t count_awake(void)
{
    size_t n = 0;

    group_each_cell (cell, group)
        n += list_linked(&cell->dispatch.link);
    return n;
}

static size_t count_paused(void)
{
    size_t n = 0;

    group_each_cell (cell, group)
        n += cell->pause == CELL_PAUSED;
    return n;
}

TEST(very_many_cells_look_at_their_jobs_in_several_turns)
{
    size_t n_turns = 1;

    make_many_cells();
    group_wake_cells(group);
    do {
        ck_assert_uint_gt(count_awake(), 0);
        ck_assert_uint_le(count_awake(), n_turns * 512);
        n_turns++;
    } while (visit_turn());
    ck_assert_uint_eq(count_awake(), MANY);
    ck_assert(!group_is_visited(group));
}

TEST(a_cell_that_is_touched_has_carried_out_all_commands)
{
    struct registry_target target;

    make_many_cells();
    group_set_paused(group, true);
    ck_assert(group_is_visited(group));
    ck_assert_uint_lt(count_paused(), MANY);
    ck_assert_int_eq(many_cells[MANY - 1]->pause, CELL_RUNS);
    ck_assert_int_eq(registry_resolve(&parts.registry, "mail/999", &target), 0);
    ck_assert_int_eq(target.cell->pause, CELL_PAUSED);
    ck_assert_int_eq(many_cells[MANY - 2]->pause, CELL_RUNS);
    end_turn(many_cells[MANY - 2]);
    ck_assert_int_eq(many_cells[MANY - 2]->pause, CELL_PAUSED);
    ck_assert_int_eq(submit("997"), 0);
    ck_assert_int_eq(many_cells[MANY - 3]->pause, CELL_PAUSED);
    ck_assert_int_eq(submit("new"), CELL_E_TOO_MANY);
}

TEST(commands_are_carried_out_in_their_order)
{
    struct registry_target target;

    make_many_cells();
    group_set_paused(group, true);
    ck_assert_int_eq(registry_resolve(&parts.registry, "mail/999", &target), 0);
    ck_assert_int_eq(group_set_cell_paused(target.cell, false), 0);
    ck_assert_int_eq(group_resize(group, 3), 0);
    group_start(group);
    group_stop(group, false);
    while (visit_turn()) {
    }
    ck_assert_uint_eq(count_paused(), MANY - 1);
    ck_assert_int_eq(target.cell->pause, CELL_RUNS);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(many_cells[i]->pool.size, 3);
        ck_assert(!many_cells[i]->pool.wanted);
        for (size_t j = 0; j < 3; j++)
            ck_assert_int_eq(many_cells[i]->pool.slots[j]->state, LIFECYCLE_STOPPED);
    }
}

TEST(more_commands_than_can_be_noted_end_the_wait_for_the_earlier_ones)
{
    make_many_cells();
    for (unsigned i = 0; i <= CELL_COMMANDS_MAX; i++)
        group_set_paused(group, i % 2 == 0);
    ck_assert_uint_eq(group->commands.n, 1);
    while (visit_turn()) {
    }
    ck_assert_uint_eq(count_paused(), MANY);
    ck_assert_uint_eq(group->commands.n, 0);
}

TEST(cells_have_the_former_configuration_until_they_are_told)
{
    struct config_group *next = new_group_config("mail"), *last = new_group_config("mail");

    make_many_cells();
    for (struct config_group *each = next; each; each = each == next ? last : NULL) {
        each->size = (struct config_size){each == next ? 1 : 3, each == next ? 1 : 3};
        each->cells = CONFIG_CELLS_BY_KEY;
        each->cells_max = MANY;
        each->queue_max = each == next ? 1 : 7;
        ck_assert_int_eq(group_reconfigure(group, each), 0);
        ck_assert_ptr_eq(group->config, each);
    }
    ck_assert_ptr_eq(many_cells[MANY - 1]->config, config);
    ck_assert_int_eq(submit("999"), 0); /* one is the limit of the one between */
    ck_assert_ptr_eq(many_cells[MANY - 1]->config, last);
    ck_assert_ptr_eq(many_cells[MANY - 2]->config, config);
    while (visit_turn()) {
    }
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_ptr_eq(many_cells[i]->config, last);
        ck_assert_ptr_eq(many_cells[i]->pool.config, last);
        ck_assert_uint_eq(many_cells[i]->pool.size, 3);
    }
}

TEST(a_group_may_go_while_its_cells_have_not_been_told)
{
    make_many_cells();
    group_set_paused(group, true);
    ck_assert(group_is_visited(group));
    drop_group();
    ck_assert(list_empty(&parts.registry.walks.groups));
    make_group(CONFIG_CELLS_BY_KEY);
}

TEST(a_group_that_is_stopped_while_its_jobs_end_ends_the_others)
{
    submit_many("a", 2000);
    group_remove(group);
    ck_assert(close_turn());
    group_close(group, "the supervisor is stopping");
    ck_assert(!close_turn());
    ck_assert_uint_eq(group->counts.n[JOBS_CANCELLED], 2000);
}

TEST(senders_that_wait_for_a_group_that_drains_are_turned_away_in_several_turns)
{
    static struct cell_waiter waiters[1500];
    struct cell_request request = {
        .name = "", .key = "a", .key_size = 1, .options = JOB_OPTIONS_DEFAULT, .data = ""};
    struct job *job;

    submit_many("a", 1);
    request.wait = USEC_PER_SEC;
    for (unsigned i = 0; i < ELEMENTS(waiters); i++) {
        cell_waiter_init(&waiters[i], on_turned_away);
        request.waiter = &waiters[i];
        ck_assert_int_eq(group_submit(group, &request, &job), CELL_E_WAIT);
    }
    group_drain(group);
    n_turned_away = 0;
    ck_assert(close_turn());
    ck_assert_uint_gt(n_turned_away, 1000);
    ck_assert_uint_lt(n_turned_away, ELEMENTS(waiters));
    ck_assert(!close_turn());
    ck_assert_uint_eq(n_turned_away, ELEMENTS(waiters));
}

TEST(an_idle_cell_retires_and_its_counters_stay_with_the_group)
{
    ck_assert_int_eq(submit("a"), 0);
    idle_for(cell_of("a"), 2 * USEC_PER_SEC);
    ck_assert(!cell_is_retiring(cell_of("a"))); /* it has a job */
    ck_assert_int_eq(cell_cancel(first_job("a"), PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert(timer_armed(&cell_of("a")->idle_timer));
    idle_for(cell_of("a"), USEC_PER_SEC - 1);
    ck_assert(!cell_is_retiring(cell_of("a")));
    ck_assert_uint_eq(timer_at(&cell_of("a")->idle_timer), cell_of("a")->idle_since + USEC_PER_SEC);
    idle_for(cell_of("a"), USEC_PER_SEC);
    ck_assert(cell_is_retiring(cell_of("a")));
    ck_assert_str_eq(cell_state(cell_of("a")), "retiring");
    end_turn(cell_of("a"));
    ck_assert_ptr_null(cell_of("a"));
    ck_assert_uint_eq(group->counts.n[JOBS_CANCELLED], 1);
    ck_assert_str_eq(events, "cell.created mail/a, cell.retired mail/a, ");
}

TEST(a_job_calls_a_retiring_cell_back)
{
    ck_assert_int_eq(submit("a"), 0);
    struct cell *cell = cell_of("a");
    ck_assert_int_eq(cell_cancel(first_job("a"), PROTOCOL_CAUSE_REQUESTED, 0), 0);
    idle_for(cell, USEC_PER_SEC);
    ck_assert_uint_eq(cell->pool.size, 0);
    ck_assert_int_eq(submit("a"), 0);
    end_turn(cell);
    ck_assert_ptr_eq(cell_of("a"), cell);
    ck_assert(!cell_is_retiring(cell));
    ck_assert_uint_eq(cell->pool.size, 2);
    ck_assert_uint_eq(cell->pool.n_slots, 2);
    ck_assert_uint_eq(cell->queue.n_jobs, 1);
}

TEST(one_that_somebody_treats_differently_does_not_retire)
{
    ck_assert_int_eq(submit("a"), 0);
    struct cell *cell = cell_of("a");
    ck_assert_int_eq(cell_cancel(first_job("a"), PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert_int_eq(group_set_cell_paused(cell, true), 0);
    idle_for(cell, USEC_PER_SEC);
    ck_assert(!cell_is_retiring(cell) && !timer_armed(&cell->idle_timer));
    ck_assert_int_eq(group_set_cell_paused(cell, false), 0);
    ck_assert(timer_armed(&cell->idle_timer));
    ck_assert_int_eq(group_resize_cell(cell, 3), 0);
    idle_for(cell, USEC_PER_SEC);
    ck_assert(!cell_is_retiring(cell) && !timer_armed(&cell->idle_timer));
    ck_assert_int_eq(group_resize(group, 4), 0);
    ck_assert_uint_eq(cell->pool.size, 4);
    ck_assert(timer_armed(&cell->idle_timer));
}

TEST(without_an_idle_time_cells_stay)
{
    config->cell_idle = USEC_INFINITY;
    ck_assert_int_eq(submit("a"), 0);
    ck_assert_int_eq(cell_cancel(first_job("a"), PROTOCOL_CAUSE_REQUESTED, 0), 0);
    ck_assert(!timer_armed(&cell_of("a")->idle_timer));
    config->cell_idle = USEC_PER_SEC;
    cell_review(cell_of("a"));
    ck_assert(timer_armed(&cell_of("a")->idle_timer));
}

TEST(cells_to_come_are_as_their_group_was_made)
{
    group_set_paused(group, true);
    ck_assert_int_eq(group_resize(group, 3), 0);
    ck_assert_int_eq(submit("a"), 0);
    ck_assert_int_eq(cell_of("a")->pause, CELL_PAUSED);
    ck_assert_uint_eq(cell_of("a")->pool.n_slots, 3);
    group_set_paused(group, false);
    ck_assert_int_eq(cell_of("a")->pause, CELL_RUNS);
    ck_assert_str_eq(
        events, "group.paused mail, group.resized mail, cell.created mail/a, group.resumed mail, ");
}

TEST(a_name_and_a_generation_are_never_used_twice)
{
    ck_assert_int_eq(submit("a"), 0);
    cell_of("a")->pool.slots[1]->generation = 7;
    ck_assert_int_eq(cell_cancel(first_job("a"), PROTOCOL_CAUSE_REQUESTED, 0), 0);
    idle_for(cell_of("a"), USEC_PER_SEC);
    end_turn(cell_of("a"));
    ck_assert_int_eq(submit("a"), 0);
    ck_assert_uint_eq(cell_of("a")->pool.slots[1]->generation, 7);
    ck_assert_uint_eq(cell_of("a")->pool.slots[1]->born, 7);
}

static int resolve(const char *target, struct registry_target *ret)
{
    return registry_resolve(&parts.registry, target, ret);
}

TEST(targets_are_groups_cells_and_workers)
{
    struct registry_target target;

    ck_assert_int_eq(submit("0"), 0);
    ck_assert_int_eq(resolve("mail", &target), 0);
    ck_assert(target.group == group && !target.cell && !target.slot);
    ck_assert_int_eq(resolve("mail/0", &target), 0);
    ck_assert(target.cell == cell_of("0") && !target.slot);
    ck_assert_int_eq(resolve("mail/0/1", &target), 0);
    ck_assert(target.slot == cell_of("0")->pool.slots[1]);
    ck_assert_int_eq(resolve("mail/0/2", &target), -ENOENT);
    ck_assert_int_eq(resolve("mail/0/1/1", &target), -ENOENT);
    ck_assert_int_eq(resolve("mail/0/", &target), -ENOENT);
    ck_assert_int_eq(resolve("mail/", &target), -ENOENT);
    ck_assert_int_eq(resolve("mail/1", &target), -ENOENT);
    ck_assert_int_eq(registry_resolve_ever(&parts.registry, "mail/1", &target), 0);
    ck_assert(target.group == group && !target.cell);
    ck_assert_int_eq(registry_resolve_ever(&parts.registry, "mail/-1", &target), -ENOENT);
    ck_assert_int_eq(registry_resolve_ever(&parts.registry, "male/1", &target), -ENOENT);
}

TEST(in_a_group_without_cells_a_number_is_a_worker)
{
    struct registry_target target;

    drop_group();
    make_group(CONFIG_CELLS_NONE);
    ck_assert_int_eq(resolve("mail/1", &target), 0);
    ck_assert(target.slot == group->cell->pool.slots[1]);
    ck_assert_int_eq(resolve("mail/key", &target), -ENOENT);
    ck_assert_int_eq(registry_resolve_ever(&parts.registry, "mail/key", &target), -ENOENT);
    ck_assert_int_eq(resolve("mail/1/1", &target), -ENOENT);
}

TEST(a_new_group_waits_for_workers_of_its_name_that_have_not_ended)
{
    struct held_table *table = &parts.process.held;
    static struct held held = {.kind = HOLDING_WORKER, .name = "mail/0", .pid = 1};

    drop_group();
    table->spawner = &parts.process.spawner;
    list_init(&table->waiting);
    list_init(&table->discarded);
    groups_resume(&parts.groups);
    list_push_back(&table->discarded, &held.link);
    make_group(CONFIG_CELLS_NONE);
    ck_assert_uint_eq(group->limits.n_ending, 1);
    table->worker_ends(table->userdata, held.name, -1);
    ck_assert_uint_eq(group->limits.n_ending, 0);
    list_unlink(&held.link);
    table->spawner = NULL;
}

const struct suite suite = {.setup = setup, .teardown = teardown};
