/* SPDX-License-Identifier: MIT */

/* Takes back the jobs that an adopted worker has in hand: its inbox has a table of them. */

#include "supervisor/job/job.h"
#include "supervisor/pool/slot/slot-private.h"

static struct memory_header *header_of(const struct slot *slot)
{
    return slot->worker.endpoint.channel.mine.header;
}

/* Whether the worker can see its JOB record. An entry whose record was not published is at most a
 * ring's length ahead. */
static bool is_published(const struct slot *slot, const struct memory_job *entry)
{
    const struct ring_producer *out = &slot->worker.endpoint.channel.out;

    return entry->cursor - out->tail - 1 >= out->size;
}

/* Returns which of the entries `left` was assigned first. Cursors wrap around. */
static unsigned find_oldest(const struct slot *slot, uint64_t left)
{
    const uint32_t tail = slot->worker.endpoint.channel.out.tail;
    const struct memory_job *jobs = header_of(slot)->jobs;
    unsigned oldest = (unsigned)__builtin_ctzll(left);

    for (left &= left - 1; left != 0; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);

        if (tail - jobs[i].cursor > tail - jobs[oldest].cursor)
            oldest = i;
    }
    return oldest;
}

static bool resume(struct slot *slot, unsigned i)
{
    const struct memory_job *entry = &header_of(slot)->jobs[i];
    const struct job_page *page = (const struct job_page *)(const void *)entry->kept;
    struct job *job =
        is_published(slot, entry) ? slot->pool->handler->job_resumed(slot->pool, page) : NULL;

    if (!job)
        return false;
    job->slot = slot;
    job->hand = (uint8_t)i;
    list_push_back(&slot->jobs, &job->link);
    slot->n_jobs++;
    return true;
}

void slot_hand_resume(struct slot *slot)
{
    uint64_t hands = atomic_load_explicit(&header_of(slot)->hands, memory_order_relaxed);

    for (uint64_t left = hands; left != 0;) {
        const unsigned i = find_oldest(slot, left);
        const uint64_t bit = UINT64_C(1) << i;

        left &= ~bit;
        if (!resume(slot, i))
            hands &= ~bit;
    }
    atomic_store_explicit(&header_of(slot)->hands, hands, memory_order_relaxed);
}
