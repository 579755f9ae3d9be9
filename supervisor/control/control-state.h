/* SPDX-License-Identifier: MIT */
#pragma once

/* The state of the supervisor as a whole, as GetInfo reports it. */

enum control_state {
    CONTROL_STARTING,
    CONTROL_RUNNING,
    CONTROL_RELOADING,
    CONTROL_STOPPING,
};
