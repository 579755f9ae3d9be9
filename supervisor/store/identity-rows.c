/* SPDX-License-Identifier: MIT */
#include "supervisor/store/identity-rows.h"

#include "supervisor/store/row-values.h"
#include <errno.h>
#include <string.h>

int identity_rows_create(struct database *database)
{
    static const char sql[] = "CREATE TABLE identity (number INTEGER PRIMARY KEY,"
                              " handle INTEGER NOT NULL, high INTEGER NOT NULL,"
                              " low INTEGER NOT NULL)";

    return database_step(database, database_query(database, sql));
}

int identity_rows_add(struct database *database, const struct identity_row *row)
{
    sqlite3_stmt *statement =
        database_query(database, "INSERT INTO identity VALUES (?1, ?2, ?3, ?4)");

    (void)sqlite3_bind_int64(statement, 1, row->number);
    row_bind(statement, 2, row->handle);
    row_bind(statement, 3, row->high);
    row_bind(statement, 4, row->low);
    return database_step(database, statement);
}

int identity_rows_fetch(struct database *database, int64_t number, struct identity_row *ret)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT handle, high, low FROM identity WHERE number = ?1");
    int r;

    (void)sqlite3_bind_int64(statement, 1, number);
    r = database_step(database, statement);
    if (r != DATABASE_E_ROW)
        return r == 0 ? -ENOENT : r;
    *ret = (struct identity_row){
        .number = number,
        .handle = (uint64_t)sqlite3_column_int64(statement, 0),
        .high = (uint64_t)sqlite3_column_int64(statement, 1),
        .low = (uint64_t)sqlite3_column_int64(statement, 2),
    };
    (void)sqlite3_reset(statement);
    return 0;
}

void identity_put(struct saved_writer *writer, const struct job *job)
{
    saved_put_number(writer, job->handle);
    saved_put_number(writer, job->id_high);
    saved_put_number(writer, job->id_low);
}

void identity_get(struct saved_reader *reader, struct identity_row *row)
{
    row->handle = saved_get_number(reader);
    row->high = saved_get_number(reader);
    row->low = saved_get_number(reader);
}

int identity_restore_job(const struct identity_row *row, struct job_table *table, const char *name,
                         size_t size, struct job **ret)
{
    struct protocol_id id = {.high = row->high, .low = row->low};
    int r;

    if (size > 0 && size < sizeof(id.name))
        memcpy(id.name, name, size);
    r = job_restore(table, row->handle, &id, ret);
    if (r == 0)
        (*ret)->restored = false; /* nothing of it is lost */
    return r;
}
