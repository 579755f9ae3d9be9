/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Payloads and results that are too large for their rows. They are written in pieces, one a
 * transaction, so that no other change waits for all of them; the row, which has only their size,
 * follows in a transaction of its own.
 *
 * The table "unused" names the pieces that belong to no row: those being written, and those to be
 * removed. Removal takes a few pieces at a time. All calls run in the storage thread, within a
 * transaction of the caller's, unless stated otherwise.
 */

#include "supervisor/channel/payload.h"
#include "supervisor/store/database.h"
#include <stdint.h>

#define PIECE_SIZE (UINT64_C(1) << 20)

enum piece_kind {
    PIECES_PAYLOAD,
    PIECES_RESULT,
};

static inline bool in_pieces(uint64_t size)
{
    return size > PIECE_SIZE;
}

enum {
    _PIECES_E_SUCCESS,
    PIECES_E_MORE, /* call it again in the next transaction */
    PIECES_E_MISSING,
};

/*
 * Writes the next piece of a payload for which in_pieces() is true, unless this transaction has
 * written one already. Returns 0 once all pieces have been written, or if the row itself takes the
 * bytes; PIECES_E_MORE; or -errno as row_step_with_blob(). After an error, pieces_discard() or the
 * next opening removes those that were written.
 */
int pieces_write(struct database *database, int64_t number, enum piece_kind kind,
                 const struct payload *payload);

/* Returns how many bytes of a payload of this size are still to be written to disk. */
uint64_t pieces_left(struct database *database, int64_t number, enum piece_kind kind,
                     uint64_t size);

/* Call it when a row that refers to the pieces has been written. Returns 0 or -errno. */
int pieces_keep(struct database *database, int64_t number, enum piece_kind kind);
/* Call it when no row refers to the pieces any more. There may be none. Returns 0 or -errno. */
int pieces_discard(struct database *database, int64_t number, enum piece_kind kind);

/* Removes some pieces that are discarded, or that an earlier run has not finished. Returns 0 if
 * there are none, PIECES_E_MORE or -errno. */
int pieces_sweep(struct database *database);

/* Needs no transaction. Reads at most `max` pieces of a row to their places in `bytes`, from
 * `*done` on, which it increases; call it again after PIECES_E_MORE. Returns 0 once all have been
 * read, PIECES_E_MORE, PIECES_E_MISSING or -errno. */
int pieces_read(struct database *database, int64_t number, enum piece_kind kind, char *bytes,
                uint64_t size, uint64_t *done, unsigned max);
/* Refuses the database, because pieces of an existing row are missing. Returns -EUCLEAN. */
int pieces_refuse(struct database *database);
