/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Limits of routing keys: part of cell-limit.h. A key has one while jobs of it run, or are set
 * aside, or its bucket is not empty. The jobs that it holds return to their cell's queue one by
 * one: the next one once the last has left the queue.
 */

#include "supervisor/group/cell/cell-limit.h"

struct limit_key {
    struct limit limit;
    struct limit_waiter waiter; /* for its next job, or to be forgotten */
    struct limits *limits;
    struct index_entry by_key;
    struct list all_link; /* in limits.all, or limits.changed */
    struct list link;     /* in cell.lines while it holds jobs, in limits.idle while it has none */
    struct queue *held;   /* jobs set aside; NULL = none */
    struct cell *cell;    /* theirs */
    uint32_t change;      /* limits.n_changes as of its bounds */
    bool returned;        /* a job of it has returned to the queue */
    bool idle;            /* no job has its key, but its bucket is not empty */
    uint8_t key_size;
    char key[];
};

/* Begins without keys. limit_keys_deinit() frees them. */
void limit_keys_init(struct limits *limits);
void limit_keys_deinit(struct limits *limits);
/* The bounds of keys have changed. They take effect at once; keys with waiting jobs are looked at
 * in later turns. */
void limit_keys_change(struct limits *limits);

/* See limits_review(), limits_begin() and limits_end(), which is called only for jobs that are
 * counted: job->limited. */
enum limit_verdict limit_keys_review(struct limits *limits, struct cell *cell, struct job *job);
int limit_keys_begin(struct limits *limits, struct job *job, bool counts);
void limit_keys_end(struct limits *limits, struct job *job, bool counted);
/* Returns NULL unless jobs of the key run or wait, or its bucket is not empty. */
struct limit_key *limit_keys_find(const struct limits *limits, const char *text, size_t size);
/* Returns a copy of the key's limit, or of the one that it would get, without its line. Without a
 * key (size 0) it has no bounds. */
struct limit limit_keys_look(const struct limits *limits, const char *text, size_t size);
