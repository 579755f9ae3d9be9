/* SPDX-License-Identifier: MIT */

/* Acknowledgements of messages whose jobs are done. While servers elect a leader they are lost, and
 * then the message would go to another machine: so they are sent until they are confirmed.
 *
 * The last one of a turn of the loop asks for that, and stands for all: the server takes what one
 * connection sends in its order. */

#include "worker/nats/bridge-private.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So often, as the consumer may be gone. */
#define TRIES 20u

static void acknowledge(struct bridge *bridge, struct flight *flight, bool last)
{
    /* The engine must not count a dead job as done. */
    const char *text = flight_is_dead(flight) ? "+TERM" : "+ACK";
    char token[32];

    (void)snprintf(token, sizeof(token), ENGINE_DONE_TOKEN "%" PRIu64, flight->turn);
    if (last)
        engine_acknowledge_confirmed(&bridge->engine, flight->message, text, token);
    else
        engine_acknowledge(&bridge->engine, flight->message, text);
}

void bridge_conclude(struct bridge *bridge, struct flight *flight)
{
    bridge->metrics.n[METRIC_RESULTS] += flight->n_turns == 0;
    flight_set_state(&bridge->flights, flight, FLIGHT_DONE);
}

void bridge_conclude_again(struct bridge *bridge, struct flight *flight, usec_t now)
{
    if (flight->n_turns >= TRIES)
        flight_free(&bridge->flights, flight); /* if it is still there, it comes again */
    else if (!bridge_doubt(bridge, flight, now))
        flight_set_state(&bridge->flights, flight, FLIGHT_DONE);
}

void bridge_acknowledge(struct bridge *bridge)
{
    struct list *done = &bridge->flights.done, *node;

    if (!bridge->connected || list_empty(done))
        return;
    bridge->n_turns++;
    while ((node = list_first(done))) {
        struct flight *flight = list_entry(node, struct flight, link);

        list_unlink(node);
        list_push_back(&bridge->flights.acknowledged, node);
        flight->turn = bridge->n_turns;
        flight->n_turns++;
        acknowledge(bridge, flight, list_empty(done));
    }
}

void bridge_note_acknowledged(struct bridge *bridge, const char *token)
{
    const uint64_t turn = strtoull(token + strlen(ENGINE_DONE_TOKEN), NULL, 10);

    list_for_each_safe (node, &bridge->flights.acknowledged) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->turn > turn)
            return;
        if (flight->turn == turn)
            flight_free(&bridge->flights, flight);
    }
}
