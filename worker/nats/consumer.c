/* SPDX-License-Identifier: MIT */
#include "worker/nats/consumer.h"

#include "shared/base/log.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSUMER_RETRY (5 * USEC_PER_SEC)
/* The consumer may be changed or recreated. */
#define CONSUMER_CHECK (60 * USEC_PER_SEC)

/* The remedy if the consumer or its stream is missing. */
#define REMEDY "\"troupe-nats setup\" makes both"

/* A server says so by itself while its servers have no leader, or while it is cut off from them. */
#define STATUS_UNAVAILABLE 503
#define REMEDY_UNAVAILABLE "too few servers are up or reach each other, or they elect a leader"

/* A server over which the consumer does not answer may be cut off from the others. It is left after
 * AckWait, and not before SILENCE_MIN, as leaders are mostly elected in less. Each time in a row
 * doubles that, LEFT_MAX times. */
#define SILENCE_MIN (10 * USEC_PER_SEC)
#define LEFT_MAX    4u

/* Nudges follow the first so many empty requests in a row, then one of so many: all pending
 * messages may be with workers. */
#define NUDGED_ALWAYS 8u

/* The shortest time between two reports of a message in progress. */
#define PERIOD_MIN USEC_PER_MSEC

/* The type of an answer about a consumer. */
#define TYPE "io.nats.jetstream.api.v1.consumer_info_response"

void consumer_note_asked(struct consumer *consumer, usec_t now)
{
    if (consumer->asked_at == 0)
        consumer->asked_at = now;
}

void consumer_note_answered(struct consumer *consumer)
{
    consumer->asked_at = 0;
    consumer->n_left = 0;
}

static usec_t serve_silence(struct consumer *consumer, usec_t now)
{
    const usec_t ack_wait = consumer->config->ack_wait;
    const usec_t limit = (ack_wait > SILENCE_MIN ? ack_wait : SILENCE_MIN)
                         << (consumer->n_left < LEFT_MAX ? consumer->n_left : LEFT_MAX);

    if (consumer->asked_at == 0)
        return USEC_INFINITY;
    if (now < usec_add(consumer->asked_at, limit))
        return usec_add(consumer->asked_at, limit);
    log_warning("consumer %s of stream %s does not answer over this server; %s",
                config_consumer(consumer->config), consumer->config->stream,
                consumer->engine->secure ? "asks again there, as TLS is in use"
                                         : "tries the next one");
    consumer->asked_at = 0;
    consumer->n_left++;
    engine_leave(consumer->engine);
    return USEC_INFINITY;
}

/* Others can make the server send an answer about another consumer to an address that they have
 * seen. They cannot know the address of the next answer. */
static bool has_secret(const struct consumer *consumer, const char *token)
{
    return strtoull(token + 1, NULL, 10) == consumer->secret;
}

static void ask(struct consumer *consumer, usec_t now)
{
    char subject[256], token[32];

    consumer->ask_at = now + (consumer->there ? CONSUMER_CHECK : CONSUMER_RETRY);
    if (consumer->queried_at == 0) {
        consumer->queried_at = now;
        consumer->secret = engine_new_secret();
    }
    (void)snprintf(token, sizeof(token), "%c%" PRIu64, ENGINE_CONSUMER, consumer->secret);
    (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.INFO.%s.%s",
                   consumer->config->stream, config_consumer(consumer->config));
    (void)engine_request(consumer->engine, subject, token, "");
    consumer_note_asked(consumer, now);
}

void consumer_init(struct consumer *consumer, struct engine *engine, const struct config *config)
{
    *consumer = (struct consumer){.engine = engine, .config = config, .period = USEC_INFINITY};
    consumer_set_ack_wait(consumer, USEC_INFINITY);
    consumer_reset_requests(consumer);
}

void consumer_connect(struct consumer *consumer, usec_t now)
{
    consumer->queried_at = 0;
    consumer_reset_requests(consumer);
    ask(consumer, now);
}

void consumer_disconnect(struct consumer *consumer)
{
    consumer->there = consumer->suspected = false;
    consumer->asked_at = 0;
    consumer->stall = NULL;
}

usec_t consumer_serve(struct consumer *consumer, usec_t now)
{
    if (!consumer->engine->connected)
        return USEC_INFINITY;
    if (now >= consumer->ask_at)
        ask(consumer, now);
    return usec_min(consumer->ask_at, serve_silence(consumer, now));
}

void consumer_check_soon(struct consumer *consumer, usec_t now)
{
    if (consumer->ask_at > now + CONSUMER_RETRY)
        consumer->ask_at = now + CONSUMER_RETRY;
}

static void fail_consumer(struct consumer *consumer, const char *problem, const char *remedy,
                          usec_t now)
{
    consumer->there = false;
    consumer_check_soon(consumer, now);
    if (strncmp(consumer->problem, problem, sizeof(consumer->problem) - 1) != 0)
        log_warning("consumer %s of stream %s: %s; %s", config_consumer(consumer->config),
                    consumer->config->stream, problem, remedy);
    (void)snprintf(consumer->problem, sizeof(consumer->problem), "%s", problem);
}

/* Whether the server says that it does not reach the consumer. */
static bool is_unavailable(const json_t *reply)
{
    const json_t *error = json_object_get(reply, "error");

    return json_integer_value(json_object_get(error, "code")) == STATUS_UNAVAILABLE;
}

/* While servers elect a leader, an error does not mean that the consumer is gone. */
static void on_consumer_error(struct consumer *consumer, const json_t *reply, usec_t now)
{
    const json_t *error = json_object_get(reply, "error");
    const json_int_t code = json_integer_value(json_object_get(error, "err_code"));
    const char *text = json_string_value(json_object_get(error, "description"));

    if (!consumer->there || code == JSConsumerNotFoundErr || code == JSStreamNotFoundErr)
        fail_consumer(consumer, text ? text : "the answer cannot be understood",
                      is_unavailable(reply) ? REMEDY_UNAVAILABLE : REMEDY, now);
}

/* Messages that wait on the server, for room or for their start time, are delivered many times. */
static void warn_of_max_deliver(const struct consumer *consumer, const json_t *config)
{
    const json_int_t max = json_integer_value(json_object_get(config, "max_deliver"));

    if (max > 0)
        log_warning("consumer %s of stream %s: max deliver is %lld, not -1: what is given back so "
                    "often stays in the stream, and is not done",
                    config_consumer(consumer->config), consumer->config->stream, (long long)max);
}

/* ---- a consumer that delivers nothing ---- */

void consumer_end_stall(struct consumer *consumer)
{
    consumer->suspected = false;
    if (!consumer->stall)
        return;
    log_info("consumer %s of stream %s: delivers again", config_consumer(consumer->config),
             consumer->config->stream);
    consumer->stall = NULL;
}

static void begin_stall(struct consumer *consumer, const char *why, json_int_t waiting)
{
    if (consumer->stall != why)
        log_warning("consumer %s of stream %s, in which %lld messages wait: %s; see troupe-nats(8)",
                    config_consumer(consumer->config), consumer->config->stream, (long long)waiting,
                    why);
    consumer->stall = why;
}

/* At the first answer, the messages may be on their way. */
static void note_waiting(struct consumer *consumer, json_int_t waiting, bool full)
{
    if (consumer->suspected)
        begin_stall(consumer,
                    full ? "As many messages are in hand as max_ack_pending allows"
                         : "The consumer has messages, and delivers none",
                    waiting);
    consumer->suspected = true;
}

/* nats-server before 2.10.25 may have messages in hand that its stream has lost. It tries one of
 * these whenever it is woken, and delivers nothing then: a nudge gets rid of one, until AckWait has
 * passed again (consumer.go, getNextMsg). */
static void look_for_stall(struct consumer *consumer, const json_t *reply)
{
    const json_t *config = json_object_get(reply, "config");
    const json_int_t waiting = json_integer_value(json_object_get(reply, "num_pending"));
    const json_int_t in_hand = json_integer_value(json_object_get(reply, "num_ack_pending"));
    const json_int_t again = json_integer_value(json_object_get(reply, "num_redelivered"));
    const json_int_t limit = json_integer_value(json_object_get(config, "max_ack_pending"));
    const bool full = limit > 0 && in_hand >= limit;
    const json_int_t n_nudges = waiting > 0 && !full ? in_hand : again;
    const unsigned n = consumer->n_empty;

    if (n == 0)
        return;
    if (waiting > 0)
        note_waiting(consumer, waiting, full);
    else
        consumer_end_stall(consumer);
    if (n_nudges > 0 && (n <= NUDGED_ALWAYS || n % NUDGED_ALWAYS == 0))
        consumer_nudge(consumer, (uint64_t)n_nudges);
}

static void on_consumer(struct consumer *consumer, const json_t *reply, usec_t now)
{
    const json_t *config = json_object_get(reply, "config");
    const json_int_t wait = json_integer_value(json_object_get(config, "ack_wait"));
    const usec_t ack_wait = wait > 0 ? (usec_t)wait / NSEC_PER_USEC : 0;
    const usec_t period = ack_wait / CONSUMER_BEATS;
    const char *policy = json_string_value(json_object_get(config, "ack_policy"));

    if (!config || wait <= 0) {
        on_consumer_error(consumer, reply, now);
    } else if (!policy || strcmp(policy, "explicit") != 0) {
        fail_consumer(consumer, "its ack policy is not explicit",
                      "\"troupe-nats setup\" creates another one once it is deleted", now);
    } else {
        if (!consumer->there) {
            consumer_reset_requests(consumer);
            warn_of_max_deliver(consumer, config);
            consumer->is_new = true;
        }
        consumer->there = true;
        *consumer->problem = '\0';
        consumer_set_ack_wait(consumer, ack_wait);
        consumer->period = period > PERIOD_MIN ? period : PERIOD_MIN;
        look_for_stall(consumer, reply);
    }
}

void consumer_note_answer(struct consumer *consumer, const char *token, natsMsg *answer, usec_t now)
{
    json_auto_t *reply = engine_json(answer);
    const char *type = json_string_value(json_object_get(reply, "type"));

    if (natsMsg_IsNoResponders(answer)) {
        if (!consumer->there)
            fail_consumer(consumer, ENGINE_NO_JETSTREAM, REMEDY, now);
    } else if (consumer->queried_at > 0 && has_secret(consumer, token) && type &&
               strcmp(type, TYPE) == 0) {
        consumer->queried_at = 0;
        if (!is_unavailable(reply))
            consumer_note_answered(consumer);
        on_consumer(consumer, reply, now);
    }
}
