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

/* Destroys messages in batches, since libnats wakes a thread for each destruction. */

#define MESSAGE_BIN_MAX 256u

struct message_bin {
    natsMsg *messages[MESSAGE_BIN_MAX];
    unsigned n;
    size_t bytes; /* of their data */
};

/* Takes over the message, which may be NULL. */
void message_bin_put(struct message_bin *bin, natsMsg *message);

/* Destroys them if they are many, or if the program is idle. */
void message_bin_serve(struct message_bin *bin, bool idle);

/* ---- flights ---- */

enum flight_state {
    FLIGHT_HELD,           /* the supervisor has no room for it */
    FLIGHT_HERE,           /* the supervisor has it, or is about to answer */
    FLIGHT_DYING,          /* no attempt is left; its death reports are fetched */
    FLIGHT_LETTER,         /* its dead letter is published, and not confirmed yet */
    FLIGHT_LETTER_DOUBTED, /* the stream is asked whether the dead letter is stored */
    FLIGHT_RESULT,         /* as for dead letters */
    FLIGHT_RESULT_DOUBTED,
    FLIGHT_DONE,         /* it is to be acknowledged */
    FLIGHT_ACKNOWLEDGED, /* that is not confirmed yet */
    _N_FLIGHT_STATES,
};

/* How the supervisor got, or gets, the job. */
enum flight_claim {
    FLIGHT_SUBMITTED,  /* it is submitted */
    FLIGHT_RESUMED,    /* it was submitted before, or by an earlier run: its end is awaited */
    FLIGHT_RECOGNISED, /* it was submitted for an earlier delivery: its end is awaited */
    FLIGHT_SOUGHT,     /* that is not known yet: the ids of earlier tries are looked up */
};

enum flight_message {
    FLIGHT_WHOLE,
    FLIGHT_MALFORMED, /* the headers cannot be read */
    FLIGHT_STAND_IN,  /* for a message that an earlier run has received */
};

/* Questions to the supervisor; see inquiry.h. */
enum question_type {
    QUESTION_WAITS,  /* of a flight that is here: the job's state, and records of type Wait */
    QUESTION_JOB,    /* of a dead one: a record of type Job */
    QUESTION_DEATHS, /* of a dead one whose job is known: records of type Death, newest first */
    QUESTION_GROUP,  /* records of type Wait about the group */
    QUESTION_JOBS,   /* of the group: records of type Job */
    QUESTION_GROUPS, /* records of type GroupMetrics of all groups */
    _N_QUESTIONS,
};

struct question {
    struct list link;        /* among those that wait */
    enum question_type type; /* unless it is about a flight */
};

/* A key that has flights. */
struct flight_key {
    struct index_entry entry; /* by a hash of the key */
    unsigned n;               /* its flights, except those that are only to be acknowledged */
};

struct flight {
    struct index_entry entry;
    struct list link; /* in the list of its state */
    struct list beat; /* among all, by `beat_at` */
    struct question question;
    usec_t beat_at;      /* when to report it to the engine */
    usec_t delivered_at; /* when the engine delivered it last */
    usec_t heard_at;     /* when the engine heard of it last, while it was this machine's */
    /* When something about it was published last, put in doubt, or asked for; 0 = before this
     * connection. */
    usec_t sent_at;
    usec_t first_sent_at; /* when that was published first; 0 = it was not */
    enum flight_state state;
    unsigned tries;   /* how many ids earlier tries on this machine have used */
    unsigned n_turns; /* how often it was acknowledged */
    uint64_t turn;    /* when that was last */
    enum flight_claim claim;
    enum flight_message kind;
    unsigned n_omitted; /* how many versions of the publication were too large */
    bool lost;          /* its publication was confirmed, but is not stored */
    uint64_t other;     /* the sequence of another message that is stored in its place; 0 = none */
    bool left;          /* a stopping supervisor refused it; it may be on disk */
    natsMsg *message;
    struct flight_key *key; /* for which it counts; NULL = none */
    size_t bytes;           /* of the message, in memory */
    struct troupe_result result;
    char *problem; /* why it cannot be a job */
    char *job;     /* the dead job as JSON */
    char *reports; /* its death reports: JSON objects separated by commas, newest first */
};

/* For so many periods after the engine has heard of a message, it surely stays with this machine.
 * AckWait is one period longer. */
#define FLIGHT_SAFE_PERIODS 2u

struct flights {
    struct index index;
    struct index keys; /* struct flight_key.entry */
    struct list beats;
    /* By state, those of each in the order in which they have got there, which is that of `sent_at`
     * or `turn`. */
    struct list lists[_N_FLIGHT_STATES];
    unsigned counts[_N_FLIGHT_STATES];
    unsigned n;
    size_t bytes;           /* of their messages, in memory */
    usec_t period;          /* between two reports of a message to the engine */
    struct message_bin bin; /* takes messages that are destroyed */
};

void flights_init(struct flights *flights);
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

/* Counts the flight for this key. Without memory it is not counted. */
void flight_set_key(struct flights *flights, struct flight *flight, const char *key);
/* Does not count it any more. */
void flight_leave_key(struct flights *flights, struct flight *flight);

/* Returns whether it ends with a dead letter. */
static inline bool flight_is_dead(const struct flight *flight)
{
    return flight->problem || flight->result.end == TROUPE_DEAD;
}

/* Puts it last in the list of its new state. */
void flight_set_state(struct flights *flights, struct flight *flight, enum flight_state state);
/* Returns how many are only to be acknowledged. */
static inline unsigned flights_done(const struct flights *flights)
{
    return flights->counts[FLIGHT_DONE] + flights->counts[FLIGHT_ACKNOWLEDGED];
}

/* The engine has delivered the message again: from now on that delivery counts. */
void flight_redelivered(struct flights *flights, struct flight *flight, natsMsg *message,
                        usec_t now);

/* Also applies to flights whose next beat is already planned. */
void flights_set_period(struct flights *flights, usec_t period, usec_t now);

/* Whether the message is still this machine's. If the engine has not heard of it for so long that
 * AckWait may be over soon, another machine may get it, or has it: what is said of this delivery
 * would count for that one. */
bool flight_is_ours(const struct flights *flights, const struct flight *flight, usec_t now);
/* The engine was told about it. */
void flight_heard(const struct flights *flights, struct flight *flight, usec_t now);

/* Plans the next beat, one period from now. */
void flight_beat_again(struct flights *flights, struct flight *flight, usec_t now);

/* STREAM:SEQUENCE, or STREAM:SEQUENCE:N after N tries. */
void flight_id(const struct flight *flight, const char *stream, char id[static TROUPE_ID_SIZE]);
