/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs. */

#include "tests/unit/control/calls.h"

static const char *job_state(json_t *parameters)
{
    return string(json_object_get(parameters, "job"), "state");
}

TEST(wrong_jobs_are_refused_with_what_is_wrong)
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

static void cancel_elsewhere(const char *text)
{
    struct fake_client *other = fake_connect();

    parameters_of(fake_ask(other, text));
    fake_disconnect(other);
}

TEST(do_answers_when_the_job_has_ended_and_the_next_call_waits)
{
    fake_send(client, JOBS("Do", "{\"group\":\"test\",\"options\":{\"id\":\"d\"}}"));
    fake_send(client, SUPERVISOR("GetInfo", "{}"));
    fake_settle();
    cancel_elsewhere(JOBS("Cancel", "{\"id\":\"d\"}"));
    json_t *answer = parameters_of(fake_receive(client));
    ck_assert_str_eq(job_state(answer), "cancelled");
    answer = parameters_of(fake_receive(client));
    ck_assert_str_eq(string(answer, "state"), "running");
    check_refused("NoSuchJob", "id", "d", JOBS("Get", "{\"id\":\"d\"}"));
}

TEST(oneway_calls_are_carried_out_and_not_answered)
{
    fake_send(client,
              ONEWAY("io.troupe.Jobs.Create", "{\"group\":\"test\",\"options\":{\"id\":\"o\"}}"));
    fake_send(client, ONEWAY("io.troupe.Jobs.Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));
    fake_send(client, ONEWAY("io.troupe.Supervisor.Watch", "{}"));
    check_done(SUPERVISOR("GetInfo", "{}"));
    ck_assert_uint_eq(fake_group->cell->queue.n_jobs, 1);
    json_t *answer = ask(JOBS("Cancel", "{\"id\":\"o\"}"));
    ck_assert_uint_eq(json_object_size(answer), 0);
    ck_assert_uint_eq(client->size, 0);
}

TEST(attaching_gives_descriptors_once)
{
    json_t *answer = ask(JOBS("Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));

    ck_assert_int_eq(json_integer_value(json_object_get(answer, "descriptors")), client->n_fds);
    ck_assert(client->n_fds == 4 || client->n_fds == 5);
    check_refused("AlreadyAttached", NULL, NULL,
                  JOBS("Attach", "{\"version\":" TEXT(MEMORY_VERSION) "}"));
    answer = fake_refused(client, "BadVersion", JOBS("Attach", "{\"version\":99}"));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "supported")), MEMORY_VERSION);
}

const struct suite suite = {.setup = connect_client, .teardown = disconnect_client};
