/* SPDX-License-Identifier: MIT */

/* Tracks the state of the consumer: whether it exists and answers. */

#include "shared/base/log.h"
#include "worker/nats/bridge-private.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSUMER_RETRY (5 * USEC_PER_SEC)
/* Somebody may change it, or make it anew. */
#define CONSUMER_CHECK (60 * USEC_PER_SEC)

/* What helps if the consumer or its stream is not there. */
#define REMEDY "\"troupe-nats setup\" makes both"

/* A server says so by itself while its servers have no leader, or while it is cut off from them. */
#define STATUS_UNAVAILABLE 503
#define REMEDY_UNAVAILABLE "too few servers are up or reach each other, or they elect a leader"

/* A server over which the consumer does not answer may be cut off from the others. It is left after
 * AckWait, and not before SILENCE_MIN, as leaders are mostly elected in less. Each time in a row
 * doubles that, LEFT_MAX times. */
#define SILENCE_MIN (10 * USEC_PER_SEC)
#define LEFT_MAX    4u

/* Nudges follow the first so many requests in a row that bring nothing, and after that only each
 * one of so many: workers may have all the messages that are in hand. */
#define NUDGED_ALWAYS 8u

/* The shortest time between two signs of life of one message. */
#define PERIOD_MIN USEC_PER_MSEC

/* Of answers about a consumer. */
#define TYPE "io.nats.jetstream.api.v1.consumer_info_response"

/* The consumer was asked for something. */
static void note_asked(struct bridge *bridge, usec_t now)
{
    if (bridge->asked_at == 0)
        bridge->asked_at = now;
}

void bridge_note_answered(struct bridge *bridge)
{
    bridge->asked_at = 0;
    bridge->n_left = 0;
}

usec_t bridge_serve_silence(struct bridge *bridge, usec_t now)
{
    const usec_t ack_wait = bridge->config->ack_wait;
    const usec_t limit = (ack_wait > SILENCE_MIN ? ack_wait : SILENCE_MIN)
                         << (bridge->n_left < LEFT_MAX ? bridge->n_left : LEFT_MAX);

    if (!bridge->connected || bridge->asked_at == 0)
        return USEC_INFINITY;
    if (now < usec_add(bridge->asked_at, limit))
        return usec_add(bridge->asked_at, limit);
    log_warning("consumer %s of stream %s does not answer over this server; %s",
                config_consumer(bridge->config), bridge->config->stream,
                bridge->engine.secure ? "asks again there, as TLS is in use"
                                      : "tries the next one");
    bridge->asked_at = 0;
    bridge->n_left++;
    engine_leave(&bridge->engine);
    return USEC_INFINITY;
}

/* Whoever sees where answers go can have the server answer there about another consumer, but does
 * not see where the next answer goes before it has come. */
static bool has_secret(const struct bridge *bridge, const char *token)
{
    return strtoull(token + strlen(ENGINE_CONSUMER_TOKEN), NULL, 10) == bridge->secret;
}

void bridge_ask_for_consumer(struct bridge *bridge, usec_t now)
{
    char subject[256], token[32];

    bridge->ask_at = now + (bridge->consuming ? CONSUMER_CHECK : CONSUMER_RETRY);
    if (bridge->queried_at == 0) {
        bridge->queried_at = now;
        bridge->secret = bridge_new_secret();
    }
    (void)snprintf(token, sizeof(token), ENGINE_CONSUMER_TOKEN "%" PRIu64, bridge->secret);
    (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.INFO.%s.%s", bridge->config->stream,
                   config_consumer(bridge->config));
    (void)engine_request(&bridge->engine, subject, token, "");
    note_asked(bridge, now);
}

usec_t bridge_serve_consumer(struct bridge *bridge, usec_t now)
{
    if (!bridge->connected)
        return USEC_INFINITY;
    if (now >= bridge->ask_at)
        bridge_ask_for_consumer(bridge, now);
    return bridge->ask_at;
}

void bridge_check_consumer_soon(struct bridge *bridge, usec_t now)
{
    if (bridge->ask_at > now + CONSUMER_RETRY)
        bridge->ask_at = now + CONSUMER_RETRY;
}

static void fail_consumer(struct bridge *bridge, const char *problem, const char *remedy,
                          usec_t now)
{
    bridge->consuming = false;
    bridge_check_consumer_soon(bridge, now);
    if (strncmp(bridge->problem, problem, sizeof(bridge->problem) - 1) != 0)
        log_warning("consumer %s of stream %s: %s; %s", config_consumer(bridge->config),
                    bridge->config->stream, problem, remedy);
    (void)snprintf(bridge->problem, sizeof(bridge->problem), "%s", problem);
    bridge_tell(bridge);
}

/* Whether the server answers for the consumer, which it does not reach. */
static bool is_unavailable(const json_t *reply)
{
    const json_t *error = json_object_get(reply, "error");

    return json_integer_value(json_object_get(error, "code")) == STATUS_UNAVAILABLE;
}

/* While servers elect a leader, errors say nothing about a consumer that was there. */
static void on_consumer_error(struct bridge *bridge, const json_t *reply, usec_t now)
{
    const json_t *error = json_object_get(reply, "error");
    const json_int_t code = json_integer_value(json_object_get(error, "err_code"));
    const char *text = json_string_value(json_object_get(error, "description"));

    if (!bridge->consuming || code == JSConsumerNotFoundErr || code == JSStreamNotFoundErr)
        fail_consumer(bridge, text ? text : "the answer cannot be understood",
                      is_unavailable(reply) ? REMEDY_UNAVAILABLE : REMEDY, now);
}

/* What waits on the server, for room or until it is due, is delivered again and again. */
static void warn_of_max_deliver(const struct bridge *bridge, const json_t *config)
{
    const json_int_t max = json_integer_value(json_object_get(config, "max_deliver"));

    if (max > 0)
        log_warning("consumer %s of stream %s: max deliver is %lld, not -1: what is given back so "
                    "often stays in the stream, and is not done",
                    config_consumer(bridge->config), bridge->config->stream, (long long)max);
}

/* ---- a consumer that delivers nothing ---- */

usec_t bridge_ask_for_messages(struct bridge *bridge, uint64_t room, usec_t now)
{
    const uint64_t number = bridge->puller.number;
    const unsigned n_in_vain = bridge->puller.n_in_vain;
    const usec_t next = puller_ask(&bridge->puller, room, now);

    if (bridge->puller.number != number)
        note_asked(bridge, now);
    if (bridge->puller.n_in_vain > n_in_vain)
        bridge->ask_at = now;
    return next;
}

void bridge_end_stall(struct bridge *bridge)
{
    bridge->suspected = false;
    if (!bridge->stall)
        return;
    log_info("consumer %s of stream %s: delivers again", config_consumer(bridge->config),
             bridge->config->stream);
    bridge->stall = NULL;
    bridge_tell(bridge);
}

static void begin_stall(struct bridge *bridge, const char *why, json_int_t waiting)
{
    if (bridge->stall != why)
        log_warning("consumer %s of stream %s, in which %lld messages wait: %s; see troupe-nats(8)",
                    config_consumer(bridge->config), bridge->config->stream, (long long)waiting,
                    why);
    bridge->stall = why;
}

/* The first time, messages may just be on their way. */
static void note_waiting(struct bridge *bridge, json_int_t waiting, bool full)
{
    if (bridge->suspected)
        begin_stall(bridge,
                    full ? "As many messages are in hand as max_ack_pending allows"
                         : "The consumer has messages, and delivers none",
                    waiting);
    bridge->suspected = true;
}

/* nats-server before 2.10.25 may have messages in hand that its stream has lost. It tries one of
 * these whenever it is woken, and delivers nothing then: a nudge gets rid of one, until AckWait has
 * passed again (consumer.go, getNextMsg). */
static void look_for_stall(struct bridge *bridge, const json_t *reply)
{
    const json_t *config = json_object_get(reply, "config");
    const json_int_t waiting = json_integer_value(json_object_get(reply, "num_pending"));
    const json_int_t in_hand = json_integer_value(json_object_get(reply, "num_ack_pending"));
    const json_int_t again = json_integer_value(json_object_get(reply, "num_redelivered"));
    const json_int_t limit = json_integer_value(json_object_get(config, "max_ack_pending"));
    const bool full = limit > 0 && in_hand >= limit;
    const json_int_t n_nudges = waiting > 0 && !full ? in_hand : again;
    const unsigned n = bridge->puller.n_in_vain;

    if (n == 0)
        return;
    if (waiting > 0)
        note_waiting(bridge, waiting, full);
    else
        bridge_end_stall(bridge);
    if (n_nudges > 0 && (n <= NUDGED_ALWAYS || n % NUDGED_ALWAYS == 0))
        puller_nudge(&bridge->puller, (uint64_t)n_nudges);
}

static void on_consumer(struct bridge *bridge, const json_t *reply, usec_t now)
{
    const json_t *config = json_object_get(reply, "config");
    const json_int_t wait = json_integer_value(json_object_get(config, "ack_wait"));
    const usec_t ack_wait = wait > 0 ? (usec_t)wait / NSEC_PER_USEC : 0;
    const usec_t period = ack_wait / BRIDGE_BEATS;
    const char *policy = json_string_value(json_object_get(config, "ack_policy"));

    if (!config || wait <= 0) {
        on_consumer_error(bridge, reply, now);
    } else if (!policy || strcmp(policy, "explicit") != 0) {
        fail_consumer(bridge, "its ack policy is not explicit",
                      "\"troupe-nats setup\" makes it anew once it is deleted", now);
    } else {
        if (!bridge->consuming) {
            puller_reset(&bridge->puller);
            warn_of_max_deliver(bridge, config);
            bridge_ask_about_all(bridge); /* the last that the server has heard may be long ago */
        }
        bridge->consuming = true;
        *bridge->problem = '\0';
        puller_set_ack_wait(&bridge->puller, ack_wait);
        flights_set_period(&bridge->flights, period > PERIOD_MIN ? period : PERIOD_MIN, now);
        look_for_stall(bridge, reply);
        bridge_tell(bridge);
    }
}

static void note_round_trip(struct bridge *bridge, usec_t took)
{
    if (bridge->round_trip == 0 || took < bridge->round_trip)
        bridge->round_trip = took;
}

void bridge_note_consumer(struct bridge *bridge, const char *token, natsMsg *answer, usec_t now)
{
    json_t *reply =
        json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
    const char *type = json_string_value(json_object_get(reply, "type"));

    if (bridge->queried_at > 0 && has_secret(bridge, token) && type && strcmp(type, TYPE) == 0) {
        note_round_trip(bridge, now - bridge->queried_at);
        bridge->queried_at = 0;
        if (!is_unavailable(reply))
            bridge_note_answered(bridge);
        on_consumer(bridge, reply, now);
    }
    json_decref(reply);
}

void bridge_note_no_consumer(struct bridge *bridge, usec_t now)
{
    if (!bridge->consuming)
        fail_consumer(bridge, ENGINE_NO_JETSTREAM, REMEDY, now);
}
