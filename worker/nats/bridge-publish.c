/* SPDX-License-Identifier: MIT */

/* What is published about jobs that have ended, and whether it is stored.
 *
 * nats-server 2.9 may lose a message that it has confirmed while leaders change: a follower whose
 * log is longer than the leader's says that it has the message, and the leader counts it. So an
 * answer is in doubt that came late or says that the message was there before, and any answer is if
 * nobody confirms the acknowledgement of the job's message. Then the stream is asked. */

#include "shared/base/log.h"
#include "worker/nats/bridge-private.h"
#include "worker/nats/publication.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Until something is published again: several times what the last answer took, doubling. */
#define PATIENCE_MIN    (100 * USEC_PER_MSEC)
#define PATIENCE_MAX    (2 * USEC_PER_SEC)
#define PATIENCE_FACTOR 4
#define BEHIND_RETRY    (100 * USEC_PER_MSEC)

/* Without a refusal: then results are published again. */
#define RECOVERY_USEC (2 * PATIENCE_MAX)

/* An answer that takes longer is in doubt. */
#define LATE_USEC USEC_PER_SEC
/* Without an answer: the log tells of it. */
#define COMPLAINT_USEC (5 * USEC_PER_SEC)
/* Then a dead letter goes without death reports. */
#define REPORTS_USEC (5 * USEC_PER_SEC)
/* Two heartbeats of leaders: by then one that was deposed while it could not run mostly knows it.
 * Also the time between two questions. */
#define ASK_USEC (2 * USEC_PER_SEC)

void bridge_note_unpublished(struct bridge *bridge, const char *problem)
{
    const bool first = bridge->unpublished_at == 0;

    bridge->metrics.n[METRIC_PUBLISH_FAILURES]++;
    bridge->unpublished_at = clock_now();
    if (!first)
        return;
    log_warning("a result cannot be published, and is tried again: %s", problem);
    bridge_tell(bridge);
}

static int publish(struct bridge *bridge, const struct flight *flight)
{
    natsMsg *message = flight->state == FLIGHT_DEAD
                           ? publication_letter(&bridge->engine, bridge->config, flight)
                           : publication_result(&bridge->engine, bridge->config, flight);
    int r = message ? engine_publish(&bridge->engine, message) : -ENOMEM;

    message_bin_put(&bridge->bin, message);
    return r;
}

static bool has_succeeded(const struct flight *flight)
{
    return !flight->problem && flight->result.end == TROUPE_SUCCEEDED;
}

static bool is_wanted(const struct bridge *bridge, const struct flight *flight)
{
    const uint64_t results = bridge->config->results;

    return flight->state == FLIGHT_DEAD || results == CONFIG_RESULTS_ALL ||
           (results == CONFIG_RESULTS_ERRORS && !has_succeeded(flight));
}

static void send_publication(struct bridge *bridge, struct flight *flight)
{
    int r = publish(bridge, flight);

    if (r == -EMSGSIZE && !flight->bare) { /* the server's limit has become smaller meanwhile */
        flight->bare = true;
        r = publish(bridge, flight);
    }
    if (r < 0)
        bridge_note_unpublished(bridge, strerror(-r));
}

void bridge_publish(struct bridge *bridge, struct flight *flight, usec_t now)
{
    /* Behind those that were published before. */
    flight_set_state(&bridge->flights, flight, flight->state);
    flight->sent_at = now;
    if (!bridge->connected)
        return;
    if (is_wanted(bridge, flight) && engine_is_full(&bridge->engine)) {
        flight->sent_at = 0; /* as soon as there is room */
        return;
    }
    if (flight->first_sent_at == 0)
        flight->first_sent_at = now;
    if (is_wanted(bridge, flight))
        send_publication(bridge, flight);
    else
        bridge_conclude(bridge, flight);
}

void bridge_publish_soon(struct bridge *bridge)
{
    list_for_each (node, &bridge->flights.unconfirmed)
        list_entry(node, struct flight, link)->sent_at = 0;
    list_for_each (node, &bridge->flights.doubted)
        list_entry(node, struct flight, link)->sent_at = 0;
}

/* ---- what is in doubt ---- */

static void ask(struct bridge *bridge, struct flight *flight, usec_t now)
{
    flight_doubt(&bridge->flights, flight, flight->state);
    flight->sent_at = now;
    (void)publication_ask(&bridge->engine, bridge->config, bridge->results, flight);
}

bool bridge_doubt(struct bridge *bridge, struct flight *flight, usec_t now)
{
    flight_set_state(&bridge->flights, flight, flight_is_dead(flight) ? FLIGHT_DEAD : FLIGHT_ENDED);
    if (!is_wanted(bridge, flight))
        return false;
    ask(bridge, flight, now);
    return true;
}

static usec_t serve_doubted(struct bridge *bridge, usec_t now)
{
    struct list *node;

    while ((node = list_first(&bridge->flights.doubted))) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->sent_at > 0 && flight->sent_at + ASK_USEC > now)
            return flight->sent_at + ASK_USEC;
        ask(bridge, flight, now);
    }
    return USEC_INFINITY;
}

/* Senders can bring that about at will, and it is replaced: the log tells of some. */
static void note_other(struct bridge *bridge, const struct flight *flight, usec_t now)
{
    bridge->metrics.n[METRIC_PUBLISH_FAILURES]++;
    if (rate_take(&bridge->others, now, 1, NULL))
        log_warning("message %llu of stream %s: something else is stored in the place of its "
                    "result or dead letter, which is published again",
                    (unsigned long long)flight_sequence(flight), bridge->config->stream);
}

/* A server that remembers the id of what is lost would not store it. */
static void publish_lost(struct bridge *bridge, struct flight *flight, uint64_t other, usec_t now)
{
    if (other > 0)
        note_other(bridge, flight, now);
    else
        bridge_note_unpublished(bridge, "the server has confirmed it and does not have it");
    flight->lost = true;
    flight->other = other;
    flight->first_sent_at = 0;
    bridge_publish(bridge, flight, now);
}

/* ---- answers ---- */

/* A dead letter is stored. Whoever misses this finds it there. */
static void notify(struct bridge *bridge, const struct flight *flight)
{
    natsMsg *message = publication_notice(&bridge->engine, bridge->config, flight);

    if (message)
        (void)engine_publish(&bridge->engine, message);
    natsMsg_Destroy(message);
}

static void on_confirmed(struct bridge *bridge, struct flight *flight, usec_t now)
{
    if (flight->state == FLIGHT_DEAD) {
        bridge->metrics.n[METRIC_DEAD] += flight->n_turns == 0;
        flight_set_state(&bridge->flights, flight, FLIGHT_ENDED);
        flight->first_sent_at = 0;
        flight->lost = false;
        flight->other = 0;
        bridge_publish(bridge, flight, now);
        return;
    }
    bridge_conclude(bridge, flight);
}

/* One that can never be stored is refused again and again, while others are stored. */
static bool has_recovered(const struct bridge *bridge, usec_t now)
{
    return bridge->unpublished_at > 0 && (list_empty(&bridge->flights.unconfirmed) ||
                                          usec_sub(now, bridge->unpublished_at) >= RECOVERY_USEC);
}

static void on_stored(struct bridge *bridge, struct flight *flight, usec_t now)
{
    on_confirmed(bridge, flight, now);
    if (!has_recovered(bridge, now))
        return;
    log_info("results are published again");
    bridge->unpublished_at = 0;
    bridge_tell(bridge);
}

/* ---- the stream of results ---- */

/* Who sees where answers go can have any stream send one that looks like that of the stream of
 * results. So a name is believed only if that stream, asked in a way that others do not see, has
 * what was published. */
static void probe(struct bridge *bridge, const struct flight *flight, const char *stream,
                  usec_t now)
{
    if (*bridge->probe.stream != '\0' && now < bridge->probe.asked_at + ASK_USEC)
        return;
    bridge->probe.secret = bridge_new_secret();
    bridge->probe.sequence = flight_sequence(flight);
    bridge->probe.asked_at = now;
    (void)snprintf(bridge->probe.stream, sizeof(bridge->probe.stream), "%s", stream);
    (void)publication_probe(&bridge->engine, bridge->config, stream, flight, bridge->probe.secret);
}

static bool is_in_hand(const struct flight *flight)
{
    return flight->state == FLIGHT_DEAD || flight->state == FLIGHT_ENDED;
}

static void on_probed(struct bridge *bridge, uint64_t secret, natsMsg *answer, usec_t now)
{
    struct flight *flight = flight_find(&bridge->flights, bridge->probe.sequence);
    uint64_t other;

    if (*bridge->probe.stream == '\0' || secret != bridge->probe.secret)
        return;
    if (flight && is_in_hand(flight) &&
        publication_found(bridge->config, flight, answer, &other) == 0) {
        strcpy(bridge->results, bridge->probe.stream);
        bridge->results_known = true;
        on_stored(bridge, flight, now);
    }
    *bridge->probe.stream = '\0';
}

/* Whether an answer from this stream counts ("" = the answer does not say). */
static bool is_results(const struct bridge *bridge, const char *stream, int answer)
{
    if (strcmp(stream, bridge->results) == 0)
        return true;
    if (*stream == '\0')
        return answer != 0;
    /* A result that is too large for a stream is not found there. */
    return answer < 0 && !bridge->results_known;
}

static void on_published(struct bridge *bridge, struct flight *flight, natsMsg *answer, usec_t now)
{
    const usec_t took = usec_sub(now, flight->first_sent_at);
    char problem[256], stream[PUBLICATION_STREAM_SIZE];
    int r = publication_confirm(bridge->config, answer, stream, problem, sizeof(problem));

    if (r == PUBLICATION_E_FOREIGN)
        return;
    if (!is_results(bridge, stream, r)) {
        if (r >= 0 && *stream != '\0')
            probe(bridge, flight, stream, now);
        return;
    }
    bridge->results_known = bridge->results_known || r == 0;
    if (r == -EMSGSIZE && !flight->bare) {
        flight->bare = true;
        bridge_publish(bridge, flight, now);
        return;
    }
    if (r < 0) {
        bridge_note_unpublished(bridge, problem);
        return;
    }
    if (r == 0 && flight->state == FLIGHT_DEAD)
        notify(bridge, flight);
    bridge->patience = PATIENCE_FACTOR * took;
    if (r == 0 && took < LATE_USEC) {
        on_stored(bridge, flight, now);
        return;
    }
    flight_doubt(&bridge->flights, flight, flight->state);
    flight->sent_at = now;
}

static void on_asked(struct bridge *bridge, struct flight *flight, natsMsg *answer, usec_t now)
{
    uint64_t other = 0;
    const int r = publication_found(bridge->config, flight, answer, &other);

    if (r == 0)
        on_stored(bridge, flight, now);
    else if (r == PUBLICATION_E_MISSING || r == PUBLICATION_E_OTHER)
        publish_lost(bridge, flight, other, now);
}

void bridge_note_confirmation(struct bridge *bridge, const char *token, natsMsg *answer, usec_t now)
{
    enum publication_kind kind;
    const uint64_t number = publication_number(token, &kind);
    struct flight *flight = flight_find(&bridge->flights, number);
    const bool of_letter = kind & PUBLICATION_LETTER;

    if (kind == PUBLICATION_PROBE) {
        on_probed(bridge, number, answer, now);
        return;
    }
    if (!flight || flight->state != (of_letter ? FLIGHT_DEAD : FLIGHT_ENDED) ||
        flight->doubted != !!(kind & PUBLICATION_QUESTION))
        return;
    if (flight->doubted)
        on_asked(bridge, flight, answer, now);
    else
        on_published(bridge, flight, answer, now);
}

static usec_t serve_dying(struct bridge *bridge, usec_t now)
{
    struct list *node;

    while ((node = list_first(&bridge->flights.dying))) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->sent_at + REPORTS_USEC > now)
            return flight->sent_at + REPORTS_USEC;
        bridge_publish(bridge, flight, now);
    }
    return USEC_INFINITY;
}

/* Returns when the first of the others is to be published again. */
static usec_t publish_again(struct bridge *bridge, usec_t now)
{
    const usec_t pause = usec_clamp(bridge->patience, PATIENCE_MIN, PATIENCE_MAX);
    struct list *node;

    while ((node = list_first(&bridge->flights.unconfirmed))) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->sent_at > 0 && flight->sent_at + pause > now)
            return flight->sent_at + pause;
        if (engine_is_full(&bridge->engine))
            return now + BEHIND_RETRY;
        if (flight->sent_at > 0)
            bridge->patience = 2 * pause;
        if (flight->sent_at > 0 && usec_sub(now, flight->first_sent_at) >= COMPLAINT_USEC)
            bridge_note_unpublished(bridge,
                                    "the server does not confirm it; is there a stream for it?");
        bridge_publish(bridge, flight, now);
    }
    return USEC_INFINITY;
}

usec_t bridge_serve_unconfirmed(struct bridge *bridge, usec_t now)
{
    usec_t next;

    if (!bridge->connected)
        return USEC_INFINITY;
    /* What was published before may be among what could not be sent. */
    if (engine_is_behind(&bridge->engine))
        return now + BEHIND_RETRY;
    next = serve_doubted(bridge, now);
    next = usec_min(next, serve_dying(bridge, now));
    return usec_min(next, publish_again(bridge, now));
}
