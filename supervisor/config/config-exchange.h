/* SPDX-License-Identifier: MIT */
#pragma once

/* NAME.exchange files: declared exchanges. Groups and exchanges share one namespace. */

#include "supervisor/config/config.h"

#define CONFIG_EXCHANGE_SUFFIX ".exchange"

/*
 * Loads a directory's exchanges into `config`, after its groups. Errors, also a name that a group
 * has, become problems. Returns 0 or -errno.
 */
int config_load_exchanges(struct config *config, const char *directory,
                          struct config_problems *problems);

/* One file by itself. 0 or -errno (-ENOENT). */
int config_verify_exchange(const char *path, struct config_problems *problems);

struct config_exchange *config_exchange_free(struct config_exchange *exchange); /* NULL allowed */

/* NULL if there is none of that name. */
const struct config_exchange *config_find_exchange(const struct config *config, const char *name);
