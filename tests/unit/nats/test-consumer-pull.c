/* SPDX-License-Identifier: MIT */
#include "worker/nats/consumer.h"

#include "tests/unit/suite.h"

#define NOW         (100 * USEC_PER_SEC)
#define GATHER_USEC USEC_PER_MSEC
#define NUDGE_NSEC  1000000

static struct config config;
static struct engine engine;
static struct consumer consumer;
static unsigned n_requests;
static unsigned long batch, expires; /* of the last request */

int engine_request(struct engine *to, const char *subject, const char *token, const char *text)
{
    char *end;

    ck_assert_ptr_eq(to, &engine);
    ck_assert_str_eq(subject, "$JS.API.CONSUMER.MSG.NEXT.JOBS.echo");
    ck_assert_int_eq(strncmp(token, "m1.", 3), 0);
    ck_assert_int_eq(strncmp(text, "{\"batch\":", 9), 0);
    batch = strtoul(text + 9, &end, 10);
    ck_assert_int_eq(strncmp(end, ",\"expires\":", 11), 0);
    expires = strtoul(end + 11, NULL, 10);
    n_requests++;
    return 0;
}

json_t *engine_json(natsMsg *answer)
{
    return NULL;
}

void engine_leave(struct engine *from)
{
}

uint64_t engine_new_secret(void)
{
    return 1;
}

natsStatus natsMsgHeader_Get(natsMsg *message, const char *name, const char **ret)
{
    if (strcmp(name, "Status") != 0)
        return NATS_NOT_FOUND;
    *ret = (const char *)message;
    return NATS_OK;
}

bool natsMsg_IsNoResponders(natsMsg *message)
{
    return strcmp((const char *)message, "503") == 0;
}

static void set_up(void)
{
    static char stream[] = "JOBS";

    config = (struct config)CONFIG_NULL;
    config.stream = stream;
    config.group = "echo";
    config.in_flight = 64;
    engine = (struct engine){.prefix = "m1."};
    n_requests = 0;
    consumer_init(&consumer, &engine, &config);
}

static void tear_down(void)
{
}

static void bring(unsigned n)
{
    while (n-- > 0)
        consumer_note_message(&consumer);
}

TEST(all_the_room_is_asked_for_at_once)
{
    ck_assert_uint_gt(consumer_pull(&consumer, 64, NOW), NOW);
    ck_assert_uint_eq(n_requests, 1);
    ck_assert_uint_eq(batch, 64);
}

TEST(a_request_is_open_until_all_has_come)
{
    (void)consumer_pull(&consumer, 64, NOW);
    bring(63);
    (void)consumer_pull(&consumer, 32, NOW + 1);
    ck_assert_uint_eq(n_requests, 1);
    bring(1);
    (void)consumer_pull(&consumer, 32, NOW + 2);
    ck_assert_uint_eq(n_requests, 2);
    ck_assert_uint_eq(batch, 32);
}

TEST(little_room_is_asked_for_with_what_comes_within_a_millisecond)
{
    ck_assert_uint_eq(consumer_pull(&consumer, 1, NOW), NOW + GATHER_USEC);
    ck_assert_uint_eq(consumer_pull(&consumer, 2, NOW + 500), NOW + GATHER_USEC);
    ck_assert_uint_eq(n_requests, 0);
    (void)consumer_pull(&consumer, 3, NOW + GATHER_USEC);
    ck_assert_uint_eq(n_requests, 1);
    ck_assert_uint_eq(batch, 3);
}

TEST(a_quarter_of_the_room_is_enough)
{
    ck_assert_uint_eq(consumer_pull(&consumer, 15, NOW), NOW + GATHER_USEC);
    (void)consumer_pull(&consumer, 16, NOW + 1);
    ck_assert_uint_eq(n_requests, 1);
    ck_assert_uint_eq(batch, 16);
}

TEST(the_millisecond_begins_anew_when_there_was_no_room)
{
    (void)consumer_pull(&consumer, 1, NOW);
    ck_assert_uint_eq(consumer_pull(&consumer, 0, NOW + 1), USEC_INFINITY);
    ck_assert_uint_eq(consumer_pull(&consumer, 1, NOW + 2 * GATHER_USEC), NOW + 3 * GATHER_USEC);
    ck_assert_uint_eq(n_requests, 0);
}

TEST(a_machine_with_room_for_one_does_not_wait)
{
    config.in_flight = 1;
    (void)consumer_pull(&consumer, 1, NOW);
    ck_assert_uint_eq(n_requests, 1);
}

static void note_status(const char *token, const char *status)
{
    consumer_note_status(&consumer, token, (natsMsg *)status, NOW);
}

TEST(a_request_that_is_over_is_followed_by_another)
{
    (void)consumer_pull(&consumer, 64, NOW);
    note_status("m1.7", "408"); /* of another one */
    note_status("m1.1", "");    /* not of a server */
    (void)consumer_pull(&consumer, 64, NOW);
    ck_assert_uint_eq(n_requests, 1);
    note_status("m1.1", "408");
    (void)consumer_pull(&consumer, 64, NOW);
    ck_assert_uint_eq(n_requests, 2);
}

TEST(a_request_that_is_refused_is_made_again_later)
{
    (void)consumer_pull(&consumer, 64, NOW);
    note_status("m1.1", "409");
    ck_assert_uint_gt(consumer_pull(&consumer, 64, NOW), NOW);
    ck_assert_uint_eq(n_requests, 1);
}

TEST(no_request_of_a_dead_machine_is_open_when_its_messages_come_back)
{
    for (usec_t ack_wait = USEC_PER_SEC; ack_wait <= 3600 * USEC_PER_SEC;
         ack_wait += USEC_PER_SEC) {
        consumer_set_ack_wait(&consumer, ack_wait);
        ck_assert_uint_lt(consumer.expires, ack_wait / 2);
        ck_assert_uint_le(consumer.expires, 20 * USEC_PER_SEC);
    }
}

TEST(the_next_request_is_sent_before_the_last_one_ends)
{
    for (usec_t ack_wait = USEC_PER_SEC / 10; ack_wait <= 100 * USEC_PER_SEC; ack_wait *= 10) {
        set_up();
        consumer_set_ack_wait(&consumer, ack_wait);
        usec_t next = consumer_pull(&consumer, 64, NOW);
        ck_assert_uint_ge(next, NOW + consumer.expires / 2);
        ck_assert_uint_lt(next, NOW + consumer.expires);
        ck_assert_uint_eq(consumer_pull(&consumer, 64, next - 1), next);
        ck_assert_uint_eq(n_requests, 1);
        ck_assert_uint_gt(consumer_pull(&consumer, 48, next), next);
        ck_assert_uint_eq(n_requests, 2);
        ck_assert_uint_eq(batch, 48);
        note_status("m1.1", "408"); /* of the former one */
        (void)consumer_pull(&consumer, 48, next + 1);
        ck_assert_uint_eq(n_requests, 2);
    }
}

TEST(a_request_that_nobody_answers_is_made_again_later)
{
    (void)consumer_pull(&consumer, 64, NOW);
    note_status("m1.1", "503");
    usec_t next = consumer_pull(&consumer, 64, NOW);
    ck_assert_uint_gt(next, NOW);
    ck_assert_uint_eq(n_requests, 1);
    (void)consumer_pull(&consumer, 64, next);
    ck_assert_uint_eq(n_requests, 2);
}

/* ---- requests in vain, and nudges ---- */

TEST(a_request_that_ends_without_a_message_was_in_vain)
{
    (void)consumer_pull(&consumer, 64, NOW);
    note_status("m1.1", "408");
    (void)consumer_pull(&consumer, 64, NOW);
    ck_assert_uint_eq(consumer.n_empty, 1);
    (void)consumer_pull(&consumer, 64, NOW + consumer.expires);
    ck_assert_uint_eq(consumer.n_empty, 2);
    bring(1);
    ck_assert_uint_eq(consumer.n_empty, 0);
    note_status("m1.3", "408");
    (void)consumer_pull(&consumer, 63, NOW);
    ck_assert_uint_eq(consumer.n_empty, 0);
}

TEST(a_request_was_not_in_vain_if_there_is_no_room_any_more)
{
    (void)consumer_pull(&consumer, 64, NOW);
    note_status("m1.1", "408");
    (void)consumer_pull(&consumer, 0, NOW);
    (void)consumer_pull(&consumer, 64, NOW);
    ck_assert_uint_eq(consumer.n_empty, 0);
}

TEST(nudges_follow_one_another_beside_the_request_until_a_message_comes)
{
    (void)consumer_pull(&consumer, 64, NOW);
    consumer_nudge(&consumer, 5);
    for (unsigned i = 2; i <= 3; i++) {
        (void)consumer_pull(&consumer, 64, NOW);
        (void)consumer_pull(&consumer, 64, NOW + 1);
        ck_assert_uint_eq(n_requests, i);
        ck_assert_uint_eq(batch, 1);
        ck_assert_uint_eq(expires, NUDGE_NSEC);
        note_status(i == 2 ? "m1.2" : "m1.3", "408");
    }
    bring(1);
    (void)consumer_pull(&consumer, 63, NOW + 1);
    ck_assert_uint_eq(n_requests, 3);
    ck_assert_uint_eq(consumer.open, 63);
}

TEST(there_are_no_more_nudges_than_that_and_none_without_room_or_after_an_error)
{
    (void)consumer_pull(&consumer, 64, NOW);
    consumer_nudge(&consumer, 2);
    for (unsigned i = 2; i <= 4; i++) {
        (void)consumer_pull(&consumer, 64, NOW);
        note_status(i == 2 ? "m1.2" : "m1.3", "408");
    }
    ck_assert_uint_eq(n_requests, 3);
    consumer_nudge(&consumer, 2);
    ck_assert_uint_eq(consumer_pull(&consumer, 0, NOW), USEC_INFINITY);
    ck_assert_uint_eq(n_requests, 3);
    (void)consumer_pull(&consumer, 64, NOW);
    note_status("m1.4", "409");
    (void)consumer_pull(&consumer, 64, NOW);
    ck_assert_uint_eq(n_requests, 4);
}

TEST(a_nudge_without_an_answer_is_followed_by_another_later)
{
    (void)consumer_pull(&consumer, 64, NOW);
    consumer_nudge(&consumer, 2);
    (void)consumer_pull(&consumer, 64, NOW);
    (void)consumer_pull(&consumer, 64, consumer.nudge_until);
    ck_assert_uint_eq(consumer.n_nudges, 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
