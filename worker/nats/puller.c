/* SPDX-License-Identifier: MIT */
#include "worker/nats/puller.h"

#include "shared/base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPIRES_MAX   (20 * USEC_PER_SEC)
#define EXPIRES_MIN   (USEC_PER_SEC / 4) /* below, an idle machine would only ask */
#define OVERLAP_MAX   (USEC_PER_SEC / 5) /* of two requests, for the way of the second */
#define OVERLAP_SHARE 5                  /* at most, of the time of one */
#define PAUSE_MIN     (USEC_PER_SEC / 4)
#define PAUSE_MAX     (30 * USEC_PER_SEC)
#define NUDGE_USEC    USEC_PER_MSEC
#define NUDGES_MAX    16384
#define GATHER_SHARE  4
#define GATHER_USEC   USEC_PER_MSEC

/* Statuses of a pull request: its time is over. Every other one is an error. */
#define STATUS_NO_MESSAGES "404"
#define STATUS_EXPIRED     "408"

void puller_init(struct puller *puller, struct engine *engine, const struct config *config)
{
    *puller = (struct puller){
        .engine = engine, .config = config, .expires = EXPIRES_MAX, .has_brought = true};
}

void puller_set_ack_wait(struct puller *puller, usec_t ack_wait)
{
    puller->expires = usec_clamp(2 * ack_wait / 5, EXPIRES_MIN, EXPIRES_MAX);
}

void puller_reset(struct puller *puller)
{
    puller->open = 0;
    puller->has_brought = true;
    puller->n_empty = 0;
    puller->n_nudges = puller->nudge = 0;
    puller->n_problems = 0;
    puller->not_before = 0;
    puller->gather_until = 0;
}

static int puller_send(struct puller *puller, uint64_t room, usec_t expires)
{
    char subject[256], token[64], text[96];

    (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s",
                   puller->config->stream, config_consumer(puller->config));
    (void)snprintf(token, sizeof(token), "%s%" PRIu64, engine_messages(puller->engine),
                   ++puller->number);
    (void)snprintf(text, sizeof(text), "{\"batch\":%" PRIu64 ",\"expires\":%" PRIu64 "}", room,
                   expires * NSEC_PER_USEC);
    return engine_request(puller->engine, subject, token, text);
}

static void puller_back_off(struct puller *puller, usec_t now)
{
    usec_t pause = PAUSE_MIN << (puller->n_problems < 8 ? puller->n_problems : 8);

    puller->n_problems++;
    puller->n_nudges = 0;
    puller->not_before = now + (pause < PAUSE_MAX ? pause : PAUSE_MAX);
}

/* Each request costs the server and the network as much as a message: few bring many. Returns
 * whether to wait for more room. */
static bool gathers(struct puller *puller, uint64_t room, usec_t now)
{
    if (room >= puller->config->in_flight / GATHER_SHARE)
        return false;
    if (puller->gather_until == 0)
        puller->gather_until = now + GATHER_USEC;
    return now < puller->gather_until;
}

/* How long before the end of a request the next one is sent. */
static usec_t overlap(const struct puller *puller)
{
    const usec_t share = puller->expires / OVERLAP_SHARE;

    return share < OVERLAP_MAX ? share : OVERLAP_MAX;
}

/* Returns when to call it again. */
static usec_t serve_nudges(struct puller *puller, usec_t now)
{
    if (puller->nudge > 0 && now < puller->nudge_until)
        return puller->nudge_until;
    puller->nudge = 0;
    if (puller->n_nudges == 0)
        return USEC_INFINITY;
    puller->n_nudges--;
    if (puller_send(puller, 1, NUDGE_USEC) == 0)
        puller->nudge = puller->number;
    puller->nudge_until = now + puller->expires;
    return puller->nudge_until;
}

static usec_t serve_request(struct puller *puller, uint64_t room, usec_t now)
{
    if (puller->open > 0)
        return puller->renew_at;
    if (now < puller->not_before)
        return puller->not_before;
    if (gathers(puller, room, now))
        return puller->gather_until;
    puller->gather_until = 0;
    if (puller_send(puller, room, puller->expires) < 0) {
        puller_back_off(puller, now);
        return puller->not_before;
    }
    if (!puller->has_brought)
        puller->n_empty++;
    puller->has_brought = false;
    puller->request = puller->number;
    puller->open = room;
    puller->renew_at = now + puller->expires - overlap(puller);
    return puller->renew_at;
}

usec_t puller_ask(struct puller *puller, uint64_t room, usec_t now)
{
    if (puller->open > 0 && now >= puller->renew_at)
        puller->open = 0;
    if (room == 0) {
        puller->gather_until = 0;
        puller->has_brought = true; /* nothing more was wanted */
        puller->n_empty = 0;
        return USEC_INFINITY;
    }
    return usec_min(serve_request(puller, room, now), serve_nudges(puller, now));
}

void puller_nudge(struct puller *puller, uint64_t n)
{
    puller->n_nudges = n < NUDGES_MAX ? n : NUDGES_MAX;
}

void puller_note_message(struct puller *puller)
{
    puller->has_brought = true;
    puller->n_empty = 0;
    puller->n_nudges = 0;
    puller->n_problems = 0;
    if (puller->open > 0)
        puller->open--;
}

static const char *header(natsMsg *message, const char *name)
{
    const char *value;

    return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : "";
}

void puller_note_status(struct puller *puller, const char *token, natsMsg *message, usec_t now)
{
    const char *status = header(message, "Status"), *dot = strchr(token, '.');
    const uint64_t number = dot && *status != '\0' ? strtoull(dot + 1, NULL, 10) : 0;

    if (number == 0 || (number != puller->request && number != puller->nudge))
        return;
    *(number == puller->nudge ? &puller->nudge : &puller->open) = 0;
    if (strcmp(status, STATUS_NO_MESSAGES) == 0 || strcmp(status, STATUS_EXPIRED) == 0)
        return;
    if (puller->n_problems == 0)
        log_warning("consumer %s of stream %s: %s %s", config_consumer(puller->config),
                    puller->config->stream, status,
                    natsMsg_IsNoResponders(message) ? ENGINE_NO_JETSTREAM
                                                    : header(message, "Description"));
    puller_back_off(puller, now);
}
