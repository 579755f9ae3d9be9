/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An object read from one or more files. Collects problems, and records where each key was given,
 * for problems found later.
 */

#include "shared/base/buffer.h"
#include "supervisor/config/keys/keys.h"

struct config_origin {
    const char *path; /* NULL = the key was not given */
    unsigned line;
};

struct config_draft {
    const struct config_schema *schema;
    void *object;                     /* borrowed */
    struct config_problems *problems; /* borrowed; valid while the object is read or checked */
    struct config_origin *origins;    /* one per key */
    config_strv paths;  /* of the files read, the main one first; NULL = none could be read */
    struct buffer text; /* all assignments in the syntax of one file */
};

/* `object` has its defaults already. Returns NULL when out of memory. */
struct config_draft *config_draft_new(const struct config_schema *schema, void *object,
                                      struct config_problems *problems);
struct config_draft *config_draft_free(struct config_draft *draft); /* NULL allowed; returns NULL */

/*
 * Reads another file, which overrides earlier ones. Errors in it become problems, also a failure to
 * read it. Returns 0 or -errno (-ENOENT adds no problem).
 */
int config_draft_read(struct config_draft *draft, const char *path);

/* Like config_draft_read(), but from memory; `path` is for messages. Returns 0 or -ENOMEM. */
int config_draft_parse(struct config_draft *draft, const char *path, const char *text, size_t size);

/* Whether a file has the key, even with an invalid value. */
bool config_draft_given(const struct config_draft *draft, const char *key);

/* Adds a problem where the key was given, else to the main file as a whole. Returns 0 or -ENOMEM.
 */
int config_draft_problem(struct config_draft *draft, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
