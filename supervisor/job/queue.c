/* SPDX-License-Identifier: MIT */
#include "supervisor/job/queue.h"

#include "shared/base/fault.h"
#include "supervisor/job/job.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    const usec_t due = job->put_off && job->pause ? alarm_realtime(&job->pause->alarm) : 0;

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

/* ---- on disk ---- */

#define BLOCK_NUMBERS  508 /* a block is a page */
#define block_of(node) list_entry(node, struct block, link)

struct block {
    struct list link;
    uint32_t first, end; /* numbers[first … end - 1] are used; never empty while linked */
    int64_t numbers[BLOCK_NUMBERS];
};

void disk_queue_init(struct disk_queue *queue)
{
    queue->occupied = 0;
    for (unsigned i = 0; i < QUEUE_PRIORITIES; i++)
        list_init(&queue->bands[i]);
}

void disk_queue_deinit(struct disk_queue *queue)
{
    for (unsigned i = 0; i < QUEUE_PRIORITIES; i++)
        list_for_each_entry_safe (block, &queue->bands[i], struct block, link)
            free(block);
    disk_queue_init(queue);
}

/* Makes an empty block that is filled from `first`. NULL when out of memory. */
static struct block *block_new(uint32_t first)
{
    struct block *block = fault_inject("alloc") < 0 ? NULL : malloc(sizeof(*block));

    if (block)
        block->first = block->end = first;
    return block;
}

int disk_queue_push_back(struct disk_queue *queue, unsigned priority, int64_t number)
{
    struct list *band = &queue->bands[priority];
    struct block *block = list_empty(band) ? NULL : block_of(band->prev);

    if (!block || block->end == BLOCK_NUMBERS) {
        block = block_new(0);
        if (!block)
            return -ENOMEM;
        list_push_back(band, &block->link);
    }
    block->numbers[block->end++] = number;
    queue->occupied |= BIT(priority);
    return 0;
}

int disk_queue_push_front(struct disk_queue *queue, unsigned priority, int64_t number)
{
    struct list *band = &queue->bands[priority];
    struct block *block = list_empty(band) ? NULL : block_of(band->next);

    if (!block || block->first == 0) {
        block = block_new(BLOCK_NUMBERS);
        if (!block)
            return -ENOMEM;
        list_push_front(band, &block->link);
    }
    block->numbers[--block->first] = number;
    queue->occupied |= BIT(priority);
    return 0;
}

void disk_queue_append(struct disk_queue *queue, struct disk_queue *more)
{
    for (unsigned i = 0; i < QUEUE_PRIORITIES; i++)
        list_append(&queue->bands[i], &more->bands[i]);
    queue->occupied |= more->occupied;
    more->occupied = 0;
}

size_t disk_queue_peek(const struct disk_queue *queue, struct disk_number *ret, size_t max)
{
    size_t n = 0;

    for (uint64_t bands = queue->occupied; bands != 0; bands &= bands - 1) {
        const unsigned priority = (unsigned)__builtin_ctzll(bands);

        list_for_each_entry (block, &queue->bands[priority], struct block, link) {
            for (uint32_t i = block->first; i < block->end; i++) {
                if (n == max)
                    return n;
                ret[n++] = (struct disk_number){block->numbers[i], priority};
            }
        }
    }
    return n;
}

/* Removes a number of a block, and the block if it is empty then. Those before it move up. */
static void remove_at(struct block *block, uint32_t index)
{
    int64_t *first = &block->numbers[block->first];

    memmove(first + 1, first, (index - block->first) * sizeof(*first));
    block->first++;
    if (block->first < block->end)
        return;
    list_unlink(&block->link);
    free(block);
}

/* Removes the number from the block, if it has it. */
static bool remove_from(struct list *node, int64_t number)
{
    struct block *block = block_of(node);

    for (uint32_t i = block->first; i < block->end; i++) {
        if (block->numbers[i] == number) {
            remove_at(block, i);
            return true;
        }
    }
    return false;
}

void disk_queue_remove(struct disk_queue *queue, const struct disk_number *number)
{
    struct list *band = &queue->bands[number->priority];
    struct list *first = band->next, *last = band->prev;

    while (first != band && !remove_from(first, number->number)) {
        struct list *next = first->next;

        if (first == last || remove_from(last, number->number) || next == last)
            break;
        first = next;
        last = last->prev;
    }
    if (list_empty(band))
        queue->occupied &= ~BIT(number->priority);
}
