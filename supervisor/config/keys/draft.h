/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An object read from one or more files. Collects problems, and records where each key was given,
 * for problems found later.
 */

#include "supervisor/config/keys/keys.h"

struct config_origin {
    const char *path; /* NULL = the key was not given */
    unsigned line;
};

struct config_draft {
    const struct config_schema *schema;
    void *object;                     /* struct config_group or config_daemon; borrowed */
    struct config_problems *problems; /* borrowed; NULL while nothing is read or checked */
    struct config_origin *origins;    /* one per key */
    config_strv paths;                /* of the files read; the first one is the main one */
};

/* clang-format off */
#define CONFIG_DRAFT_NULL {0}
/* clang-format on */

/* `object` has its defaults already. 0 or -ENOMEM. */
int config_draft_init(struct config_draft *draft, const struct config_schema *schema, void *object,
                      struct config_problems *problems);
void config_draft_deinit(struct config_draft *draft);

/*
 * Moves a draft to the heap, to outlive the reading: `draft` is then as after
 * config_draft_deinit(), and the new one has no problem list. Returns NULL when out of memory.
 */
struct config_draft *config_draft_keep(struct config_draft *draft);
struct config_draft *config_draft_free(struct config_draft *draft); /* NULL allowed; returns NULL */

/*
 * Reads another file, which overrides earlier ones. Errors in it become problems, also a failure to
 * read it. Returns 0 or -errno (-ENOENT adds no problem).
 */
int config_draft_read(struct config_draft *draft, const char *path);

bool config_draft_given(const struct config_draft *draft, const char *section, const char *name);

/* Adds a problem at the place where a key was given, else with the main file as a whole. 0 or
 * -ENOMEM. */
int config_draft_problem(struct config_draft *draft, const char *section, const char *name,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
