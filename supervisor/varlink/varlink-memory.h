/* SPDX-License-Identifier: MIT */
#pragma once

/* Memory for the JSON parser. jansson does not check one of its allocations, in lex_save(): if that
 * fails, the parser reads past the end of its buffer. Therefore no allocation fails here: when out
 * of memory, a parse continues in a reserve and its result is discarded. */

#include <stdbool.h>

/* Before the first parse; idempotent. 0 or -ENOMEM. */
int varlink_memory_init(void);

/* Around a parse of at most VARLINK_MESSAGE_MAX bytes and VARLINK_VALUES_MAX values. */
void varlink_memory_begin(void);

/* Whether the reserve was used: then discard the result. */
bool varlink_memory_ran_out(void);
