/* SPDX-License-Identifier: MIT */
/* The table "What survives what" of troupe-continuity(7) says what the tables of fields say. */
#include "supervisor/event/death.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/group-save.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/message/message-save.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/schedule-rows.h"
#include "tests/unit/suite.h"

#define MANUAL "supervisor/troupe-continuity.7"

/* The columns of the table, and the media that keep something then. */
static const struct {
    const char *name;
    unsigned media;
} TAKEOVERS[] = {
    {"Crash", MEDIUM_MEMORY | MEDIUM_DISK},
    {"Upgrade", MEDIUM_UPGRADE | MEDIUM_MEMORY | MEDIUM_DISK},
    {"Power cut", MEDIUM_DISK},
};

/* Rows of the table. Calls and rings are not in it: no table of fields describes them.
 */
static const struct {
    const char *row;
    const struct record *records[3];
} ROWS[] = {
    {"Waiting job", {&SAVED_JOB_RECORD}},
    {"\\ \\ durable", {&JOB_ROW_RECORD}},
    {"Job in hand", {&JOB_PAGE_RECORD}},
    {"Dependency, batch", {&SAVED_JOB_RECORD}},
    {"Timer, subscription, name", {&SCHEDULE_RECORD, &SUBSCRIPTION_RECORD, &ACTOR_NAME_RECORD}},
    {"Exchange made at run time", {&EXCHANGE_RECORD}},
    {"Ask, monitor", {&ASK_RECORD, &MONITOR_RECORD}},
    {"Checkpoint of a job", {&SAVED_JOB_RECORD}},
    {"Item that a job emitted", {&SAVED_ITEM_RECORD}},
    {"Attempt history, deaths", {&JOB_ATTEMPT_RECORD, &DEATH_RECORD}},
    {"Counters", {&GROUP_RECORD, &CELL_RECORD}},
    {"Dead letter of a message", {&DEAD_LETTER_RECORD}},
    {"Decision of a schedule", {&SCHEDULE_ROW_RECORD}},
    {"Settings of groups, cells", {&GROUP_KEPT_RECORD, &CELL_KEPT_RECORD}},
};

static unsigned media_of(const struct record *record)
{
    unsigned media = 0;

    for (size_t i = 0; i < record->n; i++)
        media |= record->fields[i].media;
    return media;
}

/* Finds the first line of the manual that begins with `row`, and returns what follows it. */
static char *find_row(const char *row)
{
    char *line = NULL, begin[64];
    FILE *manual = fopen(MANUAL, "re");
    size_t size = 0;

    ck_assert_ptr_nonnull(manual);
    (void)snprintf(begin, sizeof(begin), ".It %s Ta ", row);
    while (getline(&line, &size, manual) > 0)
        if (strncmp(line, begin, strlen(begin)) == 0) {
            (void)fclose(manual);
            memmove(line, line + strlen(begin), strlen(line + strlen(begin)) + 1);
            return line;
        }
    ck_abort_msg("%s has no row \"%s\"", MANUAL, row);
}

/* Returns the word in column `column` of the table; column 0 is that of a worker's crash. */
static void take_word(char *cells, size_t column, char ret[16])
{
    char *at = cells;

    for (size_t i = 0; i < column; i++) {
        at = strstr(at, " Ta ");
        ck_assert_ptr_nonnull(at);
        at += strlen(" Ta ");
    }
    (void)snprintf(ret, 16, "%.*s", (int)strcspn(at, " \n"), at);
}

static void check_row(const char *row, const struct record *record)
{
    char *cells = find_row(row), word[16];

    for (size_t i = 0; i < ELEMENTS(TAKEOVERS); i++) {
        const bool kept = media_of(record) & TAKEOVERS[i].media;

        take_word(cells, i + 1, word);
        ck_assert_msg((strcmp(word, "kept") == 0) == kept,
                      "%s: %s: %s, but the record \"%s\" is %s", row, TAKEOVERS[i].name, word,
                      record->name, kept ? "kept" : "not kept");
    }
    free(cells);
}

TEST(the_manual_says_what_survives_what)
{
    for (size_t i = 0; i < ELEMENTS(ROWS); i++)
        for (size_t j = 0; j < ELEMENTS(ROWS[i].records) && ROWS[i].records[j]; j++)
            check_row(ROWS[i].row, ROWS[i].records[j]);
}
