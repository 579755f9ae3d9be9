/* SPDX-License-Identifier: MIT */
#pragma once

/* Requests to reload the configuration and to upgrade the supervisor. The composition root executes
 * them. */

#include "shared/base/list.h"
#include "supervisor/config/config.h"
#include <stdbool.h>

/* The changes of a reload: vectors of group names. */
struct reload_changes {
    config_strv added, removed, changed;
};

/* One reload, and its outcome. */
struct reload_call {
    struct list link;                       /* in the queue; the running one is first */
    bool allow_empty;                       /* a configuration without groups is wanted */
    bool log;                               /* the problems are logged, as no client gets them */
    void (*done)(struct reload_call *call); /* called once; may deinit and free the call */
    /* 0; CONFIG_E_INVALID with problems (nothing has changed); or -errno. */
    int result;
    bool left_safe_mode;
    struct reload_changes changes;
    struct config_problems problems; /* why the reload failed */
    struct config_problems faults;   /* what is missing on this machine; see group-fault.h */
};

void reload_call_init(struct reload_call *call, void (*done)(struct reload_call *call));
void reload_call_deinit(struct reload_call *call);

struct upgrade_call {
    struct list link; /* while it waits */
    /* Called once if the upgrade fails before anything has changed. After success the call ends
     * with the supervisor. May free the call. */
    void (*failed)(struct upgrade_call *call, const char *reason);
};
