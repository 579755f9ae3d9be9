/* SPDX-License-Identifier: MIT */
#pragma once

/* The bytes of a holding: this head, the name with its NUL, the owner's data. Private to holding.c
 * and held.c. The layout never changes; data has a version of its own. */

#include "supervisor/keeper/message.h"
#include "supervisor/process/holding.h"

struct holding_head {
    uint16_t kind;
    uint16_t version;
};

_Static_assert(sizeof(struct holding_head) + HOLDING_NAME_MAX + 1 + HOLDING_DATA_MAX <=
                   HOLD_BYTES_MAX,
               "bytes of a holding fit a message");
_Static_assert(HOLDING_FDS_MAX <= HOLD_FDS_MAX, "descriptors of a holding fit a message");
