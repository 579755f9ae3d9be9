/* SPDX-License-Identifier: MIT */
#pragma once

/* The durable jobs of a cell that wait only on disk, as the numbers of their rows: by priority, 0
 * first, then first in, first out. A number takes eight bytes; each operation takes constant
 * time. */

#include "shared/base/list.h"
#include "supervisor/job/queue.h"
#include <stdbool.h>
#include <stdint.h>

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

/* Removes the next number and returns it. The queue must not be empty. */
int64_t disk_queue_pop(struct disk_queue *queue);
