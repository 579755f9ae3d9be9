/* SPDX-License-Identifier: MIT */
/* What the census counts a slot as. */

#include "supervisor/pool/slot/slot-private.h"

/* Nothing waits for the first workers of keyed pools, which come and go with their jobs. */
static bool slot_is_undecided(const struct slot *slot)
{
    bool first = *slot->pool->key == '\0' &&
                 (slot->generation == slot->born ||
                  (slot->generation == slot->born + 1 && slot->state == LIFECYCLE_STARTING));

    return slot->wanted && first;
}

static bool slot_never_gets_ready(const struct slot *slot)
{
    return slot->state == LIFECYCLE_STARTING && slot->last_death &&
           slot->last_death->cause == DEATH_START_TIMEOUT;
}

static unsigned slot_traits(const struct slot *slot)
{
    const bool failed = slot->state == LIFECYCLE_FAILED, member = slot->role == SLOT_MEMBER;
    const bool wanted = slot->wanted || slot->restart_asked;
    const bool has[_CENSUS_N_TRAITS] = {
        [CENSUS_SLOT] = true,
        [CENSUS_DOWN] = slot_is_down(slot),
        [CENSUS_FAILED] = failed,
        [CENSUS_TROUBLE] = failed || slot->state == LIFECYCLE_BACKOFF ||
                           slot_never_gets_ready(slot) || slot_is_failing(slot),
        [CENSUS_MEMBER] = member,
        [CENSUS_UP] = member && slot_is_up(slot),
        [CENSUS_WANTED] = member && wanted,
        [CENSUS_UNWANTED] = member && !wanted && !slot->retired,
        [CENSUS_UNDECIDED] = member && slot_is_undecided(slot),
    };
    unsigned traits = 0;

    for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++)
        traits |= (unsigned)has[i] << i;
    return traits;
}

static void slot_set_traits(struct slot *slot, unsigned traits)
{
    if (traits == slot->traits)
        return;
    census_move(&slot->pool->census, slot->traits, traits);
    slot->traits = traits;
    if (census_down(&slot->pool->census))
        slot->pool->handler->down(slot->pool);
}

void slot_count(struct slot *slot)
{
    slot_set_traits(slot, slot_traits(slot));
}

void slot_uncount(struct slot *slot)
{
    slot_set_traits(slot, 0);
}
