/* SPDX-License-Identifier: MIT */
#pragma once

/* A queue of tasks that are slow or come by the thousand: requests of clients, starts of
 * processes, reports of deaths. Each turn of the loop runs queued tasks for about a millisecond,
 * and each task at most once; the rest follows in the next turns.
 *
 * First come, first served, except that a task that was slow the last time goes behind those that
 * were not. One slow task runs in every turn, so they do not starve. A prompt queue makes no such
 * exception. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>

#define WORK_QUEUE_BUDGET USEC_PER_MSEC       /* of a turn; the last task may exceed it */
#define WORK_QUEUE_SLOW   (USEC_PER_MSEC / 4) /* a task that takes longer is slow */

struct task;

struct work_queue {
    struct loop *loop;
    struct list tasks, slow_tasks; /* that wait */
    struct task *running;          /* NULL = none, or cancelled during its call */
    struct loop_deferred turn;
    usec_t filled_at; /* loop_now() when the first of the waiting tasks was queued */
    usec_t turn_at;   /* loop_now() of the turn that `spent` belongs to */
    usec_t spent;
    bool held;
    bool prompt; /* tasks run in their order, and in the turn in which they were queued */
};

/* Embedded in its owner, which cancels it before it is freed. */
struct task {
    struct list link; /* while queued */
    struct work_queue *queue;
    usec_t ran_at; /* loop_now() of its last run */
    bool slow;     /* in its last run */
    void (*fn)(struct task *task);
};

void work_queue_init(struct work_queue *queue, struct loop *loop);
/* Queued tasks never run. */
void work_queue_deinit(struct work_queue *queue);

/* While held, the loop runs no task of the queue. */
void work_queue_hold(struct work_queue *queue, bool hold);

/* `fn` may cancel and free its task, and may queue it again. */
void task_init(struct task *task, struct work_queue *queue, void (*fn)(struct task *task));
/* Runs it in one of the next turns. Idempotent. */
void task_queue(struct task *task);
/* Runs it immediately if it was not slow and this turn's budget allows it; else queues it. */
void task_run(struct task *task);
/* Idempotent; allowed in its own function. */
void task_cancel(struct task *task);
