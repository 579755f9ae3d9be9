/* SPDX-License-Identifier: MIT */
#include "worker/nats/publication.h"

#include "tests/unit/suite.h"

static struct config config;
static const struct engine engine = {.config = &config};
static struct flight flight;
static uint64_t other;

natsMsg *engine_message(const struct engine *of, const char *subject, const char *token,
                        const void *data, size_t size)
{
    natsMsg *message = NULL;

    ck_assert_int_eq(natsMsg_Create(&message, subject, NULL, data, (int)size), NATS_OK);
    return message;
}

json_int_t engine_json_error(const json_t *answer, const char **ret_text)
{
    const json_t *error = json_object_get(answer, "error");

    *ret_text = NULL;
    return json_integer_value(json_object_get(error, "err_code"));
}

json_t *engine_json(natsMsg *answer)
{
    return json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
}

int engine_request(struct engine *of, const char *subject, const char *token, const char *text)
{
    return 0;
}

void flight_id(const struct flight *of, const char *name, char id[static TROUPE_ID_SIZE])
{
    *id = '\0';
}

static void set_up(void)
{
    static char jobs[] = "JOBS";

    ck_assert_int_eq(nats_Open(-1), NATS_OK);
    config = (struct config)CONFIG_NULL;
    config.stream = jobs;
    config.group = "echo";
    flight = (struct flight){.state = FLIGHT_RESULT};
    flight.entry.key = 7;
}

static void tear_down(void)
{
    nats_Close();
}

static natsMsg *answer(const char *text)
{
    natsMsg *message = NULL;

    ck_assert_int_eq(natsMsg_Create(&message, "a", NULL, text, (int)strlen(text)), NATS_OK);
    return message;
}

static int confirm(const char *text)
{
    natsMsg *message = answer(text);
    char problem[64];
    int r = publication_confirm(message, problem, sizeof(problem));

    natsMsg_Destroy(message);
    return r;
}

static int find(const char *text)
{
    natsMsg *message = answer(text);
    int r = publication_found(&engine, &flight, message, &other);

    natsMsg_Destroy(message);
    return r;
}

/* Returns the dead letter of a message that can never be a job, with this header of its sender. */
static natsMsg *letter(const char *name, const char *value)
{
    natsMsg *message = answer("hello"), *made;

    ck_assert_int_eq(natsMsgHeader_Add(message, name, value), NATS_OK);
    flight.state = FLIGHT_LETTER;
    flight.problem = "refused";
    flight.message = message;
    made = publication_make(&engine, &flight);
    ck_assert_ptr_nonnull(made);
    ck_assert_mem_eq(natsMsg_GetData(made), "hello", 5);
    natsMsg_Destroy(message);
    return made;
}

static void check_value(natsMsg *message, const char *name, const char *expected)
{
    const char *value = NULL;

    ck_assert_int_eq(natsMsgHeader_Get(message, name, &value), NATS_OK);
    ck_assert_str_eq(value, expected);
}

TEST(a_dead_letter_has_the_headers_of_its_sender_that_are_for_jobs)
{
    static const char long_key[] =
        "0123456789012345678901234567890123456789012345678901234567890123"
        "0123456789012345678901234567890123456789012345678901234567890123"
        "0123456789012345678901234567890123456789012345678901234567890123"
        "0123456789012345678901234567890123456789012345678901234567890123";
    const char *value;
    natsMsg *made = letter("Troupe-Key", "a Nats-Msg-Id");

    check_value(made, "Troupe-Key", "a Nats_Msg-Id");
    natsMsg_Destroy(made);
    made = letter("Troupe-Key", long_key);
    ck_assert_int_eq(natsMsgHeader_Get(made, "Troupe-Key", &value), NATS_NOT_FOUND);
    natsMsg_Destroy(made);
    made = letter("X-Nats-Msg-Id", "x");
    ck_assert_int_eq(natsMsgHeader_Get(made, "X-Nats-Msg-Id", &value), NATS_NOT_FOUND);
    natsMsg_Destroy(made);
}

TEST(no_text_hides_the_headers_that_have_a_publication_stored_once)
{
    static char job[] = "{\"key\":\"Nats-Msg-Id\"}";
    static char reason[] = "Nats-Expected-Last-Subject-Sequence Nats-Msg-Id,Nats-Msg-Id Nats-";
    static const char shown[] = "Nats_Expected-Last-Subject-Sequence Nats_Msg-Id,Nats_Msg-Id Nats-";
    natsMsg *message = NULL, *made;

    ck_assert_int_eq(natsMsg_Create(&message, "jobs.echo.Nats-Msg-Id", NULL, NULL, 0), NATS_OK);
    flight.result.reason = reason;
    made = publication_make(&engine, &flight);
    check_value(made, "Troupe-Reason", shown);
    check_value(made, "Nats-Msg-Id", "JOBS:7");
    natsMsg_Destroy(made);
    flight.state = FLIGHT_LETTER;
    flight.message = message;
    flight.job = job;
    made = publication_make(&engine, &flight);
    check_value(made, "Troupe-Reason", shown);
    check_value(made, "Troupe-Subject", "jobs.echo.Nats_Msg-Id");
    check_value(made, "Troupe-Deaths", "{\"key\":\"Nats_Msg-Id\"}");
    natsMsg_Destroy(made);
    natsMsg_Destroy(message);
}

TEST(what_the_stream_of_results_answers_is_a_confirmation)
{
    ck_assert_int_eq(confirm("{\"stream\":\"TROUPE\",\"seq\":1}"), 0);
    ck_assert_int_eq(confirm("{\"stream\":\"TROUPE\",\"seq\":1,\"duplicate\":true}"),
                     PUBLICATION_E_DOUBLE);
    ck_assert_int_eq(confirm("{\"stream\":\"TROUPE\",\"seq\":0,\"error\":{\"err_code\":10054}}"),
                     -EMSGSIZE);
    ck_assert_int_eq(confirm("{\"error\":{\"err_code\":10077}}"), -EIO);
    ck_assert_int_eq(confirm("{\"seq\":1}"), -EIO);
    ck_assert_int_eq(confirm("{}"), -EIO);
    ck_assert_int_eq(confirm("?"), -EIO);
}

TEST(what_other_streams_answer_to_their_senders_is_none)
{
    ck_assert_int_eq(confirm("{\"stream\":\"JOBS\",\"seq\":1}"), PUBLICATION_E_FOREIGN);
    ck_assert_int_eq(confirm("{\"stream\":\"OTHER\",\"seq\":1}"), PUBLICATION_E_FOREIGN);
    ck_assert_int_eq(confirm("{\"type\":\"io.nats.jetstream.api.v1.stream_msg_get_response\","
                             "\"error\":{\"err_code\":10037}}"),
                     PUBLICATION_E_FOREIGN);
    ck_assert_int_eq(confirm("{\"stream\":\"JOBS\",\"seq\":0,\"error\":{\"err_code\":10054}}"),
                     PUBLICATION_E_FOREIGN);
}

TEST(only_a_message_with_the_subject_of_the_result_is_found)
{
    ck_assert_int_eq(find("{\"message\":{\"subject\":\"troupe.result.JOBS.7\",\"hdrs\":\"\"}}"), 0);
    ck_assert_int_eq(find("{\"message\":{\"subject\":\"troupe.result.JOBS.8\"}}"),
                     PUBLICATION_E_FOREIGN);
    ck_assert_int_eq(find("{\"message\":{}}"), PUBLICATION_E_FOREIGN);
    ck_assert_int_eq(find("{\"error\":{\"err_code\":10037}}"), PUBLICATION_E_MISSING);
    ck_assert_int_eq(find("{\"error\":{\"err_code\":10008}}"), -EIO);
    flight.state = FLIGHT_LETTER;
    ck_assert_int_eq(find("{\"message\":{\"subject\":\"troupe.dead.echo.JOBS.7\",\"hdrs\":\"\"}}"),
                     0);
    ck_assert_int_eq(find("{\"message\":{\"subject\":\"troupe.result.JOBS.7\"}}"),
                     PUBLICATION_E_FOREIGN);
}

TEST(what_has_no_headers_is_replaced)
{
    ck_assert_int_eq(find("{\"message\":{\"subject\":\"troupe.result.JOBS.7\",\"seq\":12}}"),
                     PUBLICATION_E_OTHER);
    flight.other = other;
    flight.result.reason = "";
    natsMsg *made = publication_make(&engine, &flight);
    check_value(made, "Nats-Expected-Last-Subject-Sequence", "12");
    natsMsg_Destroy(made);
}

TEST(what_is_too_large_is_omitted_part_by_part_and_named)
{
    static char job[] = "{\"id\":\"JOBS:7\"}", reports[] = "{\"cause\":\"a\"}", data[] = "hello";
    natsMsg *message = answer(data), *made;
    const char *value;
    unsigned n = 1;

    flight.state = FLIGHT_LETTER;
    flight.message = message;
    flight.result.reason = "";
    flight.job = job;
    flight.reports = reports;
    made = publication_make(&engine, &flight);
    check_value(made, "Troupe-Deaths", "{\"id\":\"JOBS:7\",\"deaths\":[{\"cause\":\"a\"}]}");
    ck_assert_int_eq(natsMsgHeader_Get(made, "Troupe-Missing", &value), NATS_NOT_FOUND);
    natsMsg_Destroy(made);
    ck_assert(publication_omit(&flight));
    made = publication_make(&engine, &flight);
    check_value(made, "Troupe-Deaths", job);
    check_value(made, "Troupe-Missing", "the death reports: too large");
    natsMsg_Destroy(made);
    while (publication_omit(&flight))
        n++;
    made = publication_make(&engine, &flight);
    ck_assert_uint_eq(n, 5);
    ck_assert_int_eq(natsMsg_GetDataLength(made), 0);
    ck_assert_int_eq(natsMsgHeader_Get(made, "Troupe-Deaths", &value), NATS_NOT_FOUND);
    natsMsg_Destroy(made);
    natsMsg_Destroy(message);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
