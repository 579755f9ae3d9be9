/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether the workers of a slot work. A worker has proven itself when it has handled a job or a
 * message, or has been up for ResetAfterSec=. A slot whose workers die one after the other without
 * that is failing, also while the next one is up.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/timer.h"
#include "supervisor/process/backoff.h"
#include <stdbool.h>
#include <stdint.h>

struct slot;

#define SLOT_FAILING 3u /* workers in a row that died unproven */

struct slot_health {
    unsigned n_failures;      /* workers in a row that died or were not started, unproven */
    usec_t since_at;          /* realtime, of the first of these; valid if n_failures > 0 */
    uint64_t consumed_before; /* messages that the actor had handled before this worker */
    bool at_work;             /* the last worker died with a job or message in hand */
    struct timer timer;       /* due when ResetAfterSec= proves the worker */
};

void slot_health_init(struct slot *slot);

/* The worker is up: ResetAfterSec= begins. */
void slot_health_watch(struct slot *slot);
/* The worker has worked, after failures. */
void slot_health_recover(struct slot *slot);
/* The worker is dead; called while its jobs in hand are still known. */
void slot_health_note_death(struct slot *slot);
/* Judges the worker that died or is dying. */
enum restart_death slot_health_judge(const struct slot *slot);
/* The worker died unproven, or could not be started. */
void slot_health_failed(struct slot *slot);
void slot_health_reset(struct slot *slot);
/* `to` takes the place of `from`. */
void slot_health_inherit(struct slot *to, const struct slot *from);

bool slot_is_failing(const struct slot *slot);

/* Whether the worker has a message in hand or waits for an answer for one; of a dead worker, until
 * its messages are recovered. */
bool slot_has_message_in_hand(const struct slot *slot);
