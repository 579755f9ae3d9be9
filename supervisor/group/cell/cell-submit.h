/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Submitting a job to a cell: what somebody asks for, what he is told, and how he waits while there
 * is no room.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/job/job.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;

/*
 * Somebody who waits for room in a cell's queue with a job that he keeps. When it is his turn, when
 * his time is over, or when it is of no use to wait here any more, turn() is called, once: then he
 * is to submit his job again with the same waiter, not from within turn(), or to stop waiting.
 */
struct cell_waiter {
    struct list link;
    struct cell *cell; /* NULL = stands in no line */
    struct timer timer;
    usec_t since;    /* monotonic: when it began to wait; valid if there is a deadline */
    usec_t deadline; /* monotonic; 0 = has not begun to wait */
    uint64_t size;   /* of the payload */
    bool called, expired;
    void (*turn)(struct cell_waiter *waiter);
};

void cell_waiter_init(struct cell_waiter *waiter, void (*turn)(struct cell_waiter *waiter));

/* Gives up its place in the line, if it has one; what is left of its time stays. */
void cell_waiter_stop(struct cell_waiter *waiter);

/* The same, and its next job has all its time again: once this one was accepted or refused. */
void cell_waiter_reset(struct cell_waiter *waiter);

/* What somebody asks for. Strings and payload are copied or, for a blob, taken over on success. */
struct cell_request {
    const char *name;    /* chosen id, "" = have one made */
    uid_t submitter_uid; /* who may read it; 0 = root, or nobody */
    const void *key;
    uint32_t key_size;
    bool keep_result;
    struct job_options options;
    usec_t delay, at; /* at most JOB_DELAY_MAX from now; 0 = none */
    usec_t wait;      /* for room in the queue, if there is a waiter */
    usec_t deadline;  /* for all of it, waiting for room included; 0 or USEC_INFINITY = none */
    struct cell_waiter *waiter;
    const void *data; /* inline payload */
    uint64_t size;
    struct payload *blob; /* NULL = inline; moved out of it on success */
};

enum {
    _CELL_E_SUCCESS,
    CELL_E_BUSY,      /* QueueMax= or QueueMemoryMax=, also after having waited */
    CELL_E_WAIT,      /* the same, and the request's waiter waits: it is told when to try again */
    CELL_E_TOO_LARGE, /* above QueueMemoryMax= all by itself: it never fits */
    CELL_E_EXISTS,    /* a live job has that id */
    CELL_E_BAD_ID,
    CELL_E_STOPPING, /* the supervisor or the group is going away */
    CELL_E_NO_KEY,   /* Cells=by-key: a job needs one */
    CELL_E_BAD_KEY,  /* Cells=by-key: it cannot name a cell */
    CELL_E_TOO_MANY, /* CellsMax= */
};

/*
 * Accepts a job: from now on it ends exactly once. `changed` (NULL allowed) is called for every
 * change of state after this call; the waiter used is job->submitter, with `owner` and `cookie`. 0
 * with `*ret` (valid until it is told ended, or longer with job_ref()), CELL_E_*, or -ENOMEM.
 */
int cell_submit(struct cell *cell, const struct cell_request *request,
                void (*changed)(struct job_waiter *, struct job *), void *owner, uint64_t cookie,
                struct job **ret);
