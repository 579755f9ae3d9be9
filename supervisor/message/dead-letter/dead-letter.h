/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages and jobs that were not handled, kept for administrators: dead letters (undeliverable or
 * unhandled messages, jobs whose retries are exhausted) and the error queue (messages whose handler
 * failed). Each is a ring with a bound on its number; one bound on memory covers both. Each message
 * belongs to the group of its sender, else of its recipient, and each job to its submitter. If a
 * bound is reached, an owner with at least an equal share loses its oldest one. Both rings share
 * one sequence of ids.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/base/share.h"
#include "shared/protocol/job-options.h"
#include "shared/protocol/topic.h"
#include "supervisor/channel/payload.h"
#include "supervisor/event/death.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum dead_letter_reason {
    /* Dead letters. */
    DEAD_UNHANDLED,     /* its recipient has no handler for it */
    DEAD_NO_MATCH,      /* no subscription of the exchange matches */
    DEAD_GONE,          /* the recipient has ended, or never was */
    DEAD_MAILBOX_FULL,  /* Overflow=reject */
    DEAD_DROPPED,       /* Overflow=drop-oldest */
    DEAD_LATE_REPLY,    /* the ask had ended */
    DEAD_WRONG_REPLY,   /* a reply of a type that was not asked for */
    DEAD_UNKNOWN_DEATH, /* a notice without monitor */
    DEAD_LOOP,          /* passed too many exchanges */
    DEAD_NO_MEMORY,     /* the supervisor had no memory or descriptor for it */
    DEAD_JOB,           /* a job, retries exhausted */
    /* The error queue. */
    DEAD_ERROR, /* the handler failed */
    DEAD_CRASH, /* its worker died while handling it, retries exhausted */
    _DEAD_N_REASONS,
};

enum dead_letter_queue {
    DEAD_LETTERS,
    DEAD_ERRORS,
    _DEAD_N_QUEUES,
};

/* Blobs up to COPY_MAX bytes are copied. Larger ones keep a descriptor each; beyond BLOBS_MAX of
 * them the oldest lose their payload. Named in troupe.conf(5). */
#define DEAD_LETTER_COPY_MAX   (UINT64_C(1) << 20)
#define DEAD_LETTER_BLOBS_MAX  64
#define DEAD_LETTER_DEATHS_MAX 8
#define DEAD_LETTER_ID_MAX     ((uint64_t)INT64_MAX / 2) /* of one that is read back */

/* The resources of a share: messages in each ring (enum dead_letter_queue), bytes, blobs. */
enum {
    DEAD_SHARE_MEMORY = _DEAD_N_QUEUES,
    DEAD_SHARE_BLOBS,
};

/* The members up to `payload` describe a letter that dead_letter_add() makes. NULL = none. */
struct dead_letter {
    enum dead_letter_reason reason;
    uint64_t id;                    /* counts from 1; 0 = the next one */
    int64_t row;                    /* on disk, of a durable job; 0 = none */
    usec_t at;                      /* realtime; 0 = now */
    const char *sender, *recipient; /* as addresses */
    uint64_t sender_ref, recipient_ref;
    struct topic topic;
    uint64_t message; /* id; 0 = none */
    usec_t sent_at;   /* realtime */
    const char *job;  /* id, for DEAD_JOB */
    struct job_options
        options; /* that job's, as are its unique key, its tags and its traceparent */
    uint64_t unique_high, unique_low;
    const char *tags, *traceparent;
    uid_t submitter_uid; /* of that job, which this user may read */
    int32_t code;        /* the handler's own; DEAD_ERROR, DEAD_JOB */
    const char *text;    /* the handler's error, or the reason */
    uint32_t attempts;
    enum attempt_cause cause; /* of the last attempt; NONE = that of the last death */
    size_t n_deaths;
    struct death *deaths[DEAD_LETTER_DEATHS_MAX]; /* oldest first; a reference is taken of each */
    bool payload_dropped;                         /* there was no room; payload.size is 0 */
    uint64_t payload_size;

    struct payload payload;
    struct list link;             /* in its ring, oldest first */
    struct dead_letters *letters; /* that it belongs to */
    struct share *share;
    struct list share_link, blob_link; /* in its share */
    struct index_entry by_id, by_job;  /* by_job: by a hash of `job`, if there is one */
    size_t memory;
};

/* Since the start. */
struct dead_letter_tally {
    uint64_t last_id;
    uint64_t n_evicted; /* to make room */
    uint64_t counts[_DEAD_N_REASONS];
};

struct dead_letters {
    struct list rings[_DEAD_N_QUEUES];
    struct list cursors; /* struct list_cursor.link, in the rings */
    struct index by_id, by_job;
    struct shares shares;
    uint64_t max, memory_max;
    struct dead_letter_tally *tally, own_tally; /* see dead_letters_resume() */
    uint64_t inherited_id; /* up to this, ids are those of the last supervisor's letters */
    /* Called when a letter with a row on disk is freed. */
    void (*drop_row)(void *userdata, int64_t row);
    void *userdata;
};

/* Words such as "mailbox_full"; static. */
const char *dead_letter_reason_to_string(enum dead_letter_reason reason);
enum dead_letter_queue dead_letter_queue_of(enum dead_letter_reason reason);

/* `max` per ring; `memory_max` bytes over both. */
void dead_letters_init(struct dead_letters *letters, uint64_t max, uint64_t memory_max);
void dead_letters_deinit(struct dead_letters *letters);
/* Changes the bounds, and evicts the oldest beyond them. */
void dead_letters_resize(struct dead_letters *letters, uint64_t max, uint64_t memory_max);

/*
 * Adds a copy of the letter, counts it, and evicts the oldest beyond the bounds. Takes the payload
 * over (NULL = none); a payload larger than the whole memory is dropped. Returns its id, or 0 when
 * out of memory.
 */
uint64_t dead_letter_add(struct dead_letters *letters, const struct dead_letter *like,
                         struct payload *payload);
/* Like dead_letter_add(), but for a letter that the last supervisor has counted. */
uint64_t dead_letter_restore(struct dead_letters *letters, const struct dead_letter *like,
                             struct payload *payload);

/* Continues the tally of the last supervisor, in memory that outlives this one (borrowed). */
void dead_letters_resume(struct dead_letters *letters, struct dead_letter_tally *kept);

/* Whether a letter that is read back may have this id: there is room for more above it. */
static inline bool dead_letter_id_valid(uint64_t id)
{
    return id > 0 && id <= DEAD_LETTER_ID_MAX;
}

/* Returns an id for a letter that will be added. */
static inline uint64_t dead_letter_reserve_id(struct dead_letters *letters)
{
    return ++letters->tally->last_id;
}

/* Returns the letter, or NULL. */
struct dead_letter *dead_letter_find(const struct dead_letters *letters, uint64_t id);
/* Returns the last letter of the job with this id (as text), or NULL. */
struct dead_letter *dead_letter_of_job(const struct dead_letters *letters, const char *job);

/* Takes one out: the caller owns it until dead_letter_free() or dead_letter_put(). */
void dead_letter_take(struct dead_letters *letters, struct dead_letter *letter);
/* Puts one back, in the order of ids. */
void dead_letter_put(struct dead_letters *letters, struct dead_letter *letter);
void dead_letter_free(struct dead_letter *letter); /* NULL allowed */

/* NULL, 0 and -1 match anything. */
struct dead_letter_filter {
    int queue;                      /* enum dead_letter_queue, -1 */
    int reason;                     /* enum dead_letter_reason, -1 */
    const char *sender, *recipient; /* that address or one below it: "group" finds "group/0" */
    const char *type;               /* that type or a child of it */
    const char *job;
    const char *key;
    enum attempt_cause cause;
    usec_t since, until; /* realtime; until 0 = no limit */
};
#define DEAD_LETTER_FILTER_ANY                                                                     \
    {                                                                                              \
        .queue = -1, .reason = -1                                                                  \
    }

/* Whether the letter passes all conditions of the filter. */
bool dead_letter_matches(const struct dead_letter *letter, const struct dead_letter_filter *filter);

/* A walk over both rings in the order of ids, during which letters may be added and removed. End it
 * with dead_letter_walk_end(). */
struct dead_letter_walk {
    struct dead_letters *letters;
    struct list_cursor at[_DEAD_N_QUEUES];
};
void dead_letter_walk_begin(struct dead_letter_walk *walk, struct dead_letters *letters,
                            bool newest_first);
/* NULL = no more. The letter may be taken out. */
struct dead_letter *dead_letter_walk_next(struct dead_letter_walk *walk);
void dead_letter_walk_end(struct dead_letter_walk *walk); /* allowed on a zeroed struct */
