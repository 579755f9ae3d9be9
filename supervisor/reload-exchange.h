/* SPDX-License-Identifier: MIT */
#pragma once

/* Exchanges declared by files, at the start and after a reload. 0 or -errno each. */

#include "supervisor/config/config.h"
#include "supervisor/parts.h"
#include "supervisor/reload.h"

/* A name that a group still has, or an exchange that was made from outside, is a problem. */
int reload_check_names(struct parts *parts, const struct config *config,
                       struct config_problems *problems);

/* Files come first: who has one of their names at run time loses it, which the log says. */
void reload_take_names(struct parts *parts, const struct config *config);

/* Ends those whose file is gone: before groups are taken, which may want the name. */
int reload_remove_exchanges(struct parts *parts, const char *directory, const struct config *config,
                            struct reload_call *call);

/* Makes those that are not there, changes the others: after the groups. */
int reload_take_exchanges(struct parts *parts, const struct config *config,
                          struct reload_changes *changes);
