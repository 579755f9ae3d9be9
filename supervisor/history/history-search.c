/* SPDX-License-Identifier: MIT */

/* Searches. */

#include "shared/base/cleanup.h"
#include "supervisor/event/death.h"
#include "supervisor/history/history-private-rows.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_tag(void *userdata, const char *tag, size_t size)
{
    const char *wanted = userdata;

    return strlen(wanted) == size && memcmp(wanted, tag, size) == 0;
}

static bool has_text(const struct view *view, const char *text, size_t size)
{
    static const enum history_text searched[] = {HISTORY_ID, HISTORY_KEY, HISTORY_TAGS,
                                                 HISTORY_REASON, HISTORY_EXCERPT};

    for (unsigned i = 0; i < ELEMENTS(searched); i++)
        if (memmem(view->texts[searched[i]], view->sizes[searched[i]], text, size))
            return true;
    return false;
}

static bool equals(const struct view *view, enum history_text which, const char *text, size_t size)
{
    return !text || (view->sizes[which] == size && memcmp(view->texts[which], text, size) == 0);
}

/* Whether it matches all of the filter but what is contents. */
static bool matches_facts(const struct history_filter *filter, int64_t group,
                          const struct view *view)
{
    const usec_t ended = (usec_t)(view->number - view->late);

    return (group == 0 || view->group == group) &&
           (filter->state < 0 || view->state == filter->state) &&
           (filter->cause < 0 || view->cause == filter->cause) &&
           (filter->failed < 0 || view->failed == filter->failed) && ended >= filter->since &&
           (filter->until == 0 || ended <= filter->until) &&
           equals(view, HISTORY_ID, filter->id, filter->id ? strlen(filter->id) : 0);
}

static bool matches_contents(const struct history_filter *filter, const struct view *view)
{
    return equals(view, HISTORY_KEY, filter->key, filter->key_size) &&
           (!filter->tag || history_each_tag(view, is_tag, filter->tag)) &&
           (!filter->text || has_text(view, filter->text, filter->text_size));
}

static struct history_group *find_group(const struct list *groups, int64_t number)
{
    list_for_each (node, groups)
        if (list_entry(node, struct history_group, link)->number == number)
            return list_entry(node, struct history_group, link);
    return NULL;
}

static bool may_read(const struct history_reader *reader, const struct history_group *group,
                     uid_t uid)
{
    if (reader->all || (reader->uid != JOB_NOBODY && reader->uid == uid))
        return true;
    for (char **name = reader->groups; name && *name; name++)
        if (strcmp(*name, group->name) == 0)
            return true;
    return false;
}

/* Copies the texts that the client may see. Returns NULL without memory. */
static struct history_row *copy_row(const struct view *view, bool open)
{
    struct history_row *row;
    size_t size = 0;
    char *at;

    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++)
        size += view->sizes[i] + 1;
    row = calloc(1, sizeof(*row) + size);
    if (!row)
        return NULL;
    at = row->texts;
    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++) {
        if (open || i == HISTORY_ID || i == HISTORY_WORKER)
            row->sizes[i] = (uint16_t)view->sizes[i];
        memcpy(at, view->texts[i], row->sizes[i]);
        at += row->sizes[i] + 1;
    }
    return row;
}

static void fill_facts(struct job_facts *facts, sqlite3_stmt *statement, const struct view *view)
{
    const usec_t ended = (usec_t)(view->number - view->late);

    facts->ended_at = ended;
    facts->created_at = usec_sub(ended, (usec_t)sqlite3_column_int64(statement, COLUMN_TOOK));
    if (sqlite3_column_type(statement, COLUMN_WORKED) != SQLITE_NULL)
        facts->started_at = usec_sub(ended, (usec_t)sqlite3_column_int64(statement, COLUMN_WORKED));
    facts->cause = view->cause >= 0 && view->cause <= PROTOCOL_CAUSE_DEPENDENCY
                       ? (uint8_t)view->cause
                       : PROTOCOL_CAUSE_NONE;
    facts->failed_by = view->failed >= 0 && view->failed < _ATTEMPT_N_CAUSES ? (uint8_t)view->failed
                                                                             : ATTEMPT_CAUSE_NONE;
    facts->priority = (uint8_t)sqlite3_column_int(statement, COLUMN_PRIORITY);
    facts->submitter_uid = view->uid;
    facts->code = sqlite3_column_int(statement, COLUMN_CODE);
    facts->attempt = (uint32_t)sqlite3_column_int64(statement, COLUMN_ATTEMPT);
    facts->n_failed = (uint32_t)sqlite3_column_int64(statement, COLUMN_FAILURES);
    facts->max_retries = (uint32_t)sqlite3_column_int64(statement, COLUMN_RETRIES);
}

/* Adds a row to the hits if it matches. Returns 0 or -ENOMEM. */
static int offer(struct history_call *call, int64_t group, const struct list *groups,
                 sqlite3_stmt *statement)
{
    const struct view view = history_view(statement);
    struct history_group *of;
    struct history_row *row;
    bool open;

    if (!matches_facts(&call->filter, group, &view) || view.state < JOB_SUCCEEDED ||
        view.state > JOB_DEAD || !(of = find_group(groups, view.group)))
        return 0;
    open = may_read(&call->reader, of, view.uid);
    if ((!open && (call->filter.key || call->filter.tag || call->filter.text)) ||
        !matches_contents(&call->filter, &view))
        return 0;
    row = copy_row(&view, open);
    if (!row)
        return -ENOMEM;
    row->group = of;
    row->number = view.number;
    row->open = open;
    row->state = (enum job_state)view.state;
    if (open)
        row->payload_size = (uint64_t)sqlite3_column_int64(statement, COLUMN_PAYLOAD);
    fill_facts(&row->facts, statement, &view);
    list_push_back(&call->hits, &row->link);
    call->n_hits++;
    call->bytes += history_row_bytes(row);
    return 0;
}

/* Chooses the word that the fewest rows have. Returns false if all rows must be read. */
static bool choose_word(const struct history_filter *filter, int64_t group, struct word *ret)
{
    const bool state = filter->state > JOB_SUCCEEDED;

    if (filter->id)
        *ret = history_word(WORD_ID, filter->id, strlen(filter->id));
    else if (filter->key)
        *ret = history_word(WORD_KEY, filter->key, filter->key_size);
    else if (filter->tag)
        *ret = history_word(WORD_TAG, filter->tag, strlen(filter->tag));
    else if (state && group != 0)
        *ret = history_number_word(WORD_GROUP_STATE, filter->state, group);
    else if (filter->failed > 0)
        *ret = history_number_word(WORD_FAILED, filter->failed, 0);
    else if (filter->cause > 0)
        *ret = history_number_word(WORD_CAUSE, filter->cause, 0);
    else if (state)
        *ret = history_number_word(WORD_STATE, filter->state, 0);
    else if (group != 0)
        *ret = history_group_word(group);
    else
        return false;
    return true;
}

/* A search while it advances. */
struct scan {
    struct history_database *database;
    struct history_call *call;
    const struct list *groups;
    int64_t group; /* the wanted one; 0 = all */
    bool by_word;
    struct word word;
    sqlite3_stmt *statement;
};

/* Looks at the row of the entry that was read, if that has the wanted hash. */
static int offer_entry(struct scan *scan)
{
    sqlite3_stmt *row = scan->database->statements[STATEMENT_GET];
    int r;

    if (sqlite3_column_int(scan->statement, 1) != scan->word.hash)
        return 0;
    r = history_get(scan->database, sqlite3_column_int64(scan->statement, 0));
    if (r == STEP_ROW)
        r = offer(scan->call, scan->group, scan->groups, row);
    (void)sqlite3_reset(row);
    return r;
}

/* Looks at the next row or entry. */
static int advance(struct scan *scan)
{
    struct history_call *call = scan->call;
    int r = history_step(scan->database, scan->statement);

    call->complete = r == 0;
    if (r != STEP_ROW)
        return r;
    call->before = sqlite3_column_int64(scan->statement, 0);
    call->complete = call->before < (int64_t)call->filter.since;
    if (call->complete)
        return 0;
    return scan->by_word ? offer_entry(scan)
                         : offer(call, scan->group, scan->groups, scan->statement);
}

static int64_t number_of(const struct list *groups, const char *name)
{
    list_for_each (node, groups)
        if (strcmp(list_entry(node, struct history_group, link)->name, name) == 0)
            return list_entry(node, struct history_group, link)->number;
    return 0;
}

/* Rows are in the order of their numbers, which are at most LATE_MAX after their ends. */
static int64_t newest(const struct history_filter *filter)
{
    return filter->until > 0 && filter->until < (usec_t)(INT64_MAX - LATE_MAX)
               ? (int64_t)filter->until + LATE_MAX
               : INT64_MAX;
}

/* Entries between two looks at the clock. */
#define GLANCE 64

int history_search(struct history_database *database, struct history_call *call,
                   const struct list *groups, usec_t budget)
{
    const struct history_filter *filter = &call->filter;
    const usec_t end = clock_now() + budget;
    struct scan scan = {.database = database, .call = call, .groups = groups};
    int r = 0;

    scan.group = filter->group ? number_of(groups, filter->group) : 0;
    call->complete = filter->group && scan.group == 0;
    scan.by_word = choose_word(filter, scan.group, &scan.word);
    scan.statement = database->statements[scan.by_word ? STATEMENT_SCAN_WORD : STATEMENT_SCAN];
    if (call->before == 0)
        call->before = newest(filter);
    if (scan.by_word)
        (void)sqlite3_bind_int64(scan.statement, 1, scan.word.bucket);
    (void)sqlite3_bind_int64(scan.statement, 2, call->before);
    for (unsigned n = 1; r == 0 && !call->complete && !history_call_is_full(call); n++) {
        if (n % GLANCE == 0 && clock_now() >= end)
            break;
        r = advance(&scan);
    }
    (void)sqlite3_reset(scan.statement);
    return r;
}
