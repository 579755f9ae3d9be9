/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The memory that parsing takes. jansson does not check one of its allocations (lex_save()): where
 * it fails, text is lost and the parser runs past the end of what is left. So none ever fails: when
 * memory has run out, a parse goes on in a reserve and its outcome is thrown away.
 */

#include <stdbool.h>

/* Before the first parse; idempotent. 0 or -ENOMEM. */
int varlink_memory_init(void);

/* Around a parse of at most VARLINK_MESSAGE_MAX bytes and VARLINK_VALUES_MAX values. */
void varlink_memory_begin(void);

/* Whether the reserve was touched: nothing that was parsed may be kept then. */
bool varlink_memory_ran_out(void);
