/* SPDX-License-Identifier: MIT */
#pragma once

/* NAME.exchange, NAME.schedule and NAME.limit, which are read in the same way: each file becomes a
 * struct that begins with CONFIG_FILE_MEMBERS. */

#include <stdbool.h>
#include <stddef.h>

struct config;
struct config_draft;
struct config_problems;
struct config_schema;

#define CONFIG_EXCHANGE_SUFFIX ".exchange"
#define CONFIG_SCHEDULE_SUFFIX ".schedule"
#define CONFIG_LIMIT_SUFFIX    ".limit"

enum config_kind {
    CONFIG_EXCHANGE,
    CONFIG_SCHEDULE,
    CONFIG_LIMIT,
    _CONFIG_N_KINDS,
};

struct config_file {
    char *name; /* without the suffix: like that of a group, but without '@' */
    char *path;
    bool broken; /* it has a mistake */
};
#define CONFIG_FILE_MEMBERS                                                                        \
    union {                                                                                        \
        struct config_file file;                                                                   \
        struct {                                                                                   \
            char *name, *path;                                                                     \
            bool broken;                                                                           \
        };                                                                                         \
    };

/* All files of a kind. */
struct config_files {
    void **all; /* struct config_exchange and so on; sorted by name */
    size_t n;
};

struct config_file_kind {
    const struct config_schema *schema;
    const char *suffix, *noun; /* "a limit" */
    size_t size;               /* of the struct */
    unsigned name_max;
    const char
        *clash; /* the end of the sentence for a group of that name; NULL = there may be one */
    /* Checks what was read, and may take the draft over. Returns 0 or -errno. May be NULL. */
    int (*check)(struct config_file *file, struct config_draft **draft);
    /* Frees the members that the schema does not have. May be NULL. */
    void (*clear)(struct config_file *file);
};
extern const struct config_file_kind CONFIG_KINDS[_CONFIG_N_KINDS];

/* Reads a file. Errors in it become problems. Returns 0 with the struct in `ret`, a pointer to a
 * pointer to it (NULL for an invalid name), or -errno (-ENOENT). */
int config_file_read(enum config_kind kind, const char *path, struct config_problems *problems,
                     void *ret);
void *config_file_free(enum config_kind kind, void *file); /* NULL allowed */

/* Returns the file of this name, or NULL. */
const void *config_find_file(const struct config *config, enum config_kind kind, const char *name);
