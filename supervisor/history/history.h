/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The history: ended jobs of groups with History=, in a database of its own, "history.db" beside
 * "troupe.db", in a thread of its own. It never delays a job: rows wait in a bounded queue, and
 * those that come while it is full, or that cannot be written, are dropped and counted.
 *
 * The thread writes rows in batches without a sync of each commit. A crash of the supervisor loses
 * those of the last HISTORY_DELAY, a power cut those since the last checkpoint of the log; the file
 * stays consistent. Between two batches it removes rows that are too old or too many, and advances
 * one search, each for a bounded time.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "shared/protocol/protocol.h"
#include "supervisor/job/job-facts.h"
#include "supervisor/job/job.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct history;
struct loop;

/* How long rows wait for others before they are written. */
#define HISTORY_DELAY (100 * USEC_PER_MSEC)
/* Bytes of the payload that a row has with HistoryPayload=yes. */
#define HISTORY_EXCERPT_MAX 200
/* The hits of a call take little more than this. */
#define HISTORY_HITS_BYTES ((uint64_t)1 << 20)
/* Unfinished calls of a user. */
#define HISTORY_CALLS_MAX 4

/* A group that has, or had, History=. Lives as long as the history. */
struct history_group {
    struct history *history;
    char *name;
    struct list known; /* the loop's; private, as is all that follows */
    usec_t asked_keep; /* under the mutex, like the next two */
    uint64_t asked_max;
    bool asked;       /* the thread has not seen them */
    struct list link; /* the thread's from here on */
    usec_t keep;
    uint64_t max;
    int64_t number; /* of its row; 0 = none yet */
    uint64_t n_rows, bytes;
    bool changed; /* its row is to be written */
};

enum history_text {
    HISTORY_ID,
    HISTORY_WORKER,
    HISTORY_KEY,
    HISTORY_TAGS,    /* words with blanks between them */
    HISTORY_EXCERPT, /* the beginning of the payload */
    HISTORY_REASON,
    _HISTORY_N_TEXTS,
};

/* An ended job. Freed with free(). */
struct history_row {
    struct list link;
    struct history_group *group;
    int64_t number; /* of hits: where a search continues after it */
    struct job_facts facts;
    enum job_state state;
    uint64_t payload_size; /* 0 = not kept */
    bool open;             /* in replies: the client may read its contents */
    uint16_t sizes[_HISTORY_N_TEXTS];
    char texts[]; /* in their order, each with a NUL */
};

/* Returns a text of the row, with a NUL behind it. */
const char *history_row_text(const struct history_row *row, enum history_text which);

/* Returns the bytes of its texts, and of the row. */
static inline uint64_t history_row_bytes(const struct history_row *row)
{
    uint64_t bytes = sizeof(*row) + _HISTORY_N_TEXTS;

    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++)
        bytes += row->sizes[i];
    return bytes;
}

struct history_options {
    const char *path; /* of the database; its directory is made if it is missing. Copied */
    /* For tests: the time until a retry, and the space that it leaves free. 0 = the usual ones. */
    usec_t retry;
    uint64_t free_min;
    /* Called in the loop when history_problem() has changed. */
    void (*changed)(void *userdata);
    void *userdata;
};

/* Starts the thread, which opens the database. Returns 0 or -errno. */
int history_new(struct history **ret, struct loop *loop, const struct history_options *options);

/* Writes the rows that wait, for a few seconds at most, and ends the thread. All calls must have
 * been left. If the disk hangs, the thread and its memory stay. NULL allowed; returns NULL. */
struct history *history_free(struct history *history);

/* Returns the group of this name, whose rows are kept for `keep`, and within `max` bytes, until the
 * next call: also if the group has gone in the meantime. NULL = out of memory. */
struct history_group *history_use(struct history *history, const char *name, usec_t keep,
                                  uint64_t max);

/*
 * Notes what is lost when a job ends: its worker, or that of its last attempt (NULL), and with
 * `excerpt` the beginning of its payload. Kept in job->rare->past until history_add(); nothing
 * happens if it is there already. Without memory the row is dropped.
 */
void history_note(struct history_group *group, struct job *job, const char *worker, bool excerpt);
/* Adds the ended job, which history_note() has noted. */
void history_add(struct job *job);

/* Why the history is off, with the file and what to do; "" = it is not. Valid until the loop's next
 * turn. */
const char *history_problem(const struct history *history);

/* Like history_problem(), for a group with History=: `history` NULL = it could not be started. */
const char *history_problem_of(const struct history *history);

struct history_stats {
    uint64_t n_rows;
    uint64_t bytes;     /* of the file and its log */
    uint64_t n_dropped; /* rows, since the start */
};
struct history_stats history_stats(struct history *history);

/* ---- calls ---- */

/* A client reads all contents, or those of some groups and of its own jobs. */
struct history_reader {
    bool all;
    uid_t uid;     /* the user whose jobs it may read; JOB_NOBODY = none */
    char **groups; /* names, NULL-terminated, owned; NULL = none */
};

/* NULL, -1, 0 = any. Texts are owned. A row whose contents the reader may not read does not match a
 * key, tag or text. */
struct history_filter {
    char *group, *id, *tag;
    char *key, *text;
    size_t key_size, text_size;
    int state;
    int cause;    /* enum protocol_cause; -1 = any */
    int failed;   /* enum attempt_cause, of the last attempt that failed; -1 = any */
    usec_t since; /* ended then or later, realtime */
    usec_t until; /* ended then or before; 0 = at any time */
};

/* A search, or the removal of a group's rows; on the heap. */
struct history_call {
    struct list link;
    struct list active; /* private, as is the next one */
    _Atomic bool left;  /* history_leave() stores, the thread loads */
    bool purge;         /* removes the rows of filter.group instead */
    struct history_filter filter;
    struct history_reader reader;
    uid_t uid;        /* of the client, whose calls are bounded */
    int64_t before;   /* where the search continues; 0 = with the newest row. Moved */
    size_t wanted;    /* hits */
    struct list hits; /* struct history_row.link, newest first */
    size_t n_hits;    /* or rows that were removed */
    uint64_t bytes;   /* of the hits: no more are looked for above HISTORY_HITS_BYTES */
    bool complete;    /* there are no further ones */
    usec_t spent;     /* private */
    int error;        /* 0; -ECANCELED: the history ends; or another -errno: it is off */
    void (*done)(struct history_call *call); /* called in the loop */
    void *owner;                             /* NULL once its client has left */
};

/* Whether it has as many hits as it is to have. */
static inline bool history_call_is_full(const struct history_call *call)
{
    return call->n_hits >= call->wanted || call->bytes >= HISTORY_HITS_BYTES;
}

/* Whether the user has fewer than HISTORY_CALLS_MAX unfinished calls. */
bool history_has_room(const struct history *history, uid_t uid);
/* Makes a zeroed call of a user one without a filter. */
void history_call_init(struct history_call *call, uid_t uid);
/* Begins a call, or continues one that has been answered. done() follows in a later turn; then it
 * is the caller's again. */
void history_begin_call(struct history *history, struct history_call *call);
/* The client of an unfinished call has left: it ends soon, and done() follows with owner NULL. */
void history_leave(struct history_call *call);
void history_call_free(struct history_call *call);
