/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lookups for many groups with a fault at once: each costs a process, which with 1000 such groups
 * would be 1000 of them within a second. A group that comes due takes those along that come due
 * within the next half second, up to FAULT_BATCH_MAX.
 */

#include "shared/base/list.h"
#include "supervisor/config/names/lookup.h"
#include "supervisor/loop/timer.h"

/* Names are searched one after another, so that more would take too long at once. */
#define FAULT_BATCH_MAX   64
#define FAULT_BATCH_AHEAD (USEC_PER_SEC / 2)

/* One group's place; embedded, and zeroed before fault_batch_wait(). */
struct fault_place {
    struct list link;
    struct timer timer;
    struct fault_batch *batch; /* NULL = it is not in one */
    struct loop *loop;
    bool begun; /* its names are being looked up */
};

struct fault_batch {
    struct list idle, due, looked_up; /* struct fault_place.link */
    struct lookup lookup;
    bool busy;
    /* Adds the names of one. Returns 0 or -ENOMEM. */
    int (*want)(struct fault_place *place, struct names *names);
    /* One has been looked up, and left. `late`: a name, perhaps of another, had no answer in
     * time. The place may be freed, or wait again. */
    void (*done)(struct fault_place *place, const struct names *names, bool late);
};

void fault_batch_init(struct fault_batch *batch,
                      int (*want)(struct fault_place *place, struct names *names),
                      void (*done)(struct fault_place *place, const struct names *names,
                                   bool late));

/* Looks the place up at that time (monotonic) or a little earlier. Returns 0 or -ENOMEM. */
int fault_batch_wait(struct fault_batch *batch, struct fault_place *place, struct loop *loop,
                     usec_t at);

/* Leaves, at any time, also for a zeroed place. The last one to leave ends the lookup. */
void fault_batch_leave(struct fault_place *place);

/* Whether a name had no answer in time. */
bool fault_batch_is_late(const struct names *names);
