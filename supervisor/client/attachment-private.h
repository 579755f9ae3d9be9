/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between attachment.c (rings, life, LOOKUP, CANCEL), attachment-submit.c
 * (SUBMIT), attachment-waiter.c (WAIT and DONE), attachment-hold.c (across a crash) and
 * attachment-save.c (across an upgrade). */

#include "supervisor/client/attachment.h"
#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/process/holding.h"
#include "supervisor/process/spawner.h"

#define ATTACHMENT_INLINE (UINT32_C(32) << 10)
/* Jobs whose end one client may await. */
#define ATTACHMENT_WAITERS_MAX 65536u
/* Jobs whose ends all clients of a user who may only submit may await. */
#define ATTACHMENT_WAITERS_OF_USER_MAX (4 * ATTACHMENT_WAITERS_MAX)

/* The kinds of answers that a client waits for. The values are saved. */
enum attachment_wait {
    WAIT_FOR_END,             /* of a job; saved: whose result is kept */
    WAIT_FOR_OWN_END,         /* saved: of a job whose result only its submitter gets */
    WAIT_FOR_ACCEPTED,        /* a durable job to be written */
    WAIT_FOR_CANCELLED,       /* its cancellation to be written */
    WAIT_FOR_CANCELLED_AGAIN, /* the same, which another request has asked for before */
    WAIT_FOR_ANY_JOB,         /* a WAIT whose job is looked for */
    WAIT_FOR_CANCEL,          /* a CANCEL whose job is looked for */
    WAIT_FOR_WITHDRAW,        /* a WITHDRAW whose job is looked for */
    _WAIT_N,
};

#define attachment_of(pointer, member) list_entry(pointer, struct attachment, member)

struct attachment {
    struct endpoint endpoint;
    const struct group_context *context;
    struct actor *actor;
    uid_t uid;                    /* of the client's process */
    int connection;               /* borrowed */
    struct spawner_client keeper; /* has no process */
    struct holding holding;
    unsigned n_waiters;
    struct list waiting; /* struct job_waiter.owner_link: waiters on live jobs */
    unsigned n_searches;
    struct list searches;    /* for jobs on disk */
    struct cell_waiter room; /* for the job whose record is next in the ring */
    bool passing;            /* as in attachment_options */
    bool named_waits;        /* a SUBMIT that chooses its id waits in the ring */
    bool has_blob;           /* blob and blob_serial are valid */
    struct payload blob;     /* of the SUBMIT that waits for room */
    uint64_t blob_serial;
    bool (*may_read)(void *userdata, const struct job *job);
    bool (*may_submit)(void *userdata, const struct group *group);
    void (*broken)(void *userdata, const char *what);
    void *userdata;
    struct task *finish; /* of attachment_finish(); NULL = the connection is open */
};

/* ---- attachment.c ---- */

/* Makes an attachment whose endpoint is not set up. 0 or -ENOMEM. */
int attachment_allocate(struct attachment **ret, const struct group_context *context,
                        const struct attachment_options *client);
extern const struct endpoint_handler ATTACHMENT_ENDPOINT;

/* Answer with REFUSED: `error` is an errno, positive, with a sentence, or -errno. Return 0. */
int attachment_refuse(struct attachment *attachment, uint64_t cookie, int error,
                      const char *reason);
int attachment_refuse_errno(struct attachment *attachment, uint64_t cookie, int r);
/* Answers a CANCEL of a job whose cancellation was requested before. */
/* Whether the client may cancel the job. */
bool attachment_may_cancel(const struct attachment *attachment, const struct job *job);
int attachment_refuse_second_cancel(struct attachment *attachment, uint64_t cookie);

/* Answer a CANCEL and a WITHDRAW of a job that was found; NULL = there is no such job. Return 0,
 * ENDPOINT_E_FULL, or -errno, as do the functions for other records below. */
int attachment_cancel_job(struct attachment *attachment, uint64_t cookie, struct job *job);
int attachment_withdraw_job(struct attachment *attachment, uint64_t cookie, struct job *job);

/* Makes the actor of this name, "@3". */
int attachment_new_actor(struct attachment *attachment, const char *name);

/* ---- attachment-hold.c ---- */

/* Has the keeper hold the attachment, while the descriptors of its memories are open. Best effort.
 */
void attachment_hold(struct attachment *attachment);

/* ---- attachment-submit.c ---- */

/* As struct endpoint_handler's record(). */
int attachment_on_submit(struct attachment *attachment, const struct ring_record *record);

/* Drops the state of the SUBMIT that waited, once its record is consumed. */
void attachment_forget_submit(struct attachment *attachment);

/* Reads the waiting record again. */
void attachment_on_turn(struct cell_waiter *waiter);

/* Answers a SUBMIT that is refused with CELL_E_* or -errno. */
int attachment_refuse_submit(struct attachment *attachment, uint64_t cookie, int r);
int attachment_answer_accepted(struct attachment *attachment, uint64_t cookie,
                               const struct job *job, bool existing);

/* ---- attachment-save.c ---- */

/* After an upgrade: for the end of a job, and of one whose result is not kept. */
int attachment_watch_again(struct attachment *attachment, uint64_t cookie, struct job *job);
int attachment_watch_own_job(struct attachment *attachment, uint64_t cookie, struct job *job);

/* ---- attachment-search.c ---- */

/* A job that is looked for. */
struct search {
    struct job_lookup lookup;
    struct list link; /* among the attachment's searches */
    struct attachment *attachment;
    struct protocol_id id;
    uint64_t cookie;
    enum attachment_wait wait;
};

/* Finds the job of a record, now or when it was read from disk, and answers. Returns 0, or
 * ENDPOINT_E_FULL. */
int attachment_find_job(struct attachment *attachment, const struct protocol_by_id *wanted,
                        enum attachment_wait wait);
/* Like attachment_find_job(), but for a record that the former supervisor has consumed. Returns 0
 * or -ENOMEM. */
int attachment_search(struct attachment *attachment, const struct protocol_by_id *wanted,
                      enum attachment_wait wait);

/* Drops those whose client does not need the answer any more; with `all` also those of jobs that
 * are to be cancelled. */
void attachment_drop_searches(struct attachment *attachment, bool all);

/* ---- attachment-waiter.c ---- */

/* As struct endpoint_handler's record(). */
int attachment_on_watch(struct attachment *attachment, const struct ring_record *record);

/* For a WAIT. */
int attachment_watch_job(struct attachment *attachment, uint64_t cookie, struct job *job);

/* Whether the client, or all of its user, must not wait for a further job. */
bool attachment_waits_for_many(const struct attachment *attachment);

/* Adds a waiter on a live job. */
void attachment_wait(struct attachment *attachment, struct job_waiter *waiter,
                     enum attachment_wait wait);
/* Its changed(). */
void attachment_on_change(struct job_waiter *waiter, struct job *job);

/* Removes at most `max` waiters; the jobs continue. Returns whether none is left. */
bool attachment_drop_waiters(struct attachment *attachment, size_t max);
/* Removes those that an upgrade saves: for the ends of jobs. */
void attachment_drop_saved(struct attachment *attachment);
