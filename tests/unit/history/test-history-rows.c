/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"
#include "supervisor/history/history-rows.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS   600u
#define N_GROUPS 3u
#define BASE     UINT64_C(1795305600000000)

static struct scratch scratch;
static struct history_database database;
static struct history_group groups[N_GROUPS];
static struct list all;
static struct history_row *rows[N_ROWS];
static unsigned seed;

static unsigned draw(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

/* Texts in the order of enum history_text. */
static struct history_row *make_row(const char *const texts[_HISTORY_N_TEXTS])
{
    struct history_row *row;
    size_t size = 0;
    char *at;

    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++)
        size += strlen(texts[i]) + 1;
    row = calloc(1, sizeof(*row) + size);
    at = row->texts;
    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++) {
        row->sizes[i] = (uint16_t)strlen(texts[i]);
        at = stpcpy(at, texts[i]) + 1;
    }
    return row;
}

static struct history_row *draw_row(unsigned i)
{
    static const char *const keys[] = {"", "blue", "red", "green"};
    static const char *const tags[] = {"", "one", "one two", "three"};
    char id[16], reason[32];
    const char *const texts[] = {id, "w/0", keys[draw(4)], tags[draw(4)], "excerpt", reason};
    struct history_row *row;

    (void)snprintf(id, sizeof(id), "job-%u", i);
    (void)snprintf(reason, sizeof(reason), "reason %u", draw(20));
    row = make_row(texts);
    row->group = &groups[draw(N_GROUPS)];
    row->state = JOB_SUCCEEDED + (enum job_state)draw(4);
    row->facts.ended_at = BASE + i / 4; /* several end at the same time */
    row->facts.created_at = row->facts.ended_at - draw(1000000);
    row->facts.started_at = draw(2) ? row->facts.created_at + 1 : 0;
    row->facts.submitter_uid = draw(3);
    row->facts.cause = row->state == JOB_DEAD ? PROTOCOL_CAUSE_ATTEMPTS : PROTOCOL_CAUSE_NONE;
    row->facts.failed_by = draw(3) == 0 ? ATTEMPT_CAUSE_OOM : ATTEMPT_CAUSE_NONE;
    return row;
}

static void begin(void)
{
    static const char *const names[N_GROUPS] = {"a", "b", "c"};

    seed = 7;
    list_init(&all);
    scratch_init(&scratch);
    database = (struct history_database)HISTORY_DATABASE_NULL;
    ck_assert_int_eq(history_database_open(&database, scratch.path), 0);
    ck_assert_int_eq(history_begin(&database), 0);
    for (unsigned i = 0; i < N_GROUPS; i++) {
        groups[i] =
            (struct history_group){.name = (char *)(uintptr_t)names[i], .max = UINT64_MAX / 2};
        list_push_back(&all, &groups[i].link);
        ck_assert_int_eq(history_put_group(&database, &groups[i]), 0);
        ck_assert_int_gt(groups[i].number, 0);
    }
    for (unsigned i = 0; i < N_ROWS; i++) {
        rows[i] = draw_row(i);
        ck_assert_int_eq(history_put_row(&database, rows[i]), 0);
    }
    ck_assert_int_eq(history_commit(&database), 0);
}

static void end(void)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        free(rows[i]);
    history_database_close(&database);
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
    return call;
}

/* What a row must be like, said in another way than by the search. */
static bool matches(const struct history_filter *filter, const struct history_reader *reader,
                    const struct history_row *row)
{
    const bool open = reader->all || row->facts.submitter_uid == reader->uid;
    char tags[64], tag[64];

    (void)snprintf(tags, sizeof(tags), " %s ", history_row_text(row, HISTORY_TAGS));
    (void)snprintf(tag, sizeof(tag), " %s ", filter->tag ? filter->tag : "");
    if ((filter->group && strcmp(filter->group, row->group->name) != 0) ||
        (filter->state >= 0 && filter->state != (int)row->state) ||
        (filter->cause >= 0 && filter->cause != row->facts.cause) ||
        (filter->failed >= 0 && filter->failed != row->facts.failed_by) ||
        row->facts.ended_at < filter->since ||
        (filter->until > 0 && row->facts.ended_at > filter->until))
        return false;
    return (!filter->key && !filter->tag && !filter->text) ||
           (open &&
            (!filter->key || strcmp(filter->key, history_row_text(row, HISTORY_KEY)) == 0) &&
            (!filter->tag || strstr(tags, tag)) &&
            (!filter->text || strstr(history_row_text(row, HISTORY_REASON), filter->text)));
}

static void draw_filter(struct history_call *call)
{
    struct history_filter *filter = &call->filter;

    if (draw(3) == 0)
        filter->group = strdup(draw(4) ? "b" : "none");
    if (draw(3) == 0) {
        filter->key = strdup("red");
        filter->key_size = 3;
    }
    if (draw(3) == 0)
        filter->tag = strdup(draw(2) ? "one" : "two");
    if (draw(4) == 0)
        filter->text = strdup("n 1");
    filter->text_size = filter->text ? 3 : 0;
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
    ck_assert_str_eq(history_row_text(hit, HISTORY_ID), history_row_text(rows[*i], HISTORY_ID));
    ck_assert_uint_eq(hit->facts.ended_at, rows[*i]->facts.ended_at);
    ck_assert_uint_eq(hit->facts.created_at, rows[*i]->facts.created_at);
    ck_assert_uint_eq(hit->facts.started_at, rows[*i]->facts.started_at);
    ck_assert_str_eq(history_row_text(hit, HISTORY_KEY),
                     hit->open ? history_row_text(rows[*i], HISTORY_KEY) : "");
}

TEST(Q14_every_search_finds_what_matches_once_and_newest_first_whatever_its_pages)
{
    begin();
    for (unsigned n = 0; n < 300; n++) {
        struct history_call *call = new_call();
        unsigned i = N_ROWS;

        draw_filter(call);
        while (!call->complete) {
            struct list *node;

            call->wanted = 1 + draw(20);
            call->n_hits = 0;
            ck_assert_int_eq(history_search(&database, call, &all, draw(2) ? 0 : 1000000), 0);
            while ((node = list_first(&call->hits))) {
                list_unlink(node);
                check_hit(call, list_entry(node, struct history_row, link), &i);
                free(list_entry(node, struct history_row, link));
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
        ck_assert_int_eq(history_search(&database, call, &all, 0), 0);
    ck_assert_uint_eq(call->n_hits, 1);
    history_call_free(call);
    end();
}

TEST(Q14_pruning_takes_the_oldest_and_leaves_no_entry_behind)
{
    size_t n = 0, removed = 0;

    begin();
    groups[0].max = groups[0].bytes / 2;
    ck_assert_int_eq(history_begin(&database), 0);
    do {
        ck_assert_int_eq(history_prune(&database, &groups[0], 0, 10, &n), 0);
        removed += n;
    } while (n == 10);
    ck_assert_uint_le(groups[0].bytes, groups[0].max);
    ck_assert_uint_gt(removed, 50);
    ck_assert_int_eq(count("SELECT count(*) FROM job"), (int64_t)(N_ROWS - removed));
    ck_assert_int_eq(count("SELECT (SELECT min(number) FROM job WHERE grp = 1) > "
                           "(SELECT min(number) FROM job WHERE grp = 2)"),
                     1);
    for (unsigned i = 0; i < N_GROUPS; i++)
        ck_assert_int_eq(history_prune(&database, &groups[i], INT64_MAX, N_ROWS, &n), 0);
    ck_assert_int_eq(history_commit(&database), 0);
    ck_assert_int_eq(count("SELECT (SELECT count(*) FROM job) + (SELECT count(*) FROM word)"), 0);
    ck_assert_uint_eq(groups[0].bytes + groups[1].n_rows + groups[2].n_rows, 0);
    end();
}

TEST(Q14_a_second_process_is_refused)
{
    struct history_database other = HISTORY_DATABASE_NULL;

    begin();
    ck_assert_int_eq(history_database_open(&other, scratch.path), -EALREADY);
    ck_assert_ptr_nonnull(strstr(other.problem, "another trouped uses it"));
    end();
}

const struct suite suite = {0};
