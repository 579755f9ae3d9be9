/* SPDX-License-Identifier: MIT */
#pragma once

/* The families of metrics as a table: the place of each family's values in the reply, and their
 * meaning. */

#include <stddef.h>

enum family_type {
    FAMILY_GAUGE,
    FAMILY_COUNTER,
    FAMILY_HISTOGRAM, /* the member is a Histogram */
};

enum family_unit {
    FAMILY_NUMBER,
    FAMILY_BYTES,
    FAMILY_SECONDS, /* the member is in microseconds */
};

/* The part of the reply that has the member, which decides about the labels of all samples. */
enum family_scope {
    FAMILY_GROUP,    /* label group */
    FAMILY_SCHEDULE, /* label schedule */
    FAMILY_LIMIT,    /* labels limit, kind */
    FAMILY_STORE,
    FAMILY_HISTORY,
    FAMILY_LETTERS, /* dead_letters */
    FAMILY_SUPERVISOR,
    _FAMILY_N_SCOPES,
};

struct family {
    const char *name; /* without "_total", which samples of counters end with */
    enum family_type type;
    enum family_unit unit;
    enum family_scope scope;
    const char *member; /* an integer, a boolean, or with `label`: a string or an object */
    /* Each member of an object is a sample with the member's name in this label. A string is a
     * sample with the value 1 and the string in this label. */
    const char *label;
    const char *help; /* a sentence without its full stop */
};

extern const struct family FAMILIES[];
extern const size_t N_FAMILIES;
