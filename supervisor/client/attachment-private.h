/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between attachment.c (rings, life, LOOKUP, CANCEL), attachment-submit.c
 * (SUBMIT) and attachment-waiter.c (WAIT and DONE). */

#include "shared/protocol/protocol.h"
#include "supervisor/client/attachment.h"
#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/group-context.h"

#define ATTACHMENT_INLINE (UINT32_C(32) << 10)
/* Jobs whose end one client may await. */
#define ATTACHMENT_WAITERS_MAX 65536u

#define attachment_of(pointer, member) list_entry(pointer, struct attachment, member)

struct attachment {
    struct endpoint endpoint;
    const struct group_context *context;
    struct actor *actor;
    uid_t uid;               /* of the client's process */
    unsigned n_waiters;      /* in the two lists */
    struct list waiting;     /* waiters on live jobs, struct job_waiter.owner_link */
    struct list owed;        /* waiters whose DONE found no room; each holds a job reference */
    struct cell_waiter room; /* for the job whose record is next in the ring */
    bool named_waits;        /* a SUBMIT that chooses its id waits in the ring */
    bool has_blob;           /* blob and blob_serial are valid */
    struct payload blob;     /* of the SUBMIT that waits for room */
    uint64_t blob_serial;
    bool (*may_read)(void *userdata, const struct job *job);
    void (*broken)(void *userdata, const char *what);
    void *userdata;
};

/* ---- attachment-submit.c ---- */

/* As struct endpoint_handler's record(). */
int attachment_on_submit(struct attachment *attachment, const struct ring_record *record);

/* Drops the state of the SUBMIT that waited, once its record is consumed. */
void attachment_forget_submit(struct attachment *attachment);

/* Reads the waiting record again. */
void attachment_on_turn(struct cell_waiter *waiter);

/* ---- attachment-waiter.c ---- */

/* As struct endpoint_handler's record(). */
int attachment_on_watch(struct attachment *attachment, const struct ring_record *record);

/* Adds a waiter on a live job, whose changed() is attachment_on_change(). */
void attachment_wait(struct attachment *attachment, struct job_waiter *waiter);
void attachment_on_change(struct job_waiter *waiter, struct job *job);

/* Sends owed DONE records while there is room. Returns 0 (all are sent) or ENDPOINT_E_FULL. */
int attachment_send_owed(struct attachment *attachment);

/* Removes all waiters; the jobs go on. */
void attachment_drop_waiters(struct attachment *attachment);
