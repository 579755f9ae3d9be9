/* SPDX-License-Identifier: MIT */

/* The lines of top: as many columns as fit, the less important ones are left out first. */

#include "supervisor/ctl/top/top.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CELL_MAX      512
#define NAME_MIN      20
#define NAME_MAX_SIZE 48

enum column_kind {
    COLUMN_STATE,
    COLUMN_UP,
    COLUMN_COUNT, /* int64_t */
    COLUMN_SPAN,  /* int64_t */
    COLUMN_RATE,  /* double */
};

struct column {
    const char *title;
    enum column_kind kind;
    size_t offset; /* in struct top_row */
    unsigned width;
    unsigned rank; /* columns of a higher one are left out first */
    enum top_sort sort;
};

#define AT(field) offsetof(struct top_row, field)

static const struct column COLUMNS[] = {
    {"STATE", COLUMN_STATE, AT(state), 9, 0, TOP_BY_NAME},
    {"UP", COLUMN_UP, AT(up), 7, 1, TOP_BY_NAME},
    {"QUEUED", COLUMN_COUNT, AT(queued), 7, 0, TOP_BY_QUEUE},
    {"OLDEST", COLUMN_SPAN, AT(oldest), 8, 2, TOP_BY_AGE},
    {"RUNNING", COLUMN_COUNT, AT(running), 7, 4, TOP_BY_NAME},
    {"JOBS/S", COLUMN_RATE, AT(rate), 7, 1, TOP_BY_RATE},
    {"TOOK99", COLUMN_SPAN, AT(took), 8, 5, TOP_BY_NAME},
    {"RUN99", COLUMN_SPAN, AT(run), 8, 3, TOP_BY_RUN},
    {"DEATHS", COLUMN_COUNT, AT(deaths), 6, 3, TOP_BY_DEATHS},
};

/* ---- cells ---- */

static int64_t number_of(const struct column *column, const struct top_row *row)
{
    return *(const int64_t *)((const char *)row + column->offset);
}

/* Writes nothing for a number that is not known. */
static void write_cell(char cell[CELL_MAX], const struct column *column, const struct top_row *row)
{
    const int64_t number =
        column->kind == COLUMN_COUNT || column->kind == COLUMN_SPAN ? number_of(column, row) : -1;

    cell[0] = '\0';
    if (column->kind == COLUMN_STATE)
        (void)snprintf(cell, CELL_MAX, "%s", STATE(SAFE(row->state)));
    else if (column->kind == COLUMN_UP && row->up >= 0)
        (void)snprintf(cell, CELL_MAX, "%" PRId64 "/%" PRId64, row->up, row->size);
    else if (column->kind == COLUMN_RATE && row->rate >= 0)
        (void)snprintf(cell, CELL_MAX, "%.*f", row->rate < 100 ? 1 : 0, row->rate);
    else if (column->kind == COLUMN_COUNT && number >= 0)
        (void)snprintf(cell, CELL_MAX, "%s", COUNT((uint64_t)number));
    else if (column->kind == COLUMN_SPAN && number > 0)
        (void)snprintf(cell, CELL_MAX, "%s", SPAN((usec_t)number));
}

/* ---- lines ---- */

/* Returns the highest rank of which all columns fit, with a name of the least width. */
static unsigned highest_rank(unsigned width)
{
    unsigned rank = 5;

    for (; width > 0 && rank > 0; rank--) {
        unsigned used = NAME_MIN;

        for (size_t i = 0; i < ELEMENTS(COLUMNS); i++)
            used += COLUMNS[i].rank <= rank ? COLUMNS[i].width + 1 : 0;
        if (used <= width)
            break;
    }
    return rank;
}

static unsigned name_width(unsigned width, unsigned rank)
{
    unsigned used = 0;

    for (size_t i = 0; i < ELEMENTS(COLUMNS); i++)
        used += COLUMNS[i].rank <= rank ? COLUMNS[i].width + 1 : 0;
    if (width == 0 || width > used + NAME_MAX_SIZE)
        return NAME_MAX_SIZE;
    return width > used + NAME_MIN ? width - used : NAME_MIN;
}

/* Appends a text, filled with spaces at its left or right. */
static void append(char line[TOP_LINE_MAX], const char *text, unsigned width, bool right)
{
    const size_t used = strlen(line);
    const unsigned own = terminal_text_width(text);
    const int gap = own < width ? (int)(width - own) : 0;

    (void)snprintf(line + used, TOP_LINE_MAX - used, "%*s%s%*s", right ? gap : 0, "", text,
                   right ? 0 : gap, "");
}

/* A name that is too long loses its beginning. */
static void append_name(char line[TOP_LINE_MAX], const char *name, unsigned width)
{
    const size_t size = strlen(name);
    char cut[TOP_ADDRESS_MAX + 32];

    (void)snprintf(cut, sizeof(cut), "%s%s", size > width ? "…" : "",
                   size > width ? name + size - width + 1 : name);
    append(line, cut, width, false);
}

void top_header(char line[TOP_LINE_MAX], unsigned width, enum top_sort sort)
{
    const unsigned rank = highest_rank(width);

    line[0] = '\0';
    append(line, "NAME", name_width(width, rank), false);
    for (size_t i = 0; i < ELEMENTS(COLUMNS); i++) {
        char title[32];

        if (COLUMNS[i].rank > rank)
            continue;
        (void)snprintf(title, sizeof(title), "%s%s",
                       sort != TOP_BY_NAME && COLUMNS[i].sort == sort ? "*" : "", COLUMNS[i].title);
        append(line, " ", 1, false);
        append(line, title, COLUMNS[i].width, i > 0);
    }
}

void top_line(char line[TOP_LINE_MAX], unsigned width, const struct top_row *row)
{
    const unsigned rank = highest_rank(width);
    const char *mark = !row->may_open ? "  " : row->open ? "- " : "+ ";
    char name[TOP_ADDRESS_MAX + 16];

    (void)snprintf(name, sizeof(name), "%*s%s%s", 2 * (int)row->depth, "", mark,
                   SAFE(row->address));
    line[0] = '\0';
    append_name(line, name, name_width(width, rank));
    for (size_t i = 0; i < ELEMENTS(COLUMNS); i++) {
        char cell[CELL_MAX];

        if (COLUMNS[i].rank > rank)
            continue;
        write_cell(cell, &COLUMNS[i], row);
        append(line, " ", 1, false);
        append(line, cell, COLUMNS[i].width, i > 0);
    }
}

/* ---- the supervisor, and deaths ---- */

static uint64_t sum_of(const json_t *groups, const char *member)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(groups); i++)
        sum += field_count(json_array_get(groups, i), member);
    return sum;
}

void top_summary(char first[TOP_LINE_MAX], char second[TOP_LINE_MAX],
                 const struct top_source *source)
{
    const json_t *info = source->info, *groups = json_object_get(source->brief, "groups");
    const uint64_t clients = field_count(info, "clients");

    (void)snprintf(first, TOP_LINE_MAX,
                   BOLD "trouped %s" PLAIN
                        ", up %s; %zu group%s, %s of %s workers up; %s queued, %s running%s%s",
                   SAFE(field_text(info, "version")),
                   SPAN(usec_sub(clock_realtime(), field_usec(info, "started_at"))),
                   json_array_size(groups), plural(json_array_size(groups)),
                   COUNT(sum_of(groups, "up")), COUNT(sum_of(groups, "members")),
                   COUNT(sum_of(groups, "queued")), COUNT(sum_of(groups, "running")),
                   field_true(info, "safe_mode") ? RED "; safe mode" PLAIN : "",
                   field_has(info, "config_problem") ? RED "; configuration problem" PLAIN : "");
    (void)snprintf(second, TOP_LINE_MAX, "%s jobs dead; %s client%s; delays up to %s",
                   COUNT(sum_of(groups, "dead")), COUNT(clients), plural(clients),
                   SPAN(field_usec(info, "recent_turn_usec")));
}

void top_death(char line[TOP_LINE_MAX], const json_t *death)
{
    const char *job = field_text(death, "job");
    char last[256];

    show_last_line(last, sizeof(last), field_text(death, "stderr"));
    (void)snprintf(line, TOP_LINE_MAX, "%s " BOLD "%s" PLAIN " %s after %s%s%s%s%s",
                   TIME_OF_DAY(field_usec(death, "at")), SAFE(field_text(death, "worker")),
                   SAFE(field_text(death, "detail")), SPAN(field_usec(death, "uptime_usec")),
                   *job ? ", job " : "", SAFE(job), *last ? ": " : "", last);
}
