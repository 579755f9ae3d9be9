/* SPDX-License-Identifier: MIT */
#pragma once

/* The jobs of a cell that wait for a worker: by priority, 0 first, then first in, first out. A list
 * per priority and a bitmap of the non-empty ones, so each operation takes constant time. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include <stddef.h>
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

/* Insert a job that is in no list behind or before all others of its priority. */
void queue_push_back(struct queue *queue, struct job *job);
void queue_push_front(struct queue *queue, struct job *job);

/* Removes a job that is in this queue. */
void queue_remove(struct queue *queue, struct job *job);

/* Return the next and the last job; NULL when empty. */
struct job *queue_first(const struct queue *queue);
struct job *queue_last(const struct queue *queue);

/* Returns the job after one of this queue; NULL = it is the last. */
struct job *queue_next(const struct queue *queue, const struct job *job);

/* Returns the time (realtime) since which the oldest of the first jobs of each priority waits: its
 * creation, or its start time. 0 = empty. */
usec_t queue_oldest(const struct queue *queue);

/* The durable jobs of a cell that wait only on disk, as the numbers of their rows: by priority, 0
 * first, then first in, first out. A number takes eight bytes; each operation but the removal takes
 * constant time. */

struct disk_queue {
    struct list bands[QUEUE_PRIORITIES]; /* blocks of numbers */
    uint64_t occupied;                   /* bit N = bands[N] is not empty */
};

void disk_queue_init(struct disk_queue *queue);
void disk_queue_deinit(struct disk_queue *queue);

/* Insert a number behind or before all others of its priority. Return 0 or -ENOMEM. */
int disk_queue_push_back(struct disk_queue *queue, unsigned priority, int64_t number);
int disk_queue_push_front(struct disk_queue *queue, unsigned priority, int64_t number);

/* Moves all numbers of `more` behind those of the same priority. */
void disk_queue_append(struct disk_queue *queue, struct disk_queue *more);

/* Returns the priority of the next number; QUEUE_PRIORITIES = empty. */
static inline unsigned disk_queue_priority(const struct disk_queue *queue)
{
    return queue->occupied == 0 ? QUEUE_PRIORITIES : (unsigned)__builtin_ctzll(queue->occupied);
}

struct disk_number {
    int64_t number;
    unsigned priority;
};

/* Copies the next numbers, at most `max` of them, which stay in the queue. Returns how many. */
size_t disk_queue_peek(const struct disk_queue *queue, struct disk_number *ret, size_t max);
/* Removes a number, if the queue has it: it is searched from both ends of its priority. */
void disk_queue_remove(struct disk_queue *queue, const struct disk_number *number);
