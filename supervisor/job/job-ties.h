/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Dependencies between jobs. A child waits for the ends of its parents; an edge leads from the one
 * to the other. A batch is a job without a body: it waits for the ends of its members, which are
 * counted. The ties of a job are its edges and counts.
 *
 * Edges and counts are over live jobs: whatever ends a parent decides its edges. Children are
 * decided in a deferred function, within a budget per turn, and ends that follow from these are
 * decided there too: nothing recurs.
 *
 * Ties outlive the memory of a job as long as an edge leads to it, and those of jobs on disk are
 * restored before the jobs, which claim theirs when they come.
 */

#include "supervisor/job/job.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_PARENTS_MAX 64u

/* For which end of its parent a child waits. The values are stored. */
enum tie_condition {
    TIE_SUCCESS,
    TIE_FAILURE, /* any end but success */
    TIE_END,
    _TIE_N_CONDITIONS,
};

/* Returns the name that clients see; static. */
const char *tie_condition_to_string(enum tie_condition condition);

/* Identifies a job across an upgrade, and a durable one across runs. */
struct tie_key {
    uint64_t value; /* the number of a durable job's row, or the handle; 0 = none */
    bool durable;
};

struct job_edge {
    struct list of_parent; /* in its `children` until it is decided, then in its `decided` */
    struct job_ties *parent, *child;
    uint8_t condition; /* enum tie_condition */
    bool counted;      /* in the parent's `n_children` */
};

/* The counts of a batch. Those of a durable batch are also in the database. */
struct batch_tally {
    uint64_t live; /* members that have not ended */
    uint64_t succeeded, failed;
    bool open; /* it has not been closed */
};

struct job_ties {
    struct index_entry by_key; /* in job_ties_table.by_key, if it has a key */
    struct list link;          /* in job_ties_table.all, or .unclaimed */
    struct list due;           /* in job_ties_table.due */
    struct tie_key key;
    struct job *job;               /* NULL = not in memory */
    char *id;                      /* while the job is not in memory; NULL = not known */
    char *text;                    /* what it is tied to, as that is stored; NULL = nothing */
    uint8_t end;                   /* enum job_state, once it has ended; 0 = it is live */
    bool is_batch;                 /* `tally` counts its members */
    bool unclaimed;                /* restored, before its job: in job_ties_table.unclaimed */
    bool held;                     /* it is being decided: not freed */
    struct list children, decided; /* struct job_edge.of_parent */
    uint64_t n_children;           /* that have not ended */
    struct job_edge *edges;        /* to its parents */
    unsigned n_edges, n_undecided;
    const struct job_edge *broken; /* whose condition can no longer hold; NULL = none */
    struct job_ties *batch;        /* it is a member of that; NULL = of none */
    struct list in_batch;          /* in its `members` */
    struct list members;           /* struct job_ties.in_batch, of jobs in memory */
    struct batch_tally tally;
};

/* Calls to the cells. */
struct job_ties_handler {
    void (*released)(struct job *job); /* all parents have ended as it wished */
    void (*doomed)(struct job *job);   /* a parent has not */
    void (*complete)(struct job *job); /* a closed batch whose members have ended */
    /* No child waits any more for a job that has ended, which may not be in memory. */
    void (*unneeded)(struct job_table *table, const struct job_ties *ties);
};

/* One parent of a job that is submitted, or is restored. */
struct tie_parent {
    struct tie_key key;
    uint8_t condition;
    uint8_t end;     /* enum job_state if it has ended; 0 = it is live */
    struct job *job; /* NULL = not in memory */
    char id[PROTOCOL_ID_TEXT];
};

void job_ties_init(struct job_ties_table *ties);
/* All jobs have been freed. */
void job_ties_deinit(struct job_ties_table *ties);

static inline struct job_ties *job_own_ties(const struct job *job)
{
    return job->rare ? job->rare->ties : NULL;
}

static inline bool ties_wait(const struct job_ties *ties)
{
    return ties->n_undecided > 0 || ties->broken || ties->is_batch;
}
/* Whether the job may not begin: it waits for others, or is a batch. */
static inline bool job_waits_for_others(const struct job *job)
{
    return job->rare && job->rare->ties && ties_wait(job->rare->ties);
}
/* Whether live jobs wait, or have waited, for the job: its result is kept for them. */
static inline bool job_has_children(const struct job *job)
{
    return job->rare && job->rare->ties && job->rare->ties->n_children > 0;
}
static inline bool job_is_batch(const struct job *job)
{
    return job->rare && job->rare->ties && job->rare->ties->is_batch;
}
/* Whether the job, which waits on disk, must stay in memory. */
static inline bool job_has_edges(const struct job *job)
{
    return job->rare && job->rare->ties &&
           (job->rare->ties->n_edges > 0 || job->rare->ties->n_children > 0 ||
            job->rare->ties->is_batch);
}

/* Returns the id of the job with these ties, in `text` of PROTOCOL_ID_TEXT bytes. */
const char *ties_format_id(const struct job_ties *ties, char *text);

/* Writes the ids of the parents, separated by commas, into `ret` of PROTOCOL_AFTER_MAX bytes, not
 * terminated. Returns their size. */
uint32_t ties_list_parents(const struct job_ties *ties, char *ret);

/* Ties a new job to its parents, and to the batch that it joins (NULL = none). It is undecided
 * until ties_announce(). Returns 0 or -ENOMEM: the job keeps what it has got until it is freed. */
int ties_add(struct job_table *table, struct job *job, struct tie_key key,
             const struct tie_parent *parents, size_t n, struct job *batch,
             struct tie_key batch_key);
/* Makes a new job a batch, which is open. Returns 0 or -ENOMEM. */
int ties_make_batch(struct job_table *table, struct job *job, struct tie_key key);
/* The new job is accepted: decides what is known of its parents, later in this turn or the next. */
void ties_announce(struct job_table *table, struct job *job);

/* The batch takes no more members but those that its members add. Returns whether it was open. */
bool ties_close_batch(struct job_table *table, struct job *job);

/* The job begins to wait for others: a batch may have been closed, and its members have ended,
 * before that. */
void ties_review(struct job_table *table, struct job *job);

/* The job has ended in its state. */
void ties_end(struct job_table *table, struct job *job);
/* The job was not accepted after all. */
void ties_retract(struct job_table *table, struct job *job);
/* The job is freed. */
void ties_leave(struct job_table *table, struct job *job);

/* ---- succession ---- */

/* Returns the ties with that key; NULL = none. */
struct job_ties *ties_find(const struct job_table *table, struct tie_key key);
/* Writes what the job is tied to as text, which is kept in its ties: job_ties.text. Returns 0 or
 * -ENOMEM. */
int ties_write(struct job_ties *ties);
/* Restores the ties of a job that is not in memory yet from the text of ties_write(), unless that
 * was done before. `counts`: its batch counts it. Returns 0, -ENOMEM or -EBADMSG. */
int ties_restore(struct job_table *table, struct tie_key key, const char *text, size_t size,
                 bool counts);
/* Restores the tally of a batch likewise. */
int ties_restore_batch(struct job_table *table, struct tie_key key,
                       const struct batch_tally *tally);
/* Notes how a job that is not in memory has ended. Returns whether anybody waits for that. */
bool ties_restore_end(struct job_table *table, struct tie_key key, enum job_state end);
/* Gives a job that is restored its ties, if there are any, and the batch that the text names.
 * Returns 0 or -ENOMEM. */
int ties_claim(struct job_table *table, struct job *job, struct tie_key key, const char *text,
               size_t size);
/* All jobs have been restored: jobs that wait for unknown ones are ended. Returns how many are
 * unknown.
 */
size_t ties_settle(struct job_table *table, bool durable);
