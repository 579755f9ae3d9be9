/* SPDX-License-Identifier: MIT */
#pragma once

/* NAME.exchange files: declared exchanges. Groups and exchanges share one namespace. */

#include "supervisor/config/config.h"

#define CONFIG_EXCHANGE_SUFFIX ".exchange"

/*
 * Reads a file. Errors in it become problems. Returns 0 with `*ret` (NULL for an invalid name), or
 * -errno (-ENOENT).
 */
int config_read_exchange(const char *path, struct config_problems *problems,
                         struct config_exchange **ret);

struct config_exchange *config_exchange_free(struct config_exchange *exchange); /* NULL allowed */

/* NULL if there is none of that name. */
const struct config_exchange *config_find_exchange(const struct config *config, const char *name);
