/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of an attachment owe each other:
 *
 *   attachment.c         its rings and its life; LOOKUP and CANCEL
 *   attachment-submit.c  SUBMIT: the record that may wait for room in a queue
 *   attachment-end.c     WATCH and DONE: the ends that it waits for, and those it is owed
 */

#include "shared/protocol/protocol.h"
#include "supervisor/client/attachment.h"
#include "supervisor/group/cell-submit.h"

#define ATTACHMENT_INLINE (UINT32_C(32) << 10)
/* Ends that one client may wait for at a time. */
#define ATTACHMENT_WAITERS_MAX 65536u

#define attachment_of(pointer, member) list_entry(pointer, struct attachment, member)

struct attachment {
    struct endpoint endpoint;
    const struct attachment_context *context;
    struct actor *actor;
    uid_t uid;           /* of the client's process */
    unsigned n_waiters;  /* in the two lists */
    struct list waiting; /* waiters on live jobs, struct job_waiter.owner_link */
    struct list
        owed; /* waiters on ended jobs whose end found no room; each holds a job reference */
    struct cell_waiter room; /* for the job whose record is next in the ring */
    bool named_waits;        /* a SUBMIT that chooses its id waits in the ring */
    bool has_blob;           /* of the request that waits for room: */
    struct payload blob;     /* that job's, once fetched */
    uint64_t blob_serial;
    bool (*may_read)(void *userdata, const struct job *job);
    void (*broken)(void *userdata, const char *what);
    void *userdata;
};

/* ---- attachment-submit.c ---- */

/* As struct endpoint_handler's record(). */
int attachment_on_submit(struct attachment *attachment, const struct ring_record *record);

/* The next record in the ring has been answered: nothing is kept for it any more. */
void attachment_forget_submit(struct attachment *attachment);

/* The record that waits is read again. */
void attachment_on_turn(struct cell_waiter *waiter);

/* ---- attachment-end.c ---- */

/* As struct endpoint_handler's record(). */
int attachment_on_watch(struct attachment *attachment, const struct ring_record *record);

/* The waiter, which is on a live job, is this client's; it calls attachment_on_change(). */
void attachment_wait(struct attachment *attachment, struct job_waiter *waiter);
void attachment_on_change(struct job_waiter *waiter, struct job *job);

/* What it is owed, as far as there is room: 0 = all of it, or ENDPOINT_E_FULL. */
int attachment_send_owed(struct attachment *attachment);

/* Nobody waits for anything any more; the jobs go on. */
void attachment_drop_waiters(struct attachment *attachment);
