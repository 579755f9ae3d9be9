/* SPDX-License-Identifier: MIT */
#include "supervisor/store/pieces.h"

#include "supervisor/store/database-private.h"
#include "supervisor/store/row-values.h"
#include <errno.h>
#include <string.h>

/* How many pieces are removed in a transaction: a removal reads all of their pages. */
#define SWEEP_PIECES "4"

/* Returns a statement whose first parameters are the number and the kind. */
static sqlite3_stmt *query(struct database *database, const char *sql, int64_t number,
                           enum piece_kind kind)
{
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, 1, number);
    (void)sqlite3_bind_int(statement, 2, (int)kind);
    return statement;
}

/* Returns the only column of the only row, or `none` without a row or after an error. */
static int64_t read_number(struct database *database, sqlite3_stmt *statement, int64_t none)
{
    int64_t value = none;

    if (database_step(database, statement) == DATABASE_E_ROW)
        value = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return value;
}

static uint64_t count(struct database *database, int64_t number, enum piece_kind kind)
{
    static const char sql[] = "SELECT count(*) FROM piece WHERE number = ?1 AND kind = ?2";

    return (uint64_t)read_number(database, query(database, sql, number, kind), 0);
}

uint64_t pieces_left(struct database *database, int64_t number, enum piece_kind kind, uint64_t size)
{
    const uint64_t written = in_pieces(size) ? count(database, number, kind) * PIECE_SIZE : 0;

    return size > written ? size - written : 0;
}

/* Notes in which run the pieces are written; run 0 has ended. */
static int note_unused(struct database *database, int64_t number, enum piece_kind kind,
                       uint64_t run)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO unused (number, kind, run) VALUES (?1, ?2, ?3)";
    sqlite3_stmt *statement = query(database, sql, number, kind);

    row_bind(statement, 3, run);
    return database_step(database, statement);
}

static int write_piece(struct database *database, int64_t number, enum piece_kind kind,
                       uint64_t done, const struct payload *payload)
{
    static const char sql[] = "INSERT INTO piece (number, kind, part, bytes) VALUES (?, ?, ?, ?)";
    sqlite3_stmt *statement = query(database, sql, number, kind);
    const uint64_t left = payload->size - done;
    const struct row_bytes piece = {
        .data = payload_data(payload),
        .fd = payload->fd,
        .offset = done,
        .size = left < PIECE_SIZE ? left : PIECE_SIZE,
    };

    row_bind(statement, 3, done / PIECE_SIZE);
    return row_step_with_blob(database, statement, 4, &piece);
}

int pieces_write(struct database *database, int64_t number, enum piece_kind kind,
                 const struct payload *payload)
{
    static const char sql[] = "SELECT run FROM unused WHERE number = ?1 AND kind = ?2";
    const uint64_t done = payload->size - pieces_left(database, number, kind, payload->size);
    const int64_t run = (int64_t)database->run;
    int r;

    if (!in_pieces(payload->size))
        return 0;
    /* Pieces of an earlier run may be those of another result. */
    if (database->has_piece ||
        read_number(database, query(database, sql, number, kind), run) != run)
        return PIECES_E_MORE;
    if (done >= payload->size)
        return 0;
    database->has_piece = database->knows_pieces = true;
    r = write_piece(database, number, kind, done, payload);
    if (r == 0 && done == 0)
        r = note_unused(database, number, kind, database->run);
    return r == 0 ? PIECES_E_MORE : r;
}

int pieces_keep(struct database *database, int64_t number, enum piece_kind kind)
{
    return database_step(
        database,
        query(database, "DELETE FROM unused WHERE number = ?1 AND kind = ?2", number, kind));
}

int pieces_discard(struct database *database, int64_t number, enum piece_kind kind)
{
    if (!database->knows_pieces || count(database, number, kind) == 0)
        return 0;
    return note_unused(database, number, kind, 0);
}

int pieces_sweep(struct database *database)
{
    static const char find[] = "SELECT number, kind FROM unused WHERE run <> ?1 LIMIT 1";
    static const char remove[] =
        "DELETE FROM piece WHERE rowid IN"
        " (SELECT rowid FROM piece WHERE number = ?1 AND kind = ?2 LIMIT " SWEEP_PIECES ")";
    sqlite3_stmt *statement;
    int64_t number;
    enum piece_kind kind;
    int r;

    if (!database->knows_pieces)
        return 0;
    statement = database_query(database, find);
    row_bind(statement, 1, database->run);
    r = database_step(database, statement);
    if (r != DATABASE_E_ROW)
        return r;
    number = sqlite3_column_int64(statement, 0);
    kind = (enum piece_kind)sqlite3_column_int(statement, 1);
    (void)sqlite3_reset(statement);
    r = database_step(database, query(database, remove, number, kind));
    if (r == 0 && count(database, number, kind) == 0)
        r = pieces_keep(database, number, kind);
    return r == 0 ? PIECES_E_MORE : r;
}

int pieces_read(struct database *database, int64_t number, enum piece_kind kind, char *bytes,
                uint64_t size, uint64_t *done, unsigned max)
{
    static const char sql[] = "SELECT part, bytes FROM piece WHERE number = ?1 AND kind = ?2"
                              " AND part >= ?3 ORDER BY part LIMIT ?4";
    sqlite3_stmt *statement = query(database, sql, number, kind);
    const uint64_t before = *done;
    int r;

    row_bind(statement, 3, before / PIECE_SIZE);
    (void)sqlite3_bind_int64(statement, 4, max);
    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        uint64_t n;
        const void *piece = row_read_blob(statement, 1, &n);

        if ((uint64_t)sqlite3_column_int64(statement, 0) != *done / PIECE_SIZE ||
            n != (size - *done < PIECE_SIZE ? size - *done : PIECE_SIZE))
            break;
        memcpy(bytes + *done, piece, n);
        *done += n;
    }
    (void)sqlite3_reset(statement);
    if (r < 0 || *done == size)
        return r < 0 ? r : 0;
    return *done - before == max * PIECE_SIZE ? PIECES_E_MORE : PIECES_E_MISSING;
}

int pieces_refuse(struct database *database)
{
    return database->error = database_refuse(database, EUCLEAN, "pieces of a payload are missing");
}
