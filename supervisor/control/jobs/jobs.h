/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of io.troupe.Jobs. */

#include "shared/base/clock.h"
#include "shared/protocol/protocol.h"
#include "supervisor/job/job.h"
#include "supervisor/varlink/request.h"
#include "supervisor/varlink/varlink.h"
#include <stdbool.h>
#include <stdint.h>

struct group_context;
struct job_row;
struct job_waiter;
struct request;

/* The jobs that a call means. Those that wait on disk only are matched by their rows. */
struct job_filter {
    uint64_t group;           /* reference; 0 = all groups */
    struct varlink_bytes key; /* data NULL = all; borrowed from the call */
    unsigned states;          /* a bit per enum job_state */
    enum attempt_cause cause; /* of the last attempt that failed; NONE = any */
    usec_t until;             /* accepted until then, realtime; USEC_INFINITY = at any time */
};

/* The live states as bits. */
#define JOB_FILTER_LIVE ((1u << JOB_SUCCEEDED) - 1)

/* Takes "group" or "group/key", whose cell may be gone. On false, an error has been sent. */
bool job_filter_take_group(struct job_filter *filter, struct request *request, const char *name);

bool job_filter_matches(const struct job_filter *filter, const struct job *job);

/* Whether the store works, so that jobs that wait on disk can be read. */
bool job_filter_can_read(const struct group_context *groups);

/* Room for what a row says of a job that is not in memory. */
struct row_job {
    struct job job;
    struct job_timers timers;
    char name[PROTOCOL_ID_TEXT];
};

/* Returns the job of a row if it is in memory, else `room`, which borrows from the row; NULL: a
 * result that has expired. */
const struct job *row_job_of(const struct group_context *groups, const struct job_row *row,
                             struct row_job *room);

/*
 * Finds a job, live or kept, also one that waits on disk only. Returns it, or NULL; then `missing`
 * has been called, or is called in a later turn, or the call is executed again in one, when the job
 * has been read into memory. `error` is 0 or as of job_lookup_begin().
 */
struct job *control_find_job(struct request *request, const char *id,
                             void (*missing)(struct request *request, int error));

#define CONTROL_KEY_ALLOWED "in a group with Cells=by-key " PROTOCOL_NAME_ALLOWED

struct control_submit_options {
    bool keep_result;
    /* As in cell_submit(), but if the result is kept, for durable jobs only; NULL = the client does
     * not wait. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    void *owner;
};

/* Answers with the error of a job that was not accepted after all: job->refusal. */
void control_refuse_job(struct request *request, const struct job *job);

/*
 * Returns the accepted job. NULL = an error has been sent, or the request waits for room in the
 * queue and will be executed again.
 */
struct job *control_submit(struct request *request, const struct control_submit_options *options);
