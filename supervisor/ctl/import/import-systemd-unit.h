/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads units of systemd, as far as import-systemd.c needs them. */

#include "supervisor/ctl/import/import.h"
#include <stdint.h>

#define SERVICE ".service"
#define TIMER   ".timer"

/* All that is imported. */
struct operands {
    const char *const *paths;
    size_t n;
};

struct systemd_unit {
    struct import_unit base;
    const struct operands *operands;
    const char *path;              /* of the file that is read */
    const char *name, *stem;       /* "web@8080.service", "web@8080" */
    const char *prefix, *instance; /* "web", "8080"; NULL = no instance */
    const char *user;
    struct import_settings settings;
    bool is_job;
    bool found;
};

static inline struct systemd_unit *systemd_unit_of(const struct import_unit *base)
{
    return (struct systemd_unit *)(uintptr_t)base; /* its first member */
}

/* Reads a unit and its drop-ins: from its directory, or if that is one of systemd's, or is not
 * given, from all of these. An instance is read from its template. */
void systemd_unit_read(struct systemd_unit *unit, const char *path, const char *suffix);

/* Replaces specifiers; NULL if one has no fixed value. For import_unit.expand. */
const char *systemd_unit_expand(const struct import_unit *base,
                                const struct import_setting *setting, const char *text);
