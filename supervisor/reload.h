/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reading the configuration again: the difference between what runs and what the files say now.
 */

#include "config.h"
#include "context.h"

/*
 * Loads `directory` and applies the difference: new groups are started, changed ones reconfigured,
 * missing ones drained; untouched ones are not touched. `*config` is replaced unless loading
 * failed. 0; CONFIG_E_INVALID (logged, in `problems`) or an -errno of loading: nothing has changed;
 * or -ENOMEM half-way: what was not reached is reached by the next reload.
 */
int reload(struct context *context, const char *directory, struct config **config,
           struct reload_changes *ret, struct config_problems *problems);

void reload_changes_deinit(struct reload_changes *changes);

/* A group from its configuration, registered, and pending until order_start(). Takes `config` over.
 * 0 or -errno. */
int reload_add_group(struct context *context, struct config_group *config);

/* One line each. */
void reload_log_problems(const struct config_problems *problems);
