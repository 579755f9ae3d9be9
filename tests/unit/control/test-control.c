/* SPDX-License-Identifier: MIT */

/* The control socket in front of the real core; see fake-client.h. */

#include "shared/base/log.h"
#include "shared/ring/memory.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/varlink/peer.h"
#include "tests/unit/fake-client.h"
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

#define CALL(method, parameters)     "{\"method\":\"" method "\",\"parameters\":" parameters "}"
#define SUPERVISOR(name, parameters) CALL("io.troupe.Supervisor." name, parameters)
#define JOBS(name, parameters)       CALL("io.troupe.Jobs." name, parameters)
#define MORE(method, parameters)                                                                   \
    "{\"method\":\"" method "\",\"more\":true,\"parameters\":" parameters "}"
#define ONEWAY(method, parameters)                                                                 \
    "{\"method\":\"" method "\",\"oneway\":true,\"parameters\":" parameters "}"

static struct fake_client *client;

static void setup(void)
{
    fake_setup();
    client = fake_connect();
}

static void teardown(void)
{
    fake_disconnect(client);
    fake_teardown();
}

static json_t *parameters_of(json_t *answer)
{
    json_t *parameters;

    ck_assert_ptr_nonnull(answer);
    ck_assert_msg(!json_object_get(answer, "error"), "refused: %s",
                  json_string_value(json_object_get(answer, "error")));
    parameters = json_incref(json_object_get(answer, "parameters"));
    json_decref(answer);
    return parameters;
}

static json_t *ask(const char *text)
{
    return parameters_of(fake_ask(client, text));
}

static const char *string(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static const char *job_state(json_t *parameters)
{
    return string(json_object_get(parameters, "job"), "state");
}

static void check_refused(const char *error, const char *key, const char *value, const char *text)
{
    json_t *parameters = fake_refused(client, error, text);

    if (key)
        ck_assert_str_eq(string(parameters, key), value);
    json_decref(parameters);
}

/* The same for a call that was sent before. */
static void check_refused_next(const char *error, const char *key, const char *value)
{
    json_t *answer = fake_receive(client);

    ck_assert_str_eq(strrchr(string(answer, "error"), '.') + 1, error);
    ck_assert_str_eq(string(json_object_get(answer, "parameters"), key), value);
    json_decref(answer);
}

static void check_done(const char *text)
{
    json_decref(ask(text));
}

/* ---- what every Varlink service does ---- */

START_TEST(it_says_what_it_is)
{
    json_t *info = ask(CALL("org.varlink.service.GetInfo", "{}"));

    ck_assert_str_eq(string(info, "product"), "Troupe");
    ck_assert_uint_eq(json_array_size(json_object_get(info, "interfaces")), 4);
    json_decref(info);
}
END_TEST

START_TEST(each_interface_is_described)
{
    static const char *const names[] = {"org.varlink.service", "io.troupe.Supervisor",
                                        "io.troupe.Jobs", "io.troupe.Actors"};
    char text[256], line[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *answer;

        snprintf(text, sizeof(text),
                 CALL("org.varlink.service.GetInterfaceDescription", "{\"interface\":\"%s\"}"),
                 names[i]);
        snprintf(line, sizeof(line), "\ninterface %s\n", names[i]);
        answer = ask(text);
        ck_assert_ptr_nonnull(strstr(string(answer, "description"), line));
        json_decref(answer);
    }
}
END_TEST

/* Whoever adds a method and forgets to describe it, or the other way round, is told here. */
START_TEST(what_is_described_is_what_there_is)
{
    for (const struct request_interface *const *i = control_interfaces; *i; i++) {
        unsigned described = 0, there = 0;
        const char *at = (*i)->description;
        char line[80];

        while ((at = strstr(at, "\nmethod "))) {
            described++;
            at++;
        }
        for (const struct request_method *method = (*i)->methods; method->name; method++) {
            snprintf(line, sizeof(line), "\nmethod %s(", method->name);
            ck_assert_msg(strstr((*i)->description, line) != NULL, "%s", method->name);
            there++;
        }
        ck_assert_uint_eq(described, there);
    }
}
END_TEST

START_TEST(what_does_not_exist_is_named)
{
    check_refused("InterfaceNotFound", "interface", "io.troupe.Nothing",
                  CALL("io.troupe.Nothing.Do", "{}"));
    check_refused("MethodNotFound", "method", "io.troupe.Jobs.Undo", JOBS("Undo", "{}"));
    check_refused("InvalidParameter", "parameter", "method", CALL("Do", "{}"));
    check_refused("InterfaceNotFound", "interface", "x",
                  CALL("org.varlink.service.GetInterfaceDescription", "{\"interface\":\"x\"}"));
    check_refused("InvalidParameter", "parameter", "extra", SUPERVISOR("GetInfo", "{\"extra\":1}"));
    check_refused("InvalidParameter", "parameter", "upgrade",
                  "{\"method\":\"io.troupe.Supervisor.GetInfo\",\"upgrade\":true}");
}
END_TEST

START_TEST(a_malformed_message_is_answered_and_ends_the_connection)
{
    check_refused("InvalidParameter", "parameter", "message", "{]");
    ck_assert_ptr_null(fake_receive(client));
}
END_TEST

START_TEST(calls_in_a_row_are_answered_in_order)
{
    json_t *answer;

    fake_send(client, SUPERVISOR("GetStatus", "{}"));
    fake_send(client, ONEWAY("io.troupe.Supervisor.GetInfo", "{}"));
    fake_send(client, SUPERVISOR("GetInfo", "{}"));
    answer = parameters_of(fake_receive(client));
    ck_assert_ptr_nonnull(json_object_get(answer, "groups"));
    json_decref(answer);
    answer = parameters_of(fake_receive(client));
    ck_assert_str_eq(string(answer, "state"), "running");
    json_decref(answer);
}
END_TEST

START_TEST(a_client_that_sends_no_more_still_gets_its_answer_and_then_the_end)
{
    fake_send(client, SUPERVISOR("GetInfo", "{}"));
    shutdown(client->fd, SHUT_WR);
    json_decref(parameters_of(fake_receive(client)));
    ck_assert_ptr_null(fake_receive(client));
}
END_TEST

/* ---- bounds ---- */

START_TEST(a_message_beyond_a_mebibyte_is_refused_and_ends_the_connection)
{
    size_t size = CONNECTION_INPUT_MAX + 1, sent = 0;
    char *text = malloc(size);
    json_t *answer;

    memset(text, 'x', size);
    fcntl(client->fd, F_SETFL, O_NONBLOCK);
    while (sent < size) {
        ssize_t n = send(client->fd, text + sent, size - sent, MSG_NOSIGNAL);

        if (n > 0)
            sent += (size_t)n;
        else
            fake_settle();
    }
    free(text);
    answer = fake_receive(client);
    ck_assert_str_eq(string(answer, "error"), "io.troupe.Supervisor.TooLarge");
    json_decref(answer);
    /* The end comes with the answer, not when the supervisor loses patience. */
    ck_assert_ptr_null(fake_receive(client));
    ck_assert_uint_eq(control_n_clients(fake_control), 1);
    fake_disconnect(client);
    fake_settle();
    ck_assert_uint_eq(control_n_clients(fake_control), 0);
    client = fake_connect();
}
END_TEST

START_TEST(a_client_that_asks_ahead_is_answered_as_it_reads_however_much_it_asked)
{
    static const char text[] =
        CALL("org.varlink.service.GetInterfaceDescription", "{\"interface\":\"io.troupe.Jobs\"}");
    /* Enough for more than 4 MiB of answers; each takes a turn. */
    enum {
        N_CALLS = 900
    };
    static char calls[N_CALLS * sizeof(text)];
    json_t *answer;

    for (unsigned i = 0; i < N_CALLS; i++)
        memcpy(calls + i * sizeof(text), text, sizeof(text));
    ck_assert_int_eq(send(client->fd, calls, sizeof(calls), MSG_NOSIGNAL), sizeof(calls));
    for (unsigned i = 0; i < N_CALLS; i += 10)
        fake_settle();
    for (unsigned i = 0; i < N_CALLS; i++) {
        answer = fake_receive(client);
        ck_assert_ptr_nonnull(answer);
        ck_assert_ptr_null(json_object_get(answer, "error"));
        json_decref(answer);
    }
    check_done(SUPERVISOR("GetInfo", "{}"));
}
END_TEST

/* What it has not read stays within its bound; the last thing it can read says why that was the
 * end. */
START_TEST(a_client_that_is_told_more_than_it_reads_is_cut_off_with_a_word)
{
    static char message[60000];
    bool told = false;
    json_t *answer;

    memset(message, 'x', sizeof(message) - 1);
    fake_send(client,
              "{\"method\":\"io.troupe.Supervisor.Watch\",\"parameters\":{},\"more\":true}");
    fake_settle();
    for (unsigned i = 0; i < 100; i++)
        event_emit(&fake_parts.events,
                   (struct event){.level = LOG_LEVEL_INFO, .type = "test", .message = message});
    while ((answer = fake_receive(client))) {
        const char *error = string(answer, "error");

        told = error && strcmp(error, "io.troupe.Supervisor.TooSlow") == 0;
        json_decref(answer);
    }
    ck_assert(told);
}
END_TEST

START_TEST(one_client_too_many_is_told_so_and_the_others_go_on)
{
    struct fake_client *second;
    json_t *parameters;

    fake_daemon.clients_max = 1;
    check_done(SUPERVISOR("GetInfo", "{}"));
    second = fake_connect();
    parameters = fake_refused(second, "TooManyClients", JOBS("List", "{}"));
    ck_assert_int_eq(json_integer_value(json_object_get(parameters, "maximum")), 1);
    json_decref(parameters);
    ck_assert_ptr_null(fake_receive(second));
    check_done(SUPERVISOR("GetInfo", "{}"));
    fake_disconnect(second);
}
END_TEST

START_TEST(an_idle_client_is_closed_and_one_that_waits_is_not)
{
    struct fake_client *waiting;

    fake_daemon.client_idle = 1000;
    waiting = fake_connect();
    fake_send(waiting, MORE("io.troupe.Supervisor.Watch", "{}"));
    ck_assert_ptr_null(fake_receive(client));
    ck_assert_uint_eq(control_n_clients(fake_control), 1);
    fake_disconnect(waiting);
}
END_TEST

/* ---- permission ---- */

START_TEST(who_may_change_things)
{
    gid_t groups[] = {5, 70};
    struct peer peer = {.uid = 0};
    struct config_daemon config = {.admin_group = (char *)"operators", .admin_gid = 70};
    const struct config_daemon none = {.admin_gid = 70};
    char needed[PEER_NEEDED_MAX];

    ck_assert(peer_may_change(&peer, &none));
    peer = (struct peer){.uid = geteuid() + 1, .gid = 4};
    ck_assert(!peer_may_change(&peer, &config));
    peer.gid = 70;
    ck_assert(peer_may_change(&peer, &config));
    ck_assert(!peer_may_change(&peer, &none));
    peer.gid = 4;
    peer.groups = groups;
    peer.n_groups = 2;
    ck_assert(peer_may_change(&peer, &config));
    peer.n_groups = 1;
    ck_assert(!peer_may_change(&peer, &config));
    peer_describe_needed(needed, &config);
    ck_assert_ptr_nonnull(strstr(needed, "operators"));
}
END_TEST

START_TEST(the_kernel_says_who_the_peer_is)
{
    struct peer peer;
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_int_eq(peer_init(&peer, pair[0]), 0);
    ck_assert_int_eq(peer.pid, getpid());
    ck_assert_uint_eq(peer.uid, geteuid());
    ck_assert_int_eq((int)peer.n_groups, getgroups(0, NULL));
    peer_deinit(&peer);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

/* ---- io.troupe.Supervisor ---- */

START_TEST(status_shows_groups_and_workers)
{
    json_t *answer = ask(SUPERVISOR("GetStatus", "{\"target\":\"test/1\"}"));
    json_t *group = json_array_get(json_object_get(answer, "groups"), 0);
    json_t *workers = json_object_get(group, "workers");

    ck_assert_str_eq(string(group, "name"), "test");
    ck_assert_str_eq(string(group, "state"), "stopped");
    ck_assert_int_eq(json_integer_value(json_object_get(group, "size")), 2);
    ck_assert_uint_eq(json_array_size(workers), 1);
    ck_assert_str_eq(string(json_array_get(workers, 0), "name"), "test/1");
    json_decref(answer);
}
END_TEST

START_TEST(unknown_targets_are_refused_with_the_nearest)
{
    check_refused("NoSuchTarget", "nearest", "test",
                  SUPERVISOR("GetStatus", "{\"target\":\"tset\"}"));
    check_refused("NoSuchTarget", "target", "test/2",
                  SUPERVISOR("Stop", "{\"target\":\"test/2\"}"));
    check_refused("NoSuchTarget", "target", "q", SUPERVISOR("Watch", "{\"target\":\"q\"}"));
    check_refused("BadOption", "option", "target", SUPERVISOR("Pause", "{\"target\":\"test/0\"}"));
}
END_TEST

START_TEST(pause_and_resume_are_events_that_watchers_see)
{
    struct fake_client *watcher = fake_connect(), *other = fake_connect();
    json_t *answer, *event;

    fake_send(other, MORE("io.troupe.Supervisor.Watch", "{\"target\":\"test/0\"}"));
    fake_send(watcher, MORE("io.troupe.Supervisor.Watch", "{\"target\":\"test\"}"));
    fake_settle();
    check_done(SUPERVISOR("Pause", "{\"target\":\"test\"}"));
    answer = fake_receive(watcher);
    ck_assert(json_is_true(json_object_get(answer, "continues")));
    event = json_array_get(json_object_get(json_object_get(answer, "parameters"), "events"), 0);
    ck_assert_str_eq(string(event, "type"), "group.paused");
    ck_assert_str_eq(string(event, "group"), "test");
    json_decref(answer);
    check_done(SUPERVISOR("Resume", "{\"target\":\"test\"}"));
    ck_assert_int_eq(recv(other->fd, &(char){0}, 1, MSG_DONTWAIT), -1);
    fake_disconnect(other);
    fake_disconnect(watcher);
    fake_settle();
    check_done(
        SUPERVISOR("Pause", "{\"target\":\"test\"}")); /* the watcher that is gone is forgotten */

    answer = ask(SUPERVISOR("Watch", "{\"target\":\"test\"}"));
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "events")), 3);
    json_decref(answer);
    answer = ask(SUPERVISOR("Watch", "{\"target\":\"test/0\"}"));
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "events")), 0);
    json_decref(answer);
}
END_TEST

START_TEST(kept_events_are_replayed_before_new_ones)
{
    json_t *answer;

    check_done(SUPERVISOR("Pause", "{\"target\":\"test\"}"));
    answer = fake_ask(client, MORE("io.troupe.Supervisor.Watch", "{\"replay\":true}"));
    ck_assert(json_is_true(json_object_get(answer, "continues")));
    ck_assert_uint_eq(
        json_array_size(json_object_get(json_object_get(answer, "parameters"), "events")), 1);
    json_decref(answer);
}
END_TEST

START_TEST(resizing_tells_the_old_size_and_waits_for_the_new_one)
{
    json_t *answer = ask(SUPERVISOR("Resize", "{\"target\":\"test\",\"size\":5,\"wait\":true}"));

    ck_assert_int_eq(json_integer_value(json_object_get(answer, "old_size")), 2);
    json_decref(answer);
    answer = ask(SUPERVISOR("Resize", "{\"target\":\"test\",\"size\":1,\"wait\":true}"));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "old_size")), 5);
    json_decref(answer);
    ck_assert_uint_eq(fake_group->cell->pool.n_slots, 1);
    answer =
        fake_refused(client, "BadSize", SUPERVISOR("Resize", "{\"target\":\"test\",\"size\":0}"));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "minimum")), 1);
    json_decref(answer);
}
END_TEST

/* The last event comes before the pool lets go of the slot: looking only once would be once too
 * early. */
START_TEST(shrinking_is_complete_when_the_surplus_worker_is_gone)
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
    json_decref(parameters_of(fake_receive(client)));
    ck_assert_uint_eq(cell->pool.n_slots, 1);
}
END_TEST

START_TEST(waiting_for_what_will_not_be_ends_with_what_is_in_the_way)
{
    struct slot *slot = fake_group->cell->pool.slots[0];

    slot->state = LIFECYCLE_KILLING;
    fake_send(client, SUPERVISOR("Start", "{\"target\":\"test/0\",\"wait\":true}"));
    fake_settle();
    slot->restart_asked = slot->wanted = false;
    slot->state = LIFECYCLE_FAILED;
    event_emit(&fake_parts.events,
               (struct event){.level = LOG_LEVEL_INFO, .type = "worker.failed", .message = ""});
    check_refused_next("NotReached", "state", "failed");
}
END_TEST

START_TEST(waiting_for_what_is_so_already_is_short)
{
    check_done(SUPERVISOR("Stop", "{\"target\":\"test\",\"wait\":true}"));
    check_done(SUPERVISOR("Stop", "{\"target\":\"test/1\",\"wait\":true}"));
}
END_TEST

START_TEST(nothing_is_begun_while_it_stops)
{
    fake_parts.control.state = CONTROL_STOPPING;
    check_refused("Stopping", NULL, NULL, SUPERVISOR("Start", "{\"target\":\"test\"}"));
    check_refused("Stopping", NULL, NULL, SUPERVISOR("Reload", "{}"));
    check_refused("Stopping", NULL, NULL, JOBS("Create", "{\"group\":\"test\"}"));
    check_refused("Stopping", NULL, NULL, JOBS("Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));
}
END_TEST

/* ---- io.troupe.Jobs ---- */

START_TEST(a_job_is_created_shown_listed_and_cancelled)
{
    json_t *answer = ask(JOBS("Create", "{\"group\":\"test\",\"options\":{\"id\":\"a\","
                                        "\"max_retries\":0}}"));

    ck_assert_str_eq(string(answer, "id"), "a");
    json_decref(answer);
    answer = ask(JOBS("Get", "{\"id\":\"a\"}"));
    ck_assert_str_eq(job_state(answer), "queued");
    json_decref(answer);
    answer = ask(JOBS("List", "{\"group\":\"test\"}"));
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "jobs")), 1);
    json_decref(answer);
    check_refused("JobExists", "id", "a",
                  JOBS("Create", "{\"group\":\"test\",\"options\":{\"id\":\"a\"}}"));
    check_done(JOBS("Cancel", "{\"id\":\"a\"}"));
    check_refused("AlreadyEnded", "state", "cancelled", JOBS("Cancel", "{\"id\":\"a\"}"));
    check_refused("NoSuchJob", "id", "b", JOBS("Cancel", "{\"id\":\"b\"}"));
}
END_TEST

START_TEST(wrong_jobs_are_refused_with_what_is_wrong)
{
    check_refused("NoSuchGroup", "nearest", "test", JOBS("Create", "{\"group\":\"tests\"}"));
    check_refused("BadId", "id", "",
                  JOBS("Create", "{\"group\":\"test\",\"options\":{\"id\":\"\"}}"));
    check_refused("BadOption", "option", "max_retries",
                  JOBS("Create", "{\"group\":\"test\",\"options\":{\"max_retries\":-1}}"));
    check_refused("BadOption", "option", "backoff_min_usec",
                  JOBS("Create", "{\"group\":\"test\",\"options\":{\"backoff_min_usec\":2,"
                                 "\"backoff_max_usec\":1}}"));
    check_refused("InvalidParameter", "parameter", "retries",
                  JOBS("Create", "{\"group\":\"test\",\"options\":{\"retries\":1}}"));
    check_refused(
        "BadOption", "option", "encoding",
        JOBS("Do", "{\"group\":\"test\",\"payload\":{\"encoding\":\"hex\",\"data\":\"\"}}"));
    check_refused(
        "BadPayload", NULL, NULL,
        JOBS("Do", "{\"group\":\"test\",\"payload\":{\"encoding\":\"base64\",\"data\":\"A\"}}"));
    check_refused("BadOption", "option", "limit", JOBS("List", "{\"limit\":0}"));
    check_refused("BadOption", "option", "cursor", JOBS("List", "{\"cursor\":-1}"));
    ck_assert_uint_eq(fake_group->cell->queue.n_jobs, 0);
}
END_TEST

START_TEST(a_full_queue_is_busy)
{
    json_t *parameters;

    for (unsigned i = 0; i < 3; i++)
        check_done(JOBS("Create", "{\"group\":\"test\"}"));
    parameters = fake_refused(client, "Busy", JOBS("Create", "{\"group\":\"test\"}"));
    ck_assert_int_eq(json_integer_value(json_object_get(parameters, "queued")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(parameters, "maximum")), 3);
    json_decref(parameters);
}
END_TEST

START_TEST(payloads_arrive_decoded)
{
    struct job *job;

    check_done(JOBS("Create", "{\"group\":\"test\",\"payload\":{\"encoding\":\"base64\","
                              "\"data\":\"AAEC/w==\"}}"));
    job = queue_first(&fake_group->cell->queue);
    ck_assert_uint_eq(job->payload.size, 4);
    ck_assert_mem_eq(payload_data(&job->payload), "\0\1\2\xff", 4);
}
END_TEST

static void cancel_elsewhere(const char *text)
{
    struct fake_client *other = fake_connect();

    json_decref(parameters_of(fake_ask(other, text)));
    fake_disconnect(other);
}

START_TEST(do_answers_when_the_job_has_ended_and_the_next_call_waits)
{
    json_t *answer;

    fake_send(client, JOBS("Do", "{\"group\":\"test\",\"options\":{\"id\":\"d\"}}"));
    fake_send(client, SUPERVISOR("GetInfo", "{}"));
    fake_settle();
    cancel_elsewhere(JOBS("Cancel", "{\"id\":\"d\"}"));
    answer = parameters_of(fake_receive(client));
    ck_assert_str_eq(job_state(answer), "cancelled");
    json_decref(answer);
    answer = parameters_of(fake_receive(client));
    ck_assert_str_eq(string(answer, "state"), "running");
    json_decref(answer);
    check_refused("NoSuchJob", "id", "d", JOBS("Get", "{\"id\":\"d\"}"));
}
END_TEST

START_TEST(do_and_get_with_more_begin_with_the_state_as_it_is)
{
    struct fake_client *second = fake_connect();
    json_t *answer;

    answer = fake_ask(client,
                      MORE("io.troupe.Jobs.Do", "{\"group\":\"test\",\"options\":{\"id\":\"d\"}}"));
    ck_assert(json_is_true(json_object_get(answer, "continues")));
    ck_assert_str_eq(job_state(json_object_get(answer, "parameters")), "queued");
    json_decref(answer);
    answer = fake_ask(second, MORE("io.troupe.Jobs.Get", "{\"id\":\"d\"}"));
    ck_assert(json_is_true(json_object_get(answer, "continues")));
    json_decref(answer);
    cancel_elsewhere(JOBS("Cancel", "{\"id\":\"d\"}"));
    for (unsigned i = 0; i < 2; i++) {
        answer = fake_receive(i == 0 ? client : second);
        ck_assert_ptr_null(json_object_get(answer, "continues"));
        ck_assert_str_eq(job_state(json_object_get(answer, "parameters")), "cancelled");
        json_decref(answer);
    }
    fake_disconnect(second);
}
END_TEST

START_TEST(a_job_goes_on_without_those_who_wait_for_it)
{
    struct fake_client *asker = fake_connect(), *waiter = fake_connect();
    struct job *job;

    fake_send(asker, JOBS("Do", "{\"group\":\"test\",\"options\":{\"id\":\"d\"}}"));
    fake_settle();
    fake_send(waiter, JOBS("Wait", "{\"id\":\"d\"}"));
    fake_settle();
    job = queue_first(&fake_group->cell->queue);
    ck_assert(!list_empty(&job->waiters));
    fake_disconnect(asker);
    fake_disconnect(waiter);
    check_done(SUPERVISOR("GetInfo", "{}"));
    fake_settle();
    ck_assert(list_empty(&job->waiters));
    ck_assert_uint_eq(fake_group->cell->queue.n_jobs, 1);
    ck_assert_uint_eq(control_n_clients(fake_control), 1);
}
END_TEST

START_TEST(a_oneway_do_is_carried_out_and_holds_nobody_up)
{
    json_t *answer;

    fake_send(client,
              ONEWAY("io.troupe.Jobs.Do", "{\"group\":\"test\",\"options\":{\"id\":\"o\"}}"));
    fake_send(client, ONEWAY("io.troupe.Jobs.Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));
    fake_send(client, ONEWAY("io.troupe.Supervisor.Watch", "{}"));
    check_done(SUPERVISOR("GetInfo", "{}"));
    ck_assert_uint_eq(fake_group->cell->queue.n_jobs, 1);
    answer = ask(JOBS("Cancel", "{\"id\":\"o\"}"));
    ck_assert_uint_eq(json_object_size(answer), 0);
    ck_assert_uint_eq(client->size, 0);
    json_decref(answer);
}
END_TEST

START_TEST(attaching_gives_descriptors_once)
{
    json_t *answer = ask(JOBS("Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));

    ck_assert_int_eq(json_integer_value(json_object_get(answer, "descriptors")), client->n_fds);
    ck_assert(client->n_fds == 4 || client->n_fds == 5);
    json_decref(answer);
    check_refused("AlreadyAttached", NULL, NULL,
                  JOBS("Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));
    answer = fake_refused(client, "BadVersion", JOBS("Attach", "{\"version\":99}"));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "supported")), MEMORY_VERSION);
    json_decref(answer);
}
END_TEST

/* ---- the listening socket ---- */

START_TEST(a_path_where_somebody_lives_is_refused)
{
    ck_assert_int_eq(control_listen(fake_path), -EADDRINUSE);
    check_done(SUPERVISOR("GetInfo", "{}"));
}
END_TEST

START_TEST(a_path_that_was_left_behind_is_taken_over)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    char path[80], lock[96];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(path, sizeof(path), "%s2", fake_path);
    snprintf(lock, sizeof(lock), "%s.lock", path);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    fd = control_listen(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0666);
    ck_assert_int_ne(access(lock, F_OK), 0);
    close(fd);
    unlink(path);
}
END_TEST

START_TEST(what_is_no_socket_is_left_alone)
{
    char path[80];
    int fd;

    snprintf(path, sizeof(path), "%s3", fake_path);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    ck_assert_int_eq(control_listen(path), -EEXIST);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(control_listen("/nonexistent-directory/s"), -ENOENT);
    ck_assert_int_eq(control_listen(""), -ENAMETOOLONG);
}
END_TEST

START_TEST(at_the_end_everybody_who_waits_is_answered_and_the_path_is_gone)
{
    json_t *answer;

    fake_send(client, JOBS("Do", "{\"group\":\"test\"}"));
    fake_settle();
    control_drain(fake_control);
    answer = fake_receive(client);
    ck_assert_str_eq(string(answer, "error"), "io.troupe.Jobs.Stopping");
    json_decref(answer);
    ck_assert_int_ne(access(fake_path, F_OK), 0);
}
END_TEST

/* ---- long answers ---- */

static unsigned n_turns;

static void on_turn(struct loop_deferred *deferred)
{
    n_turns++;
    loop_defer(fake_parts.loop, deferred);
}

/* How many turns of the loop it takes to answer this. */
static unsigned turns_of(const char *text, json_t **ret)
{
    struct loop_deferred turn;

    n_turns = 0;
    loop_deferred_init(&turn, on_turn);
    loop_defer(fake_parts.loop, &turn);
    *ret = ask(text);
    loop_undefer(&turn);
    return n_turns;
}

START_TEST(the_status_of_four_thousand_workers_is_written_over_many_turns)
{
    json_t *two, *many, *workers;
    unsigned few;

    few = turns_of(SUPERVISOR("GetStatus", "{}"), &two);
    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    ck_assert_uint_ge(turns_of(SUPERVISOR("GetStatus", "{}"), &many), few + 8);
    workers = json_object_get(json_array_get(json_object_get(many, "groups"), 0), "workers");
    ck_assert_uint_eq(json_array_size(workers), 4096);
    json_decref(two);
    json_decref(many);
}
END_TEST

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
        json_decref(parameters);
    }
}

START_TEST(with_more_a_status_comes_in_replies_that_leave_nothing_out)
{
    size_t replies, workers;

    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    fake_send(client, MORE("io.troupe.Supervisor.GetStatus", "{}"));
    count_parts(&replies, &workers);
    ck_assert_uint_eq(workers, 4096);
    ck_assert_uint_ge(replies, 20);
}
END_TEST

START_TEST(a_group_that_goes_in_the_middle_of_its_status_ends_it_well)
{
    size_t replies, workers;

    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    fake_send(client, MORE("io.troupe.Supervisor.GetStatus", "{}"));
    json_decref(fake_receive(client));
    registry_remove(&fake_parts.registry, fake_group);
    count_parts(&replies, &workers);
    ck_assert_uint_lt(workers, 4096);
    ck_assert_int_eq(registry_add(&fake_parts.registry, fake_group), 0);
    json_decref(ask(SUPERVISOR("GetInfo", "{}")));
}
END_TEST

START_TEST(who_goes_in_the_middle_of_a_long_answer_leaves_nothing_behind)
{
    struct fake_client *other = fake_connect();

    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    fake_send(other, MORE("io.troupe.Supervisor.GetStatus", "{}"));
    json_decref(fake_receive(other));
    fake_disconnect(other);
    json_decref(ask(SUPERVISOR("GetInfo", "{}")));
}
END_TEST

START_TEST(four_thousand_actors_are_listed_over_many_turns)
{
    json_t *answer;
    unsigned few;

    few = turns_of(CALL("io.troupe.Actors.ListActors", "{\"limit\":1000}"), &answer);
    json_decref(answer);
    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    ck_assert_uint_ge(turns_of(CALL("io.troupe.Actors.ListActors", "{\"limit\":1000}"), &answer),
                      few + 4);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "actors")), 1000);
    ck_assert_int_gt(json_integer_value(json_object_get(answer, "next")), 0);
    json_decref(answer);
}
END_TEST

static TCase *make_case(const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 30);
    return tcase;
}

static TCase *socket_case(void)
{
    TCase *tcase = make_case("socket");

    tcase_add_test(tcase, the_status_of_four_thousand_workers_is_written_over_many_turns);
    tcase_add_test(tcase, with_more_a_status_comes_in_replies_that_leave_nothing_out);
    tcase_add_test(tcase, a_group_that_goes_in_the_middle_of_its_status_ends_it_well);
    tcase_add_test(tcase, who_goes_in_the_middle_of_a_long_answer_leaves_nothing_behind);
    tcase_add_test(tcase, four_thousand_actors_are_listed_over_many_turns);
    tcase_add_test(tcase, it_says_what_it_is);
    tcase_add_test(tcase, each_interface_is_described);
    tcase_add_test(tcase, what_is_described_is_what_there_is);
    tcase_add_test(tcase, what_does_not_exist_is_named);
    tcase_add_test(tcase, a_malformed_message_is_answered_and_ends_the_connection);
    tcase_add_test(tcase, calls_in_a_row_are_answered_in_order);
    tcase_add_test(tcase, a_client_that_sends_no_more_still_gets_its_answer_and_then_the_end);
    tcase_add_test(tcase, a_message_beyond_a_mebibyte_is_refused_and_ends_the_connection);
    tcase_add_test(tcase, a_client_that_asks_ahead_is_answered_as_it_reads_however_much_it_asked);
    tcase_add_test(tcase, a_client_that_is_told_more_than_it_reads_is_cut_off_with_a_word);
    tcase_add_test(tcase, one_client_too_many_is_told_so_and_the_others_go_on);
    tcase_add_test(tcase, an_idle_client_is_closed_and_one_that_waits_is_not);
    tcase_add_test(tcase, who_may_change_things);
    tcase_add_test(tcase, the_kernel_says_who_the_peer_is);
    tcase_add_test(tcase, a_path_where_somebody_lives_is_refused);
    tcase_add_test(tcase, a_path_that_was_left_behind_is_taken_over);
    tcase_add_test(tcase, what_is_no_socket_is_left_alone);
    tcase_add_test(tcase, at_the_end_everybody_who_waits_is_answered_and_the_path_is_gone);
    return tcase;
}

static TCase *methods_case(void)
{
    TCase *tcase = make_case("methods");

    tcase_add_test(tcase, status_shows_groups_and_workers);
    tcase_add_test(tcase, unknown_targets_are_refused_with_the_nearest);
    tcase_add_test(tcase, pause_and_resume_are_events_that_watchers_see);
    tcase_add_test(tcase, kept_events_are_replayed_before_new_ones);
    tcase_add_test(tcase, resizing_tells_the_old_size_and_waits_for_the_new_one);
    tcase_add_test(tcase, shrinking_is_complete_when_the_surplus_worker_is_gone);
    tcase_add_test(tcase, waiting_for_what_will_not_be_ends_with_what_is_in_the_way);
    tcase_add_test(tcase, waiting_for_what_is_so_already_is_short);
    tcase_add_test(tcase, nothing_is_begun_while_it_stops);
    tcase_add_test(tcase, a_job_is_created_shown_listed_and_cancelled);
    tcase_add_test(tcase, wrong_jobs_are_refused_with_what_is_wrong);
    tcase_add_test(tcase, a_full_queue_is_busy);
    tcase_add_test(tcase, payloads_arrive_decoded);
    tcase_add_test(tcase, do_answers_when_the_job_has_ended_and_the_next_call_waits);
    tcase_add_test(tcase, do_and_get_with_more_begin_with_the_state_as_it_is);
    tcase_add_test(tcase, a_job_goes_on_without_those_who_wait_for_it);
    tcase_add_test(tcase, a_oneway_do_is_carried_out_and_holds_nobody_up);
    tcase_add_test(tcase, attaching_gives_descriptors_once);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("control");
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, socket_case());
    suite_add_tcase(suite, methods_case());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
