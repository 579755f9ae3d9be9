/* SPDX-License-Identifier: MIT */
#include "shared/base/cleanup.h"
#include "supervisor/event/death.h"
#include "supervisor/history/history-rows.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS 600u
#define BASE   UINT64_C(1795305600000000)

static struct scratch scratch;
static struct database database;
static struct history_row *rows[N_ROWS];
static unsigned seed;
static const char *const GROUPS[] = {"a", "b", "c-1"};

static unsigned draw(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

static void set(const char **text, uint32_t *size, const char *value)
{
    *text = value;
    *size = (uint32_t)strlen(value);
}

static struct history_row *draw_row(unsigned i)
{
    static const char *const keys[] = {"", "blue", "--", "green-red"};
    static const char *const tags[] = {"", "one", "one two", "three"};
    char id[16], reason[32];
    struct history_row row = {.state = JOB_SUCCEEDED + draw(4)};

    (void)snprintf(id, sizeof(id), "job-%u", i);
    (void)snprintf(reason, sizeof(reason), "Reason %u", draw(20));
    set(&row.group, &row.group_size, GROUPS[draw(3)]);
    set(&row.id, &row.id_size, id);
    set(&row.worker, &row.worker_size, "w/0");
    set(&row.key, &row.key_size, keys[draw(4)]);
    set(&row.tags, &row.tags_size, tags[draw(4)]);
    set(&row.excerpt, &row.excerpt_size, "excerpt");
    set(&row.reason, &row.reason_size, reason);
    row.ended_at = BASE + i / 4; /* several end at the same time */
    row.created_at = row.ended_at - draw(1000000);
    row.started_at = draw(2) ? row.created_at + 1 : 0;
    row.submitter_uid = draw(3);
    row.cause = row.state == JOB_DEAD ? PROTOCOL_CAUSE_ATTEMPTS : PROTOCOL_CAUSE_NONE;
    row.failed_by = draw(3) == 0 ? ATTEMPT_CAUSE_OOM : ATTEMPT_CAUSE_NONE;
    return history_row_copy(&row);
}

static void commit(void)
{
    ck_assert_int_eq(database_commit(&database), 0);
}

static void begin(void)
{
    int64_t last = 0;

    seed = 7;
    scratch_init(&scratch);
    database = (struct database)DATABASE_NULL;
    ck_assert_int_eq(database_open_format(&database, scratch.path, &HISTORY_FORMAT), 0);
    database_begin(&database);
    ck_assert_int_eq(history_rows_use(&database, "a", USEC_INFINITY, UINT64_MAX), 0);
    ck_assert_int_eq(history_rows_use(&database, "b", USEC_INFINITY, UINT64_MAX), 0);
    ck_assert_int_eq(history_rows_use(&database, "c-1", USEC_INFINITY, UINT64_MAX), 0);
    for (unsigned i = 0; i < N_ROWS; i++) {
        rows[i] = draw_row(i);
        ck_assert_int_eq(history_rows_add(&database, rows[i], &last), 0);
    }
    commit();
}

static void end(void)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        free(rows[i]);
    database_close(&database, false);
    scratch_deinit(&scratch);
}

static int64_t count(const char *sql)
{
    sqlite3_stmt *statement;
    int64_t n;

    ck_assert_int_eq(sqlite3_prepare_v2(database.handle, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    n = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return n;
}

static struct history_call *new_call(void)
{
    struct history_call *call = calloc(1, sizeof(*call));

    history_call_init(call, 0);
    call->reader.all = true;
    call->reader.groups = strdup(" ");
    return call;
}

/* Whether the text has the word, between ends or bytes that belong to no word. */
static bool has_word(const char *text, const char *word)
{
    for (const char *at = text; (at = strcasestr(at, word)); at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) &&
            !isalnum((unsigned char)at[strlen(word)]))
            return true;
    return false;
}

/* What a row must be like, said in another way than by the search. */
static bool matches(const struct history_filter *filter, const struct history_reader *reader,
                    const struct history_row *row)
{
    const bool open = reader->all || row->submitter_uid == reader->uid;
    char tags[64], tag[64];

    (void)snprintf(tags, sizeof(tags), " %s ", row->tags);
    (void)snprintf(tag, sizeof(tag), " %s ", filter->tag ? filter->tag : "");
    if ((filter->group && strcmp(filter->group, row->group) != 0) ||
        (filter->state >= 0 && filter->state != (int)row->state) ||
        (filter->cause >= 0 && filter->cause != row->cause) ||
        (filter->failed >= 0 && filter->failed != row->failed_by) ||
        row->ended_at < filter->since || (filter->until > 0 && row->ended_at > filter->until))
        return false;
    return (!filter->key && !filter->tag && !filter->text) ||
           (open && (!filter->key || strcmp(filter->key, row->key) == 0) &&
            (!filter->tag || strstr(tags, tag)) &&
            (!filter->text || (has_word(row->reason, "reason") &&
                               (has_word(row->reason, "1") || has_word(row->id, "1")))));
}

static void draw_filter(struct history_call *call)
{
    struct history_filter *filter = &call->filter;

    if (draw(3) == 0)
        filter->group = strdup(draw(4) ? "c-1" : "none");
    if (draw(3) == 0) {
        filter->key = strdup(draw(2) ? "green-red" : "--");
        filter->key_size = strlen(filter->key);
    }
    if (draw(3) == 0)
        filter->tag = strdup(draw(2) ? "one" : "two");
    if (draw(4) == 0)
        filter->text = strdup("1, rEASON");
    if (draw(3) == 0)
        filter->state = (int)(JOB_SUCCEEDED + draw(4));
    if (draw(5) == 0)
        filter->cause = PROTOCOL_CAUSE_ATTEMPTS;
    if (draw(5) == 0)
        filter->failed = ATTEMPT_CAUSE_OOM;
    if (draw(3) == 0)
        filter->since = BASE + draw(N_ROWS / 4);
    if (draw(3) == 0)
        filter->until = BASE + draw(N_ROWS / 4);
    call->reader.all = draw(2);
    call->reader.uid = 1;
}

/* Checks the next hit: the newest row below `*i` that matches. */
static void check_hit(const struct history_call *call, const struct history_row *hit, unsigned *i)
{
    while (*i > 0 && !matches(&call->filter, &call->reader, rows[*i - 1]))
        --*i;
    ck_assert_uint_gt(*i, 0);
    --*i;
    ck_assert_str_eq(hit->id, rows[*i]->id);
    ck_assert_uint_eq(hit->ended_at, rows[*i]->ended_at);
    ck_assert_uint_eq(hit->created_at, rows[*i]->created_at);
    ck_assert_uint_eq(hit->started_at, rows[*i]->started_at);
    ck_assert_str_eq(hit->key, hit->open ? rows[*i]->key : "");
}

TEST(Q14_every_search_finds_what_matches_once_and_newest_first_whatever_its_pages)
{
    begin();
    for (unsigned n = 0; n < 300; n++) {
        struct history_call *call = new_call();
        unsigned i = N_ROWS;

        draw_filter(call);
        while (!call->complete) {

            call->wanted = 1 + draw(20);
            call->n_hits = call->bytes = 0;
            ck_assert_int_eq(history_rows_search(&database, call, draw(2) ? 0 : 1000000), 0);
            list_until_empty (row, &call->hits, struct history_row, link) {
                list_unlink(&row->link);
                check_hit(call, row, &i);
                free(row);
            }
        }
        while (i > 0)
            ck_assert(!matches(&call->filter, &call->reader, rows[--i]));
        history_call_free(call);
    }
    end();
}

TEST(Q14_a_job_is_found_by_its_id)
{
    struct history_call *call = new_call();

    begin();
    call->filter.id = strdup("job-77");
    call->wanted = 1;
    while (!call->complete && call->n_hits == 0)
        ck_assert_int_eq(history_rows_search(&database, call, 0), 0);
    ck_assert_uint_eq(call->n_hits, 1);
    history_call_free(call);
    end();
}

/* Adds rows like `row`, of which the first half has the one word, the other half the other one. */
static void add_many(struct history_row *row, unsigned n, const char *first, const char *second)
{
    int64_t last = 0;

    for (unsigned i = 0; i < n; i++) {
        set(&row->reason, &row->reason_size, i % 2 ? first : second);
        row->ended_at = BASE + N_ROWS + i;
        ck_assert_int_eq(history_rows_add(&database, row, &last), 0);
    }
}

TEST(Q14_a_search_for_common_words_that_no_row_has_together_keeps_to_its_budget)
{
    struct history_call *call = new_call();
    unsigned n = 0;

    begin();
    database_begin(&database);
    add_many(rows[0], 20000, "left", "right");
    commit();
    call->filter.text = strdup("left right");
    call->wanted = 1;
    ck_assert_int_eq(history_rows_search(&database, call, 0), 0);
    ck_assert(!call->complete);
    for (; !call->complete; n++)
        ck_assert_int_eq(history_rows_search(&database, call, 0), 0);
    ck_assert_uint_gt(n, 100);
    ck_assert_uint_eq(call->n_hits, 0);
    history_call_free(call);
    end();
}

/* The cursor of a page tells the time of the row that was read last. */
TEST(Q14_a_search_reads_no_row_whose_contents_the_reader_may_not_see)
{
    begin();
    for (unsigned i = 0; i < 4; i++) {
        struct history_call *call = new_call();

        call->reader.all = i == 3;
        call->reader.uid = i == 1 ? 1 : JOB_NOBODY;
        free(call->reader.groups);
        call->reader.groups = strdup(i == 2 ? " none a " : " ");
        call->filter.text = strdup("reason");
        call->wanted = N_ROWS + 1;
        for (; !call->complete; call->bytes = 0)
            ck_assert_int_eq(history_rows_search(&database, call, 1000000), 0);
        ck_assert_int_eq(call->before > 0, i > 0);
        ck_assert_int_eq(call->n_hits > 0, i > 0);
        history_call_free(call);
    }
    end();
}

TEST(Q14_a_key_with_the_mark_of_other_words_is_found)
{
    struct history_row row;
    int64_t last = 0;

    begin();
    row = *rows[0];
    set(&row.key, &row.key_size, "left" HISTORY_MARK "right");
    row.ended_at = BASE + N_ROWS;
    database_begin(&database);
    ck_assert_int_eq(history_rows_add(&database, &row, &last), 0);
    commit();
    for (unsigned i = 0; i < 2; i++) {
        struct history_call *call = new_call();

        *(i ? &call->filter.text : &call->filter.key) = strdup(row.key);
        call->filter.key_size = i ? 0 : row.key_size;
        call->wanted = 1;
        while (!call->complete && call->n_hits == 0)
            ck_assert_int_eq(history_rows_search(&database, call, 1000000), 0);
        ck_assert_uint_eq(call->n_hits, 1);
        history_call_free(call);
    }
    end();
}

/* How many rows have the word "reason", as the index alone says. */
#define INDEXED "SELECT count(*) FROM word WHERE word MATCH 'reason'"

TEST(Q14_pruning_takes_the_oldest_and_leaves_no_entry_behind)
{
    size_t left, removed = 0;
    int64_t half;

    begin();
    half = count("SELECT bytes / 2 FROM grp WHERE name = 'a'");
    database_begin(&database);
    ck_assert_int_eq(history_rows_use(&database, "a", USEC_INFINITY, (uint64_t)half), 0);
    do {
        left = 10;
        ck_assert_int_eq(history_rows_prune(&database, BASE + N_ROWS, &left), 0);
        removed += 10 - left;
    } while (left == 0);
    ck_assert_int_le(count("SELECT bytes FROM grp WHERE name = 'a'"), half);
    ck_assert_uint_gt(removed, 50);
    ck_assert_int_eq(count("SELECT count(*) FROM job"), (int64_t)(N_ROWS - removed));
    ck_assert_int_eq(count(INDEXED), (int64_t)(N_ROWS - removed));
    ck_assert_int_eq(count("SELECT (SELECT min(number) FROM job WHERE grp = 'a') > "
                           "(SELECT min(number) FROM job WHERE grp = 'b')"),
                     1);
    left = N_ROWS;
    ck_assert_int_eq(history_rows_purge(&database, "b", INT64_MAX, &left), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM job WHERE grp = 'b'"), 0);
    ck_assert_int_eq(history_rows_use(&database, "a", 1, UINT64_MAX), 0);
    ck_assert_int_eq(history_rows_use(&database, "c-1", 1, UINT64_MAX), 0);
    ck_assert_int_eq(history_rows_prune(&database, BASE + 2 * N_ROWS, &left), 0);
    commit();
    ck_assert_int_eq(count("SELECT count(*) FROM job"), 0);
    ck_assert_int_eq(count(INDEXED), 0);
    ck_assert_int_eq(count("SELECT sum(n_rows) + sum(bytes) FROM grp"), 0);
    end();
}

/* The index has lower case only. */
static bool file_has(const char *text)
{
    FILE *file = fopen(scratch.path, "re");
    bool has = false;
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    while (!has && (size = getdelim(&line, &room, EOF, file)) > 0)
        has = memmem(line, (size_t)size, text, strlen(text));
    free(line);
    (void)fclose(file);
    return has;
}

TEST(Q14_rows_that_are_removed_leave_no_text_in_the_file)
{
    size_t left = N_ROWS;

    begin();
    ck_assert_int_eq(database_checkpoint(&database), 0);
    ck_assert(file_has("Reason"));
    database_begin(&database);
    for (size_t i = 0; i < ELEMENTS(GROUPS); i++)
        ck_assert_int_eq(history_rows_purge(&database, GROUPS[i], INT64_MAX, &left), 0);
    commit();
    ck_assert_int_eq(count("SELECT count(*) FROM job"), 0);
    ck_assert_int_eq(database_checkpoint(&database), 0);
    ck_assert(!file_has("Reason"));
    end();
}

TEST(Q14_a_second_process_is_refused)
{
    struct database other = DATABASE_NULL;

    begin();
    ck_assert_int_eq(database_open_format(&other, scratch.path, &HISTORY_FORMAT), -EALREADY);
    ck_assert_ptr_nonnull(strstr(other.problem, "another trouped uses it"));
    end();
}

const struct suite suite = {0};
