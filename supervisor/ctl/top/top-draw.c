/* SPDX-License-Identifier: MIT */
/* Draws the picture of top. */

#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/top/top-columns.h"
#include "supervisor/ctl/top/top-screen.h"
#include "supervisor/ctl/top/top.h"
#include <stdio.h>
#include <string.h>

/* Lines above the rows, and the one for keys below them. */
#define HEAD 3
#define FOOT 1
/* Deaths at the bottom, with their title, on a screen that has room for them. */
#define DEATHS_MAX   6
#define DEATHS_SHARE 4

#define KEYS "q quit  Space opens and closes a group or cell  / filter  > sort by the next column"

static const json_t *deaths_of(const struct top *top)
{
    return json_object_get(top->source.deaths, "deaths");
}

static unsigned deaths_height(const struct top *top)
{
    const unsigned n = (unsigned)json_array_size(deaths_of(top)) + 1;
    const unsigned room = top_screen_height() / DEATHS_SHARE;
    const unsigned most = room < DEATHS_MAX ? room : DEATHS_MAX;

    return n == 1 || most < 2 ? 0 : n < most ? n : most;
}

/* Keeps the selection where its row is, and the row on the screen. */
static void follow_selection(struct top *top)
{
    size_t at = 0;

    while (at < top->rows.n && strcmp(top->rows.items[at].address, top->selected) != 0)
        at++;
    if (at < top->rows.n)
        top->at = at;
    else if (top->at >= top->rows.n)
        top->at = top->rows.n > 0 ? top->rows.n - 1 : 0;
    if (top->rows.n > 0)
        (void)snprintf(top->selected, sizeof(top->selected), "%s",
                       top->rows.items[top->at].address);
    if (top->at < top->first)
        top->first = top->at;
    if (top->shown > 0 && top->at >= top->first + top->shown)
        top->first = top->at - top->shown + 1;
    if (top->rows.n < top->first + top->shown)
        top->first = top->rows.n > top->shown ? top->rows.n - top->shown : 0;
}

static void draw_head(const struct top *top)
{
    char first[TOP_LINE_MAX], second[TOP_LINE_MAX], line[TOP_LINE_MAX];

    top_summary(first, second, &top->source);
    top_screen_line(0, first, false);
    if (!top->connected)
        (void)snprintf(second, sizeof(second), YELLOW "%s; trying again" PLAIN,
                       SAFE(top->source.problem));
    top_screen_line(1, second, false);
    top_header(line, top_screen_width(), top->choice.sort);
    top_screen_line(2, line, true);
}

static void draw_rows(struct top *top, unsigned height)
{
    char line[TOP_LINE_MAX];

    top->shown = height;
    follow_selection(top);
    for (unsigned i = 0; i < height && top->first + i < top->rows.n; i++) {
        top_line(line, top_screen_width(), &top->rows.items[top->first + i]);
        top_screen_line(HEAD + i, line, top->first + i == top->at);
    }
    if (top->rows.n == 0)
        top_screen_line(HEAD, *top->choice.filter ? "nothing matches the filter" : "no groups",
                        false);
}

static void draw_deaths(const struct top *top, unsigned y, unsigned height)
{
    char line[TOP_LINE_MAX];

    if (height == 0)
        return;
    top_screen_line(y, "LAST DEATHS", true);
    for (unsigned i = 0; i + 1 < height; i++) {
        top_death(line, json_array_get(deaths_of(top), i));
        top_screen_line(y + 1 + i, line, false);
    }
}

static void draw_foot(const struct top *top)
{
    const char *filter = top->choice.filter;
    char line[TOP_LINE_MAX];

    if (top->typing)
        (void)snprintf(line, sizeof(line), "Filter: %s_", SAFE(filter));
    else
        (void)snprintf(line, sizeof(line), "%s%s%s%s", *filter ? "Filter: " : "", SAFE(filter),
                       *filter ? "  " : "", KEYS);
    top_screen_line(top_screen_height() - 1, line, false);
}

void top_draw(struct top *top)
{
    const unsigned height = top_screen_height(), deaths = deaths_height(top);
    const unsigned rows = height > HEAD + deaths + FOOT ? height - HEAD - deaths - FOOT : 0;

    top_screen_clear();
    draw_head(top);
    draw_rows(top, rows);
    draw_deaths(top, HEAD + rows, deaths);
    draw_foot(top);
    top_screen_show();
}
