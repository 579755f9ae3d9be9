/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads durable jobs from disk: the storage thread copies their rows, the loop uses the copies. */

#include "shared/protocol/job-id.h"
#include "supervisor/channel/payload.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/store.h"

/* A copy of a row, whose texts are terminated. row.payload is unset: the bytes are in `payload`. */
struct loaded_job {
    struct list link; /* the owner's */
    struct job_row row;
    struct payload payload;
    struct checkpoint *checkpoint; /* NULL = none */
    const char *damaged;           /* what cannot be used of it; static; NULL = nothing */
    bool is_newer;                 /* an upgrade has handed `checkpoint` over: disk lacks it */
    char texts[];                  /* of the row */
};

struct loaded_job *loaded_job_free(struct loaded_job *job); /* NULL allowed; returns NULL */

struct job_load_entry {
    int64_t number;
    bool mark;              /* for the caller */
    struct loaded_job *job; /* NULL = there is no such row, or it was not read */
};

enum job_load_kind {
    LOAD_NUMBERS, /* the rows of jobs with the numbers in `entries` */
    LOAD_ID,      /* the row of the job with `id`, or `has_result` */
    LOAD_JOBS,    /* the next rows of jobs, without payloads */
    LOAD_ALL,     /* likewise, and those of kept results */
    LOAD_RESULTS, /* the next rows of kept results */
    LOAD_LETTERS, /* the next rows of dead letters */
    LOAD_TIES,    /* the next rows of job_rows_scan_ties(): `after_key` says which */
};

struct job_load {
    struct store_task task; /* its done() is the caller's */
    uint64_t bytes_max;     /* of payloads; at least one row is read */
    void *owner;            /* for the caller */
    enum job_load_kind kind;
    struct protocol_id id;
    int64_t after, after_key; /* the next rows follow these: as of job_rows_scan_ends() */
    bool more;                /* further rows may follow */
    bool has_result;          /* the job has ended, and its result is kept */
    size_t n_read;            /* the first `n_read` rows were looked up */
    uint64_t bytes;           /* of their payloads */
    /* The payload of the first row, while its pieces are read. NULL = no pieces are being read.
     * Such a row is always the first, because rows before it could change in between. */
    void *mapped;
    uint64_t done;
    int fd;
    size_t n;
    struct job_load_entry entries[];
};

/* How many rows a client's query reads at a time: that takes about as long as a sync. */
#define JOB_LOAD_QUERY_MAX 128

/* Makes room for `n` numbers, which the caller fills in, with done() and `bytes_max`, before it
 * adds the task. done() frees the load. NULL when out of memory. */
struct job_load *job_load_new(size_t n);
/* Call it when the owner ends: frees the load, or leaves it to done(), which then finds no owner.
 */
void job_load_leave(struct job_load *load, struct store *store);
/* NULL allowed; returns NULL. */
struct job_load *job_load_free(struct job_load *load);

static inline struct job_load *job_load_of(struct store_task *task)
{
    return list_entry(task, struct job_load, task);
}
