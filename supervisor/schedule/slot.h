/* SPDX-License-Identifier: MIT */
#pragma once

/* Slots: the seconds at which a schedule creates a job. The job's id is NAME@TIME, with the time in
 * UTC: "nightly@2026-11-22T02:00:00Z". */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

/* The last second whose year has four digits. */
#define SLOT_MAX INT64_C(253402300799)

/* Writes the id of a slot's job into PROTOCOL_ID_TEXT bytes. Returns `id`. */
char *slot_format_id(const char *schedule, int64_t slot, char *id);

/* How much later than its time a slot is fired: less than `range`, and always the same. */
usec_t slot_jitter(const char *schedule, int64_t slot, usec_t range);

/* What became of a slot. */
enum slot_outcome {
    SLOT_FIRED,
    SLOT_SKIPPED, /* because a job of the schedule was live, or on request */
    SLOT_MISSED,  /* nothing could fire it in time, and CatchUp= does not ask for it */
    SLOT_PAUSED,
    SLOT_REFUSED, /* by the group */
    _SLOT_N_OUTCOMES,
};
/* "fired" and so on; static. */
const char *slot_outcome_to_string(enum slot_outcome outcome);

/* Why it had this outcome. On disk: add new ones at the end. */
enum slot_cause {
    SLOT_CAUSE_NONE,
    SLOT_CAUSE_RUN,      /* fired on request, not by the clock */
    SLOT_CAUSE_LATE,     /* fired by CatchUp= */
    SLOT_CAUSE_OVERLAP,  /* a job of the schedule was live */
    SLOT_CAUSE_REPLACED, /* it waited, and a later slot took its place */
    SLOT_CAUSE_REQUEST,  /* skipped on request */
    SLOT_CAUSE_CHANGED,  /* the schedule's times have changed */
    SLOT_CAUSE_NO_GROUP,
    SLOT_CAUSE_MEMORY,
    SLOT_CAUSE_BUSY,
    SLOT_CAUSE_TOO_LARGE,
    SLOT_CAUSE_STOPPING,
    SLOT_CAUSE_DRAINING,
    SLOT_CAUSE_KEY,
    SLOT_CAUSE_CELLS,
    SLOT_CAUSE_STORE_FULL,
    SLOT_CAUSE_STORE_FAILED,
    SLOT_CAUSE_FILE,
    SLOT_CAUSE_LOST, /* everything ended at once while it was being fired */
    SLOT_CAUSE_TAKEN,
    _SLOT_N_CAUSES,
};
/* Returns a clause; NULL = none is needed. Static. */
const char *slot_cause_to_string(enum slot_cause cause);
/* Returns the cause for what group_submit() has returned, which is not 0. */
enum slot_cause slot_cause_of(int refusal);

/* A decided slot in 64 bits, and back. 0 = none. */
struct decided_slot {
    int64_t time;
    enum slot_outcome outcome;
    enum slot_cause cause;
};
int64_t slot_pack(const struct decided_slot *slot);
/* Returns false for none, and for damage. */
bool slot_unpack(int64_t packed, struct decided_slot *ret);
