/* SPDX-License-Identifier: MIT */
#pragma once

/* The filters in use, by their settings: groups with equal settings share one, and a reload that
 * does not change the settings does not compile it again. */

#include "supervisor/keeper/sandbox.h"

struct filter {
    struct filter *next;
    unsigned n_references;
    struct sandbox_filter program;
    char settings[];
};

/* Returns a new reference, or NULL if no filter with these settings is in use. */
struct filter *filter_ref_by_settings(const char *settings);

/* Adds a filter, which is not in use yet, and copies its program. Returns a reference, or NULL when
 * out of memory. */
struct filter *filter_new(const char *settings, const void *code, size_t size);

/* NULL allowed; returns NULL. */
struct filter *filter_unref(struct filter *filter);
