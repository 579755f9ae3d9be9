/* SPDX-License-Identifier: MIT */
/* Asks JetStream for messages: one request after the other, for as many as there is room for. A
 * request ends when that many have come, or after a time that follows from AckWait. The next one is
 * sent shortly before: when a message comes back just after the last request has ended, nats-server
 * before 2.10.16 delays it by one more AckWait, and may deliver another one twice
 * (nats-io/nats-server#5305, #5338). */
#include "worker/nats/consumer.h"

#include "shared/base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPIRES_MAX   (20 * USEC_PER_SEC)
#define EXPIRES_MIN   (USEC_PER_SEC / 4) /* with less, an idle machine would only ask */
#define OVERLAP_MAX   (USEC_PER_SEC / 5) /* of two requests, so that the second arrives in time */
#define OVERLAP_SHARE 5                  /* at most, of the time of one */
#define PAUSE_MIN     (USEC_PER_SEC / 4)
#define PAUSE_MAX     (30 * USEC_PER_SEC)
#define NUDGE_USEC    USEC_PER_MSEC
#define NUDGES_MAX    16384
#define GATHER_SHARE  4
#define GATHER_USEC   USEC_PER_MSEC

/* Statuses that say that the time of a pull request is over. Any other status is an error. */
#define STATUS_NO_MESSAGES "404"
#define STATUS_EXPIRED     "408"

void consumer_set_ack_wait(struct consumer *consumer, usec_t ack_wait)
{
    consumer->expires = usec_clamp(ack_wait / 5 * 2, EXPIRES_MIN, EXPIRES_MAX);
}

void consumer_reset_requests(struct consumer *consumer)
{
    consumer->open = 0;
    consumer->has_brought = true;
    consumer->n_empty = 0;
    consumer->n_nudges = consumer->nudge = 0;
    consumer->n_problems = 0;
    consumer->not_before = 0;
    consumer->gather_until = 0;
}

static int send_request(struct consumer *consumer, uint64_t room, usec_t expires)
{
    char subject[256], token[64], text[96];

    (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s",
                   consumer->config->stream, config_consumer(consumer->config));
    (void)snprintf(token, sizeof(token), "%s%" PRIu64, engine_messages(consumer->engine),
                   ++consumer->number);
    (void)snprintf(text, sizeof(text), "{\"batch\":%" PRIu64 ",\"expires\":%" PRIu64 "}", room,
                   expires * NSEC_PER_USEC);
    return engine_request(consumer->engine, subject, token, text);
}

static void back_off(struct consumer *consumer, usec_t now)
{
    usec_t pause = PAUSE_MIN << (consumer->n_problems < 8 ? consumer->n_problems : 8);

    consumer->n_problems++;
    consumer->n_nudges = 0;
    consumer->not_before = now + (pause < PAUSE_MAX ? pause : PAUSE_MAX);
}

/* Each request costs the server and the network as much as a message, so a request should bring
 * many. Returns whether to wait for more room. */
static bool gathers(struct consumer *consumer, uint64_t room, usec_t now)
{
    if (room >= consumer->config->in_flight / GATHER_SHARE)
        return false;
    if (consumer->gather_until == 0)
        consumer->gather_until = now + GATHER_USEC;
    return now < consumer->gather_until;
}

/* How long before the end of a request the next one is sent. */
static usec_t overlap(const struct consumer *consumer)
{
    const usec_t share = consumer->expires / OVERLAP_SHARE;

    return share < OVERLAP_MAX ? share : OVERLAP_MAX;
}

/* Returns when to call it again. */
static usec_t serve_nudges(struct consumer *consumer, usec_t now)
{
    if (consumer->nudge > 0 && now < consumer->nudge_until)
        return consumer->nudge_until;
    consumer->nudge = 0;
    if (consumer->n_nudges == 0)
        return USEC_INFINITY;
    consumer->n_nudges--;
    if (send_request(consumer, 1, NUDGE_USEC) == 0)
        consumer->nudge = consumer->number;
    consumer_note_asked(consumer, now);
    consumer->nudge_until = now + consumer->expires;
    return consumer->nudge_until;
}

static usec_t serve_request(struct consumer *consumer, uint64_t room, usec_t now)
{
    if (consumer->open > 0)
        return consumer->renew_at;
    if (now < consumer->not_before)
        return consumer->not_before;
    if (gathers(consumer, room, now))
        return consumer->gather_until;
    consumer->gather_until = 0;
    if (send_request(consumer, room, consumer->expires) < 0) {
        back_off(consumer, now);
        return consumer->not_before;
    }
    consumer_note_asked(consumer, now);
    if (!consumer->has_brought) {
        consumer->n_empty++;
        consumer->ask_at = now;
    }
    consumer->has_brought = false;
    consumer->request = consumer->number;
    consumer->open = room;
    consumer->renew_at = now + consumer->expires - overlap(consumer);
    return consumer->renew_at;
}

usec_t consumer_pull(struct consumer *consumer, uint64_t room, usec_t now)
{
    if (consumer->open > 0 && now >= consumer->renew_at)
        consumer->open = 0;
    if (room == 0) {
        consumer->gather_until = 0;
        consumer->has_brought = true; /* nothing more was wanted */
        consumer->n_empty = 0;
        return USEC_INFINITY;
    }
    return usec_min(serve_request(consumer, room, now), serve_nudges(consumer, now));
}

void consumer_nudge(struct consumer *consumer, uint64_t n)
{
    consumer->n_nudges = n < NUDGES_MAX ? n : NUDGES_MAX;
}

void consumer_note_message(struct consumer *consumer)
{
    consumer_note_answered(consumer);
    consumer_end_stall(consumer);
    consumer->has_brought = true;
    consumer->n_empty = 0;
    consumer->n_nudges = 0;
    consumer->n_problems = 0;
    if (consumer->open > 0)
        consumer->open--;
}

static const char *header(natsMsg *message, const char *name)
{
    const char *value;

    return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : "";
}

void consumer_note_status(struct consumer *consumer, const char *token, natsMsg *answer, usec_t now)
{
    const char *status = header(answer, "Status"), *dot = strchr(token, '.');
    const uint64_t number = dot && *status != '\0' ? strtoull(dot + 1, NULL, 10) : 0;

    if (!natsMsg_IsNoResponders(answer))
        consumer_note_answered(consumer);
    if (number == 0 || (number != consumer->request && number != consumer->nudge))
        return;
    *(number == consumer->nudge ? &consumer->nudge : &consumer->open) = 0;
    if (strcmp(status, STATUS_NO_MESSAGES) == 0 || strcmp(status, STATUS_EXPIRED) == 0)
        return;
    if (consumer->n_problems == 0)
        log_warning("consumer %s of stream %s: %s %s", config_consumer(consumer->config),
                    consumer->config->stream, status,
                    natsMsg_IsNoResponders(answer) ? ENGINE_NO_JETSTREAM
                                                   : header(answer, "Description"));
    back_off(consumer, now);
    consumer_check_soon(consumer, now);
}
