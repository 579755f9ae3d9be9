/* SPDX-License-Identifier: MIT */
#include "supervisor/store/pieces.h"

#include "supervisor/store/database-private.h"
#include "supervisor/store/row-values.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* How many pieces are removed in a transaction: a removal reads all of their pages. */
#define SWEEP_PIECES "4"

/* How many bytes a transaction may have written before another piece is left to the next one. */
#define PIECES_BYTES (2 * PIECE_SIZE)

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

uint64_t pieces_left(struct database *database, int64_t number, enum piece_kind kind,
                     const struct payload *payload)
{
    const uint64_t n = in_pieces(payload->size, payload->fd) ? count(database, number, kind) : 0;

    return payload->size > n * PIECE_SIZE ? payload->size - n * PIECE_SIZE : 0;
}

/* Notes in which run the pieces are written. Those of run 0 are to be removed. */
static int note_unused(struct database *database, int64_t number, enum piece_kind kind,
                       uint64_t run)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO unused (number, kind, run) VALUES (?1, ?2, ?3)";
    sqlite3_stmt *statement = query(database, sql, number, kind);

    row_bind(statement, 3, run);
    return database_step(database, statement);
}

/* Reads bytes of the file. Does not map it: that would take memory for holes that a worker left in
 * it. */
static int read_file(int fd, uint64_t from, uint64_t size, char *buffer)
{
    for (uint64_t done = 0; done < size;) {
        const ssize_t n = pread(fd, buffer + done, size - done, (off_t)(from + done));

        if (n <= 0)
            return n < 0 ? -errno : -EPROTO;
        done += (uint64_t)n;
    }
    return 0;
}

static int write_piece(struct database *database, int64_t number, enum piece_kind kind,
                       const struct payload *payload, uint64_t from, uint64_t size)
{
    static const char sql[] = "INSERT INTO piece (number, kind, part, bytes) VALUES (?, ?, ?, ?)";
    const char *data = payload_data(payload);
    _cleanup_free_ char *buffer = data ? NULL : malloc(size);
    int r = data ? 0 : buffer ? read_file(payload->fd, from, size, buffer) : -ENOMEM;
    sqlite3_stmt *statement;

    if (r < 0)
        return r;
    statement = query(database, sql, number, kind);
    row_bind(statement, 3, from / PIECE_SIZE);
    row_bind_bytes(database, statement, 4, data ? data + from : buffer, size);
    return database_step(database, statement);
}

/* Whether pieces with this number are still to be removed: they may be those of another result. */
static bool awaits_sweep(struct database *database, int64_t number, enum piece_kind kind)
{
    static const char sql[] = "SELECT run FROM unused WHERE number = ?1 AND kind = ?2";
    const int64_t run = (int64_t)database->run;

    return read_number(database, query(database, sql, number, kind), run) != run;
}

int pieces_write(struct database *database, int64_t number, enum piece_kind kind,
                 const struct payload *payload)
{
    uint64_t left, size;
    int r;

    if (!in_pieces(payload->size, payload->fd))
        return 0;
    if (database->n_bytes >= PIECES_BYTES || awaits_sweep(database, number, kind))
        return PIECES_E_MORE;
    left = pieces_left(database, number, kind, payload);
    if (left == 0)
        return 0;
    size = left < PIECE_SIZE ? left : PIECE_SIZE;
    r = write_piece(database, number, kind, payload, payload->size - left, size);
    if (r != 0 || size == left)
        return r;
    if (left == payload->size)
        r = note_unused(database, number, kind, database->run);
    return r == 0 ? PIECES_E_MORE : r;
}

int pieces_keep(struct database *database, int64_t number, enum piece_kind kind)
{
    return database_step(
        database,
        query(database, "DELETE FROM unused WHERE number = ?1 AND kind = ?2", number, kind));
}

/* Removes some of the pieces. */
static int remove_pieces(struct database *database, int64_t number, enum piece_kind kind)
{
    static const char sql[] =
        "DELETE FROM piece WHERE rowid IN"
        " (SELECT rowid FROM piece WHERE number = ?1 AND kind = ?2 LIMIT " SWEEP_PIECES ")";

    return database_step(database, query(database, sql, number, kind));
}

int pieces_discard(struct database *database, int64_t number, enum piece_kind kind, uint64_t size)
{
    return size > PIECE_SIZE ? note_unused(database, number, kind, 0)
                             : remove_pieces(database, number, kind);
}

int pieces_abandon(struct database *database, int64_t number)
{
    sqlite3_stmt *statement =
        database_query(database, "UPDATE unused SET run = 0 WHERE number = ?1");

    row_bind(statement, 1, (uint64_t)number);
    return database_step(database, statement);
}

int pieces_sweep(struct database *database)
{
    static const char find[] = "SELECT number, kind FROM unused WHERE run <> ?1 LIMIT 1";
    sqlite3_stmt *statement;
    int64_t number;
    enum piece_kind kind;
    int r;

    statement = database_query(database, find);
    row_bind(statement, 1, database->run);
    r = database_step(database, statement);
    if (r != DATABASE_E_ROW)
        return r;
    number = sqlite3_column_int64(statement, 0);
    kind = (enum piece_kind)sqlite3_column_int(statement, 1);
    (void)sqlite3_reset(statement);
    r = remove_pieces(database, number, kind);
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
