/* SPDX-License-Identifier: MIT */
#include "supervisor/context.h"

const char *context_state_to_string(enum context_state state)
{
    static const char *const STATES[] = {
        [CONTEXT_STARTING] = "starting",
        [CONTEXT_RUNNING] = "running",
        [CONTEXT_RELOADING] = "reloading",
        [CONTEXT_STOPPING] = "stopping",
    };

    return STATES[state];
}
