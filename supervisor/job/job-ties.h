/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Dependencies between jobs. A child waits for the ends of its parents: an edge leads from the one
 * to the other. A batch is a job without a worker, which waits for the ends of its members.
 *
 *     edge    undecided ── the parent ends as the condition asks ──→ decided
 *                       └─ it ends otherwise ──→ the child is cancelled
 *     child   waits while it has undecided edges
 *     batch   open ── it is closed ──→ closed ── it has no live member ──→ ended
 *
 * A fate is all that other jobs know of a job: whether it has ended, and how. It counts the live
 * jobs that are tied to it, in memory or on disk, and outlives the memory of its own job as long as
 * there are any. A job that ends drops its edges; a text of what they were stays for reports.
 *
 * Ends are decided in a deferred function, within a budget per turn. Ends that follow from these
 * are decided there too, without recursion. At a start, durable jobs are counted before any is
 * read.
 */

#include "supervisor/job/job.h"
#include "supervisor/job/tie-list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The members of a batch. Those that have ended are also counted in its row. */
struct batch_tally {
    uint64_t live, succeeded, failed;
    bool open; /* it has not been closed */
};

struct job_fate {
    struct index_entry by_key; /* in job_ties_table.by_key, unless the key is 0 */
    struct list link;          /* in job_ties_table.all or .unclaimed */
    struct list due;           /* in job_ties_table.due */
    int64_t key;               /* 0 = none: it cannot be found */
    struct job *job;           /* NULL = not in memory */
    struct list children;      /* struct job_edge.of_parent: undecided, of jobs in memory */
    uint64_t n_children;       /* edges of live jobs */
    struct batch_tally tally;
    bool is_batch;
    bool held;   /* it is being decided: not freed */
    bool seen;   /* by ties_circle() */
    uint8_t end; /* enum job_state; 0 = it is live */
    char id[];   /* terminated */
};

struct job_edge {
    struct list of_parent; /* in its `children`, while undecided */
    struct job_fate *parent;
    struct job *child;
    uint8_t condition; /* enum tie_condition */
};

struct job_ties {
    struct job_fate *fate;  /* for others; NULL = none is tied to it */
    struct job_fate *batch; /* of which it is a live member; NULL = none */
    char *text;             /* of tie_list_write(); NULL = not written */
    bool counted;           /* by its parents and its batch */
    unsigned n, n_undecided;
    struct job_edge edges[]; /* to its parents, until it has ended */
};

/* Calls to the cells. */
struct job_ties_handler {
    void (*released)(struct job *job); /* all parents have ended as the conditions ask */
    /* This parent has ended otherwise. */
    void (*doomed)(struct job *job, const struct job_fate *parent);
    void (*complete)(struct job *job); /* a closed batch whose members have ended */
    /* A job has ended, and no live job is its child any more. It may not be in memory. */
    void (*unneeded)(struct job_table *table, const struct job_fate *fate);
};

void job_ties_init(struct job_ties_table *ties);
/* All jobs have been freed. */
void job_ties_deinit(struct job_ties_table *ties);

static inline struct job_ties *job_own_ties(const struct job *job)
{
    return job->rare ? job->rare->ties : NULL;
}
static inline struct job_fate *job_own_fate(const struct job *job)
{
    return job->rare && job->rare->ties ? job->rare->ties->fate : NULL;
}
/* Whether live jobs wait, or have waited, for the job: its result is kept for them. */
static inline bool job_has_children(const struct job *job)
{
    return job_own_fate(job) && job_own_fate(job)->n_children > 0;
}
static inline bool job_is_batch(const struct job *job)
{
    return job_own_fate(job) && job_own_fate(job)->is_batch;
}
/* Whether a live job waits, or has waited, for `parent`. */
bool ties_wait_for(const struct job *job, const struct job *parent);
/* Whether the job may not begin: it waits for others, or is a batch. */
static inline bool job_waits_for_others(const struct job *job)
{
    return job_own_ties(job) && (job->rare->ties->n_undecided > 0 || job_is_batch(job));
}

/* ---- new jobs ---- */

#define TIES_CIRCLE_MAX 1000u
/* Returns whether a job of the list waits for the batch, perhaps through others: a member of the
 * batch that waits for the list would then wait for itself. Looks at TIES_CIRCLE_MAX edges at most:
 * a longer circle is not found. */
bool ties_circle(struct job_fate *batch, const struct tie_list *list);
/* Ties a job that is new, or is restored, to what the list names by ids and keys. Returns 0 or
 * -ENOMEM: the job keeps what it has got until it is freed. */
int ties_add(struct job_table *table, struct job *job, const struct tie_list *list);
/* Makes a job that is new, or is restored, a batch. Its live members are counted already. Returns 0
 * or -ENOMEM. */
int ties_make_batch(struct job_table *table, struct job *job, int64_t key,
                    const struct batch_tally *tally);
/* The job is accepted: the jobs that it is tied to count it from now on, or already since
 * ties_expect() if it was `expected`. */
void ties_count(struct job *job, bool expected);

/* From now on only its members can add members to the batch. Returns whether it was open. */
bool ties_close_batch(struct job_table *table, struct job *job);
/* The job begins to wait for others. A batch may already be closed and have no live member: then it
 * ends soon. */
void ties_review(struct job_table *table, struct job *job);

/* ---- ends ---- */

/* The job has ended in its state, or was not accepted after all. */
void ties_end(struct job_table *table, struct job *job);
/* The job leaves memory. If it has not ended, it counts as one on disk. */
void ties_leave(struct job_table *table, struct job *job);

/* Fills in what the job is tied to, or was until it ended. */
void ties_list(const struct job_ties *ties, struct tie_list *ret);
/* Writes that into job_ties.text, if the job has not ended. Returns 0, or -ENOMEM: the former
 * text stays. */
int ties_write(struct job_ties *ties);
/* Gives a job that has ended, and that is restored, such a text. Best effort. */
void ties_recall(struct job *job, const char *text, size_t size);

/* ---- succession ---- */

/* Counts a live job that is not in memory yet, by what it is tied to. Returns 0 or -ENOMEM: it does
 * not count. */
int ties_expect(struct job_table *table, const struct tie_list *list);
/* Notes how a job that is not in memory has ended. Returns whether a live job is its child. */
bool ties_expect_end(struct job_table *table, int64_t key, enum job_state end);
/* Whether all parents have ended as the list asks. */
bool ties_hold(const struct job_table *table, const struct tie_list *list);
/* The job with the key waits on disk: it is not unknown. */
void ties_found(struct job_table *table, int64_t key);
/* Gives a job that is restored its fate, if live jobs are tied to it. Returns 0 or -ENOMEM. */
int ties_claim(struct job_table *table, struct job *job, int64_t key);
/* All jobs have been restored: those that are still unknown count as cancelled. Returns how many
 * these are. */
size_t ties_settle(struct job_table *table, bool durable);
