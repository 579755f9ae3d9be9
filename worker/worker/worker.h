/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of a worker: its loop, its scope, its jobs, its actor. */

#include "worker/actor/local-actor.h"
#include "worker/base/carrier.h"
#include "worker/troupe.h"
#include "worker/worker/lifeline.h"
#include "worker/worker/private-tmp.h"

enum worker_stage {
    WORKER_NEW,   /* before set-up */
    WORKER_READY, /* scope set up, READY sent */
    WORKER_OVER,  /* scope torn down */
};

struct troupe_worker {
    struct carrier carrier;
    struct lifeline lifeline;
    char *name;
    uint64_t generation;
    enum worker_stage stage;
    struct troupe_actor actor;
    struct private_tmp tmp;
    unsigned n_handled;  /* jobs being handled, one within the other */
    struct list backlog; /* jobs that arrived while a handler waited */
    bool stopping;       /* handles no more jobs or messages */
    troupe_job_fn on_job;
    void *on_job_userdata;
    troupe_scope_fn set_up;
    troupe_scope_end_fn tear_down;
    void *scope_userdata;
    atomic_flag torn_down;
};

struct troupe_job {
    struct troupe_worker *worker;
    struct protocol_job wire; /* borrows from the record */
    char id[PROTOCOL_ID_TEXT];
    const void *payload;
    size_t mapped_size; /* of a payload that is a blob */
    int payload_fd;     /* the argument of job_handle() */
    struct blob outer;  /* of the job whose handler waits while this one is handled */
    bool ended;
    bool crashed;  /* a crash was reported */
    int end_error; /* of the last call that tried to end the job */
};

extern const struct carrier_class worker_carrier;

/*
 * Reads the next record. Returns 0, RING_E_EMPTY if none arrives within `timeout` or there is
 * something else to do, -ESHUTDOWN if the supervisor is gone, or another -errno.
 */
int worker_receive(struct troupe_worker *worker, usec_t timeout, struct ring_record *ret);

/*
 * Handles the job in a record, from STARTED to RESULT. Takes over `blob`, the payload's descriptor
 * if it was received before, -EMFILE if it was lost, else -1. Returns 0 whatever the job's outcome;
 * an error ends the worker.
 */
int job_handle(struct troupe_worker *worker, const struct ring_record *record, int blob);

/* Copies a job out of the ring for later, with its descriptor. Returns 0 or -errno. */
int backlog_keep(struct troupe_worker *worker, const struct ring_record *record);
/* Handles the oldest job of the backlog. Returns 1, 0 if there is none, or -errno. */
int backlog_run(struct troupe_worker *worker);
void backlog_deinit(struct troupe_worker *worker);
