/* SPDX-License-Identifier: MIT */

/* The engine's side of the bridge: the connection and messages. */

#include "shared/base/log.h"
#include "worker/nats/bridge.h"
#include "worker/nats/message.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* The limit of messages in flight, as a multiple of InFlight=. A lost connection whose requests
 * were open can bring half as many. */
#define FLOOD_FACTOR 4u

/* The most messages and events that one turn of the loop handles, and the time after which it ends.
 * libnats may take half a second to read the headers of one message. */
#define TURN_MAX  4096u
#define TURN_USEC (20 * USEC_PER_MSEC)

/* Pauses before the server delivers a message again that this machine has given back before. */
#define GIVE_BACK_MIN USEC_PER_SEC
#define GIVE_BACK_MAX (30 * USEC_PER_SEC)
/* Messages that were given back because their key had no room come again one after the other: the
 * first after FULL_MIN, the next ones at intervals of FULL_SPACE. */
#define FULL_MIN   (100 * USEC_PER_MSEC)
#define FULL_SPACE (2 * USEC_PER_MSEC)
/* How long no messages are requested after one has waited too long, unless a job ends before. */
#define PAUSE_USEC (5 * USEC_PER_SEC)

void bridge_listen(struct bridge *bridge)
{
    if (bridge->drained == bridge_takes_nothing(bridge))
        return;
    bridge->drained = !bridge->drained;
    if (bridge->drained) {
        engine_drain(&bridge->engine);
    } else {
        engine_listen(&bridge->engine);
        consumer_reset_requests(&bridge->consumer);
    }
}

void bridge_pause(struct bridge *bridge, usec_t now)
{
    bridge->paused_until = now + PAUSE_USEC;
    bridge_listen(bridge);
}

static usec_t pause_of(const struct bridge *bridge, const struct flight *flight)
{
    const uint64_t n = message_deliveries(flight->message);

    if (bridge_takes_nothing(bridge) || n <= 1)
        return 0;
    return n - 2 < 5 ? GIVE_BACK_MIN << (n - 2) : GIVE_BACK_MAX;
}

static void deliver_after(struct bridge *bridge, natsMsg *message, usec_t pause)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "-NAK {\"delay\":%" PRIu64 "}", pause * NSEC_PER_USEC);
    engine_acknowledge(&bridge->engine, message, pause > 0 ? text : "-NAK");
}

/* Without a connection, or if the server may already have given the message to another machine,
 * says nothing: the server delivers the message again after AckWait. Nor does it say anything for a
 * stand-in, since it is not known when the server has last heard of its message. */
void bridge_put_off(struct bridge *bridge, struct flight *flight, usec_t pause)
{
    if (bridge->engine.connected && flight->kind != FLIGHT_STAND_IN &&
        flight_is_ours(&bridge->flights, flight, clock_now()))
        deliver_after(bridge, flight->message, pause);
    flight_free(&bridge->flights, flight);
}

void bridge_give_back(struct bridge *bridge, struct flight *flight)
{
    bridge_put_off(bridge, flight, pause_of(bridge, flight));
}

void bridge_give_back_full(struct bridge *bridge, struct flight *flight, usec_t now)
{
    bridge->full_at = usec_clamp(bridge->full_at + FULL_SPACE, now + FULL_MIN, now + GIVE_BACK_MAX);
    bridge_put_off(bridge, flight, bridge->full_at - now);
}

/* ---- the connection ---- */

static void on_connected(struct bridge *bridge, usec_t now)
{
    bridge->engine.connected = true;
    bridge->report.next_at = 0;
    publisher_publish_soon(&bridge->publisher);
    engine_server(bridge->engine.connection, bridge->server);
    log_info("connected to NATS%s%s", *bridge->server != '\0' ? " at " : "", bridge->server);
    consumer_connect(&bridge->consumer, now);
}

static void on_disconnected(struct bridge *bridge)
{
    if (bridge->engine.connected)
        log_warning("the connection to NATS%s%s is lost; local groups are not affected",
                    *bridge->server != '\0' ? " at " : "", bridge->server);
    bridge->engine.connected = false;
    consumer_disconnect(&bridge->consumer);
}

static void on_closed(struct bridge *bridge)
{
    const char *refusal = bridge->engine.seen.refusal;

    log_error("%s", *refusal != '\0' ? refusal : "NATS refuses the connection; its log says why");
    bridge->over = true;
    bridge->status = -EACCES;
}

/* ---- messages ---- */

/* Only a broken or hostile server sends so many more than were requested. */
static bool is_full(const struct bridge *bridge)
{
    return bridge->flights.n >= FLOOD_FACTOR * bridge->config->in_flight ||
           bridge->flights.bytes >= BRIDGE_BYTES_MAX;
}

/* The server has delivered again a message that is in flight here. Takes over the message. */
static void on_redelivered(struct bridge *bridge, struct flight *flight, natsMsg *message,
                           usec_t now)
{
    consumer_check_soon(&bridge->consumer, now); /* is AckWait shorter than it was? */
    flight_redelivered(&bridge->flights, flight, message, now);
    if (flight->state == FLIGHT_DONE || flight->state == FLIGHT_ACKNOWLEDGED)
        publisher_conclude_again(&bridge->publisher, flight, now);
}

/* Takes over the message. */
static void take_on(struct bridge *bridge, uint64_t sequence, natsMsg *message, usec_t now)
{
    struct flight *flight;
    const char *key;

    if (is_full(bridge)) {
        deliver_after(bridge, message, GIVE_BACK_MAX);
        message_bin_put(&bridge->flights.bin, message);
        return;
    }
    flight = flight_new(&bridge->flights, sequence, message, now);
    key = flight ? message_key(message) : NULL;
    if (key)
        flight_set_key(&bridge->flights, flight, key);
    if (!flight)
        natsMsg_Destroy(message); /* it comes again */
    else if (bridge_takes_nothing(bridge))
        bridge_give_back(bridge, flight);
    else if (bridge->keys_wait && bridge_exceeds_share(bridge, flight, bridge_n_open(bridge)))
        bridge_give_back_full(bridge, flight, now);
    else
        bridge_begin(bridge, flight, now);
}

/* Takes over the message. */
static void on_delivered(struct bridge *bridge, natsMsg *message, usec_t now)
{
    struct flight *flight;
    uint64_t sequence;

    if (message_sequence(message, bridge->config->stream, config_consumer(bridge->config),
                         &sequence) < 0) {
        natsMsg_Destroy(message);
        return;
    }
    consumer_note_message(&bridge->consumer);
    flight = flight_find(&bridge->flights, sequence);
    if (flight)
        on_redelivered(bridge, flight, message, now);
    else
        take_on(bridge, sequence, message, now);
}

/* ---- events ---- */

static void on_answer(struct bridge *bridge, const char *token, natsMsg *answer, usec_t now)
{
    switch (*token) {
    case ENGINE_CONSUMER:
        consumer_note_answer(&bridge->consumer, token, answer, now);
        break;
    case ENGINE_STATE:
        report_note_answer(&bridge->report, token, answer);
        break;
    case ENGINE_PUBLISHED:
        publisher_note_answer(&bridge->publisher, token, answer, now);
        break;
    case ENGINE_DONE:
        publisher_note_acknowledged(&bridge->publisher, token, answer);
        break;
    case ENGINE_MESSAGES:
        consumer_note_status(&bridge->consumer, token, answer, now);
        break;
    default: /* a server may send any subject */
        break;
    }
    message_bin_put(&bridge->flights.bin, answer);
}

static void on_events(struct bridge *bridge, unsigned events, usec_t now)
{
    if (events != 0)
        bridge->told = NULL;
    if (events & ENGINE_DISCONNECTED)
        on_disconnected(bridge);
    if (events & ENGINE_CONNECTED)
        on_connected(bridge, now);
    if (events & ENGINE_REFUSED && *bridge->engine.seen.refusal != '\0')
        log_warning("%s; tries again", bridge->engine.seen.refusal);
    if (events & ENGINE_DENIED)
        log_warning("NATS denies this user a permission: %s", bridge->engine.seen.denial);
    if (events & ENGINE_CLOSED)
        on_closed(bridge);
    if (events & ENGINE_RENEWED)
        consumer_reset_requests(&bridge->consumer);
}

usec_t bridge_take_messages(struct bridge *bridge, usec_t now)
{
    on_events(bridge, engine_see(&bridge->engine), now);
    for (unsigned n = 0; n < TURN_MAX && clock_now() < now + TURN_USEC; n++) {
        natsMsg *message = engine_next(&bridge->engine);
        const char *token = message ? engine_token(&bridge->engine, message) : NULL;

        if (!message)
            return USEC_INFINITY;
        if (token)
            on_answer(bridge, token, message, now);
        else
            on_delivered(bridge, message, now);
    }
    return now;
}

static void beat(struct bridge *bridge, struct flight *flight, usec_t now)
{
    switch (flight->state) {
    case FLIGHT_HELD:
        return;
    case FLIGHT_HERE:
        inquiry_ask(&bridge->inquiry, flight);
        return;
    case FLIGHT_DONE:
    case FLIGHT_ACKNOWLEDGED:
        publisher_conclude_again(&bridge->publisher, flight, now);
        return;
    default: /* another machine would only repeat the job */
        if (bridge->engine.connected)
            engine_acknowledge(&bridge->engine, flight->message, "+WPI");
    }
}

usec_t bridge_beat(struct bridge *bridge, usec_t now)
{
    list_until_empty (flight, &bridge->flights.beats, struct flight, beat) {
        if (flight->beat_at > now)
            return flight->beat_at;
        flight_beat_again(&bridge->flights, flight, now);
        beat(bridge, flight, now);
    }
    return USEC_INFINITY;
}
