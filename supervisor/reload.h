/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reading the configuration again: the difference between what runs and what the files say now.
 * First the files are read, then the name service is asked, which may take a while, then everything
 * is applied at once.
 */

#include "supervisor/config/config.h"
#include "supervisor/config/names.h"
#include "supervisor/context.h"

/* What a reload did; vectors of group names. */
struct reload_changes {
    config_strv added, removed, changed;
};

/* One reload that somebody asked for, and what came of it. */
struct reload_call {
    struct list link; /* in the line of those that wait, the one under way first */
    bool partial;     /* takes what is right, and leaves what has a problem as it is */
    bool allow_empty; /* no group left is what is wanted */
    bool log;         /* nobody else is told of the problems */
    void (*done)(struct reload_call *call); /* once; it may deinit and free the call */
    /* 0; CONFIG_E_INVALID with problems (nothing has changed); or -errno. */
    int result;
    struct reload_changes changes;
    struct config_problems problems; /* why it was refused; of a partial one, what was left out */
    struct config_problems faults;   /* what is missing on this machine; see group-fault.h */
};

void reload_call_init(struct reload_call *call, void (*done)(struct reload_call *call));
void reload_call_deinit(struct reload_call *call);

/*
 * Reads `directory`, and checks it against what runs. 0 with `*ret`, CONFIG_E_INVALID (in the
 * call's problems), or -errno.
 */
int reload_read(struct context *context, const char *directory, struct reload_call *call,
                struct config **ret);

/*
 * Applies the difference between `*config` and `loaded`: new groups are started, changed ones
 * reconfigured, missing ones drained, untouched ones not touched. `*config` is replaced. 0, or
 * -ENOMEM half-way: what was not reached is reached by the next reload.
 */
int reload_apply(struct context *context, const char *directory, struct config **config,
                 struct config *loaded, struct reload_call *call);

/* The file NAME.SUFFIX is there, and has a problem: a partial reload leaves what it says as it is.
 */
bool reload_is_left_out(const struct reload_call *call, const char *directory, const char *name,
                        const char *suffix);

/* Takes every group out of `config` and registers it, pending until order_start(). 0 or -errno. */
int reload_add_groups(struct context *context, struct config *config);

/* One line each. */
void reload_log_problems(const struct config_problems *problems);
