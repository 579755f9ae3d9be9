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
 * If the engine does not answer one of the last two in time, the result is looked for before the
 * message is acknowledged (again).
 *
 * This program keeps nothing that neither the engine nor the supervisor has. Whenever it dies,
 * messages that were fetched are unacknowledged and come again, and jobs that were submitted are
 * recognised by their ids.
 *
 * The engine is told that a message is in progress only after the supervisor has confirmed that a
 * live worker has the job, or that the job waits for a worker that will come. A job that waits in
 * vain, because the group has failed or was stopped, is given back for another machine.
 */

#include "shared/base/clock.h"
#include "shared/base/service-manager.h"
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

/* How often to ask whether the group does jobs. */
#define BRIDGE_ASK_PERIOD USEC_PER_SEC

/* What records of type Wait in troupe-varlink(7) say about a group or a job, as far as it decides
 * whether this machine gives messages back. */
enum obstacle {
    OBSTACLE_CLOSED = 1 << 0,   /* new jobs are refused */
    OBSTACLE_DRAINING = 1 << 1, /* new jobs are refused, and the queue is worked off */
    OBSTACLE_BUSY = 1 << 2,     /* all workers are busy, and will take jobs from the queue */
    OBSTACLE_DOWN = 1 << 3,     /* no job begins until an administrator acts */
    OBSTACLE_ABSENT = 1 << 4,   /* no worker is up */
    OBSTACLE_COMING = 1 << 5,   /* a worker will be up without help */
    OBSTACLE_KEYS = 1 << 6,     /* jobs wait for limits of their keys */
};

struct obstacles {
    unsigned seen;     /* enum obstacle */
    const char *cause; /* the first that is not only for a while; NULL = none */
};

struct bridge {
    const struct config *config;
    struct engine engine;
    struct troupe_client *client;
    uint64_t group;
    struct consumer consumer;
    struct publisher publisher;
    struct flights flights;
    struct inquiry inquiry;
    struct report report;
    struct service_manager manager;
    uint64_t limit; /* jobs that the group seems to have room for; at most InFlight= */
    char server[ENGINE_SERVER_SIZE]; /* the current or last one; "" = unknown */
    const char *told;                /* the beginning of the last status; NULL = tell it again */
    uint64_t n_told;                 /* the number of results in the last status */
    struct obstacles obstacles;      /* of the group, from the part of the answer that has come */
    usec_t ask_at;                   /* when to ask about the group */
    bool down;            /* the group does no jobs: it has failed, is stopped, or the like */
    bool stopping;        /* takes no messages, and gives back jobs that have not begun */
    usec_t end_at;        /* when to end at the latest; 0 = not yet */
    bool over;            /* bridge_process() need not be called again */
    int status;           /* then: 0, or -errno */
    bool drained;         /* messages are not subscribed to */
    usec_t turned_at;     /* when bridge_process() was called last */
    usec_t full_at;       /* when the last message without room for its key comes again */
    usec_t paused_until;  /* requests no messages until then; 0 = does */
    usec_t held_at;       /* when held messages are tried again */
    bool keys_wait;       /* jobs wait for limits of their keys, so each key has a share */
    unsigned n_adopted;   /* jobs of an earlier run */
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

/* ---- between the files of the bridge ---- */

/* ---- bridge-supervisor.c: jobs ---- */

/* Submits a message that has arrived if there is room, after looking for jobs of its earlier
 * deliveries. */
void bridge_begin(struct bridge *bridge, struct flight *flight, usec_t now);
/* Submits the message as a job, or waits for the end of its job. */
void bridge_submit(struct bridge *bridge, struct flight *flight, usec_t now);
/* Handles ends and refusals of jobs. */
void bridge_take_results(struct bridge *bridge, usec_t now);
/* Ends the bridge, because the connection to the supervisor has ended with `error`. */
void bridge_lose_supervisor(struct bridge *bridge, int error);
/* The group does no jobs on this machine, because of `cause`; or it does. */
void bridge_set_down(struct bridge *bridge, bool down, const char *cause);
/* Asks the supervisor about all its jobs, and reports those in progress to the engine. */
void bridge_ask_about_all(struct bridge *bridge);
/* Gives back all held messages. */
void bridge_give_back_held(struct bridge *bridge);
/* Logs the number of refusals that were not logged. Returns when to call it again. */
usec_t bridge_serve_refusals(struct bridge *bridge, usec_t now);
/* Tries held messages again if it is time, and gives back those that wait too long. Returns when to
 * call it again. */
usec_t bridge_serve_held(struct bridge *bridge, usec_t now);

/* ---- bridge-inquiry.c ---- */

/* Implements inquiry_fn. */
void bridge_on_inquiry(void *userdata, struct flight *flight, enum question_type question,
                       enum inquiry_answer answer, struct troupe_query *query);

/* ---- bridge-engine.c: messages ---- */

/* Handles what the engine has sent. Returns when to call it again. */
usec_t bridge_take_messages(struct bridge *bridge, usec_t now);
/* Reports messages in progress to the engine when they are due. Returns when to call it again. */
usec_t bridge_beat(struct bridge *bridge, usec_t now);
/* Gives the message to any machine, and forgets it. If this machine takes messages and has already
 * given this one back, a pause comes before, since it is likely to come here again. */
void bridge_give_back(struct bridge *bridge, struct flight *flight);
/* Like bridge_give_back(), but for lack of room for the message's key: the pause grows with the
 * number of such messages. */
void bridge_give_back_full(struct bridge *bridge, struct flight *flight, usec_t now);
/* Makes the server deliver the message again after a pause, and forgets it. */
void bridge_put_off(struct bridge *bridge, struct flight *flight, usec_t pause);

/* ---- both sides ---- */

/* Returns how many messages are in flight, except those that are only to be acknowledged. */
static inline unsigned bridge_n_open(const struct bridge *bridge)
{
    return bridge->flights.n - flights_done(&bridge->flights);
}
/* Whether the key of the flight has more messages in flight than remain free for all others, if so
 * many are. */
static inline bool bridge_exceeds_share(const struct bridge *bridge, const struct flight *flight,
                                        unsigned n_open)
{
    const unsigned own = flight->key ? flight->key->n : 0;

    return own > 1 && own + n_open > bridge->limit + 1;
}
/* Whether this machine takes no messages now, and gives back those that come. */
static inline bool bridge_takes_nothing(const struct bridge *bridge)
{
    return bridge->stopping || bridge->down || bridge->paused_until > 0;
}
/* Tells the engine when that changes. Call it before messages are given back, so that they go to
 * other machines. */
void bridge_listen(struct bridge *bridge);
/* Takes no messages until a job ends, or for some seconds: other machines may have room. */
void bridge_pause(struct bridge *bridge, usec_t now);
