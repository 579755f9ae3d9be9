/* SPDX-License-Identifier: MIT */
#pragma once

/* What the loop of a worker and the job in its hand know of each other. */

#include "../shared/channel.h"
#include "../shared/protocol.h"
#include "blob.h"
#include "troupe.h"

enum worker_stage {
    WORKER_NEW,   /* nothing told to the supervisor yet */
    WORKER_READY, /* scope set up, READY sent */
    WORKER_OVER,  /* scope torn down */
};

struct troupe_worker {
    struct channel channel;
    int control;
    char *name;
    uint64_t generation;
    uint32_t inline_max;
    uint64_t blobs_sent; /* also the serial of the last one */
    uint64_t heartbeat;
    enum worker_stage stage;
    troupe_job_fn on_job;
    void *on_job_userdata;
    troupe_scope_fn set_up;
    troupe_scope_end_fn tear_down;
    void *scope_userdata;
};

struct troupe_job {
    struct troupe_worker *worker;
    struct protocol_job wire; /* points into the inbox, whose space is given back after the job */
    char id[PROTOCOL_ID_TEXT];
    const void *payload;
    void *copy;         /* the payload's, if it had to be moved */
    size_t mapped_size; /* the payload is a mapped blob */
    struct blob blob;   /* the result's, from troupe_job_blob() */
    bool blob_made;
    bool ended;
    int end_error; /* why the last try to end the job was refused */
};

/* Room in the outbox, waiting for it if need be. 0, -EMSGSIZE. */
int worker_reserve(struct troupe_worker *worker, uint32_t size, void **ret);

/* Seals the reserved record with what a put function returned, and shows it to the supervisor. */
int worker_commit(struct troupe_worker *worker, enum protocol_kind kind, int size);

/*
 * Handles the job in a record of the inbox, from STARTED to RESULT. 0 whatever became of the job;
 * an error ends the worker.
 */
int job_handle(struct troupe_worker *worker, const struct ring_record *record);
