/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of io.troupe.Jobs. */

#include "shared/base/clock.h"
#include "supervisor/job/job.h"
#include "supervisor/varlink/request.h"
#include "supervisor/varlink/varlink.h"
#include <stdbool.h>
#include <stdint.h>

struct dead_letter;
struct group_context;
struct history_row;
struct job_load;
struct job_waiter;
struct loaded_job;
struct request_parts;

/* The jobs that a call means. Those that wait on disk only are matched by their rows. */
struct job_filter {
    uint64_t group;            /* reference; 0 = all groups */
    struct varlink_bytes key;  /* data NULL = all; borrowed from the call */
    unsigned states;           /* a bit per enum job_state */
    struct varlink_bytes text; /* is part of the id or the key; NULL = any; borrowed */
    enum attempt_cause cause;  /* of the last attempt that failed; NONE = any */
    usec_t since, until; /* when they were accepted, realtime; 0, USEC_INFINITY = at any time */
};

/* The live states as bits. */
#define JOB_FILTER_LIVE (((1u << JOB_SUCCEEDED) - 1) | 1u << JOB_PENDING)

/* Takes "group" or "group/key", whose cell may be gone. On false, an error has been sent. */
bool job_filter_take_group(struct job_filter *filter, struct request *request, const char *name);

/* Whether the store works, so that jobs that wait on disk can be read. */
bool job_filter_can_read(const struct group_context *groups);

/*
 * A walk over the jobs that match a filter, as the steps of a call. First come durable jobs, in the
 * order of their rows, then the others, in that of the job table. The call's cursor is the number
 * of a row, then an index of the job table. Both stay the same for each job.
 */
struct job_walk {
    struct request_parts *parts;
    struct job_filter filter;
    bool on_disk;     /* durable jobs are read from disk */
    bool must_read;   /* if that fails, the call fails; otherwise only jobs in memory follow */
    bool changes;     /* visits durable jobs a second time if they are also in memory */
    bool ended;       /* also reads rows of jobs that have ended */
    bool whole;       /* rows that are visited have their payloads, as job_lookup_take() needs */
    size_t rows_left; /* how many rows a page may still read */
    /* Visits a job. `row`: NULL if the job is in memory; otherwise its row, as it is on disk in
     * this turn, from which `job` borrows. */
    void (*visit)(struct job_walk *walk, struct job *job, struct loaded_job *row);
    /* Private: what is being read; and matching rows, which are then read with their payloads. */
    struct job_load *reading, *picked;
};

/* For request_parts.step. Returns false at the end. */
bool job_walk_step(struct job_walk *walk);
void job_walk_end(struct job_walk *walk);
/* Replies with StoreFailed. */
void job_walk_fail(struct request *request);

/*
 * Finds a job, live or kept, also one that waits on disk only. Returns NULL if the job is not in
 * memory. Then it is read from disk, and the call is executed again in a later turn; or there is no
 * such job, and `missing` is called, now or in a later turn. `error`: see job_lookup_begin().
 */
struct job *control_find_job(struct request *request, const char *id,
                             void (*missing)(struct request *request, int error));

/* For a job that was not found, with the `error` of `missing`: calls `dead` if it has a dead
 * letter, or `past` if only the history knows it, or sends an error. */
void control_find_ended(struct request *request, int error,
                        void (*dead)(struct request *request, const struct dead_letter *letter),
                        void (*past)(struct request *request, const struct history_row *row));
/* For a call that would change a job that was not found: sends an error, which says whether the job
 * has a dead letter or is in the history. */
void control_refuse_unknown(struct request *request, int error);

/*
 * Looks for the call's job in the history. In a later turn, `found` is called with its row, or
 * `missing` with `error`. Returns false if there is no history.
 */
bool control_find_past_job(struct request *request, int error,
                           void (*found)(struct request *request, const struct history_row *row),
                           void (*missing)(struct request *request, int error));
void report_past_job(struct reply *reply, const char *key, const struct history_row *row);

/* The end of a job, which a client is told. The job may have no group any more. */
struct job_end {
    struct job *job;
    uint64_t group; /* reference */
    bool open;      /* the client may read its contents */
    usec_t after;   /* for `write` */
    /* Writes into the reply beside `job`; NULL = nothing. */
    void (*write)(struct reply *reply, const struct job_end *end);
};

/* Answers a call that has waited for the end of the job, in the request's turn. `write`, `after`:
 * see struct job_end. */
void control_tell_end(struct request *request, struct job *job, usec_t after,
                      void (*write)(struct reply *reply, const struct job_end *end));

#define CONTROL_KEY_ALLOWED "in a group with Cells=by-key " PROTOCOL_NAME_ALLOWED

struct control_submit_options {
    bool keep_result;
    bool opens_batch; /* the call has no payload */
    /* As in cell_submit(), but if the result is kept, for durable jobs only; NULL = the client does
     * not wait. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    void *owner;
};

/* Sends AlreadyEnded. */
void control_refuse_ended(struct request *request, enum job_state state);
/* Finds the group that a call names, for its jobs. NULL = an error has been sent. */
struct group *control_take_group(struct request *request, const char *name);
/* Whether the client may give a job this priority; if not, an error has been sent. */
bool control_may_prioritise(struct request *request, uint8_t priority);
/* Sends the error of a job that was not accepted after all: job->refusal. */
void control_refuse_job(struct request *request, const struct job *job);

/*
 * Returns the accepted job, or with `*ret_existing` the one that takes its place. NULL = an error
 * has been sent, or the request waits for room in the queue and will be executed again.
 */
struct job *control_submit(struct request *request, const struct control_submit_options *options,
                           bool *ret_existing);
/* Refuses a job whose unique key `holder` has. */
void control_refuse_taken(struct request *request, const struct job *holder);
