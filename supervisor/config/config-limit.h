/* SPDX-License-Identifier: MIT */
#pragma once

/* The contents of NAME.limit. troupe.limit(5) has the meaning of the keys. */

#include "supervisor/config/config-group.h"
#include <stdbool.h>

struct config;
struct config_problems;

#define CONFIG_LIMIT_SUFFIX ".limit"

struct config_limit {
    char *name; /* the file's name without ".limit": as of an exchange */
    char *path;
    bool broken; /* its file has a mistake */

    /* [Limit] */
    char *description;
    struct config_bounds bounds;
};

/* Reads a file. Errors in it become problems. Returns 0 with `*ret` (NULL for an invalid name), or
 * -errno (-ENOENT). */
int config_read_limit(const char *path, struct config_problems *problems,
                      struct config_limit **ret);
struct config_limit *config_limit_free(struct config_limit *limit); /* NULL allowed */

/* NULL if there is none of that name. */
const struct config_limit *config_find_limit(const struct config *config, const char *name);
