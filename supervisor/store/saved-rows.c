/* SPDX-License-Identifier: MIT */
#include "supervisor/store/saved-rows.h"

#include "supervisor/channel/payload.h"
#include "supervisor/store/row-values.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A pack is written when it has so many bytes. Larger payloads are not copied into one. */
#define PACK_SIZE    ((size_t)256 * 1024)
#define PACKED_BYTES ((size_t)16 * 1024)

int saved_rows_create(struct database *database)
{
    /* The payload of a pack is an integer: the number of rows in its fields. */
    static const char sql[] = "CREATE TABLE IF NOT EXISTS saved (number INTEGER PRIMARY KEY,"
                              " kind TEXT NOT NULL, fields BLOB NOT NULL, payload BLOB NOT NULL)";

    return database_step(database, database_query(database, sql));
}

/* ---- adding ---- */

static sqlite3_stmt *insert(struct database *database, const char *kind,
                            const struct saved_writer *fields)
{
    sqlite3_stmt *statement =
        database_query(database, "INSERT INTO saved (kind, fields, payload) VALUES (?1, ?2, ?3)");

    row_bind_text(statement, 1, kind, strlen(kind));
    (void)sqlite3_bind_blob64(statement, 2, fields->size > 0 ? (const void *)fields->bytes : "",
                              fields->size, SQLITE_STATIC);
    return statement;
}

static int write_pack(struct database *database, struct saved_pack *pack)
{
    sqlite3_stmt *statement;

    if (pack->rows.failed)
        return -ENOMEM;
    if (pack->n == 0)
        return 0;
    statement = insert(database, pack->kind, &pack->rows);
    row_bind(statement, 3, pack->n);
    pack->n = 0;
    pack->rows.size = 0;
    return database_step(database, statement);
}

static int add_alone(struct database *database, const char *kind, const struct saved_writer *row,
                     const struct payload *payload)
{
    return row_step_with_bytes(database, insert(database, kind, row), 3,
                               payload ? payload_data(payload) : "", payload ? payload->fd : -1,
                               payload ? payload->size : 0);
}

/* Returns NULL if there are too many kinds: their rows are added one by one. */
static struct saved_pack *pack_of(struct saved_rows *rows, const char *kind)
{
    for (size_t i = 0; i < rows->n_packs; i++)
        if (strcmp(rows->packs[i].kind, kind) == 0)
            return &rows->packs[i];
    if (rows->n_packs == SAVED_PACKS_MAX)
        return NULL;
    rows->packs[rows->n_packs] = (struct saved_pack){.kind = kind};
    return &rows->packs[rows->n_packs++];
}

static int add_to_pack(struct saved_rows *rows, struct saved_pack *pack,
                       const struct saved_writer *row, const struct payload *payload)
{
    saved_put_bytes(&pack->rows, row->bytes, row->size);
    saved_put_bytes(&pack->rows, payload ? payload_data(payload) : "", payload ? payload->size : 0);
    pack->n++;
    return pack->rows.failed || pack->rows.size >= PACK_SIZE ? write_pack(rows->database, pack) : 0;
}

int saved_rows_add(struct saved_rows *rows, const char *kind, const struct saved_writer *row,
                   const struct payload *payload)
{
    struct saved_pack *pack = pack_of(rows, kind);
    int r;

    if (pack && (!payload || (payload->fd < 0 && payload->size <= PACKED_BYTES)))
        return add_to_pack(rows, pack, row, payload);
    r = pack ? write_pack(rows->database, pack) : 0; /* rows before it */
    return r == 0 ? add_alone(rows->database, kind, row, payload) : r;
}

int saved_rows_flush(struct saved_rows *rows)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < rows->n_packs; i++)
        r = write_pack(rows->database, &rows->packs[i]);
    return r;
}

void saved_rows_deinit(struct saved_rows *rows)
{
    for (size_t i = 0; i < rows->n_packs; i++)
        free(rows->packs[i].rows.bytes);
    rows->n_packs = 0;
}

/* ---- reading ---- */

static void read_pack(struct saved_reader *pack, uint64_t n, saved_row_fn fn, void *userdata,
                      uint64_t *n_refused)
{
    for (; n > 0 && saved_has_more(pack); n--) {
        struct saved_reader row = saved_get_fields(pack);

        row.payload = saved_get_bytes(pack, &row.payload_size);
        if (pack->damaged || fn(userdata, &row) < 0)
            (*n_refused)++;
    }
    *n_refused += n; /* are missing */
}

int saved_rows_scan(struct database *database, const char *kind, saved_row_fn fn, void *userdata,
                    uint64_t *n_refused)
{
    sqlite3_stmt *statement = database_query(
        database, "SELECT fields, payload FROM saved WHERE kind = ?1 ORDER BY number");
    int r;

    row_bind_text(statement, 1, kind, strlen(kind));
    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        uint64_t size, payload_size;
        const uint8_t *fields = row_read_bytes(statement, 0, &size);
        struct saved_reader row = {.at = fields, .end = fields + size};

        if (sqlite3_column_type(statement, 1) == SQLITE_INTEGER) {
            read_pack(&row, (uint64_t)sqlite3_column_int64(statement, 1), fn, userdata, n_refused);
            continue;
        }
        row.payload = row_read_bytes(statement, 1, &payload_size);
        row.payload_size = (size_t)payload_size;
        if (fn(userdata, &row) < 0)
            (*n_refused)++;
    }
    (void)sqlite3_reset(statement);
    return r;
}
