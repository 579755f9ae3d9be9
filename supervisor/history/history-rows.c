/* SPDX-License-Identifier: MIT */

/* Adds and removes rows, with the entries by which they are found. */

#include "supervisor/history/history-private-rows.h"
#include <string.h>

/* How many numbers are tried for a row. */
#define TRIES_MAX 64

/* FNV-1a, followed by the mixer of MurmurHash3: both are the same for all times. */
struct word history_word(enum word_kind kind, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
    hash ^= hash >> 33;
    return (struct word){
        .bucket = (int64_t)kind * BUCKETS + (int64_t)(hash % BUCKETS),
        .hash = (int32_t)(uint32_t)(hash >> 32),
    };
}

struct word history_number_word(enum word_kind kind, int64_t number, int64_t second)
{
    const int64_t numbers[] = {number, second};

    return history_word(kind, numbers, sizeof(numbers));
}

struct word history_group_word(int64_t number)
{
    return (struct word){.bucket = (int64_t)WORD_GROUP * BUCKETS + number};
}

static struct view view_row(const struct history_row *row, int64_t number)
{
    struct view view = {
        .number = number,
        .group = row->group->number,
        .state = (int)row->state,
        .cause = row->facts.cause,
        .failed = row->facts.failed_by,
        .uid = row->facts.submitter_uid,
    };

    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++) {
        view.texts[i] = history_row_text(row, i);
        view.sizes[i] = row->sizes[i];
    }
    return view;
}

struct view history_view(sqlite3_stmt *statement)
{
    struct view view = {
        .number = sqlite3_column_int64(statement, COLUMN_NUMBER),
        .late = sqlite3_column_int64(statement, COLUMN_LATE),
        .group = sqlite3_column_int64(statement, COLUMN_GROUP),
        .state = sqlite3_column_int(statement, COLUMN_STATE),
        .cause = sqlite3_column_int(statement, COLUMN_CAUSE),
        .failed = sqlite3_column_int(statement, COLUMN_FAILED),
        .uid = (uid_t)sqlite3_column_int64(statement, COLUMN_UID),
    };

    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++) {
        const char *text = sqlite3_column_blob(statement, (int)(COLUMN_TEXTS + i));

        view.texts[i] = text ? text : "";
        view.sizes[i] = (size_t)sqlite3_column_bytes(statement, (int)(COLUMN_TEXTS + i));
    }
    return view;
}

bool history_each_tag(const struct view *view,
                      bool (*fn)(void *userdata, const char *tag, size_t size), void *userdata)
{
    const char *tags = view->texts[HISTORY_TAGS], *end = tags + view->sizes[HISTORY_TAGS];

    while (tags < end) {
        const char *blank = memchr(tags, ' ', (size_t)(end - tags));
        const size_t size = (size_t)((blank ? blank : end) - tags);

        if (size > 0 && fn(userdata, tags, size))
            return true;
        tags += size + 1;
    }
    return false;
}

struct words {
    struct word words[WORDS_MAX];
    unsigned n;
};

static bool add_tag(void *userdata, const char *tag, size_t size)
{
    struct words *words = userdata;

    if (words->n < WORDS_MAX)
        words->words[words->n++] = history_word(WORD_TAG, tag, size);
    return false;
}

static struct words words_of(const struct view *view)
{
    struct words words = {.n = 0};

    words.words[words.n++] = history_group_word(view->group);
    words.words[words.n++] =
        history_word(WORD_ID, view->texts[HISTORY_ID], view->sizes[HISTORY_ID]);
    if (view->sizes[HISTORY_KEY] > 0)
        words.words[words.n++] =
            history_word(WORD_KEY, view->texts[HISTORY_KEY], view->sizes[HISTORY_KEY]);
    if (view->state != JOB_SUCCEEDED) {
        words.words[words.n++] = history_number_word(WORD_STATE, view->state, 0);
        words.words[words.n++] = history_number_word(WORD_GROUP_STATE, view->state, view->group);
    }
    if (view->cause != 0)
        words.words[words.n++] = history_number_word(WORD_CAUSE, view->cause, 0);
    if (view->failed != 0)
        words.words[words.n++] = history_number_word(WORD_FAILED, view->failed, 0);
    (void)history_each_tag(view, add_tag, &words);
    return words;
}

/* Runs a statement with the bucket, number and hash of each word. */
static int change_words(struct history_database *database, enum history_statement which,
                        const struct view *view)
{
    sqlite3_stmt *statement = database->statements[which];
    const struct words words = words_of(view);
    int r = 0;

    for (unsigned i = 0; i < words.n && r == 0; i++) {
        (void)sqlite3_bind_int64(statement, 1, words.words[i].bucket);
        (void)sqlite3_bind_int64(statement, 2, view->number);
        (void)sqlite3_bind_int(statement, 3, words.words[i].hash);
        r = history_step(database, statement);
    }
    return r;
}

static uint64_t cost_of(const struct view *view)
{
    uint64_t bytes = HISTORY_ROW_COST;

    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++)
        bytes += view->sizes[i];
    return bytes;
}

/* Binds NULL for `absent`. */
static void bind_unless(sqlite3_stmt *statement, int column, uint64_t value, uint64_t absent)
{
    if (value == absent)
        (void)sqlite3_bind_null(statement, column + 1);
    else
        (void)sqlite3_bind_int64(statement, column + 1, (int64_t)value);
}

static void bind_text(sqlite3_stmt *statement, unsigned which, const char *text, int size)
{
    const int column = (int)(COLUMN_TEXTS + which + 1);

    if (size == 0 && which != HISTORY_ID)
        (void)sqlite3_bind_null(statement, column);
    else if (which == HISTORY_KEY || which == HISTORY_EXCERPT)
        (void)sqlite3_bind_blob(statement, column, text, size, SQLITE_STATIC);
    else
        (void)sqlite3_bind_text(statement, column, text, size, SQLITE_STATIC);
}

static void bind_row(sqlite3_stmt *statement, const struct history_row *row)
{
    const struct job_facts *facts = &row->facts;
    const uint64_t worked =
        facts->started_at > 0 ? usec_sub(facts->ended_at, facts->started_at) : UINT64_MAX;

    (void)sqlite3_bind_int64(statement, COLUMN_GROUP + 1, row->group->number);
    (void)sqlite3_bind_int(statement, COLUMN_STATE + 1, (int)row->state);
    bind_unless(statement, COLUMN_CAUSE, facts->cause, 0);
    bind_unless(statement, COLUMN_FAILED, facts->failed_by, 0);
    (void)sqlite3_bind_int(statement, COLUMN_PRIORITY + 1, facts->priority);
    (void)sqlite3_bind_int64(statement, COLUMN_UID + 1, facts->submitter_uid);
    (void)sqlite3_bind_int(statement, COLUMN_CODE + 1, facts->code);
    (void)sqlite3_bind_int64(statement, COLUMN_ATTEMPT + 1, facts->attempt);
    (void)sqlite3_bind_int64(statement, COLUMN_FAILURES + 1, facts->n_failed);
    (void)sqlite3_bind_int64(statement, COLUMN_RETRIES + 1, facts->max_retries);
    (void)sqlite3_bind_int64(statement, COLUMN_TOOK + 1,
                             (int64_t)usec_sub(facts->ended_at, facts->created_at));
    bind_unless(statement, COLUMN_WORKED, worked, UINT64_MAX);
    bind_unless(statement, COLUMN_PAYLOAD, row->payload_size, 0);
    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++)
        bind_text(statement, i, history_row_text(row, i), row->sizes[i]);
}

/* Adds the row under its number, or one of the next. Returns 0, STEP_EXISTS or -errno. */
static int insert(struct history_database *database, const struct history_row *row, int64_t *number)
{
    sqlite3_stmt *statement = database->statements[STATEMENT_ADD];
    const int64_t ended = (int64_t)row->facts.ended_at;
    int r = STEP_EXISTS;

    bind_row(statement, row);
    *number = ended;
    if (ended <= database->last && database->last - ended < LATE_MAX / 2)
        *number = database->last + 1;
    for (int i = 0; i < TRIES_MAX && r == STEP_EXISTS; i++) {
        *number += i;
        (void)sqlite3_bind_int64(statement, COLUMN_NUMBER + 1, *number);
        (void)sqlite3_bind_int64(statement, COLUMN_LATE + 1, *number - ended);
        r = history_step(database, statement);
    }
    return r;
}

int history_put_row(struct history_database *database, const struct history_row *row)
{
    struct view view;
    int64_t number;
    int r = insert(database, row, &number);

    if (r != 0)
        return r;
    database->last = number;
    view = view_row(row, number);
    row->group->n_rows++;
    row->group->bytes += cost_of(&view);
    row->group->changed = true;
    return change_words(database, STATEMENT_ADD_WORD, &view);
}

/* ---- removal ---- */

int history_get(struct history_database *database, int64_t number)
{
    sqlite3_stmt *statement = database->statements[STATEMENT_GET];

    (void)sqlite3_bind_int64(statement, 1, number);
    return history_step(database, statement);
}

static int remove_row(struct history_database *database, struct history_group *group,
                      int64_t number)
{
    sqlite3_stmt *row = database->statements[STATEMENT_GET];
    int r = history_get(database, number);

    if (r == STEP_ROW) {
        const struct view view = history_view(row);
        const uint64_t cost = cost_of(&view);

        group->n_rows -= group->n_rows > 0;
        group->bytes -= cost < group->bytes ? cost : group->bytes;
        group->changed = true;
        r = change_words(database, STATEMENT_REMOVE_WORD, &view);
    } else if (r == 0) { /* damage: only its entry is there */
        const struct view view = {.number = number, .group = group->number};

        r = change_words(database, STATEMENT_REMOVE_WORD, &view);
    }
    (void)sqlite3_reset(row);
    if (r < 0)
        return r;
    (void)sqlite3_bind_int64(database->statements[STATEMENT_REMOVE], 1, number);
    return history_step(database, database->statements[STATEMENT_REMOVE]);
}

int history_prune(struct history_database *database, struct history_group *group, int64_t until,
                  size_t max, size_t *ret)
{
    sqlite3_stmt *oldest = database->statements[STATEMENT_OLDEST];
    int r = 0;

    for (*ret = 0; *ret < max && r == 0 && group->n_rows > 0; ++*ret) {
        int64_t number;

        (void)sqlite3_bind_int64(oldest, 1, history_group_word(group->number).bucket);
        r = history_step(database, oldest);
        if (r != STEP_ROW)
            break;
        number = sqlite3_column_int64(oldest, 0);
        (void)sqlite3_reset(oldest);
        r = 0;
        if (number > until && group->bytes <= group->max)
            break;
        r = remove_row(database, group, number);
    }
    return r;
}
