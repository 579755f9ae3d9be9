/* SPDX-License-Identifier: MIT */
#pragma once

/* What reading NAME.exchange, NAME.schedule and NAME.limit has in common: each file becomes a
 * struct that begins with its name and its path, `char *` both. */

#include <stdbool.h>
#include <stddef.h>

struct config_draft;
struct config_problems;
struct config_schema;

struct config_file_kind {
    const struct config_schema *schema;
    const char *suffix, *noun; /* "a limit" */
    size_t size;               /* of the struct */
    unsigned name_max;
    /* Checks what was read, and may take the draft over. `sound`: there is no problem so far.
     * Returns 0 or -errno. NULL = nothing is to be checked. */
    int (*check)(void *file, struct config_draft **draft, bool sound);
    void (*clear)(void *file); /* frees what the schema does not know; NULL = nothing */
};

/* Reads a file into `ret`, a pointer to a pointer to the struct. Errors in it become problems.
 * Returns 0 with that (NULL for an invalid name), or -errno (-ENOENT). */
int config_file_read(const struct config_file_kind *kind, const char *path,
                     struct config_problems *problems, void *ret);
void *config_file_free(const struct config_file_kind *kind, void *file); /* NULL allowed */
