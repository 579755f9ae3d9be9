/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Takes messages of a stream to a group's workers, and their results back.
 *
 * One loop owns everything. It waits for what the supervisor says of jobs (libtroupe's rings), for
 * its answers about jobs, the group and the machine (libtroupe's queries), and for the engine,
 * which is what all files here call NATS with JetStream. A message goes this way:
 *
 *     fetched → submitted as job STREAM:SEQUENCE → ended, and kept by the supervisor
 *             → result stored by the engine → acknowledged → that confirmed
 *
 * Where the engine's word for one of the last two is late or missing, the result is looked for
 * before the message is acknowledged (again).
 *
 * Nothing is kept here that is not at one of its ends: whenever this program dies, what was fetched
 * is unacknowledged, and comes again; and what was submitted is recognised by its id.
 *
 * The engine hears that a message is in progress only after the supervisor has said that it has the
 * job: that a worker which lives has it, or that it waits for one that will come. What waits in
 * vain, because the group has failed or was stopped, is given back for another machine.
 */

#include "shared/base/clock.h"
#include "shared/base/service-manager.h"
#include "worker/nats/availability.h"
#include "worker/nats/config.h"
#include "worker/nats/consumer.h"
#include "worker/nats/engine.h"
#include "worker/nats/flight.h"
#include "worker/nats/inquiry.h"
#include "worker/nats/publisher.h"
#include "worker/nats/report.h"
#include "worker/troupe.h"
#include <stdbool.h>

/* The limit of all messages in flight: further messages are given back. Above half of it, none are
 * requested. */
#define BRIDGE_BYTES_MAX ((size_t)128 << 20)

struct bridge {
    const struct config *config;
    struct engine engine;
    struct troupe_client *client;
    uint64_t group;
    struct consumer consumer;
    struct publisher publisher;
    struct flights flights;
    struct message_bin bin;
    struct inquiry inquiry;
    struct availability availability;
    struct report report;
    struct service_manager manager;
    uint64_t limit; /* jobs that the group seems to have room for; at most InFlight= */
    char server[ENGINE_SERVER_SIZE]; /* the current or last one; "" = unknown */
    uint64_t n_told;                 /* bridge_unpublished() in the last status */
    bool stopping;        /* takes no messages, and gives back jobs that have not begun */
    bool over;            /* bridge_process() need not be called again */
    int status;           /* then: 0, or -errno */
    bool drained;         /* messages are not subscribed to */
    usec_t turned_at;     /* when bridge_process() was called last */
    usec_t full_at;       /* when the last message without room for its key comes again */
    usec_t guard_until;   /* see engine_guard(); 0 = not guarded */
    usec_t paused_until;  /* requests no messages until then; 0 = does */
    usec_t held_at;       /* when held messages are tried again */
    unsigned n_refused;   /* in a row, by the supervisor */
    struct rate refusals; /* of messages that can never be jobs, in the log */
};

/* Connects to the supervisor, and begins to connect to the engine. Returns 0, or -errno after it
 * has logged why not. The caller calls bridge_deinit() in either case. */
int bridge_init(struct bridge *bridge, const struct config *config);
void bridge_deinit(struct bridge *bridge);

/* Does everything that is possible without waiting. Returns when to call it again at the latest
 * (monotonic). Check `over` afterwards. */
usec_t bridge_process(struct bridge *bridge);

/* Gives back jobs that have not begun, and waits for the others. */
void bridge_stop(struct bridge *bridge);
