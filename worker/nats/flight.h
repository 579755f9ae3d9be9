/* SPDX-License-Identifier: MIT */
#pragma once

/* A job in flight: a message of the stream that this program has fetched and not yet acknowledged.
 * Its number in the stream identifies it, also as the cookie of requests to the supervisor. */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "worker/troupe.h"
#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>

/* Messages to be destroyed together: for each one alone, libnats wakes a thread that does it. */

#define MESSAGE_BIN_MAX 256u

struct message_bin {
    natsMsg *messages[MESSAGE_BIN_MAX];
    unsigned n;
    size_t bytes; /* of their data */
};

/* Takes over the message, which may be NULL. */
void message_bin_put(struct message_bin *bin, natsMsg *message);

/* Destroys all that were put. */
void message_bin_empty(struct message_bin *bin);

/* Does so if they are many, or if there is nothing else to do. */
void message_bin_serve(struct message_bin *bin, bool idle);

/* ---- flights ---- */

enum flight_state {
    FLIGHT_HELD,  /* the supervisor has no room for it */
    FLIGHT_HERE,  /* the supervisor has it, or is about to answer */
    FLIGHT_DEAD,  /* no attempt is left; its death reports are fetched and published */
    FLIGHT_ENDED, /* its result is published, and not confirmed yet */
    FLIGHT_DONE,  /* it is to be acknowledged, or that is not confirmed yet */
};

/* How the supervisor gets to have the job, or had it before. */
enum flight_claim {
    FLIGHT_SUBMITTED,
    FLIGHT_RESUMED,    /* a submission may have arrived: its end is waited for */
    FLIGHT_RECOGNISED, /* the job was here already: its end is waited for */
    FLIGHT_SOUGHT,     /* like FLIGHT_RECOGNISED, if one of the ids of earlier tries is known */
};

enum flight_message {
    FLIGHT_WHOLE,
    FLIGHT_MALFORMED, /* the headers cannot be read */
    FLIGHT_STAND_IN,  /* for a message that an earlier run has got */
};

struct flight {
    struct index_entry entry;
    struct list link;    /* in a list of those in the same state */
    struct list beat;    /* among all, by `beat_at` */
    struct list inquiry; /* among those about which the supervisor is to be asked */
    usec_t beat_at;      /* when the engine is to hear of it */
    usec_t delivered_at; /* by the engine, for the last time */
    usec_t heard_at;     /* when the engine heard of it last, while it was this machine's */
    /* When something about it was published last, put in doubt, or asked for; 0 = before this
     * connection. */
    usec_t sent_at;
    usec_t first_sent_at; /* when that was published first; 0 = it was not */
    enum flight_state state;
    unsigned tries;   /* ids that earlier tries on this machine have used up */
    unsigned n_turns; /* how often it was acknowledged */
    uint64_t turn;    /* when that was last */
    enum flight_claim claim;
    enum flight_message kind;
    bool bare;      /* only what identifies it is published: the rest is refused as too large */
    bool doubted;   /* whether what was confirmed is stored is asked */
    bool lost;      /* something was confirmed, and is not stored */
    uint64_t other; /* the sequence of what is stored in its place; 0 = nothing is */
    bool left;      /* refused as the supervisor stops; it may be on disk */
    natsMsg *message;
    size_t bytes; /* of it, in memory */
    struct troupe_result result;
    char *problem; /* why it cannot be a job */
    char *job;     /* what the supervisor knows of a dead job, as JSON */
    char *reports; /* JSON objects with commas: how its workers died, the last first */
};

/* Periods that a message is safe after the engine has heard of it; AckWait is one more. */
#define FLIGHT_SAFE_PERIODS 2u

struct flights {
    struct index index;
    struct list held, unconfirmed, beats;
    struct list dying, doubted;     /* by `sent_at` */
    struct list done, acknowledged; /* both FLIGHT_DONE; the latter by `turn` */
    unsigned n, n_here, n_held, n_done;
    size_t bytes;  /* of their messages, in memory */
    usec_t period; /* between two signs of life to the engine */
    struct message_bin *bin;
};

/* Destroyed messages go to `bin`, which is borrowed. */
void flights_init(struct flights *flights, struct message_bin *bin);
void flights_deinit(struct flights *flights);

/* Takes over the message. Returns NULL without memory. */
struct flight *flight_new(struct flights *flights, uint64_t sequence, natsMsg *message, usec_t now);
/* Also destroys the message. */
void flight_free(struct flights *flights, struct flight *flight);

struct flight *flight_find(const struct flights *flights, uint64_t sequence);

static inline uint64_t flight_sequence(const struct flight *flight)
{
    return flight->entry.key;
}

/* Whether it ends with a dead letter. */
static inline bool flight_is_dead(const struct flight *flight)
{
    return flight->problem || flight->result.end == TROUPE_DEAD;
}

/* Puts it last among those of its new state. Never fails. */
void flight_set_state(struct flights *flights, struct flight *flight, enum flight_state state);
/* Like flight_set_state(), for the state in which its death reports are fetched. */
void flight_die(struct flights *flights, struct flight *flight, usec_t now);
/* Like flight_set_state(), but puts it last among those that are in doubt. */
void flight_doubt(struct flights *flights, struct flight *flight, enum flight_state state);

/* The engine has delivered the message again: from now on that delivery counts. */
void flight_redelivered(struct flights *flights, struct flight *flight, natsMsg *message,
                        usec_t now);

/* Applies to those in flight, too: as if it had been so at their last beat. */
void flights_set_period(struct flights *flights, usec_t period, usec_t now);

/* Whether the message is still this machine's. If the engine has not heard of it for so long that
 * AckWait may be over soon, another machine may get it, or has it: what is said of this delivery
 * would count for that one. */
bool flight_is_ours(const struct flights *flights, const struct flight *flight, usec_t now);
/* The engine hears of it. */
void flight_heard(const struct flights *flights, struct flight *flight, usec_t now);

/* Puts it behind all others. */
void flight_beat_again(struct flights *flights, struct flight *flight, usec_t now);

/* STREAM:SEQUENCE, or STREAM:SEQUENCE:N after N tries. */
void flight_id(const struct flight *flight, const char *stream, char id[static TROUPE_ID_SIZE]);
