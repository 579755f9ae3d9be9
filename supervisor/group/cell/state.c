/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/state.h"

#include "supervisor/pool/census.h"

enum state state_of(const struct census *census, bool paused)
{
    if (census->n[CENSUS_EMPTY] == census->n[CENSUS_PLACE])
        return census->n[CENSUS_FAILED] > 0 ? STATE_FAILED : STATE_STOPPED;
    if (census->n[CENSUS_WANTED] == 0)
        return STATE_STOPPING;
    if (census->n[CENSUS_TROUBLE] > 0 || census->n[CENSUS_UNWANTED] > 0)
        return STATE_DEGRADED;
    if (census->n[CENSUS_UP] < census->n[CENSUS_WANTED])
        return STATE_STARTING;
    return paused ? STATE_PAUSED : STATE_RUNNING;
}

const char *state_to_string(enum state state)
{
    static const char *const NAMES[] = {
        [STATE_RUNNING] = "running",   [STATE_PAUSED] = "paused",   [STATE_STARTING] = "starting",
        [STATE_DEGRADED] = "degraded", [STATE_FAILING] = "failing", [STATE_STOPPING] = "stopping",
        [STATE_STOPPED] = "stopped",   [STATE_FAILED] = "failed",   [STATE_DRAINING] = "draining",
        [STATE_RETIRING] = "retiring",
    };

    return NAMES[state];
}
