/* SPDX-License-Identifier: MIT */

/* Searches. */

#include "shared/base/cleanup.h"
#include "supervisor/event/death.h"
#include "supervisor/history/history-rows.h"
#include "supervisor/store/row-values.h"
#include <errno.h>

/* Bounds the hits of a call: the loop writes them in one turn, each byte as six at worst. */
#define HITS_BYTES ((size_t)64 << 10)
/* Rows, and steps of SQLite's machine within the index, between two looks at the clock. */
#define GLANCE       64
#define GLANCE_STEPS 32

/* Whether the reader may read the contents of a row, and whether that matches the filter: see
 * bind_call(). */
#define OPEN "(?7 OR uid = ?8 OR instr(?11, ' ' || grp || ' ') > 0)"
#define MATCHES                                                                                    \
    "(state BETWEEN 4 AND 7 AND ended BETWEEN ?2 AND ?3 AND (?4 < 0 OR state = ?4)"                \
    " AND (?5 < 0 OR cause = ?5) AND (?6 < 0 OR failed = ?6) AND (?9 OR " OPEN ")"                 \
    " AND (?12 IS NULL OR grp = ?12) AND (?13 IS NULL OR id = ?13)"                                \
    " AND (?14 IS NULL OR instr(' ' || tags || ' ', ' ' || ?14 || ' ') > 0)"                       \
    " AND (?15 IS NULL OR key = ?15))"
/* Rows are in the order of their numbers, which are HISTORY_LATE_MAX after their ends at most. */
#define SEARCH(table, number, condition)                                                           \
    "SELECT " HISTORY_FIELDS(ROW_COLUMN) "job.number, " OPEN ", " MATCHES " FROM " table           \
                                         " WHERE " condition " AND " number " < ?1 AND " number    \
                                         " >= ?2 ORDER BY " number " DESC"

static const char ROWS[] = SEARCH("job", "job.number", "?10 IS NULL");
static const char ROWS_WITH_WORDS[] =
    SEARCH("word CROSS JOIN job ON job.number = word.rowid", "word.rowid", "word MATCH ?10");

static void bind_call(sqlite3_stmt *statement, const struct history_call *call, const char *words)
{
    const struct history_filter *filter = &call->filter;
    const int64_t max = INT64_MAX - HISTORY_LATE_MAX;
    const int64_t until =
        filter->until > 0 && filter->until < (usec_t)max ? (int64_t)filter->until : max;
    const int64_t numbers[] = {
        call->before > 0 ? call->before : until + HISTORY_LATE_MAX,
        filter->since < INT64_MAX ? (int64_t)filter->since : INT64_MAX,
        until,
        filter->state,
        filter->cause,
        filter->failed,
        call->reader.all,
        call->reader.uid,
        !history_is_about_contents(filter),
    };
    const char *const texts[] = {words, call->reader.groups, filter->group, filter->id,
                                 filter->tag};
    int at = 1;

    for (size_t i = 0; i < ELEMENTS(numbers); i++)
        (void)sqlite3_bind_int64(statement, at++, numbers[i]);
    for (size_t i = 0; i < ELEMENTS(texts); i++)
        (void)sqlite3_bind_text(statement, at++, texts[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, at, filter->key, (int)filter->key_size, SQLITE_STATIC);
}

/* Leaves out what the client may not read, and invalid values. */
static void sanitize(struct history_row *row)
{
    if (row->cause > PROTOCOL_CAUSE_DEPENDENCY)
        row->cause = PROTOCOL_CAUSE_NONE;
    if (row->failed_by >= _ATTEMPT_N_CAUSES)
        row->failed_by = ATTEMPT_CAUSE_NONE;
    if (!row->open)
        row->key_size = row->tags_size = row->excerpt_size = row->reason_size = 0;
    if (!row->open)
        row->payload_size = 0;
}

/* Takes a row that was read, and adds it to the hits if it matches. Without the index, its texts
 * have not been compared. */
static int take_row(struct history_call *call, sqlite3_stmt *statement)
{
    struct history_row row = {.size = 0}, *hit;
    const int at = row_read_record(statement, &HISTORY_RECORD, &row);

    call->before = sqlite3_column_int64(statement, at);
    row.open = sqlite3_column_int(statement, at + 1);
    if (!sqlite3_column_int(statement, at + 2) || !history_row_has_words(&row, call->filter.text))
        return 0;
    sanitize(&row);
    hit = history_row_copy(&row);
    if (!hit)
        return -ENOMEM;
    list_push_back(&call->hits, &hit->link);
    call->n_hits++;
    call->bytes += hit->size;
    return 0;
}

bool history_rows_enough(const struct history_call *call)
{
    return call->complete || call->n_hits >= call->wanted || call->bytes >= HITS_BYTES;
}

/* Called by SQLite now and then; true interrupts the search. */
static int is_over(void *end)
{
    return clock_now() >= *(const usec_t *)end;
}

int history_rows_search(struct database *database, struct history_call *call, usec_t budget)
{
    const unsigned n = call->n_stuck;
    const bool stuck = n > HISTORY_STUCK_MAX;
    usec_t end = clock_now() + (n == 0 || stuck ? budget : budget << (2 * n + 2));
    char *words = history_words_of_call(call);
    sqlite3_stmt *statement = database_query(database, words ? ROWS_WITH_WORDS : ROWS);
    const int64_t from = call->before;
    int r = 0;

    bind_call(statement, call, words);
    if (!stuck)
        sqlite3_progress_handler(database->handle, GLANCE_STEPS, is_over, &end);
    for (unsigned i = 1; r == 0 && !history_rows_enough(call); i++) {
        if (i % GLANCE == 0 && clock_now() >= end)
            break;
        r = database_step(database, statement);
        call->complete = r == 0;
        if (r == DATABASE_E_ROW)
            r = take_row(call, statement);
    }
    sqlite3_progress_handler(database->handle, 0, NULL, NULL);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    sqlite3_free(words);
    if (r != DATABASE_E_INTERRUPTED)
        return r;
    call->n_stuck += call->before == from;
    return 0;
}
