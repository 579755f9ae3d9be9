/* SPDX-License-Identifier: MIT */
#pragma once

/* What the loop of a worker and the job in its hand know of each other. */

#include "shared/protocol/protocol.h"
#include "shared/ring/channel.h"
#include "worker/actor/actor.h"
#include "worker/base/blob.h"
#include "worker/troupe.h"
#include "worker/worker/lifeline.h"

enum worker_stage {
    WORKER_NEW,   /* nothing told to the supervisor yet */
    WORKER_READY, /* scope set up, READY sent */
    WORKER_OVER,  /* scope torn down */
};

struct troupe_worker {
    struct channel channel;
    struct lifeline lifeline;
    int control;
    int poll_fd; /* of troupe_worker_fd(); -1 = none yet */
    char *name;
    uint64_t generation;
    uint32_t inline_max;
    uint64_t blobs_sent; /* also the serial of the last one */
    enum worker_stage stage;
    struct troupe_actor actor;
    struct list backlog; /* jobs that came while a handler waited */
    bool stopping;       /* STOP came then */
    troupe_job_fn on_job;
    void *on_job_userdata;
    troupe_scope_fn set_up;
    troupe_scope_end_fn tear_down;
    void *scope_userdata;
    atomic_flag torn_down;
};

struct troupe_job {
    struct troupe_worker *worker;
    struct protocol_job wire; /* points into the inbox, whose space is given back after the job */
    char id[PROTOCOL_ID_TEXT];
    const void *payload;
    void *copy;         /* the payload's, if it had to be moved */
    size_t mapped_size; /* the payload is a mapped blob */
    int payload_fd;     /* its descriptor, received before; -1 = not yet */
    struct blob blob;   /* the result's, from troupe_job_blob() */
    bool blob_made;
    bool ended;
    bool crashed;  /* a process of it was reported */
    int end_error; /* why the last try to end the job was refused */
};

/* Room in the outbox, waiting for it if need be. 0, -EMSGSIZE. */
int worker_reserve(struct troupe_worker *worker, uint32_t size, void **ret);

/* Seals the reserved record with what a put function returned, and shows it to the supervisor. */
int worker_commit(struct troupe_worker *worker, enum protocol_kind kind, int size);

/* The next record. 0, RING_E_EMPTY when there is none within the time, or a negative errno. */
int worker_receive(struct troupe_worker *worker, usec_t timeout, struct ring_record *ret);

/* Nothing wakes a worker whose supervisor is gone: to be asked when a wait has run out. */
bool worker_supervisor_gone(const struct troupe_worker *worker);

/* Tears the scope down if it is up, once, also when a signal comes meanwhile. */
void scope_tear_down(struct troupe_worker *worker);

/* No signal tears this worker's scope down any more. */
void scope_forget(struct troupe_worker *worker);

/* Makes the worker carry its actor. */
void worker_carry(struct troupe_worker *worker);

/*
 * Handles the job in a record of the inbox, from STARTED to RESULT. `blob`: the payload's
 * descriptor, taken over, if it has been received already; else -1. 0 whatever became of the job;
 * an error ends the worker.
 */
int job_handle(struct troupe_worker *worker, const struct ring_record *record, int blob);

/* A job that cannot be handled yet is kept out of the ring, descriptor and all. 0, -EPROTO,
 * -ENOMEM. */
int backlog_keep(struct troupe_worker *worker, const struct ring_record *record);
/* Handles the oldest of them: 1, 0 when there is none, or as job_handle(). */
int backlog_run(struct troupe_worker *worker);
void backlog_deinit(struct troupe_worker *worker);
