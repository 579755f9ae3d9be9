/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether the worker of a slot does what it is there for. A worker has proven itself when it has
 * handled a job or a message, or has been up for ResetAfterSec=. A slot whose workers die one after
 * the other without that is failing. Both transitions are events; in between the slot counts as
 * trouble, also in the short moments in which the next worker is up.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/timer.h"
#include "supervisor/process/backoff.h"
#include <stdbool.h>
#include <stdint.h>

struct slot;

/* So many workers in a row are failing. */
#define SLOT_FAILING 3u

struct slot_health {
    unsigned n_failures;      /* workers in a row that died, or were not started, unproven */
    usec_t since_at;          /* realtime, of the first of these; valid if n_failures > 0 */
    uint64_t consumed_before; /* messages that its actor had handled before this worker */
    bool at_work;             /* the last worker died with a job or message in hand */
    struct timer timer;       /* due when ResetAfterSec= proves the worker */
};

void slot_health_init(struct slot *slot);
void slot_health_deinit(struct slot *slot);

/* A worker is about to be started. */
void slot_health_begin(struct slot *slot);

/* Its worker has come up, and is proven when ResetAfterSec= is over. */
void slot_health_watch(struct slot *slot);

/* Its worker has done some work after failures: the slot is not failing any more. */
void slot_health_recover(struct slot *slot);

/* Call before its worker is reaped, while the jobs in its hand are still known. */
void slot_health_note_death(struct slot *slot);

/* What the worker that just died, or is dying, had to show for itself. */
enum restart_death slot_health_judge(const struct slot *slot);

/* Its worker died unproven, or could not be started. */
void slot_health_failed(struct slot *slot);

/* Somebody has reset it: it begins anew. */
void slot_health_reset(struct slot *slot);

/* `to` takes the place of `from` in the pool. */
void slot_health_inherit(struct slot *to, const struct slot *from);

/* It keeps dying, and no worker has proven itself since. */
bool slot_is_failing(const struct slot *slot);

/* Its worker has a message in hand, or awaits something for one. Also of a dead worker, until its
 * messages are recovered. */
bool slot_has_message_in_hand(const struct slot *slot);
