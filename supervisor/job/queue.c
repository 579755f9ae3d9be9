/* SPDX-License-Identifier: MIT */
#include "supervisor/job/queue.h"

#include "supervisor/job/job.h"
#include <assert.h>

#define job_of(node) list_entry(node, struct job, link)
#define BIT(band)    (UINT64_C(1) << (band))

_Static_assert(QUEUE_PRIORITIES <= 64, "one bit each");

void queue_init(struct queue *queue)
{
    *queue = (struct queue){0};
    for (unsigned i = 0; i < QUEUE_PRIORITIES; i++)
        list_init(&queue->bands[i]);
}

static struct list *queue_enter(struct queue *queue, struct job *job)
{
    assert(job->priority < QUEUE_PRIORITIES);
    assert(!list_linked(&job->link));
    queue->occupied |= BIT(job->priority);
    queue->n_jobs++;
    return &queue->bands[job->priority];
}

void queue_push_back(struct queue *queue, struct job *job)
{
    list_push_back(queue_enter(queue, job), &job->link);
}

void queue_push_front(struct queue *queue, struct job *job)
{
    list_push_front(queue_enter(queue, job), &job->link);
}

void queue_remove(struct queue *queue, struct job *job)
{
    list_unlink(&job->link);
    queue->n_jobs--;
    if (list_empty(&queue->bands[job->priority]))
        queue->occupied &= ~BIT(job->priority);
}

/* The first job of these bands. */
static struct job *first_of(const struct queue *queue, uint64_t bands)
{
    return bands == 0 ? NULL : job_of(list_first(&queue->bands[__builtin_ctzll(bands)]));
}

struct job *queue_first(const struct queue *queue)
{
    return first_of(queue, queue->occupied);
}

struct job *queue_next(const struct queue *queue, const struct job *job)
{
    const uint64_t later = queue->occupied & ~(BIT(job->priority) | (BIT(job->priority) - 1));

    return job->link.next == &queue->bands[job->priority] ? first_of(queue, later)
                                                          : job_of(job->link.next);
}

struct job *queue_last(const struct queue *queue)
{
    return queue->occupied == 0 ? NULL
                                : job_of(queue->bands[63 - __builtin_clzll(queue->occupied)].prev);
}

/* A delayed job begins to wait when its alarm goes off. */
static usec_t waits_since(const struct job *job)
{
    const usec_t due = job->put_off && job->timers ? alarm_realtime(&job->timers->alarm) : 0;

    return due > job->created_at ? due : job->created_at;
}

usec_t queue_oldest(const struct queue *queue)
{
    usec_t oldest = 0;

    for (uint64_t bands = queue->occupied; bands != 0; bands &= bands - 1) {
        const usec_t since = waits_since(first_of(queue, bands));

        if (oldest == 0 || since < oldest)
            oldest = since;
    }
    return oldest;
}
