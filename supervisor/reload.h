/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reading the configuration again: the difference between what runs and what the files say now.
 * First the files are read, then the name service is asked, which may take a while, then everything
 * is applied at once.
 */

#include "supervisor/config/config.h"
#include "supervisor/config/names/names.h"
#include "supervisor/control/reload-call.h"
#include "supervisor/parts.h"

/*
 * Reads `directory`, and checks it against what runs. 0 with `*ret`, CONFIG_E_INVALID (in the
 * call's problems), or -errno.
 */
int reload_read(struct parts *parts, const char *directory, struct reload_call *call,
                struct config **ret);

/*
 * Applies the difference between `*config` and `loaded`: new groups are started, changed ones
 * reconfigured, missing ones drained, untouched ones not touched. `*config` is replaced. 0, or
 * -ENOMEM half-way: what was not reached is reached by the next reload.
 */
int reload_apply(struct parts *parts, const char *directory, struct config **config,
                 struct config *loaded, struct reload_call *call);

/* The file NAME.SUFFIX is there, and has a problem: a partial reload leaves what it says as it is.
 */
bool reload_is_left_out(const struct reload_call *call, const char *directory, const char *name,
                        const char *suffix);

/* Takes every group out of `config` and registers it, pending until order_start(). 0 or -errno. */
int reload_add_groups(struct parts *parts, struct config *config);

/* One line each. */
void reload_log_problems(const struct config_problems *problems);
