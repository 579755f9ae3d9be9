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
#include "worker/nats/metrics.h"
#include "worker/nats/publisher.h"
#include "worker/nats/report.h"
#include "worker/troupe.h"
#include <stdbool.h>

/* Of messages in flight: what comes then is given back, and nothing asked for above half of it. */
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
    struct metrics metrics;
    struct report report;
    struct service_manager manager;
    uint64_t limit; /* jobs that the group seems to have room for; at most InFlight= */
    char server[ENGINE_SERVER_SIZE]; /* it is, or was last; "" = unknown */
    uint64_t n_told;                 /* bridge_unpublished() in the status while it is away */
    bool stopping;                   /* takes nothing new, and gives back what has not begun */
    bool over;                       /* nothing is left to do, or possible */
    int status;                      /* then: 0, or -errno */
    bool deaf;                       /* the engine was told that no messages are wanted */
    usec_t turned_at;                /* when bridge_process() was called last */
    usec_t full_at;       /* when the last comes again that was given back for want of room */
    usec_t guard_until;   /* messages may look like answers; 0 = none has come */
    usec_t quiet_until;   /* too busy for what it has: asks for nothing until then; 0 = it is not */
    usec_t held_at;       /* when held messages are tried again */
    unsigned n_refused;   /* in a row, by the supervisor */
    struct rate refusals; /* of messages that can never be jobs, in the log */
};

/* Connects to the supervisor, and begins to connect to the engine. Returns 0, or -errno after it
 * has logged why not. The caller calls bridge_deinit() in either case. */
int bridge_init(struct bridge *bridge, const struct config *config);
void bridge_deinit(struct bridge *bridge);

/* Does what there is to do without waiting. Returns when to call it again at the latest
 * (monotonic). Look at `over` afterwards. */
usec_t bridge_process(struct bridge *bridge);

/* This machine gives up: jobs that have not begun are given back, the others are waited for. */
void bridge_stop(struct bridge *bridge);
