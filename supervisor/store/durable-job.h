/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The row of a durable job, as the loop knows it. Changes are noted here and written by the store;
 * those that come before the store has begun to write are merged. A job that ends before it was
 * written, and of which nothing is kept, is never written at all.
 */

#include "supervisor/job/job.h"
#include "supervisor/store/ended-attempts.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/names-on-disk.h"
#include "supervisor/store/store.h"
#include "supervisor/succession/waiting-room.h"
#include <stdbool.h>

struct job_waiter;

/* Which parts are written; bits. */
enum durable_change {
    DURABLE_ADD = 1 << 0,
    DURABLE_UPDATE = 1 << 1, /* its attempts, its state, or the request to cancel it */
    DURABLE_END = 1 << 2,
    DURABLE_MOVE = 1 << 3,       /* its group and its priority; with DURABLE_UPDATE */
    DURABLE_HAND = 1 << 4,       /* its next attempt may begin; with DURABLE_UPDATE */
    DURABLE_CHECKPOINT = 1 << 5, /* with DURABLE_UPDATE */
    DURABLE_CLOSE = 1 << 6,      /* the batch is closed; with DURABLE_UPDATE */
};

/* What stays of a job that has ended; bits. */
enum durable_rest {
    DURABLE_RESULT = 1 << 0,
    DURABLE_LETTER = 1 << 1,
    DURABLE_BYTES = 1 << 2, /* with DURABLE_RESULT: the bytes of the result are also written */
    DURABLE_FATE = 1 << 3,  /* how it has ended, for jobs that wait for it */
    DURABLE_COUNT = 1 << 4, /* it is counted in its batch */
};

/* One for the supervisor. */
struct durable_jobs {
    struct store *store; /* NULL = there is none */
    uint8_t *opened;     /* as of struct store_options */
    struct job_table *jobs;
    struct list unread; /* struct durable_job.unread_link */
    struct ended_attempts attempts;
    struct names_on_disk names;
    struct names_on_disk unique;    /* struct unique_id as a name */
    struct waiting_room *inherited; /* message_context.inherited */
    bool restores;                  /* rows are being read */
    bool takes;                     /* some that were read are still to be taken */
    bool known;                     /* rows have been read, or cannot be */
    struct list queries;            /* struct store_task.link: they wait until `known` */
    bool letters_unread;            /* dead letters are still to be read */
    bool unreadable;                /* no row is read any more: the store is unusable */
    bool incomplete; /* rows were left out: a job that is not in memory may be on disk */
    /*
     * Called when changes of a live job have been written, or could not be (`result`: see struct
     * store_task). A failure also takes back all that was noted since, but not the end.
     */
    void (*written)(struct job *job, unsigned changes, int result);
    unsigned n_busy; /* jobs of which the store has changes */
    /* Called when n_busy falls to 0. */
    void (*idle)(struct durable_jobs *jobs);
};

/* Whether it is not known yet which jobs are on disk. Then a task may not find a job that is there,
 * even if the store has finished the task. */
static inline bool durable_jobs_are_unread(const struct durable_jobs *jobs)
{
    return jobs->restores || store_state(jobs->store) == STORE_OPENING;
}

/* Whether the answer of a query to the store is final. Otherwise it is to be asked again later: see
 * durable_jobs_ask_later(). */
static inline bool durable_jobs_are_known(const struct durable_jobs *jobs)
{
    return jobs->known && !jobs->restores;
}
/* Adds a query again once the jobs on disk are known. Its done() follows. */
static inline void durable_jobs_ask_later(struct durable_jobs *jobs, struct store_task *query)
{
    list_push_back(&jobs->queries, &query->link);
}
/* Adds all these queries: the jobs on disk are known, or never will be. */
void durable_jobs_ask(struct durable_jobs *jobs);
/* The store has failed: ends impatient ones of these queries with -EIO. */
void durable_jobs_refuse(struct durable_jobs *jobs);

/*
 * Learns whether the jobs of a cell end so soon that it pays to hold their additions: then one
 * commit has both addition and end. Valid when zeroed. Private to durable-job.c.
 */
struct durable_hold {
    int credit;        /* holds that paid, less those that did not; bounded */
    unsigned n_passed; /* additions that were not held since the last that was */
};

struct durable_job {
    struct job_record record;
    struct durable_jobs *jobs;
    struct store_task task;
    const char *group;  /* borrowed */
    struct job_row row; /* what the store writes */
    struct payload
        payload; /* the bytes that the store writes: the job's own, unless `owns_payload` */
    bool owns_payload;
    struct checkpoint *checkpoint; /* that the store writes; a reference */
    unsigned given;                /* changes that the store has */
    unsigned noted;                /* changes that it gets when it has written those */
    bool hurries;                  /* somebody waits for what is noted */
    struct durable_hold *hold;     /* of which the addition is held; NULL = it is not */
    bool stored;                   /* the row is on disk */
    uint32_t allows;               /* job_row_allows() of that; 1 = it is new */
    bool ended;                    /* as `end`, which clients do not see yet */
    enum job_state end;            /* valid if `ended`, as are the next two */
    unsigned keeps;                /* enum durable_rest */
    int unkept; /* why the result, or the payload of the dead letter, could not be written, -errno;
                   0 = it was, or need not be. The thread's until done() */
    uint64_t letter;           /* id of its dead letter */
    bool leaves;               /* memory, once all is written */
    struct store_task *joined; /* is applied with the addition; NULL = none */
    int64_t replaces; /* row of the dead letter that goes when this one is added; 0 = none */
    int64_t cancels;  /* row of the job that is to be cancelled when this one is added; 0 = none */
    struct kept_attempt *kept; /* the end of an attempt, until it is written; NULL = none */
    struct list unread_link;   /* linked = its row has not been read: its end waits for that */
    struct list answers;       /* struct job_waiter.link: called when `given` is written */
    struct list later;         /* the same for `noted` */
};

static inline struct durable_job *durable_of(const struct job *job)
{
    return list_entry(job->record, struct durable_job, record);
}

/* Makes a new job durable: gives it a number, and an id unless its submitter has chosen one. The
 * store has been open before. `group` is borrowed as long as the job has a record. `replaces`: the
 * row of a dead letter that goes when the job is written; 0 = none. Returns 0 or -ENOMEM. */
int durable_job_new(struct durable_jobs *jobs, struct job *job, const char *group,
                    int64_t replaces);
/* Like durable_job_new(), but for a row that was read from disk. */
int durable_job_take(struct durable_jobs *jobs, struct job *job, const char *group, int64_t number);

/* Like durable_job_take(), but for a job that has ended, and whose result was read. */
int durable_job_take_result(struct durable_jobs *jobs, struct job *job, const char *group,
                            int64_t number);

/* Like durable_job_take(), but for a job that a worker of the last supervisor has in hand, and that
 * has its id. The end of such a job is not written before its row has been read. */
int durable_job_adopt(struct durable_jobs *jobs, struct job *job, const char *group,
                      int64_t number);
static inline bool durable_job_is_unread(const struct job *job)
{
    return list_linked(&durable_of(job)->unread_link);
}
/* The row of an adopted job has been read into it, or there is none. `keeps`: see
 * durable_job_end(). */
void durable_job_found(struct job *job, unsigned keeps);
/* The job leaves memory. If its row has not been read yet, reading it decides what becomes of it.
 */
void durable_job_leave(struct job *job);
/* The store is closed: reports ends that cannot be written, and ends queries that wait. */
void durable_jobs_close(struct durable_jobs *jobs);

/* Finds the job of a row, if it is in memory. Returns NULL if it is not. */
struct job *durable_job_find(const struct durable_jobs *jobs, const struct job_row *row);

/* Notes that a complete job is to be added. `hold` is its cell's; NULL = it does not begin now. */
void durable_job_add(struct job *job, struct durable_hold *hold);

/* Has the task applied in the transaction that adds the job, whose addition was noted in this turn.
 * done() follows written(), with the same result; it gets 0 if the job ends without being written.
 */
void durable_job_join(struct job *job, struct store_task *task);

/* The job is about to drop its payload: the store may still read it. */
void durable_job_take_payload(struct job *job);

/* Notes that the job has changed. `lazy`: no caller waits for it. */
void durable_job_update(struct job *job, bool lazy);

/* Notes that the job has a new checkpoint. */
void durable_job_checkpoint(struct job *job);

/* Notes that the batch is closed. */
void durable_job_close(struct job *job);

/* Whether a worker may get the job before its row is written again. */
static inline bool durable_job_may_begin(const struct job *job)
{
    return job->attempt < durable_of(job)->allows;
}
/* If not: notes that a worker is about to get it. written() follows. */
void durable_job_hand(struct job *job);

/* Like durable_job_update(), but the job, whose row is on disk, is now in this group, or has
 * another priority. */
void durable_job_move(struct job *job, const char *group);

/* Notes the end of a job whose outcome is in `job`; its state follows when it is told. `keeps` are
 * bits of enum durable_rest; `letter` is the id of its dead letter. Returns false if nothing is to
 * be written: it may be told immediately. */
bool durable_job_end(struct job *job, enum job_state end, unsigned keeps, uint64_t letter);

/* The attempt is about to end: until that is written, the next supervisor finds the end in memory.
 * `counts`: the attempt counts as a failed one. */
void durable_job_keep_attempt(struct job *job, bool counts);
/* The row of the job was read. Returns how many failed attempts are kept in memory only, and sets
 * the job's number of the last attempt that has ended. */
uint32_t durable_job_missed_ends(struct job *job, const struct job_row *row);
/* Like durable_job_missed_ends(), but for a job that a worker has in hand: the job counts them. */
void durable_job_join_ends(struct job *job, const struct job_row *row);

/* The number of its row. */
static inline int64_t durable_job_number(const struct job *job)
{
    return durable_of(job)->row.number;
}

/* Whether all that is known of it is on disk. */
static inline bool durable_job_is_stored(const struct job *job)
{
    return durable_of(job)->stored && (durable_of(job)->given | durable_of(job)->noted) == 0;
}

/* Whether writing the row may find out that the job exists: a job on disk that is not in memory may
 * have the chosen id. */
static inline bool durable_job_may_exist(const struct job *job)
{
    return job->name && !durable_of(job)->stored;
}

/* Whether the job was accepted: it is on disk, or needs not be. Otherwise it is being written. */
static inline bool durable_job_is_known(const struct job *job)
{
    return durable_of(job)->stored || job_ended(job) ||
           (durable_of(job)->given | durable_of(job)->noted) == 0;
}

/* Whether its end has been noted, and is not told yet. */
static inline bool durable_job_is_ending(const struct job *job)
{
    return durable_of(job)->ended;
}

/* Whether nothing more happens to it but writing. */
static inline bool durable_job_is_settled(const struct job *job)
{
    return durable_of(job)->ended || durable_of(job)->leaves;
}

/* Returns why the end of the job was written without its result, -errno; 0 = with its result. */
static inline int durable_job_unkept(const struct job *job)
{
    return durable_of(job)->keeps & DURABLE_BYTES ? durable_of(job)->unkept : 0;
}

/* Whether the store may be using the name of its group. */
static inline bool durable_job_is_moving(const struct job *job)
{
    return (durable_of(job)->given & (DURABLE_ADD | DURABLE_MOVE)) != 0;
}

/* Whether changes are to be written. */
static inline bool durable_job_is_busy(const struct job *job)
{
    return (durable_of(job)->given | durable_of(job)->noted) != 0;
}

/* Calls a waiter of the job once, instead of for each change: when all that was noted has been
 * written, or the job has ended. */
void durable_job_await(struct job *job, struct job_waiter *waiter);
/* Calls those whose changes have been written. */
void durable_job_answer(struct job *job);
/* Calls all: the job has ended. */
void durable_job_answer_all(struct job *job);

/* Implements struct job_table.free_record. Frees the record of a job that is not busy, and removes
 * its result from disk, unless only memory is short (job.forgotten). Other rows stay, and keep
 * other jobs from taking their ids. */
void durable_job_free(struct job *job);

/* The store_task.apply of a durable job (durable-job-write.c): writes what is `given`. */
int durable_write(struct store_task *task, struct database *database);
