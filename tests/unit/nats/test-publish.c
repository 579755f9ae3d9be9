/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/nats/message.h"
#include "worker/nats/publisher.h"

#define NOW     (100 * USEC_PER_SEC)
#define AGAIN   USEC_PER_SEC
#define REPORTS (5 * USEC_PER_SEC)
#define LATE    USEC_PER_SEC
#define ASK     (2 * USEC_PER_SEC)

static struct config config;
static struct engine nats = {.config = &config, .connected = true};
static struct flights flights;
static struct publisher publisher;
static struct flight *flight;
static natsMsg *const message = (natsMsg *)&config;
static enum flight_state asked; /* the state in which the answer counts */
static int answer;
static uint64_t number; /* of what it is about */
static uint64_t other;  /* the sequence of what is stored in its place */
static int send_status;
static bool is_full; /* of the next publication of more than what identifies it */
static unsigned n_published, n_asked, n_notices;

natsMsg *publication_make(const struct engine *engine, const struct flight *of)
{
    return message;
}

bool publication_omit(struct flight *of)
{
    return of->n_omitted++ == 0;
}

natsMsg *publication_notice(const struct engine *engine, const struct flight *of)
{
    n_notices++;
    return NULL;
}

int publication_ask(struct engine *engine, const struct flight *of)
{
    n_asked++;
    return 0;
}

uint64_t publication_number(const char *token, enum flight_state *ret_state)
{
    *ret_state = asked;
    return number;
}

int publication_confirm(natsMsg *what, char *problem, size_t size)
{
    if (size > 0)
        *problem = '\0';
    return answer;
}

int publication_found(const struct engine *engine, const struct flight *of, natsMsg *what,
                      uint64_t *ret_other)
{
    *ret_other = other;
    return answer;
}

bool engine_is_full(const struct engine *engine)
{
    return is_full;
}

int engine_publish(struct engine *engine, natsMsg *what)
{
    if (send_status < 0 && flight->n_omitted == 0)
        return send_status;
    n_published++;
    return 0;
}

size_t message_headers_size(natsMsg *what, unsigned *ret_n)
{
    *ret_n = 0;
    return 0;
}

int natsMsg_GetDataLength(const natsMsg *what)
{
    return 0;
}

void natsMsg_Destroy(natsMsg *what)
{
}

bool natsMsg_IsNoResponders(natsMsg *what)
{
    return false;
}

void engine_acknowledge(struct engine *with, natsMsg *what, const char *text)
{
}

int engine_request(struct engine *with, const char *subject, const char *token, const char *text)
{
    return 0;
}

const char *natsMsg_GetReply(const natsMsg *what)
{
    return "";
}

/* How often the message was to be acknowledged. */
static unsigned count_concluded(void)
{
    return flights_done(&flights);
}

static void set_up(void)
{
    config = (struct config)CONFIG_NULL;
    publisher_init(&publisher, &nats, &flights);
    number = 1;
    other = 0;
    answer = send_status = 0;
    is_full = false;
    n_published = n_asked = n_notices = 0;
    flights_init(&flights);
    flight = flight_new(&flights, 1, message, NOW);
    ck_assert_ptr_nonnull(flight);
    flight->result.end = TROUPE_SUCCEEDED;
    publisher_publish(&publisher, flight, FLIGHT_RESULT, NOW);
}

static void tear_down(void)
{
    flights_deinit(&flights);
}

static void answered(enum flight_state state, int with, usec_t at)
{
    asked = state;
    answer = with;
    publisher_note_answer(&publisher, "", message, at);
}

TEST(a_result_that_is_confirmed_at_once_costs_no_question)
{
    answered(FLIGHT_RESULT, 0, NOW + LATE - 1);
    ck_assert_uint_eq(count_concluded(), 1);
    ck_assert_uint_eq(publisher_serve(&publisher, NOW + 2 * ASK), USEC_INFINITY);
    ck_assert_uint_eq(n_asked, 0);
    ck_assert_uint_eq(n_published, 1);
}

TEST(a_result_that_nobody_confirms_is_published_again)
{
    usec_t at = NOW;

    for (unsigned i = 1; i < 10; i++) {
        ck_assert_uint_eq(publisher_serve(&publisher, at), at + AGAIN);
        at += AGAIN;
        ck_assert_uint_eq(n_published, i);
        (void)publisher_serve(&publisher, at);
        ck_assert_uint_eq(n_published, i + 1);
    }
}

TEST(a_result_for_which_there_is_no_room_is_published_once_there_is)
{
    is_full = true;
    publisher_publish_soon(&publisher);
    ck_assert_uint_gt(publisher_serve(&publisher, NOW + 1), NOW + 1);
    publisher_publish(&publisher, flight, FLIGHT_RESULT, NOW + 2);
    ck_assert_uint_gt(publisher_serve(&publisher, NOW + 2), NOW + 2);
    ck_assert_uint_eq(n_published, 1);
    is_full = false;
    (void)publisher_serve(&publisher, NOW + 3);
    ck_assert_uint_eq(n_published, 2);
    ck_assert_uint_eq(publisher.unpublished_at, 0);
}

static void check_doubt(int with, usec_t at)
{
    answered(FLIGHT_RESULT, with, at);
    ck_assert_uint_eq(count_concluded(), 0);
    ck_assert_uint_eq(publisher_serve(&publisher, at), at + ASK);
    ck_assert_uint_eq(n_asked, 0);
    ck_assert_uint_eq(publisher_serve(&publisher, at + ASK), at + 2 * ASK);
    ck_assert_uint_eq(n_asked, 1);
    ck_assert_uint_eq(n_published, 1);
}

TEST(a_result_that_was_there_before_is_looked_for)
{
    check_doubt(PUBLICATION_E_DOUBLE, NOW + 1);
    answered(FLIGHT_RESULT_DOUBTED, 0, NOW + ASK + 2);
    ck_assert_uint_eq(count_concluded(), 1);
}

TEST(a_result_that_is_confirmed_late_is_looked_for)
{
    check_doubt(0, NOW + LATE);
    answered(FLIGHT_RESULT, 0, NOW + LATE + ASK); /* of a second publication */
    ck_assert_uint_eq(count_concluded(), 0);
    answered(FLIGHT_RESULT_DOUBTED, 0, NOW + LATE + ASK);
    ck_assert_uint_eq(count_concluded(), 1);
}

TEST(a_result_that_is_not_found_is_published_again)
{
    check_doubt(PUBLICATION_E_DOUBLE, NOW);
    answered(FLIGHT_RESULT_DOUBTED, PUBLICATION_E_MISSING, NOW + ASK);
    ck_assert_uint_eq(count_concluded(), 0);
    ck_assert_uint_eq(n_published, 2);
    ck_assert(flight->lost);
    answered(FLIGHT_RESULT, 0, NOW + ASK);
    ck_assert_uint_eq(count_concluded(), 1);
}

TEST(what_is_stored_in_the_place_of_a_result_is_replaced_and_is_no_sign_of_trouble)
{
    check_doubt(PUBLICATION_E_DOUBLE, NOW);
    other = 5;
    answered(FLIGHT_RESULT_DOUBTED, PUBLICATION_E_OTHER, NOW + ASK);
    ck_assert_uint_eq(n_published, 2);
    ck_assert_uint_eq(flight->other, other);
    ck_assert_uint_eq(publisher.unpublished_at, 0);
}

TEST(a_question_that_is_not_answered_is_asked_again)
{
    check_doubt(0, NOW + LATE);
    answered(FLIGHT_RESULT_DOUBTED, -EIO, NOW + LATE + ASK);
    (void)publisher_serve(&publisher, NOW + LATE + 2 * ASK);
    ck_assert_uint_eq(n_asked, 2);
    ck_assert_uint_eq(n_published, 1);
    ck_assert_uint_eq(count_concluded(), 0);
}

TEST(a_result_whose_message_nobody_confirms_to_be_acknowledged_is_looked_for_at_once)
{
    answered(FLIGHT_RESULT, 0, NOW);
    publisher_conclude_again(&publisher, flight, NOW + 1);
    ck_assert_uint_eq(count_concluded(), 0);
    ck_assert_uint_eq(n_asked, 1);
    answered(FLIGHT_RESULT_DOUBTED, 0, NOW + 2);
    ck_assert_uint_eq(count_concluded(), 1);
}

TEST(without_a_result_there_is_nothing_to_doubt)
{
    config.results = CONFIG_RESULTS_NONE;
    publisher_conclude_again(&publisher, flight, NOW);
    ck_assert_uint_eq(n_asked, 0);
}

TEST(a_letter_waits_for_its_reports_but_not_for_ever)
{
    flight_set_state(&flights, flight, FLIGHT_DYING);
    ck_assert_uint_eq(publisher_serve(&publisher, NOW + LATE), NOW + REPORTS);
    ck_assert_uint_eq(n_published, 1);
    (void)publisher_serve(&publisher, NOW + REPORTS);
    ck_assert_uint_eq(n_published, 2);
}

/* The letter is published. */
static void die(void)
{
    publisher_publish(&publisher, flight, FLIGHT_LETTER, NOW);
    ck_assert_uint_eq(n_published, 2);
}

TEST(a_letter_that_is_stored_is_told_of_and_its_result_follows)
{
    die();
    answered(FLIGHT_LETTER, 0, NOW + 1);
    ck_assert_uint_eq(n_notices, 1);
    ck_assert_uint_eq(n_published, 3);
    ck_assert_int_eq(flight->state, FLIGHT_RESULT);
    answered(FLIGHT_LETTER, 0, NOW + 2); /* of a second publication */
    ck_assert_uint_eq(count_concluded(), 0);
    answered(FLIGHT_RESULT, 0, NOW + 3);
    ck_assert_uint_eq(count_concluded(), 1);
}

TEST(a_letter_that_was_there_before_is_not_told_of_again)
{
    die();
    answered(FLIGHT_LETTER, PUBLICATION_E_DOUBLE, NOW + 1);
    answered(FLIGHT_LETTER_DOUBTED, 0, NOW + 2);
    ck_assert_uint_eq(n_notices, 0);
    ck_assert_int_eq(flight->state, FLIGHT_RESULT);
}

TEST(the_result_of_a_letter_that_was_lost_begins_anew)
{
    die();
    answered(FLIGHT_LETTER, PUBLICATION_E_DOUBLE, NOW);
    answered(FLIGHT_LETTER_DOUBTED, PUBLICATION_E_MISSING, NOW + LATE);
    ck_assert(flight->lost);
    answered(FLIGHT_LETTER, 0, NOW + LATE + 1);
    ck_assert(!flight->lost);
    answered(FLIGHT_RESULT, 0, NOW + 2 * LATE); /* late only since the letter was sent */
    ck_assert_uint_eq(count_concluded(), 1);
}

TEST(what_is_too_large_to_be_sent_or_stored_goes_without_what_may_be_left_out)
{
    send_status = -EMSGSIZE;
    publisher_publish(&publisher, flight, FLIGHT_RESULT, NOW);
    ck_assert_uint_eq(flight->n_omitted, 1);
    ck_assert_uint_eq(n_published, 2);
    flight->n_omitted = 0;
    answered(FLIGHT_RESULT, -EMSGSIZE, NOW + 1);
    ck_assert_uint_eq(flight->n_omitted, 1);
    ck_assert_uint_eq(n_published, 3);
    answered(FLIGHT_RESULT, -EMSGSIZE, NOW + 2);
    ck_assert_uint_eq(n_published, 3);
    ck_assert_uint_gt(publisher.unpublished_at, 0);
}

TEST(nothing_is_published_or_asked_while_the_engine_is_away_and_all_when_it_is_back)
{
    struct flight *doubted = flight_new(&flights, 2, message, NOW);

    ck_assert_ptr_nonnull(doubted);
    publisher_conclude_again(&publisher, doubted, NOW);
    nats.connected = false;
    publisher_publish(&publisher, flight, FLIGHT_RESULT, NOW);
    ck_assert_uint_eq(publisher_serve(&publisher, NOW + 2 * ASK), USEC_INFINITY);
    ck_assert_uint_eq(n_published, 1);
    ck_assert_uint_eq(n_asked, 1);
    nats.connected = true;
    publisher_publish_soon(&publisher);
    (void)publisher_serve(&publisher, NOW + 1);
    ck_assert_uint_eq(n_published, 2);
    ck_assert_uint_eq(n_asked, 2);
}

TEST(nothing_is_published_again_while_what_was_sent_before_waits)
{
    nats.transport.stalled_at = NOW;
    ck_assert_uint_gt(publisher_serve(&publisher, NOW + ASK), NOW + ASK);
    ck_assert_uint_eq(n_published, 1);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
