/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/slot-save.h"

#include "supervisor/event/death-save.h"
#include "supervisor/pool/slot/slot-private.h"

void slot_put(struct saved_writer *row, const struct slot *slot)
{
    saved_put_number(row, slot->generation);
    saved_put_number(row, slot->worker.jobs_done);
    saved_put_number(row, slot->state);
    saved_put_number(row, slot->since_at);
    death_put(row, slot->last_death);
}

void slot_get(struct saved_reader *row, struct slot *slot, const struct death_log *deaths)
{
    const bool same = saved_get_number(row) == slot->generation;
    const uint64_t jobs_done = saved_get_number(row);
    const bool same_state = saved_get_number(row) == slot->state;
    const usec_t since_at = saved_get_number(row);
    struct death *death = death_get(row, deaths);

    if (same && !row->damaged)
        slot->worker.jobs_done += jobs_done;
    if (same && same_state && !row->damaged)
        slot->since_at = since_at; /* the kept state has no pauses between jobs */
    if (slot->last_death)          /* it has died since */
        death_unref(death);
    else
        slot->last_death = death;
    slot_count(slot);
}
