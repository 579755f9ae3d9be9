/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/work-queue.h"

static bool is_empty(const struct work_queue *queue)
{
    return list_empty(&queue->tasks) && list_empty(&queue->slow_tasks);
}

static bool has_budget(struct work_queue *queue)
{
    const usec_t now = loop_now(queue->loop);

    if (queue->turn_at != now) {
        queue->turn_at = now;
        queue->spent = 0;
    }
    return queue->spent < WORK_QUEUE_BUDGET;
}

static void run(struct work_queue *queue, struct task *task)
{
    const usec_t began = clock_now();
    usec_t took;

    list_unlink(&task->link);
    task->ran_at = loop_now(queue->loop);
    queue->running = task;
    task->fn(task);
    took = usec_sub(clock_now(), began);
    queue->spent += took;
    if (queue->running == task)
        task->slow = took >= WORK_QUEUE_SLOW && !queue->prompt;
    queue->running = NULL;
}

/* Runs the first task unless it has already run in this turn. Returns whether it ran one. */
static bool run_first(struct work_queue *queue, struct list *tasks)
{
    struct task *task = list_first_entry(tasks, struct task, link);

    if (!task || task->ran_at == loop_now(queue->loop) || queue->held)
        return false;
    run(queue, task);
    return true;
}

static void work_queue_on_turn(struct loop_deferred *deferred)
{
    struct work_queue *queue = list_entry(deferred, struct work_queue, turn);

    /* Work queued in this turn waits for the next: subscribers first get the event that caused it.
     */
    if (queue->prompt || queue->filled_at != loop_now(queue->loop)) {
        while (has_budget(queue) && run_first(queue, &queue->tasks))
            ;
        do {
            if (!run_first(queue, &queue->slow_tasks))
                break;
        } while (has_budget(queue));
    }
    if (!queue->held && !is_empty(queue))
        loop_defer(queue->loop, &queue->turn);
}

void work_queue_init(struct work_queue *queue, struct loop *loop)
{
    *queue = (struct work_queue){.loop = loop};
    list_init(&queue->tasks);
    list_init(&queue->slow_tasks);
    loop_deferred_init(&queue->turn, work_queue_on_turn);
}

void work_queue_deinit(struct work_queue *queue)
{
    loop_undefer(&queue->turn);
}

void work_queue_hold(struct work_queue *queue, bool hold)
{
    if (queue->held && !hold && !is_empty(queue))
        loop_defer(queue->loop, &queue->turn);
    queue->held = hold;
}

void task_init(struct task *task, struct work_queue *queue, void (*fn)(struct task *task))
{
    *task = (struct task){.queue = queue, .fn = fn};
    list_init(&task->link);
}

void task_queue(struct task *task)
{
    struct work_queue *queue = task->queue;

    if (list_linked(&task->link))
        return;
    if (is_empty(queue))
        queue->filled_at = loop_now(queue->loop);
    list_push_back(task->slow ? &queue->slow_tasks : &queue->tasks, &task->link);
    loop_defer(queue->loop, &queue->turn);
}

void task_run(struct task *task)
{
    /* Not within another task: its time would count for both. */
    if (!task->slow && !task->queue->running && has_budget(task->queue))
        run(task->queue, task);
    else
        task_queue(task);
}

void task_cancel(struct task *task)
{
    list_unlink(&task->link);
    if (task->queue->running == task)
        task->queue->running = NULL;
}
