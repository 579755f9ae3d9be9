/* SPDX-License-Identifier: MIT */
#include "tests/world/disk.h"

#include "tests/world/sched.h"
#include <sqlite3.h>

#define DATABASES_MAX 64

static struct {
    const struct sim_process *process;
    sqlite3 *handle;
} databases[DATABASES_MAX];
static unsigned n_databases;

int __real_sqlite3_open_v2(const char *path, sqlite3 **ret, int flags, const char *vfs);
int __real_sqlite3_close(sqlite3 *handle);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **ret, int flags, const char *vfs);
int __wrap_sqlite3_close(sqlite3 *handle);

int __wrap_sqlite3_open_v2(const char *path, sqlite3 **ret, int flags, const char *vfs)
{
    const int r = __real_sqlite3_open_v2(path, ret, flags, vfs);

    if (*ret && n_databases < DATABASES_MAX) {
        databases[n_databases].process = sim_self();
        databases[n_databases++].handle = *ret;
    }
    return r;
}

int __wrap_sqlite3_close(sqlite3 *handle)
{
    const int r = __real_sqlite3_close(handle);

    for (unsigned i = 0; r == SQLITE_OK && i < n_databases; i++)
        if (databases[i].handle == handle) {
            databases[i] = databases[--n_databases];
            break;
        }
    return r;
}

static void forget(sqlite3 *handle)
{
    sqlite3_stmt *statement;

    (void)sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    while ((statement = sqlite3_next_stmt(handle, NULL)))
        (void)sqlite3_finalize(statement);
    (void)__real_sqlite3_close(handle);
}

void disk_forget(const struct sim_process *process)
{
    for (unsigned i = 0; i < n_databases;) {
        if (databases[i].process != process) {
            i++;
            continue;
        }
        forget(databases[i].handle);
        databases[i] = databases[--n_databases];
    }
}
