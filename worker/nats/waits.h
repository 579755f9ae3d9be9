/* SPDX-License-Identifier: MIT */
#pragma once

/* What a group, or a job, waits for, as far as it tells whether this machine gives up: records of
 * type Wait in troupe-varlink(7), one by one. */

#include <stdbool.h>

struct waits {
    bool closed;    /* new jobs are not taken */
    bool draining;  /* nor are they, and only what is in the queue is worked off */
    bool busy;      /* all workers are; they take what is in the queue */
    bool down;      /* no job is begun until somebody does something */
    bool absent;    /* no worker is up */
    bool coming;    /* one will be, by itself */
    char cause[32]; /* the first that counts, for people */
};

/* clang-format off */
#define WAITS_NULL {.cause = ""}
/* clang-format on */

void waits_note(struct waits *waits, const char *cause);

/* Whether a job that waits will not be done here. */
bool waits_in_vain(const struct waits *waits);
/* Like waits_in_vain(), but also true if new jobs are not taken. */
bool waits_closed(const struct waits *waits);
