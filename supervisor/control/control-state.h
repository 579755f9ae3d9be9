/* SPDX-License-Identifier: MIT */
#pragma once

/* The state of the supervisor as GetInfo reports it. */

enum control_state {
    CONTROL_STARTING,
    CONTROL_RUNNING,
    CONTROL_RELOADING,
    CONTROL_STOPPING,
};
