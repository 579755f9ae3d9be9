/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Attempts of durable jobs that have ended, while the job's row does not say so yet. They are in
 * memory that outlives the supervisor: an attempt that ended just before a crash counts, and its
 * number is not used again.
 */

#include "supervisor/process/kept-state.h"
#include <stdint.h>

/* Valid when zeroed: nothing is kept. */
struct ended_attempts {
    struct kept_attempt *kept; /* NULL = none */
    uint32_t n_free, n_earlier;
    uint16_t free[KEPT_ATTEMPTS_MAX];
    uint16_t earlier[KEPT_ATTEMPTS_MAX]; /* that no job in memory has, in order of `number` */
};

/* Takes what the last supervisor has left. `kept`: KEPT_ATTEMPTS_MAX of them; NULL = none. */
void ended_attempts_init(struct ended_attempts *attempts, struct kept_attempt *kept);

/* Returns an entry for this attempt. NULL if there is no room: after a crash, the attempt may have
 * the same number again. */
struct kept_attempt *ended_attempts_add(struct ended_attempts *attempts, int64_t number,
                                        uint32_t attempt, uint32_t n_failed);
void ended_attempts_remove(struct ended_attempts *attempts, struct kept_attempt *entry);

/* Whether an entry of the last supervisor has this number. */
bool ended_attempts_has(const struct ended_attempts *attempts, int64_t number);
/* Returns such an entry, which becomes the caller's, or NULL. */
struct kept_attempt *ended_attempts_take(struct ended_attempts *attempts, int64_t number);
/* Merges all entries of `number`, and `mine` (NULL = none), into that of the last attempt before
 * `before`. Returns that entry, which the caller owns, and frees the others. Drops entries of
 * attempts from `before` on, which did not end. Returns NULL if none remains. A crash before the
 * next commit loses nothing. */
struct kept_attempt *ended_attempts_join(struct ended_attempts *attempts, int64_t number,
                                         struct kept_attempt *mine, uint32_t before);
/* Adds an entry, as if the last supervisor had. Best effort. */
void ended_attempts_leave(struct ended_attempts *attempts, int64_t number, uint32_t attempt,
                          uint32_t n_failed);
/* Undoes ended_attempts_take(). */
void ended_attempts_put_back(struct ended_attempts *attempts, struct kept_attempt *entry);
/* All rows have been read: forgets the entries that were not taken. */
void ended_attempts_settle(struct ended_attempts *attempts);
