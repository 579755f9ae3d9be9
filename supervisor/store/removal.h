/* SPDX-License-Identifier: MIT */
#pragma once

/* The removal of rows that no job in memory stands for any more. */

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Removes the rows of this number some time later, as job_rows_remove(). `store` may be NULL: then
 * nothing is done. Without memory the rows come back at the next start. */
void removal_add(struct store *store, int64_t number, unsigned tables);

/* Waits until everything that was added to the store is on disk. */
struct removal_wait;

/* Calls `done` later with 0, or with -errno if the store has become unusable, or with `impatient`,
 * if it has failed and may work again. Does not call it at the end of the store. The caller owns
 * the wait. Returns NULL without memory. */
struct removal_wait *removal_await(struct store *store, bool impatient,
                                   void (*done)(void *userdata, int result), void *userdata);
/* Ends the wait; allowed in `done`. NULL allowed; returns NULL. */
struct removal_wait *removal_wait_free(struct removal_wait *wait);
