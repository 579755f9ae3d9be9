/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The tables of the history, for its thread. troupe.db(5) describes the file.
 *
 * The number of a row is the time of its end in microseconds since 1970, raised to the next one
 * that is free: so rows are in the order of their ends. Searches use a full-text index of SQLite
 * (FTS5), to which each row adds words: those of its group, submitter, state and causes, and the
 * words of its texts. It finds rows that have all wanted words, the newest first; the search then
 * compares the columns. A word is of ASCII letters and digits, whose case does not count, and of
 * bytes that are not ASCII.
 *
 * Each change of the full-text index is a statement of its own for one row, not a trigger: in a
 * statement that can be rolled back alone, FTS5 would write all that it has in memory.
 *
 * All functions return 0 or -errno, with `problem` of the database set.
 */

#include "supervisor/history/history.h"
#include "supervisor/store/database.h"

/* How far the number of a row may be after its end. */
#define HISTORY_LATE_MAX (2 * (int64_t)USEC_PER_SEC)
/* If no row has all words, the index answers only when it has compared all rows. A search that is
 * stuck in it gets 16 times as much time, then 64 times; then it reads rows one by one. */
#define HISTORY_STUCK_MAX 2
/* Begins words that no text can be searched for: see history-words.c. */
#define HISTORY_MARK "\037"

extern const struct database_format HISTORY_FORMAT;

/* The columns of a row beside its number, and what it takes on disk. */
#define HISTORY_FIELDS(F)                                                                          \
    F(DISK, grp, TEXT(group))                                                                      \
    F(DISK, id, TEXT(id))                                                                          \
    F(DISK, worker, TEXT(worker))                                                                  \
    F(DISK, key, TEXT(key))                                                                        \
    F(DISK, tags, TEXT(tags))                                                                      \
    F(DISK, excerpt, TEXT(excerpt))                                                                \
    F(DISK, reason, TEXT(reason))                                                                  \
    F(DISK, payload_bytes, OPTIONAL(payload_size, 0))                                              \
    F(DISK, state, NUMBER(state))                                                                  \
    F(DISK, cause, NUMBER(cause))                                                                  \
    F(DISK, failed, NUMBER(failed_by))                                                             \
    F(DISK, priority, NUMBER(priority))                                                            \
    F(DISK, uid, NUMBER(submitter_uid))                                                            \
    F(DISK, code, NUMBER(code))                                                                    \
    F(DISK, attempt, NUMBER(attempt))                                                              \
    F(DISK, failures, NUMBER(n_failed))                                                            \
    F(DISK, max_retries, NUMBER(max_retries))                                                      \
    F(DISK, created, NUMBER(created_at))                                                           \
    F(DISK, started, OPTIONAL(started_at, 0))                                                      \
    F(DISK, ended, NUMBER(ended_at))
extern const struct record HISTORY_RECORD;

/* Sets the bounds of a group. */
int history_rows_use(struct database *database, const char *group, usec_t keep, uint64_t max);

/* Adds a row. `*last` is the number of the row that was added last, and is updated; 0 = not known.
 * Returns DATABASE_E_EXISTS if no number is free. */
int history_rows_add(struct database *database, const struct history_row *row, int64_t *last);

/* Counts the rows of all groups, and finds the shortest time that one of them keeps rows. */
int history_rows_measure(struct database *database, uint64_t *ret_n, usec_t *ret_keep);

/* Removes at most `*left` rows, and lowers `*left` by their number: those that are too old at
 * `now`, and the oldest of groups with too many bytes. */
int history_rows_prune(struct database *database, usec_t now, size_t *left);
/* Like history_rows_prune(), for the rows of one group with numbers up to `until`. */
int history_rows_purge(struct database *database, const char *group, int64_t until, size_t *left);

/* Returns the text of a row that is indexed, for sqlite3_free(); NULL without memory. A key with a
 * NUL adds the words before that. */
char *history_words_of_row(const struct history_row *row);
/* Whether the texts of the row have all words of the text, NULL = none. */
bool history_row_has_words(const struct history_row *row, const char *wanted);
/* Returns the words that a row must have, or one of them if the search is stuck. NULL = none, or no
 * memory: then all rows are read. */
char *history_words_of_call(const struct history_call *call);
/* Whether the filter compares contents: then only rows match whose contents the reader may see. */
static inline bool history_is_about_contents(const struct history_filter *filter)
{
    return filter->key || filter->tag || filter->text;
}

/* Continues a search until history_rows_enough(), which is true if it is complete or has as many
 * hits as wanted; at most for `budget`, or longer if that was too short for the index before. */
int history_rows_search(struct database *database, struct history_call *call, usec_t budget);
bool history_rows_enough(const struct history_call *call);
