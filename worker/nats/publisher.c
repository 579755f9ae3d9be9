/* SPDX-License-Identifier: MIT */
#include "worker/nats/publisher.h"

#include "shared/base/log.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* While the connection takes no more. */
#define BEHIND_RETRY (100 * USEC_PER_MSEC)

/* After so long without a failure, publishing counts as recovered. */
#define RECOVERY_USEC (4 * USEC_PER_SEC)

/* An answer that takes longer is in doubt. */
#define LATE_USEC USEC_PER_SEC
/* A publication without an answer for so long is logged. */
#define COMPLAINT_USEC (5 * USEC_PER_SEC)

/* How long a flight stays in a state until something is done (again). For doubts, two heartbeats of
 * leaders: by then one that was deposed while it could not run mostly knows it. */
static const usec_t pauses[_N_FLIGHT_STATES] = {
    [FLIGHT_DYING] = 5 * USEC_PER_SEC,          [FLIGHT_LETTER] = USEC_PER_SEC,
    [FLIGHT_LETTER_DOUBTED] = 2 * USEC_PER_SEC, [FLIGHT_RESULT] = USEC_PER_SEC,
    [FLIGHT_RESULT_DOUBTED] = 2 * USEC_PER_SEC,
};

void publisher_init(struct publisher *publisher, struct engine *engine, struct flights *flights)
{
    *publisher = (struct publisher){.engine = engine, .flights = flights};
}

static void note_failure(struct publisher *publisher, const char *problem)
{
    const bool first = publisher->unpublished_at == 0;

    publisher->unpublished_at = clock_now();
    if (!first)
        return;
    log_warning("a result cannot be published, and is tried again: %s", problem);
}

static bool is_wanted(const struct publisher *publisher, const struct flight *flight,
                      enum flight_state state)
{
    const uint64_t results = publisher->engine->config->results;
    const bool succeeded = !flight->problem && flight->result.end == TROUPE_SUCCEEDED;

    return state == FLIGHT_LETTER || results == CONFIG_RESULTS_ALL ||
           (results == CONFIG_RESULTS_ERRORS && !succeeded);
}

/* The server's limit may become smaller at any time. */
static void send_publication(struct publisher *publisher, struct flight *flight)
{
    int r;

    do {
        natsMsg *message = publication_make(publisher->engine, flight);

        r = message ? engine_publish(publisher->engine, message) : -ENOMEM;
        message_bin_put(&publisher->flights->bin, message);
    } while (r == -EMSGSIZE && publication_omit(flight));
    if (r < 0)
        note_failure(publisher, strerror(-r));
}

void publisher_publish(struct publisher *publisher, struct flight *flight, enum flight_state state,
                       usec_t now)
{
    const bool wanted = is_wanted(publisher, flight, state);

    flight_set_state(publisher->flights, flight, state);
    flight->sent_at = now;
    if (!publisher->engine->connected)
        return;
    if (!wanted) {
        flight_set_state(publisher->flights, flight, FLIGHT_DONE);
        return;
    }
    if (engine_is_full(publisher->engine)) {
        flight->sent_at = 0; /* as soon as there is room */
        return;
    }
    if (flight->first_sent_at == 0)
        flight->first_sent_at = now;
    send_publication(publisher, flight);
}

void publisher_publish_soon(struct publisher *publisher)
{
    for (int state = FLIGHT_LETTER; state <= FLIGHT_RESULT_DOUBTED; state++)
        list_for_each_entry (flight, &publisher->flights->lists[state], struct flight, link)
            flight->sent_at = 0;
}

/* ---- doubts ---- */

static enum flight_state doubted(enum flight_state state)
{
    return state == FLIGHT_LETTER ? FLIGHT_LETTER_DOUBTED : FLIGHT_RESULT_DOUBTED;
}

static void ask(struct publisher *publisher, struct flight *flight, enum flight_state state,
                usec_t now)
{
    flight_set_state(publisher->flights, flight, state);
    flight->sent_at = now;
    (void)publication_ask(publisher->engine, flight);
}

/* Senders can cause this at will, so the log is limited. The other message is replaced. */
static void note_other(struct publisher *publisher, const struct flight *flight, usec_t now)
{
    if (rate_take(&publisher->others, now, 1, NULL))
        log_warning("message %llu of stream %s: something else is stored in the place of its "
                    "result or dead letter, which is published again",
                    (unsigned long long)flight_sequence(flight), publisher->engine->config->stream);
}

/* Without the id that it had: a server that remembers the id would not store it. */
static void publish_lost(struct publisher *publisher, struct flight *flight, uint64_t other,
                         usec_t now)
{
    if (other > 0)
        note_other(publisher, flight, now);
    else
        note_failure(publisher, "the server has confirmed it and does not have it");
    flight->lost = true;
    flight->other = other;
    flight->first_sent_at = 0;
    publisher_publish(publisher, flight,
                      flight->state == FLIGHT_LETTER_DOUBTED ? FLIGHT_LETTER : FLIGHT_RESULT, now);
}

/* ---- answers ---- */

/* Sends a copy of a stored dead letter to current subscribers. */
static void notify(struct publisher *publisher, const struct flight *flight)
{
    natsMsg *message = publication_notice(publisher->engine, flight);

    if (message)
        (void)engine_publish(publisher->engine, message);
    natsMsg_Destroy(message);
}

/* The result follows the dead letter. */
static void publish_result(struct publisher *publisher, struct flight *flight, usec_t now)
{
    flight->first_sent_at = 0;
    flight->n_omitted = 0;
    flight->lost = false;
    flight->other = 0;
    publisher_publish(publisher, flight, FLIGHT_RESULT, now);
}

/* One result that can never be stored is refused repeatedly, while others are stored. */
static bool has_recovered(const struct publisher *publisher, usec_t now)
{
    const unsigned *counts = publisher->flights->counts;

    return publisher->unpublished_at > 0 &&
           (counts[FLIGHT_LETTER] + counts[FLIGHT_RESULT] == 0 ||
            usec_sub(now, publisher->unpublished_at) >= RECOVERY_USEC);
}

static void on_stored(struct publisher *publisher, struct flight *flight, usec_t now)
{
    if (flight->state == FLIGHT_LETTER || flight->state == FLIGHT_LETTER_DOUBTED)
        publish_result(publisher, flight, now);
    else
        flight_set_state(publisher->flights, flight, FLIGHT_DONE);
    if (!has_recovered(publisher, now))
        return;
    log_info("results are published again");
    publisher->unpublished_at = 0;
}

static void on_published(struct publisher *publisher, struct flight *flight, natsMsg *answer,
                         usec_t now)
{
    const usec_t took = usec_sub(now, flight->first_sent_at);
    char problem[256];
    int r = publication_confirm(answer, problem, sizeof(problem));

    if (r == PUBLICATION_E_FOREIGN)
        return;
    if (r == -EMSGSIZE && publication_omit(flight)) {
        publisher_publish(publisher, flight, flight->state, now);
        return;
    }
    if (r < 0) {
        note_failure(publisher, problem);
        return;
    }
    if (r == 0 && flight->state == FLIGHT_LETTER)
        notify(publisher, flight);
    if (r == 0 && took < LATE_USEC) {
        on_stored(publisher, flight, now);
        return;
    }
    flight_set_state(publisher->flights, flight, doubted(flight->state));
    flight->sent_at = now;
}

static void on_asked(struct publisher *publisher, struct flight *flight, natsMsg *answer,
                     usec_t now)
{
    uint64_t other = 0;
    const int r = publication_found(publisher->engine, flight, answer, &other);

    if (r == 0)
        on_stored(publisher, flight, now);
    else if (r == PUBLICATION_E_MISSING || r == PUBLICATION_E_OTHER)
        publish_lost(publisher, flight, other, now);
}

void publisher_note_answer(struct publisher *publisher, const char *token, natsMsg *answer,
                           usec_t now)
{
    enum flight_state state;
    struct flight *flight = flight_find(publisher->flights, publication_number(token, &state));

    if (natsMsg_IsNoResponders(answer))
        note_failure(publisher, "no stream takes it");
    else if (flight && flight->state == state &&
             (state == FLIGHT_LETTER_DOUBTED || state == FLIGHT_RESULT_DOUBTED))
        on_asked(publisher, flight, answer, now);
    else if (flight && flight->state == state)
        on_published(publisher, flight, answer, now);
}

/* ---- what takes long ---- */

static void publish_again(struct publisher *publisher, struct flight *flight, usec_t now)
{
    if (flight->sent_at > 0 && usec_sub(now, flight->first_sent_at) >= COMPLAINT_USEC)
        note_failure(publisher, "the server does not confirm it; is there a stream for it?");
    publisher_publish(publisher, flight, flight->state, now);
}

/* Returns when to call it again. */
static usec_t serve_state(struct publisher *publisher, enum flight_state state, usec_t now)
{
    list_until_empty (flight, &publisher->flights->lists[state], struct flight, link) {
        if (flight->sent_at > 0 && flight->sent_at + pauses[state] > now)
            return flight->sent_at + pauses[state];
        if (engine_is_full(publisher->engine))
            return now + BEHIND_RETRY;
        if (state == FLIGHT_DYING)
            publisher_publish(publisher, flight, FLIGHT_LETTER, now);
        else if (state == FLIGHT_LETTER || state == FLIGHT_RESULT)
            publish_again(publisher, flight, now);
        else
            ask(publisher, flight, state, now);
    }
    return USEC_INFINITY;
}

usec_t publisher_serve(struct publisher *publisher, usec_t now)
{
    usec_t next = USEC_INFINITY;

    if (!publisher->engine->connected)
        return USEC_INFINITY;
    /* Publications of an earlier turn may still wait to be sent. */
    if (engine_is_behind(publisher->engine))
        return now + BEHIND_RETRY;
    for (int state = FLIGHT_DYING; state <= FLIGHT_RESULT_DOUBTED; state++)
        next = usec_min(next, serve_state(publisher, (enum flight_state)state, now));
    return next;
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

    (void)snprintf(token, sizeof(token), "%c%" PRIu64, ENGINE_DONE, flight->turn);
    if (last)
        (void)engine_request(publisher->engine, natsMsg_GetReply(flight->message), token, text);
    else
        engine_acknowledge(publisher->engine, flight->message, text);
}

void publisher_conclude_again(struct publisher *publisher, struct flight *flight, usec_t now)
{
    const enum flight_state state = flight_is_dead(flight) ? FLIGHT_LETTER : FLIGHT_RESULT;

    if (flight->n_turns >= TRIES)
        flight_free(publisher->flights, flight); /* if it is still there, it comes again */
    else if (is_wanted(publisher, flight, state))
        ask(publisher, flight, doubted(state), now);
    else
        flight_set_state(publisher->flights, flight, FLIGHT_DONE);
}

void publisher_acknowledge(struct publisher *publisher)
{
    struct list *done = &publisher->flights->lists[FLIGHT_DONE];

    if (!publisher->engine->connected || list_empty(done))
        return;
    publisher->n_turns++;
    list_until_empty (flight, done, struct flight, link) {
        flight_set_state(publisher->flights, flight, FLIGHT_ACKNOWLEDGED);
        flight->turn = publisher->n_turns;
        flight->n_turns++;
        acknowledge(publisher, flight, list_empty(done));
    }
}

void publisher_note_acknowledged(struct publisher *publisher, const char *token, natsMsg *answer)
{
    const uint64_t turn = strtoull(token + 1, NULL, 10);

    /* The server's answer to a sender, who can have it sent here, has data. Without a responder,
     * the next beat tries again. */
    if (natsMsg_GetDataLength(answer) > 0 || natsMsg_IsNoResponders(answer))
        return;
    list_for_each_safe (node, &publisher->flights->lists[FLIGHT_ACKNOWLEDGED]) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->turn > turn)
            return;
        if (flight->turn == turn)
            flight_free(publisher->flights, flight);
    }
}
