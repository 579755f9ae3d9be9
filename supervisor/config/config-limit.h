/* SPDX-License-Identifier: MIT */
#pragma once

/* The contents of NAME.limit. troupe.limit(5) has the meaning of the keys. */

#include "supervisor/config/config-file.h"
#include "supervisor/config/config-group.h"

struct config_limit {
    CONFIG_FILE_MEMBERS

    /* [Limit] */
    char *description;
    struct config_bounds bounds;
};
