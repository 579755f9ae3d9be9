/* SPDX-License-Identifier: MIT */
#include "supervisor/schedule/slot.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "shared/protocol/job-id.h"
#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/cell/refusal.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

char *slot_format_id(const char *schedule, int64_t slot, char *id)
{
    const time_t time = slot;
    char text[sizeof("2026-11-22T02:00:00Z")];
    struct tm tm;

    (void)gmtime_r(&time, &tm);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    (void)snprintf(id, PROTOCOL_ID_TEXT, "%s@%s", schedule, text);
    return id;
}

usec_t slot_jitter(const char *schedule, int64_t slot, usec_t range)
{
    char id[PROTOCOL_ID_TEXT];

    if (range == 0)
        return 0;
    (void)slot_format_id(schedule, slot, id);
    return hash_mix(digest_bytes(DIGEST_NONE, id, strlen(id))) % range;
}

const char *slot_outcome_to_string(enum slot_outcome outcome)
{
    static const char *const names[_SLOT_N_OUTCOMES] = {"fired", "skipped", "missed", "paused",
                                                        "refused"};

    return names[outcome];
}

/* ---- causes ---- */

/* A cause that is a refusal has the text of that. */
static const struct {
    const char *text;
    int refusal; /* CELL_E_*; 0 = none */
} CAUSES[_SLOT_N_CAUSES] = {
    [SLOT_CAUSE_RUN] = {"on request", 0},
    [SLOT_CAUSE_LATE] = {"late: CatchUp=", 0},
    [SLOT_CAUSE_OVERLAP] = {"a job of the schedule was live", 0},
    [SLOT_CAUSE_REPLACED] = {"a later slot took its place", 0},
    [SLOT_CAUSE_REQUEST] = {"on request", 0},
    [SLOT_CAUSE_CHANGED] = {"the schedule has changed", 0},
    [SLOT_CAUSE_NO_GROUP] = {"there is no such group, or it takes no jobs", 0},
    [SLOT_CAUSE_MEMORY] = {"out of memory", 0},
    [SLOT_CAUSE_BUSY] = {NULL, CELL_E_BUSY},
    [SLOT_CAUSE_TOO_LARGE] = {NULL, CELL_E_TOO_LARGE},
    [SLOT_CAUSE_STOPPING] = {NULL, CELL_E_STOPPING},
    [SLOT_CAUSE_DRAINING] = {NULL, CELL_E_DRAINING},
    [SLOT_CAUSE_KEY] = {NULL, CELL_E_BAD_KEY},
    [SLOT_CAUSE_CELLS] = {NULL, CELL_E_TOO_MANY},
    [SLOT_CAUSE_STORE_FULL] = {NULL, CELL_E_STORE_FULL},
    [SLOT_CAUSE_STORE_FAILED] = {NULL, CELL_E_STORE_FAILED},
    [SLOT_CAUSE_FILE] = {NULL, CELL_E_BAD_FILE},
    [SLOT_CAUSE_LOST] = {"its job was lost if it had not run", 0},
    [SLOT_CAUSE_TAKEN] = {NULL, CELL_E_TAKEN},
};

const char *slot_cause_to_string(enum slot_cause cause)
{
    return CAUSES[cause].refusal != 0 ? refusal_of(CAUSES[cause].refusal)->text
                                      : CAUSES[cause].text;
}

enum slot_cause slot_cause_of(int refusal)
{
    if (refusal == CELL_E_NO_KEY)
        return SLOT_CAUSE_KEY;
    if (refusal == CELL_E_EXISTING) /* the slot has no job of its own */
        return SLOT_CAUSE_TAKEN;
    for (size_t i = 0; refusal > 0 && i < ELEMENTS(CAUSES); i++)
        if (CAUSES[i].refusal == refusal)
            return (enum slot_cause)i;
    return refusal < 0 ? SLOT_CAUSE_MEMORY : SLOT_CAUSE_STORE_FAILED;
}

/* ---- decided slots ---- */

int64_t slot_pack(const struct decided_slot *slot)
{
    return slot->time << 16 | (int64_t)slot->cause << 8 | (int64_t)slot->outcome;
}

bool slot_unpack(int64_t packed, struct decided_slot *ret)
{
    const unsigned cause = (unsigned)(packed >> 8) & 0xff, outcome = (unsigned)packed & 0xff;

    if (packed <= 0 || packed >> 16 > SLOT_MAX || cause >= _SLOT_N_CAUSES ||
        outcome >= _SLOT_N_OUTCOMES)
        return false;
    *ret = (struct decided_slot){packed >> 16, (enum slot_outcome)outcome, (enum slot_cause)cause};
    return true;
}
