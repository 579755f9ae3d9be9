/* SPDX-License-Identifier: MIT */
#include "worker/nats/publisher.h"

#include "shared/base/log.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Until something is published again. */
#define AGAIN_USEC   USEC_PER_SEC
#define BEHIND_RETRY (100 * USEC_PER_MSEC)

/* After so long without a failure, publishing counts as recovered. */
#define RECOVERY_USEC (4 * USEC_PER_SEC)

/* An answer that takes longer is in doubt. */
#define LATE_USEC USEC_PER_SEC
/* A publication without an answer for so long is logged. */
#define COMPLAINT_USEC (5 * USEC_PER_SEC)
/* A dead letter waits so long for death reports. */
#define REPORTS_USEC (5 * USEC_PER_SEC)
/* Two heartbeats of leaders: by then one that was deposed while it could not run mostly knows it.
 * Also the time between two questions. */
#define ASK_USEC (2 * USEC_PER_SEC)

void publisher_init(struct publisher *publisher, struct engine *engine, const struct config *config,
                    struct flights *flights)
{
    *publisher = (struct publisher){.engine = engine, .config = config, .flights = flights};
}

void publisher_note_failure(struct publisher *publisher, const char *problem)
{
    const bool first = publisher->unpublished_at == 0;

    publisher->unpublished_at = clock_now();
    if (!first)
        return;
    log_warning("a result cannot be published, and is tried again: %s", problem);
    publisher->changed(publisher->userdata);
}

static int publish(struct publisher *publisher, const struct flight *flight)
{
    natsMsg *message = flight->state == FLIGHT_DEAD
                           ? publication_letter(publisher->engine, publisher->config, flight)
                           : publication_result(publisher->engine, publisher->config, flight);
    int r = message ? engine_publish(publisher->engine, message) : -ENOMEM;

    message_bin_put(publisher->flights->bin, message);
    return r;
}

static bool has_succeeded(const struct flight *flight)
{
    return !flight->problem && flight->result.end == TROUPE_SUCCEEDED;
}

static bool is_wanted(const struct publisher *publisher, const struct flight *flight)
{
    const uint64_t results = publisher->config->results;

    return flight->state == FLIGHT_DEAD || results == CONFIG_RESULTS_ALL ||
           (results == CONFIG_RESULTS_ERRORS && !has_succeeded(flight));
}

static void send_publication(struct publisher *publisher, struct flight *flight)
{
    int r = publish(publisher, flight);

    if (r == -EMSGSIZE && !flight->bare) { /* the server's limit has become smaller */
        flight->bare = true;
        r = publish(publisher, flight);
    }
    if (r < 0)
        publisher_note_failure(publisher, strerror(-r));
}

void publisher_publish(struct publisher *publisher, struct flight *flight, usec_t now)
{
    /* Behind those that were published before. */
    flight_set_state(publisher->flights, flight, flight->state);
    flight->sent_at = now;
    if (!publisher->engine->connected)
        return;
    if (is_wanted(publisher, flight) && engine_is_full(publisher->engine)) {
        flight->sent_at = 0; /* as soon as there is room */
        return;
    }
    if (flight->first_sent_at == 0)
        flight->first_sent_at = now;
    if (is_wanted(publisher, flight))
        send_publication(publisher, flight);
    else
        flight_set_state(publisher->flights, flight, FLIGHT_DONE);
}

void publisher_publish_soon(struct publisher *publisher)
{
    list_for_each (node, &publisher->flights->unconfirmed)
        list_entry(node, struct flight, link)->sent_at = 0;
    list_for_each (node, &publisher->flights->doubted)
        list_entry(node, struct flight, link)->sent_at = 0;
}

/* ---- doubts ---- */

static void ask(struct publisher *publisher, struct flight *flight, usec_t now)
{
    flight_doubt(publisher->flights, flight, flight->state);
    flight->sent_at = now;
    (void)publication_ask(publisher->engine, publisher->config, flight);
}

static bool doubt(struct publisher *publisher, struct flight *flight, usec_t now)
{
    flight_set_state(publisher->flights, flight,
                     flight_is_dead(flight) ? FLIGHT_DEAD : FLIGHT_ENDED);
    if (!is_wanted(publisher, flight))
        return false;
    ask(publisher, flight, now);
    return true;
}

static usec_t serve_doubted(struct publisher *publisher, usec_t now)
{
    struct list *node;

    while ((node = list_first(&publisher->flights->doubted))) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->sent_at > 0 && flight->sent_at + ASK_USEC > now)
            return flight->sent_at + ASK_USEC;
        ask(publisher, flight, now);
    }
    return USEC_INFINITY;
}

/* Senders can cause this at will, so the log is limited. The other message is replaced. */
static void note_other(struct publisher *publisher, const struct flight *flight, usec_t now)
{
    if (rate_take(&publisher->others, now, 1, NULL))
        log_warning("message %llu of stream %s: something else is stored in the place of its "
                    "result or dead letter, which is published again",
                    (unsigned long long)flight_sequence(flight), publisher->config->stream);
}

/* Without the id that it had: a server that remembers the id would not store it. */
static void publish_lost(struct publisher *publisher, struct flight *flight, uint64_t other,
                         usec_t now)
{
    if (other > 0)
        note_other(publisher, flight, now);
    else
        publisher_note_failure(publisher, "the server has confirmed it and does not have it");
    flight->lost = true;
    flight->other = other;
    flight->first_sent_at = 0;
    publisher_publish(publisher, flight, now);
}

/* ---- answers ---- */

/* Sends a copy of a stored dead letter to current subscribers. */
static void notify(struct publisher *publisher, const struct flight *flight)
{
    natsMsg *message = publication_notice(publisher->engine, publisher->config, flight);

    if (message)
        (void)engine_publish(publisher->engine, message);
    natsMsg_Destroy(message);
}

static void on_confirmed(struct publisher *publisher, struct flight *flight, usec_t now)
{
    if (flight->state == FLIGHT_DEAD) {
        flight_set_state(publisher->flights, flight, FLIGHT_ENDED);
        flight->first_sent_at = 0;
        flight->lost = false;
        flight->other = 0;
        publisher_publish(publisher, flight, now);
        return;
    }
    flight_set_state(publisher->flights, flight, FLIGHT_DONE);
}

/* One result that can never be stored is refused repeatedly, while others are stored. */
static bool has_recovered(const struct publisher *publisher, usec_t now)
{
    return publisher->unpublished_at > 0 &&
           (list_empty(&publisher->flights->unconfirmed) ||
            usec_sub(now, publisher->unpublished_at) >= RECOVERY_USEC);
}

static void on_stored(struct publisher *publisher, struct flight *flight, usec_t now)
{
    on_confirmed(publisher, flight, now);
    if (!has_recovered(publisher, now))
        return;
    log_info("results are published again");
    publisher->unpublished_at = 0;
    publisher->changed(publisher->userdata);
}

static void on_published(struct publisher *publisher, struct flight *flight, natsMsg *answer,
                         usec_t now)
{
    const usec_t took = usec_sub(now, flight->first_sent_at);
    char problem[256];
    int r = publication_confirm(answer, problem, sizeof(problem));

    if (r == PUBLICATION_E_FOREIGN)
        return;
    if (r == -EMSGSIZE && !flight->bare) {
        flight->bare = true;
        publisher_publish(publisher, flight, now);
        return;
    }
    if (r < 0) {
        publisher_note_failure(publisher, problem);
        return;
    }
    if (r == 0 && flight->state == FLIGHT_DEAD)
        notify(publisher, flight);
    if (r == 0 && took < LATE_USEC) {
        on_stored(publisher, flight, now);
        return;
    }
    flight_doubt(publisher->flights, flight, flight->state);
    flight->sent_at = now;
}

static void on_asked(struct publisher *publisher, struct flight *flight, natsMsg *answer,
                     usec_t now)
{
    uint64_t other = 0;
    const int r = publication_found(publisher->config, flight, answer, &other);

    if (r == 0)
        on_stored(publisher, flight, now);
    else if (r == PUBLICATION_E_MISSING || r == PUBLICATION_E_OTHER)
        publish_lost(publisher, flight, other, now);
}

void publisher_note_answer(struct publisher *publisher, const char *token, natsMsg *answer,
                           usec_t now)
{
    enum publication_kind kind;
    const uint64_t number = publication_number(token, &kind);
    struct flight *flight = flight_find(publisher->flights, number);
    const bool of_letter = kind & PUBLICATION_LETTER;

    if (!flight || flight->state != (of_letter ? FLIGHT_DEAD : FLIGHT_ENDED) ||
        flight->doubted != !!(kind & PUBLICATION_QUESTION))
        return;
    if (flight->doubted)
        on_asked(publisher, flight, answer, now);
    else
        on_published(publisher, flight, answer, now);
}

static usec_t serve_dying(struct publisher *publisher, usec_t now)
{
    struct list *node;

    while ((node = list_first(&publisher->flights->dying))) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->sent_at + REPORTS_USEC > now)
            return flight->sent_at + REPORTS_USEC;
        publisher_publish(publisher, flight, now);
    }
    return USEC_INFINITY;
}

/* Returns when to call it again. */
static usec_t publish_again(struct publisher *publisher, usec_t now)
{
    struct list *node;

    while ((node = list_first(&publisher->flights->unconfirmed))) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->sent_at > 0 && flight->sent_at + AGAIN_USEC > now)
            return flight->sent_at + AGAIN_USEC;
        if (engine_is_full(publisher->engine))
            return now + BEHIND_RETRY;
        if (flight->sent_at > 0 && usec_sub(now, flight->first_sent_at) >= COMPLAINT_USEC)
            publisher_note_failure(publisher,
                                   "the server does not confirm it; is there a stream for it?");
        publisher_publish(publisher, flight, now);
    }
    return USEC_INFINITY;
}

usec_t publisher_serve(struct publisher *publisher, usec_t now)
{
    usec_t next;

    if (!publisher->engine->connected)
        return USEC_INFINITY;
    /* Publications of an earlier turn may still wait to be sent. */
    if (engine_is_behind(publisher->engine))
        return now + BEHIND_RETRY;
    next = serve_doubted(publisher, now);
    next = usec_min(next, serve_dying(publisher, now));
    return usec_min(next, publish_again(publisher, now));
}

/* ---- acknowledgements ---- */

/* Acknowledgements of messages whose jobs are done. While servers elect a leader they are lost, and
 * then the message would go to another machine: so they are sent until they are confirmed.
 *
 * The last one of a turn of the loop asks for that, and stands for all: the server takes what one
 * connection sends in its order. */

/* The limit of attempts, since the consumer may be gone. */
#define TRIES 20u

static void acknowledge(struct publisher *publisher, struct flight *flight, bool last)
{
    /* +TERM: the engine must not count a dead job as done. */
    const char *text = flight_is_dead(flight) ? "+TERM" : "+ACK";
    char token[32];

    (void)snprintf(token, sizeof(token), ENGINE_DONE_TOKEN "%" PRIu64, flight->turn);
    if (last)
        (void)engine_request(publisher->engine, natsMsg_GetReply(flight->message), token, text);
    else
        engine_acknowledge(publisher->engine, flight->message, text);
}

void publisher_conclude_again(struct publisher *publisher, struct flight *flight, usec_t now)
{
    if (flight->n_turns >= TRIES)
        flight_free(publisher->flights, flight); /* if it is still there, it comes again */
    else if (!doubt(publisher, flight, now))
        flight_set_state(publisher->flights, flight, FLIGHT_DONE);
}

void publisher_acknowledge(struct publisher *publisher)
{
    struct list *done = &publisher->flights->done, *node;

    if (!publisher->engine->connected || list_empty(done))
        return;
    publisher->n_turns++;
    while ((node = list_first(done))) {
        struct flight *flight = list_entry(node, struct flight, link);

        list_unlink(node);
        list_push_back(&publisher->flights->acknowledged, node);
        flight->turn = publisher->n_turns;
        flight->n_turns++;
        acknowledge(publisher, flight, list_empty(done));
    }
}

void publisher_note_acknowledged(struct publisher *publisher, const char *token)
{
    const uint64_t turn = strtoull(token + strlen(ENGINE_DONE_TOKEN), NULL, 10);

    list_for_each_safe (node, &publisher->flights->acknowledged) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->turn > turn)
            return;
        if (flight->turn == turn)
            flight_free(publisher->flights, flight);
    }
}
