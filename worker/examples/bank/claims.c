/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/claims.h"

int claims_open(struct database *database)
{
    int r =
        database_run(database, "CREATE TABLE IF NOT EXISTS claims (id TEXT PRIMARY KEY, what TEXT)",
                     NULL, NULL, "");

    return r < 0 ? r : 0;
}

int claims_take(struct database *database, const char *id, const char *what)
{
    int r = database_run(database, "INSERT OR IGNORE INTO claims (id, what) VALUES (?, ?)", NULL,
                         NULL, "ss", id, what);

    if (r != 0)
        return r < 0 ? r : 0;
    r = database_run(database, "SELECT 1 FROM claims WHERE id = ? AND what = ?", NULL, NULL, "ss",
                     id, what);
    return r == 0 ? CLAIMS_E_TAKEN : r < 0 ? r : 0;
}

int claims_find(struct database *database, const char *id)
{
    return database_run(database, "SELECT 1 FROM claims WHERE id = ?", NULL, NULL, "s", id);
}
