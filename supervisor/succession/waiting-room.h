/* SPDX-License-Identifier: MIT */
#pragma once

/* Rows of the last supervisor that have been read and not been claimed, by kind and number: their
 * owner is made later, for example when its row in the database is read. */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/succession/saved-row.h"
#include <stdbool.h>
#include <stdint.h>

struct waiting_room {
    struct index by_number;
    struct list all;
};

void waiting_room_init(struct waiting_room *room);
void waiting_room_deinit(struct waiting_room *room);

/* Keeps a copy of what the reader has not read yet. `kind` is static. Returns 0 or -ENOMEM. */
int waiting_room_add(struct waiting_room *room, const char *kind, uint64_t number,
                     const struct saved_reader *row);

/* Returns whether there is such a row, any if there are several; `*ret` reads it, and is valid
 * until the row is removed. */
bool waiting_room_find(const struct waiting_room *room, const char *kind, uint64_t number,
                       struct saved_reader *ret);
/* Idempotent. */
void waiting_room_remove(struct waiting_room *room, const char *kind, uint64_t number);

/* Its owner exists, and is made later: the row outlives waiting_room_settle(). No row is no error.
 */
void waiting_room_keep(struct waiting_room *room, const char *kind, uint64_t number);
/* All owners of this kind are known: drops the other rows, each after a call of `dropped` (NULL =
 * none). Returns how many. */
unsigned waiting_room_settle(struct waiting_room *room, const char *kind,
                             void (*dropped)(void *userdata, struct saved_reader *row),
                             void *userdata);

/* Saves all rows again, as they were read. */
void waiting_room_save(const struct waiting_room *room, struct saver *saver);
