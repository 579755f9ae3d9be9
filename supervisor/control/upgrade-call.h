/* SPDX-License-Identifier: MIT */
#pragma once

/* One request to upgrade the supervisor. The composition root executes it. */

#include "shared/base/list.h"

struct upgrade_call {
    struct list link; /* while it waits */
    /* Called once if the upgrade fails before anything has changed. After success the call ends
     * with the supervisor. May free the call. */
    void (*failed)(struct upgrade_call *call, const char *reason);
};
