/* SPDX-License-Identifier: MIT */
#pragma once

/* Reloads the configuration: reads the files, looks up users and groups, which may take a while,
 * then applies all differences in one turn of the loop. */

#include "supervisor/config/config.h"
#include "supervisor/control/service-change.h"
#include "supervisor/parts.h"

/* Refuses an empty configuration while workers of the last supervisor wait to be taken over: it
 * would end them. Returns 0, CONFIG_E_INVALID with a problem, or -ENOMEM. */
int reload_check_held(const struct parts *parts, const char *directory, const struct config *config,
                      struct config_problems *problems);

/* Reads `directory`, and checks it against what runs. Returns 0 with `*ret`, CONFIG_E_INVALID with
 * the call's problems, or -errno. */
int reload_read(struct parts *parts, const char *directory, struct reload_call *call,
                struct config **ret);

/* Closes the groups that `loaded` replaces by groups of another kind, whose files could not be read
 * before. Returns whether some of their jobs have not ended yet: call reload_apply() after that. */
bool reload_must_wait(const struct parts *parts, const struct config *loaded);

/* Starts new groups, reconfigures changed ones and removes those without a file. Replaces `*config`
 * by `loaded`. Returns 0, or -ENOMEM half-way: the next reload continues. */
int reload_apply(struct parts *parts, struct config **config, struct config *loaded,
                 struct reload_changes *changes);

/* Moves all groups out of `config` and registers them, pending until order_start(). Returns 0 or
 * -errno. */
int reload_add_groups(struct parts *parts, struct config *config);

/* Makes the exchanges that do not exist yet, and changes the others. Call after adding groups.
 * Returns 0 or -errno. */
int reload_take_exchanges(struct parts *parts, const struct config *config,
                          struct reload_changes *changes);

/* Logs one line per problem. */
void reload_log_problems(const struct config_problems *problems);
