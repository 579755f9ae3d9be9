/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Payloads and results that are not in their rows: large ones, which a change of the row would
 * write again, and those in files, because reading a file may fail. The row has only their size.
 * Pieces are written one after the other, a few in each transaction, so that no other change waits
 * for all of them. The last one is written together with the row.
 *
 * The table "unused" names the pieces that belong to no row: those being written, and those to be
 * removed. Removal takes a few pieces at a time. All calls run in the storage thread, within a
 * transaction of the caller's, unless stated otherwise.
 */

#include "supervisor/channel/payload.h"
#include "supervisor/store/database.h"
#include <stdint.h>

#define PIECE_SIZE (UINT64_C(1) << 20)

/* How many bytes a row holds. */
#define BYTES_IN_ROW_MAX 4096

enum piece_kind {
    PIECES_PAYLOAD,
    PIECES_RESULT,
};

/* `fd`: the file that the payload is in; -1 = none. */
static inline bool in_pieces(uint64_t size, int fd)
{
    return size > BYTES_IN_ROW_MAX || fd >= 0;
}

enum {
    _PIECES_E_SUCCESS,
    PIECES_E_MORE, /* call it again in the next transaction */
    PIECES_E_MISSING,
};

/*
 * Writes the next piece of a payload, unless this transaction has written enough. Returns 0 once
 * all pieces have been written, or if the row itself takes the bytes: the row is to be written in
 * this transaction. Returns PIECES_E_MORE if pieces are left. After -ENOMEM or the -errno of
 * reading the file, the transaction can continue; after an error of the database it cannot.
 */
int pieces_write(struct database *database, int64_t number, enum piece_kind kind,
                 const struct payload *payload);

/* Returns how many bytes of a payload are still to be written to disk. */
uint64_t pieces_left(struct database *database, int64_t number, enum piece_kind kind,
                     const struct payload *payload);

/* Call it when a row that refers to the pieces has been written. Returns 0 or -errno. */
int pieces_keep(struct database *database, int64_t number, enum piece_kind kind);
/* Call it when no row refers to the pieces of `size` bytes any more. There may be none. Returns 0
 * or -errno. */
int pieces_discard(struct database *database, int64_t number, enum piece_kind kind, uint64_t size);
/* Call it when the pieces that are being written will get no row. Returns 0 or -errno. */
int pieces_abandon(struct database *database, int64_t number);

/* Removes some pieces that are discarded, or that an earlier run has not finished. Returns 0 if
 * there are none, PIECES_E_MORE or -errno. */
int pieces_sweep(struct database *database);

/* Needs no transaction. Continues to read the pieces of a row into `bytes`: at most `max` of them.
 * `*done`: how many bytes have been read; increased. Returns 0 once all have been read,
 * PIECES_E_MORE, PIECES_E_MISSING or -errno. */
int pieces_read(struct database *database, int64_t number, enum piece_kind kind, char *bytes,
                uint64_t size, uint64_t *done, unsigned max);
/* Refuses the database, because pieces of an existing row are missing. Returns -EUCLEAN. */
int pieces_refuse(struct database *database);
