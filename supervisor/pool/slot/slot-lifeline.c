/* SPDX-License-Identifier: MIT */
/*
 * An early hint of a death: the kernel marks a word in the worker's memory when its thread ends,
 * before it tears down the process. Retries and the report wait for the end of the process. A
 * worker that does not end soon is killed; if it marked the word itself, that is a violation.
 */

#include "supervisor/pool/slot/slot-private.h"
#include <linux/futex.h>

/* From the mark to the kill. Most deaths are proven by then, without a look at /proc. */
#define LOST_GRACE (10 * USEC_PER_MSEC)

/* From the mark to the end of a small process. */
#define LOST_USEC 300

static bool slot_owner_died(const struct slot *slot)
{
    /* Partner: the kernel's store; the worker may store anything. */
    uint32_t word = atomic_load_explicit(&slot->worker.endpoint.channel.theirs.header->owner,
                                         memory_order_relaxed);

    return (word & FUTEX_OWNER_DIED) != 0;
}

static void slot_tell_lost(struct slot *slot)
{
    const struct job *job = slot->n_jobs > 0 ? slot_job_at_work(slot) : NULL;
    const bool in_hand = job && job->started;
    char id[PROTOCOL_ID_TEXT] = "";

    if (in_hand)
        job_format_id(job, id);
    slot_tell(slot,
              (struct event){
                  .level = LOG_LEVEL_DEBUG,
                  .type = "worker.lost",
                  .job = in_hand ? id : NULL,
              },
              "is dying%s%s", in_hand ? ", in hand: job " : "", id);
}

static void slot_on_owner(void *userdata, uint32_t events)
{
    struct slot *slot = userdata;

    if (!slot_owner_died(slot))
        return;
    endpoint_catch_up(&slot->worker.endpoint); /* earlier answers count */
    if (!slot_is_up(slot))
        return;
    slot_tell_lost(slot);
    slot_event(slot, LIFECYCLE_EVENT_LOST);
    slot->pool->slot_handler->dying(slot);
    slot->worker.lifeline = LIFELINE_LOST;
    slot_arm(slot, LOST_GRACE);
    slot_prepare_successor(slot);
    /* A spare that has taken over needs the CPU, and nothing waits for the end of the process. */
    if (!slot->retired)
        loop_stay_awake(slot_context(slot)->loop, usec_add(slot_now(slot), LOST_USEC));
}

void slot_prove_lost(struct slot *slot)
{
    /* The keeper and the successor need the CPU. Others that are dying just cost a wake-up. */
    if (slot->worker.lifeline == LIFELINE_LOST)
        loop_stay_awake(slot_context(slot)->loop, 0);
}

void slot_judge_lost(struct slot *slot)
{
    if (slot->worker.lifeline == LIFELINE_LOST)
        slot->worker.lifeline =
            process_is_exiting(&slot->worker.process) ? LIFELINE_HELD : LIFELINE_FEIGNED;
}

void slot_watch_owner(struct slot *slot)
{
    const _Atomic uint32_t *owner = &slot->worker.endpoint.channel.theirs.header->owner;
    /* Partner: lifeline_hold(), before the worker was ready. */
    uint32_t held = atomic_load_explicit(owner, memory_order_relaxed);

    if (slot->worker.endpoint.channel.backend != WAKE_FUTEX || !(held & FUTEX_WAITERS) ||
        (held & FUTEX_TID_MASK) == 0)
        return;
    /* Best effort: without memory the death is noticed later. */
    (void)loop_watch_word(slot_context(slot)->loop, &slot->worker.owner_watch, owner, held,
                          slot_on_owner, slot);
}
