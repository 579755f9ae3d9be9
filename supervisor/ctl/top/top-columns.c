/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/top/top-columns.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CELL_MAX      512
#define NAME_MIN      20
#define NAME_MAX_SIZE 48

struct column {
    const char *title;
    unsigned width;
    unsigned rank; /* columns of a higher one are left out first */
    enum top_sort sort;
    void (*write)(char cell[CELL_MAX], const struct top_row *row);
};

/* ---- cells ---- */

static void print(char cell[CELL_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print(char cell[CELL_MAX], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(cell, CELL_MAX, format, arguments);
    va_end(arguments);
}

static void print_count(char cell[CELL_MAX], int64_t count)
{
    if (count >= 0)
        print(cell, "%s", COUNT((uint64_t)count));
}

static void print_span(char cell[CELL_MAX], int64_t span)
{
    if (span > 0)
        print(cell, "%s", SPAN((usec_t)span));
}

static void write_state(char cell[CELL_MAX], const struct top_row *row)
{
    print(cell, "%s", STATE(SAFE(row->state)));
}

static void write_up(char cell[CELL_MAX], const struct top_row *row)
{
    if (row->up >= 0)
        print(cell, "%" PRId64 "/%" PRId64, row->up, row->size);
}

static void write_queued(char cell[CELL_MAX], const struct top_row *row)
{
    print_count(cell, row->queued);
}

static void write_running(char cell[CELL_MAX], const struct top_row *row)
{
    print_count(cell, row->running);
}

static void write_oldest(char cell[CELL_MAX], const struct top_row *row)
{
    print_span(cell, row->oldest);
}

static void write_wait(char cell[CELL_MAX], const struct top_row *row)
{
    print_span(cell, row->wait);
}

static void write_run(char cell[CELL_MAX], const struct top_row *row)
{
    print_span(cell, row->run);
}

static void write_rate(char cell[CELL_MAX], const struct top_row *row)
{
    if (row->rate >= 100)
        print_count(cell, (int64_t)row->rate);
    else if (row->rate >= 0)
        print(cell, "%.1f", row->rate);
}

static void write_deaths(char cell[CELL_MAX], const struct top_row *row)
{
    print_count(cell, row->deaths);
}

static void write_cpu(char cell[CELL_MAX], const struct top_row *row)
{
    if (row->cpu >= 0)
        print(cell, "%.1f", row->cpu);
}

static void write_memory(char cell[CELL_MAX], const struct top_row *row)
{
    if (row->memory >= 0)
        print(cell, "%s", BYTES((uint64_t)row->memory));
}

static const struct column COLUMNS[] = {
    {"STATE", 9, 0, TOP_BY_NAME, write_state},      {"UP", 7, 1, TOP_BY_NAME, write_up},
    {"QUEUED", 7, 0, TOP_BY_QUEUE, write_queued},   {"OLDEST", 8, 2, TOP_BY_AGE, write_oldest},
    {"RUNNING", 7, 5, TOP_BY_NAME, write_running},  {"JOBS/S", 7, 1, TOP_BY_RATE, write_rate},
    {"WAIT99", 8, 6, TOP_BY_NAME, write_wait},      {"RUN99", 8, 4, TOP_BY_RUN, write_run},
    {"DEATHS", 6, 4, TOP_BY_DEATHS, write_deaths},  {"CPU%", 5, 3, TOP_BY_CPU, write_cpu},
    {"MEMORY", 10, 3, TOP_BY_MEMORY, write_memory},
};

/* ---- lines ---- */

/* Returns the highest rank of which all columns fit, with a name of the least width. */
static unsigned highest_rank(unsigned width)
{
    unsigned rank = 6;

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
        char cell[CELL_MAX] = "";

        if (COLUMNS[i].rank > rank)
            continue;
        COLUMNS[i].write(cell, row);
        append(line, " ", 1, false);
        append(line, cell, COLUMNS[i].width, i > 0);
    }
}

const char *top_sort_name(enum top_sort sort)
{
    for (size_t i = 0; i < ELEMENTS(COLUMNS); i++)
        if (sort != TOP_BY_NAME && COLUMNS[i].sort == sort)
            return COLUMNS[i].title;
    return "NAME";
}

/* ---- the supervisor, and deaths ---- */

struct sums {
    int64_t up, workers, queued, running;
};

static struct sums sum_groups(const json_t *groups)
{
    struct sums sums = {0};

    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        const json_t *workers = json_object_get(group, "workers"), *count;
        const char *state;

        json_object_foreach((json_t *)(uintptr_t)workers, state, count) sums.workers +=
            json_integer_value(count);
        sums.up += field_int(workers, "idle") + field_int(workers, "busy");
        sums.queued += field_int(group, "queued");
        sums.running += field_int(group, "running");
    }
    return sums;
}

void top_summary(char first[TOP_LINE_MAX], char second[TOP_LINE_MAX],
                 const struct top_source *source)
{
    const json_t *all = source->metrics, *groups = json_object_get(all, "groups");
    const json_t *supervisor = json_object_get(all, "supervisor");
    const json_t *store = json_object_get(all, "store");
    const json_t *kept = json_object_get(json_object_get(all, "dead_letters"), "kept");
    const struct sums sums = sum_groups(groups);

    (void)snprintf(first, TOP_LINE_MAX,
                   BOLD "trouped %s" PLAIN ", up %s; %zu group%s, %" PRId64 " of %" PRId64
                        " workers up; %s queued, %s running%s%s",
                   SAFE(field_text(supervisor, "version")),
                   SPAN(usec_sub(clock_realtime(), field_usec(supervisor, "started_at"))),
                   json_array_size(groups), plural(json_array_size(groups)), sums.up, sums.workers,
                   COUNT((uint64_t)sums.queued), COUNT((uint64_t)sums.running),
                   field_true(supervisor, "safe_mode") ? RED "; safe mode" PLAIN : "",
                   field_true(supervisor, "config_problem") ? RED "; configuration problem" PLAIN
                                                            : "");
    (void)snprintf(second, TOP_LINE_MAX,
                   "%s dead letters, %s errors; %s client%s; delays up to %s; %s memory%s%s",
                   COUNT(field_count(kept, "dead_letters")), COUNT(field_count(kept, "errors")),
                   COUNT(field_count(supervisor, "clients")),
                   plural(field_count(supervisor, "clients")),
                   SPAN(field_usec(supervisor, "recent_turn_usec")),
                   BYTES(field_count(supervisor, "resident_bytes")), store ? "; store " : "",
                   store ? STATE(SAFE(field_text(store, "state"))) : "");
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
