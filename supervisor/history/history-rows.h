/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The database of the history: one connection, used by one thread. troupe.db(5) describes the file.
 *
 * The number of a row is the time of its end in microseconds since 1970, raised to the next one
 * that is free: so rows are in the order of their ends. The only index, "word", has an entry for
 * each word by which a row can be found: its group, id, key, tags, and unless it has succeeded, its
 * state and causes. The entries are spread over buckets by their hashes, and are in the order of
 * the rows within a bucket. So rows are added at few places, unlike in an index by the words
 * themselves, where each addition changes a page of its own; and a search reads one bucket
 * backwards.
 */

#include "supervisor/history/history.h"
#include <limits.h>
#include <sqlite3.h>

#define HISTORY_PROBLEM_MAX (PATH_MAX + 256)

/* Bytes that a row takes on disk beside its texts, with its entries in "word". */
#define HISTORY_ROW_COST 120

enum history_statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ADD,
    STATEMENT_ADD_WORD,
    STATEMENT_GET,
    STATEMENT_SCAN,
    STATEMENT_SCAN_WORD,
    STATEMENT_OLDEST,
    STATEMENT_REMOVE,
    STATEMENT_REMOVE_WORD,
    STATEMENT_GROUPS,
    STATEMENT_PUT_GROUP,
    _N_STATEMENTS,
};

struct history_database {
    sqlite3 *handle; /* NULL = closed */
    int lock;        /* the file, which is locked; -1 = none */
    sqlite3_stmt *statements[_N_STATEMENTS];
    int64_t last; /* the number of the row that was added last; 0 = none */
    char problem[HISTORY_PROBLEM_MAX];
};

/* clang-format off */
#define HISTORY_DATABASE_NULL {.lock = -1}
/* clang-format on */

/* Opens the database, and makes it if there is none. Returns 0, or on error the following, with
 * `problem` set and nothing left open:
 *   -EUCLEAN  the file is damaged, or no history of trouped
 *   -ENOTSUP  a newer trouped wrote it
 *   -EALREADY another trouped uses it
 *   -errno    anything else */
int history_database_open(struct history_database *database, const char *path);
/* Idempotent. */
void history_database_close(struct history_database *database);

/* All of the following return 0 or -errno as above, with `problem` set. */

int history_begin(struct history_database *database);
int history_commit(struct history_database *database);
void history_rollback(struct history_database *database);

typedef int (*history_group_fn)(void *userdata, const char *name,
                                const struct history_group *group);
/* Calls `fn` for each group in the database, until it returns another value than 0. */
int history_read_groups(struct history_database *database, history_group_fn fn, void *userdata);
/* Writes the row of a group, and sets its number. */
int history_put_group(struct history_database *database, struct history_group *group);

/* Adds a row to its group, which has a number, and counts it there. */
int history_put_row(struct history_database *database, const struct history_row *row);

/* Removes up to `max` rows of a group, the oldest first: those with numbers up to `until`, and
 * those beyond its bytes. Sets `*ret` to how many there were. */
int history_prune(struct history_database *database, struct history_group *group, int64_t until,
                  size_t max, size_t *ret);

/* Continues a search for at most `budget`, until it has `wanted` hits, or there are no more.
 * `find_group` returns the group with that number. */
int history_search(struct history_database *database, struct history_call *call,
                   const struct list *groups, usec_t budget);
