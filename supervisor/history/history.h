/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The history: ended jobs of groups with History=, in "history.db" beside "troupe.db", by a store
 * of its own (store.h). It never delays a job: rows wait in a bounded queue, of which each
 * submitter has a share. Those that come while it is full, or that cannot be written, are dropped
 * and counted.
 *
 * Rows are written in batches, without a sync of each commit. A crash of the supervisor loses those
 * of the last HISTORY_DELAY, a power cut those since the last checkpoint of the log; the file stays
 * consistent. Old rows are removed with each batch, and searches advance between two batches, each
 * for a bounded time.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/job/job-facts.h"
#include "supervisor/job/job.h"
#include "supervisor/store/store.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct history;
struct loop;
struct share;

/* How long rows wait for others before they are written. */
#define HISTORY_DELAY (100 * USEC_PER_MSEC)
/* Bytes of the payload that a row has with HistoryPayload=yes. */
#define HISTORY_EXCERPT_MAX 200
/* Bytes of a text to search for. */
#define HISTORY_TEXT_MAX 256
/* Unfinished calls of a user. */
#define HISTORY_CALLS_MAX 4

/* An ended job. Texts are not NULL, but may have size 0; those of a copy end with a NUL. */
struct history_row {
    JOB_FACTS_MEMBERS
    struct list link;
    uint32_t state;                            /* enum job_state */
    const char *group, *id, *worker;           /* worker: of the last attempt */
    const char *key, *tags, *excerpt, *reason; /* contents; tags have blanks between them */
    uint32_t group_size, id_size, worker_size;
    uint32_t key_size, tags_size, excerpt_size, reason_size;
    uint64_t payload_size; /* 0 = not kept; `excerpt` is its beginning */
    bool open;             /* in replies: the client may read its contents */
    struct share *share;   /* private: in which it is counted while it waits to be written */
    size_t size;           /* memory of a copy */
    char bytes[];
};
/* Copies a row with its texts. Freed with free(); NULL without memory. */
struct history_row *history_row_copy(const struct history_row *row);

struct history_options {
    const char *path; /* of the database; its directory is made if it is missing. Copied */
    /* Called in the loop when history_problem() has changed. */
    void (*changed)(void *userdata);
    void (*settled)(void *userdata); /* of the store; NULL = not wanted */
    void *userdata;
};

/* Starts the thread, which opens the database. Returns 0 or -errno. */
int history_new(struct history **ret, struct loop *loop, const struct history_options *options);

/* Writes the rows that wait, and ends the thread; calls done() of all calls. Does not wait once the
 * store has ended. NULL allowed; returns NULL. */
struct history *history_free(struct history *history);

/* Its store, for the end: NULL for NULL. */
struct store *history_store(struct history *history);
/* Hands over the rows that wait, and ends calls with -ECANCELED soon: the store is about to rest,
 * or to end. */
void history_hurry(struct history *history);
/* Like history_free(), for a thread that hangs: it stays, with all memory. */
void history_abandon(struct history *history);

/* From now on, the rows of the group are kept for `keep`, and within `max` bytes, even if the group
 * is removed. Call it before the first of its rows. Returns 0 or -ENOMEM. */
int history_use(struct history *history, const char *group, usec_t keep, uint64_t max);

/*
 * Notes what a job loses when it ends: its group, the worker of its last attempt (NULL = none), and
 * with `excerpt` the beginning of its payload. Kept in job->rare->past until history_add(); has no
 * effect if that is set. Without memory the row is dropped.
 */
void history_note(struct history *history, struct job *job, const char *group, const char *worker,
                  bool excerpt);
/* Adds the ended job, which history_note() has noted. */
void history_add(struct history *history, struct job *job);

/* Why the history is off, with the file and what to do; "" = it is not. `history` NULL = it could
 * not be started. Valid until the loop's next turn. */
const char *history_problem(const struct history *history);

struct history_stats {
    uint64_t n_rows;
    uint64_t bytes;     /* of the file and its log */
    uint64_t n_dropped; /* rows, since the start */
};
struct history_stats history_stats(const struct history *history);

/* ---- calls ---- */

/* A client reads all contents, or those of some groups and of its own jobs. */
struct history_reader {
    bool all;
    uid_t uid;    /* the user whose jobs it may read; JOB_NOBODY = none */
    char *groups; /* names, each between blanks; owned */
};

/* NULL, -1, 0 = any. Texts are owned. A row whose contents the reader may not read does not match a
 * key, tag or text. */
struct history_filter {
    char *group, *id, *tag;
    char *text; /* all of its words must be in the row's id or contents: history-rows.h */
    char *key;
    size_t key_size;
    int state;
    int cause;    /* enum protocol_cause; -1 = any */
    int failed;   /* enum attempt_cause, of the last attempt that failed; -1 = any */
    usec_t since; /* ended then or later, realtime */
    usec_t until; /* ended then or before; 0 = at any time */
};

/* A search, or the removal of a group's rows; on the heap. */
struct history_call {
    struct store_task task; /* private, as are the next two */
    struct list active;
    _Atomic bool left; /* history_leave() stores, the thread loads */
    bool purge;        /* removes the rows of filter.group that have ended by now */
    struct history_filter filter;
    struct history_reader reader;
    uid_t uid;        /* of the client, whose calls are bounded */
    int64_t before;   /* where the search continues; 0 = with the newest row. Updated */
    size_t wanted;    /* hits */
    struct list hits; /* struct history_row.link, newest first */
    size_t n_hits;    /* or rows that were removed */
    size_t bytes;     /* private: of the hits; the next two likewise */
    usec_t spent;
    unsigned n_stuck; /* how often the index was searched without reaching a row */
    bool complete;    /* there are no further ones */
    int error;        /* 0; -ECANCELED: the history ends; or another -errno: it is off */
    void (*done)(struct history_call *call); /* called in the loop */
    void *owner;                             /* NULL once its client has left */
};

/* Whether the user has fewer than HISTORY_CALLS_MAX unfinished calls. */
bool history_has_room(const struct history *history, uid_t uid);
/* Makes a zeroed call of a user one without a filter. */
void history_call_init(struct history_call *call, uid_t uid);
/* Begins a call, or continues one that has been answered. done() follows in a later turn; then it
 * is the caller's again. It sees all jobs that ended before it. A search has fewer hits than wanted
 * if it takes long. */
void history_begin_call(struct history *history, struct history_call *call);
/* The client of an unfinished call has left: a search ends soon, and done() follows with owner
 * NULL. */
void history_leave(struct history_call *call);
void history_call_free(struct history_call *call);
