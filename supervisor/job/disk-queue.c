/* SPDX-License-Identifier: MIT */
#include "supervisor/job/disk-queue.h"

#include "shared/base/fault.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define BIT(band)      (UINT64_C(1) << (band))
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
        list_for_each_safe (node, &queue->bands[i])
            free(block_of(node));
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

int64_t disk_queue_pop(struct disk_queue *queue)
{
    const unsigned priority = disk_queue_priority(queue);
    struct block *block;
    int64_t number;

    assert(priority < QUEUE_PRIORITIES);
    block = block_of(list_first(&queue->bands[priority]));
    number = block->numbers[block->first++];
    if (block->first == block->end) {
        list_unlink(&block->link);
        free(block);
        if (list_empty(&queue->bands[priority]))
            queue->occupied &= ~BIT(priority);
    }
    return number;
}
