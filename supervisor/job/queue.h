/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The jobs of a cell that wait for a worker, in the order in which they are handed out: by
 * priority, 0 first, and first in, first out among equals. One list per priority and a bitmap of
 * those that hold something, so every operation costs the same however many jobs there are.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include <stdint.h>

struct job;

#define QUEUE_PRIORITIES       64 /* 0 (most urgent) … 63 */
#define QUEUE_PRIORITY_DEFAULT 32

struct queue {
    struct list bands[QUEUE_PRIORITIES]; /* struct job.link */
    uint64_t occupied;                   /* bit N = bands[N] is not empty */
    uint64_t n_jobs;
};

void queue_init(struct queue *queue);

/* A job that is in no list, behind or before all others of its priority, which stays as it is. */
void queue_push_back(struct queue *queue, struct job *job);
void queue_push_front(struct queue *queue, struct job *job);

/* A job that is in this queue. */
void queue_remove(struct queue *queue, struct job *job);

/* Whose turn it is; NULL when empty. */
struct job *queue_first(const struct queue *queue);

/* The earliest creation (realtime) among those that are next in their priority; 0 = empty. */
usec_t queue_oldest(const struct queue *queue);
