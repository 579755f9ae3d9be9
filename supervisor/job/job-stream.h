/* SPDX-License-Identifier: MIT */
#pragma once

/* A stream holds the items that a job emits while it runs, for clients that watch the job. Its size
 * is bounded: the oldest items are dropped first. Each submitter has a share of the group's bytes:
 * a flood of one user displaces only items of its own jobs. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "shared/base/share.h"
#include <stddef.h>
#include <stdint.h>

struct job;
struct record;
struct saver;

#define JOB_STREAM_MAX  ((size_t)64 << 10)   /* bytes of a job's items */
#define JOB_STREAMS_MAX ((uint64_t)16 << 20) /* of those of all jobs of a group */

struct job_item {
    struct list link; /* in the stream */
    usec_t at;        /* realtime, made unique: it also identifies the item within its job */
    uint32_t size;
    char bytes[];
};

struct job_stream {
    struct share *share; /* of its submitter in the set; NULL = in none any more */
    struct list link;    /* in the share's entries[0], while it has items */
    struct list items;   /* struct job_item.link, oldest first */
    struct list readers; /* struct job_reader.link */
    size_t bytes;
    usec_t last; /* of the newest item so far; 0 = none */
    uint64_t dropped;
};

/* The streams of a group. The submitter with the most items loses them first, from those of its
 * streams that were written least recently. */
struct job_streams {
    struct shares shares;
};

static inline uint64_t job_streams_bytes(const struct job_streams *set)
{
    return set->shares.used[0];
}

/* Told of new items. Belongs to its owner, who unlinks it before the job ends. */
struct job_reader {
    struct list link;
    void (*news)(struct job_reader *reader);
};

void job_streams_init(struct job_streams *set);
/* No live job and no kept result is left. */
void job_streams_deinit(struct job_streams *set);

/* Returns the job's stream, which is made if there is none; NULL = out of memory. */
struct job_stream *job_stream_of(struct job *job, struct job_streams *set);

/* Adds an item (copied) that was emitted at `at`, and tells the readers. Returns 0 or -ENOMEM. */
int job_stream_add(struct job *job, struct job_streams *set, usec_t at, const void *data,
                   size_t size);

/* Returns the first item later than `after`; NULL = none. */
const struct job_item *job_stream_after(const struct job *job, usec_t after);
/* Returns the item after that one; NULL = none. */
const struct job_item *job_stream_next(const struct job *job, const struct job_item *item);

/* The job belongs to another group now. Without memory, that happens with its next item. */
void job_stream_move(struct job *job, struct job_streams *set);

/* The job has no group any more: items are left only for clients that are still to be told of its
 * end. */
void job_stream_leave(struct job *job);
void job_stream_free(struct job *job);

/* An item in an upgrade. */
struct saved_item {
    uint64_t handle; /* of the job */
    usec_t at;
    uint64_t dropped;
    const char *data;
    uint32_t data_size;
};

extern const struct record SAVED_ITEM_RECORD;

void job_stream_save(const struct job *job, struct saver *saver);
