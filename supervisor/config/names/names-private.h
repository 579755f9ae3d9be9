/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between names.c, which has the table and the process, names-ask.c, which asks
 * the name service and packs what was found, and names-files.c, which looks at files.
 */

#include "supervisor/config/names/names.h"
#include <stdint.h>

/* Lets go of what is known of one. */
void names_clear(struct name *name);

/* Asks, and may block. 0 with name.known, also if there is none of that name; or -ENOMEM. */
int names_ask(struct name *name);
/* The same for one kind; name.known is the caller's affair. */
int names_ask_program(struct name *name);
int names_ask_directory(struct name *name);
int names_ask_file(struct name *name);

/* As bytes, the caller's to free; and back. 0, -ENOMEM, or -EBADMSG. */
int names_put(const struct name *name, char **ret, uint32_t *ret_size);
int names_get(struct name *name, const char *data, uint32_t size);
