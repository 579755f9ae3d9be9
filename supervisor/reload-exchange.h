/* SPDX-License-Identifier: MIT */
#pragma once

/* Applies the exchanges that files declare, at the start and after a reload. All return 0 or
 * -errno. */

#include "supervisor/config/config.h"
#include "supervisor/parts.h"
#include "supervisor/reload.h"

/* Adds a problem for each name that a group still has, and for groups named as an exchange. */
int reload_check_names(struct parts *parts, const struct config *config,
                       struct config_problems *problems);

/* Takes the names that files declare from actors that have them at run time; logged. */
void reload_take_names(struct parts *parts, const struct config *config);

/* Ends exchanges whose file is gone. Call before adding groups, which may want the name. */
int reload_remove_exchanges(struct parts *parts, const struct config *config,
                            struct reload_changes *changes);

/* Makes missing exchanges, and changes the others. Call after adding groups. */
int reload_take_exchanges(struct parts *parts, const struct config *config,
                          struct reload_changes *changes);
