/* SPDX-License-Identifier: MIT */
#pragma once

/* One request to read the configuration again, and its outcome. The composition root carries it
 * out. */

#include "shared/base/list.h"
#include "supervisor/config/config.h"
#include <stdbool.h>

/* What a reload did; vectors of group names. */
struct reload_changes {
    config_strv added, removed, changed;
};

struct reload_call {
    struct list link; /* in the queue of those that wait, the one under way first */
    bool partial;     /* takes what is right, and leaves what has a problem as it is */
    bool allow_empty; /* a configuration without groups is wanted */
    bool log;         /* the problems are logged; nobody else reports them */
    void (*done)(struct reload_call *call); /* called once; may deinit and free the call */
    /* 0; CONFIG_E_INVALID with problems (nothing has changed); or -errno. */
    int result;
    struct reload_changes changes;
    struct config_problems problems; /* why it was refused; of a partial one, what was left out */
    struct config_problems faults;   /* what is missing on this machine; see group-fault.h */
};

void reload_call_init(struct reload_call *call, void (*done)(struct reload_call *call));
void reload_call_deinit(struct reload_call *call);
