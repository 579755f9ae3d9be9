/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between history-database.c, history-rows.c and history-search.c. */

#include "supervisor/history/history-rows.h"

/* How far the number of a row may be after its end. */
#define LATE_MAX (2 * (int64_t)USEC_PER_SEC)

/* The columns of a row in all statements. */
#define COLUMNS                                                                                    \
    "number, late, grp, state, cause, failed, priority, uid, code, attempt, failures, retries,"    \
    " took, worked, payload_bytes, id, worker, key, tags, excerpt, reason"
enum column {
    COLUMN_NUMBER,
    COLUMN_LATE,
    COLUMN_GROUP,
    COLUMN_STATE,
    COLUMN_CAUSE,
    COLUMN_FAILED,
    COLUMN_PRIORITY,
    COLUMN_UID,
    COLUMN_CODE,
    COLUMN_ATTEMPT,
    COLUMN_FAILURES,
    COLUMN_RETRIES,
    COLUMN_TOOK,
    COLUMN_WORKED,
    COLUMN_PAYLOAD,
    COLUMN_TEXTS, /* enum history_text */
};

/* A row of the table "job"; texts are borrowed. */
struct view {
    int64_t number, late, group;
    int state, cause, failed;
    uid_t uid;
    const char *texts[_HISTORY_N_TEXTS];
    size_t sizes[_HISTORY_N_TEXTS];
};

/* What rows can be found by. */
enum word_kind {
    WORD_ID,
    WORD_KEY,
    WORD_TAG,
    WORD_STATE,
    WORD_CAUSE,
    WORD_FAILED,
    WORD_GROUP_STATE,
    WORD_GROUP, /* has a bucket for each */
};

#define BUCKETS   64 /* of a kind */
#define WORDS_MAX (6 + PROTOCOL_TAGS)

struct word {
    int64_t bucket;
    int32_t hash;
};

/* ---- history-database.c ---- */

enum {
    _STEP_SUCCESS,
    STEP_ROW,
    STEP_EXISTS,
};

/* Runs a statement. Returns 0 when it is finished, STEP_*, or -errno with `problem` set. */
int history_step(struct history_database *database, sqlite3_stmt *statement);

/* ---- history-rows.c ---- */

struct word history_word(enum word_kind kind, const void *data, size_t size);
struct word history_number_word(enum word_kind kind, int64_t number, int64_t second);
struct word history_group_word(int64_t number);

/* Returns the row that a statement has read, valid until its next step. */
struct view history_view(sqlite3_stmt *statement);
/* Calls `fn` for each tag until it returns true. Returns whether it did. */
bool history_each_tag(const struct view *view,
                      bool (*fn)(void *userdata, const char *tag, size_t size), void *userdata);
/* Reads a row; the statement is to be reset. Returns STEP_ROW, 0 = there is none, or -errno. */
int history_get(struct history_database *database, int64_t number);
