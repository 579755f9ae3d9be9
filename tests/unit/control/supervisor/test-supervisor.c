/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: status, changes, and waiting for them. */

#include "supervisor/pool/slot/slot.h"
#include "tests/unit/control/calls.h"

TEST(unknown_targets_are_refused_with_the_nearest)
{
    check_refused("NoSuchTarget", "nearest", "test",
                  SUPERVISOR("GetStatus", "{\"target\":\"tset\"}"));
    check_refused("NoSuchTarget", "target", "test/2",
                  SUPERVISOR("Stop", "{\"target\":\"test/2\"}"));
    check_refused("NoSuchTarget", "target", "q", SUPERVISOR("Watch", "{\"target\":\"q\"}"));
    check_refused("BadOption", "option", "target", SUPERVISOR("Pause", "{\"target\":\"test/0\"}"));
}

TEST(pause_and_resume_are_events_that_watchers_see)
{
    struct fake_client *watcher = fake_connect(), *other = fake_connect();

    fake_send(other, MORE("io.troupe.Supervisor.Watch", "{\"target\":\"test/0\"}"));
    fake_send(watcher, MORE("io.troupe.Supervisor.Watch", "{\"target\":\"test\"}"));
    fake_settle();
    check_done(SUPERVISOR("Pause", "{\"target\":\"test\"}"));
    json_t *answer = fake_receive(watcher);
    ck_assert(json_is_true(json_object_get(answer, "continues")));
    json_t *event =
        json_array_get(json_object_get(json_object_get(answer, "parameters"), "events"), 0);
    ck_assert_str_eq(string(event, "type"), "group.paused");
    ck_assert_str_eq(string(event, "group"), "test");
    check_done(SUPERVISOR("Resume", "{\"target\":\"test\"}"));
    ck_assert_int_eq(recv(other->fd, &(char){0}, 1, MSG_DONTWAIT), -1);
    fake_disconnect(other);
    fake_disconnect(watcher);
    fake_settle();
    check_done(
        SUPERVISOR("Pause", "{\"target\":\"test\"}")); /* the watcher that is gone is forgotten */

    answer = ask(SUPERVISOR("Watch", "{\"target\":\"test\"}"));
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "events")), 3);
    answer = ask(SUPERVISOR("Watch", "{\"target\":\"test/0\"}"));
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "events")), 0);
}

/* The last event comes before the pool lets go of the slot: looking only once would be once too
 * early. */
TEST(shrinking_is_complete_when_the_surplus_worker_is_gone)
{
    struct cell *cell = fake_group->cell;
    struct slot *last = cell->pool.slots[1];

    last->state = LIFECYCLE_KILLING;
    fake_send(client, SUPERVISOR("Resize", "{\"target\":\"test\",\"size\":1,\"wait\":true}"));
    fake_settle();
    ck_assert_int_eq(recv(client->fd, &(char){0}, 1, MSG_DONTWAIT | MSG_PEEK), -1);
    last->state = LIFECYCLE_STOPPED;
    event_emit(&fake_parts.events,
               (struct event){.level = LOG_LEVEL_INFO, .type = "worker.stopped", .message = ""});
    cell->pool.handler->wake(&cell->pool);
    parameters_of(fake_receive(client));
    ck_assert_uint_eq(cell->pool.n_slots, 1);
}

TEST(waiting_for_what_will_not_be_ends_with_what_is_in_the_way)
{
    struct slot *slot = fake_group->cell->pool.slots[0];

    slot->state = LIFECYCLE_KILLING;
    fake_send(client, SUPERVISOR("Start", "{\"target\":\"test/0\",\"wait\":true}"));
    fake_settle();
    slot->plan = SLOT_OFF;
    slot->state = LIFECYCLE_FAILED;
    event_emit(&fake_parts.events,
               (struct event){.level = LOG_LEVEL_INFO, .type = "worker.failed", .message = ""});
    check_refused_next("NotReached", "state", "failed");
}

TEST(waiting_for_what_is_so_already_is_short)
{
    check_done(SUPERVISOR("Stop", "{\"target\":\"test\",\"wait\":true}"));
    check_done(SUPERVISOR("Stop", "{\"target\":\"test/1\",\"wait\":true}"));
}

TEST(nothing_is_begun_while_it_stops)
{
    fake_parts.control.state = CONTROL_STOPPING;
    check_refused("Stopping", NULL, NULL, SUPERVISOR("Start", "{\"target\":\"test\"}"));
    check_refused("Stopping", NULL, NULL, SUPERVISOR("Reload", "{}"));
    check_refused("Stopping", NULL, NULL, JOBS("Create", "{\"group\":\"test\"}"));
    check_refused("Stopping", NULL, NULL, JOBS("Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));
}

/* ---- long replies ---- */

TEST(the_status_of_four_thousand_workers_is_written_over_many_turns)
{
    json_t *two, *many, *workers;

    unsigned few = turns_of(SUPERVISOR("GetStatus", "{}"), &two);
    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    ck_assert_uint_ge(turns_of(SUPERVISOR("GetStatus", "{}"), &many), few + 8);
    workers = json_object_get(json_array_get(json_object_get(many, "groups"), 0), "workers");
    ck_assert_uint_eq(json_array_size(workers), 4096);
}

/* How many replies, and how many workers in them. */
static void count_parts(size_t *ret_replies, size_t *ret_workers)
{
    bool more = true;

    *ret_replies = *ret_workers = 0;
    while (more) {
        json_t *reply = fake_receive(client), *parameters, *groups;

        more = json_is_true(json_object_get(reply, "continues"));
        parameters = parameters_of(reply);
        groups = json_object_get(parameters, "groups");
        (*ret_replies)++;
        for (size_t i = 0; i < json_array_size(groups); i++)
            *ret_workers += json_array_size(json_object_get(json_array_get(groups, i), "workers"));
    }
}

TEST(with_more_a_status_comes_in_replies_that_leave_nothing_out)
{
    size_t replies, workers;

    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    fake_send(client, MORE("io.troupe.Supervisor.GetStatus", "{}"));
    count_parts(&replies, &workers);
    ck_assert_uint_eq(workers, 4096);
    ck_assert_uint_ge(replies, 20);
}

TEST(a_group_that_goes_in_the_middle_of_its_status_ends_it_well)
{
    size_t replies, workers;

    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    fake_send(client, MORE("io.troupe.Supervisor.GetStatus", "{}"));
    fake_receive(client);
    registry_remove(&fake_parts.registry, fake_group);
    count_parts(&replies, &workers);
    ck_assert_uint_lt(workers, 4096);
    ck_assert_int_eq(registry_add(&fake_parts.registry, fake_group), 0);
    ask(SUPERVISOR("GetInfo", "{}"));
}

TEST(who_goes_in_the_middle_of_a_long_answer_leaves_nothing_behind)
{
    struct fake_client *other = fake_connect();

    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    fake_send(other, MORE("io.troupe.Supervisor.GetStatus", "{}"));
    fake_receive(other);
    fake_disconnect(other);
    ask(SUPERVISOR("GetInfo", "{}"));
}

const struct suite suite = {.setup = connect_client, .teardown = disconnect_client};
