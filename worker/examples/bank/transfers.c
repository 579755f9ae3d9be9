/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/transfers.h"

int transfers_open(struct transfers *ret, const char *path)
{
    return database_open(&ret->database, path,
                         "CREATE TABLE IF NOT EXISTS transfers ("
                         " id TEXT PRIMARY KEY,"
                         " source TEXT NOT NULL,"
                         " target TEXT NOT NULL,"
                         " amount INTEGER NOT NULL,"
                         " state INTEGER NOT NULL,"
                         " attempt INTEGER NOT NULL,"
                         " reason TEXT NOT NULL)");
}

void transfers_close(struct transfers *transfers)
{
    database_close(&transfers->database);
}

const char *transfer_state_name(enum transfer_state state)
{
    static const char *const names[] = {
        [TRANSFER_BEGUN] = "begun",
        [TRANSFER_WITHDRAWN] = "withdrawn",
        [TRANSFER_DONE] = "done",
        [TRANSFER_REFUSED] = "refused",
        [TRANSFER_NOT_STARTED] = "not-started",
        [TRANSFER_ROLLED_BACK] = "rolled-back",
    };

    return names[state];
}

static void read_transfer(sqlite3_stmt *row, void *userdata)
{
    struct transfer *transfer = userdata;

    database_text(row, 0, transfer->id, sizeof(transfer->id));
    database_text(row, 1, transfer->source, sizeof(transfer->source));
    database_text(row, 2, transfer->target, sizeof(transfer->target));
    transfer->amount = sqlite3_column_int64(row, 3);
    transfer->state = (enum transfer_state)sqlite3_column_int(row, 4);
    transfer->attempt = sqlite3_column_int64(row, 5);
    database_text(row, 6, transfer->reason, sizeof(transfer->reason));
}

#define COLUMNS "id, source, target, amount, state, attempt, reason"

int transfers_find(struct transfers *transfers, const char *id, struct transfer *ret)
{
    return database_run(&transfers->database, "SELECT " COLUMNS " FROM transfers WHERE id = ?",
                        read_transfer, ret, "s", id);
}

int transfers_put(struct transfers *transfers, const struct transfer *transfer)
{
    int r = database_run(
        &transfers->database,
        "INSERT OR REPLACE INTO transfers (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?)", NULL, NULL,
        "sssiiis", transfer->id, transfer->source, transfer->target, transfer->amount,
        (int64_t)transfer->state, transfer->attempt, transfer->reason);

    return r < 0 ? r : 0;
}

int transfers_next_open(struct transfers *transfers, struct transfer *ret)
{
    return database_run(
        &transfers->database, "SELECT " COLUMNS " FROM transfers WHERE state IN (?, ?) LIMIT 1",
        read_transfer, ret, "ii", (int64_t)TRANSFER_BEGUN, (int64_t)TRANSFER_WITHDRAWN);
}
