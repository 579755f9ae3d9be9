/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between names.c (the table and the process) and names-ask.c. */

#include "supervisor/config/names/names.h"
#include <stdint.h>

/* Frees the result of a name. */
void names_clear(struct name *name);

/* Asks, and may block. Returns 0 with name.known, also if there is no such name, or -ENOMEM. */
int names_ask(struct name *name);

/* Packs a result (freed by the caller), and unpacks it. Return 0, -ENOMEM or -EBADMSG. */
int names_put(const struct name *name, char **ret, uint32_t *ret_size);
int names_get(struct name *name, const char *data, uint32_t size);
