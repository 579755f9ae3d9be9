/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/crashes.h"
#include "shared/base/fault.h"
#include <string.h>

/* A supervisor that crashes in safe mode too is started again after growing pauses. */
#define DELAY_FIRST USEC_PER_SEC
#define DELAY_MAX   (30 * USEC_PER_SEC)

usec_t crashes_add(struct crashes *crashes, usec_t now)
{
    usec_t *oldest = &crashes->at[crashes->n++ % CRASHES_MAX];
    const usec_t earlier = crashes->at[crashes->n % CRASHES_MAX];
    *oldest = now;
    if (crashes->safe_mode) {
        crashes->delay = crashes->delay == 0 ? DELAY_FIRST : 2 * crashes->delay;
        if (crashes->delay > DELAY_MAX)
            crashes->delay = DELAY_MAX;
    }
    if (earlier != 0 && usec_sub(now, earlier) <= CRASHES_WITHIN && fault_inject("safe-mode") == 0)
        crashes->safe_mode = true;
    return usec_add(now, crashes->delay);
}

void crashes_forgive(struct crashes *crashes)
{
    memset(crashes->at, 0, sizeof(crashes->at));
    crashes->safe_mode = false;
    crashes->delay = 0;
}
