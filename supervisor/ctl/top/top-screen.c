/* SPDX-License-Identifier: MIT */

/* The screen of top, drawn with ncurses. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/top/top.h"
#include <curses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

/* How long the rest of a key's sequence may take; else it is the key Escape. */
#define ESCAPE_MS 25

static struct terminal screen;

/* For top_screen_abandon(), because curses must not be called from a signal handler. */
static struct termios settings_before;
static char end_sequences[256];

static void prepare_to_abandon(void)
{
    static const char *const names[] = {"sgr0", "cnorm", "rmkx", "rmcup"};

    for (size_t i = 0; i < ELEMENTS(names); i++) {
        const char *text = tigetstr(names[i]);

        /* A sequence with a delay, as old terminals need, is for tputs(3) only. */
        if (text && text != (const char *)-1 && !strstr(text, "$<") &&
            strlen(end_sequences) + strlen(text) < sizeof(end_sequences))
            strcat(end_sequences, text);
    }
}

static void open_colors(void)
{
    if (!has_colors() || start_color() == ERR)
        return;
    (void)use_default_colors();
    for (short color = COLOR_RED; color <= COLOR_YELLOW; color++)
        (void)init_pair(color, color, -1);
}

bool top_screen_open(const struct terminal *terminal)
{
    const char *term = getenv("TERM");

    if (!term || strcmp(term, "dumb") == 0 || tcgetattr(STDIN_FILENO, &settings_before) < 0 ||
        !newterm(NULL, stdout, stdin))
        return false;
    screen = *terminal;
    prepare_to_abandon();
    if (terminal->colors)
        open_colors();
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    (void)set_escdelay(ESCAPE_MS);
    return true;
}

void top_screen_close(void)
{
    (void)endwin();
}

void top_screen_abandon(void)
{
    (void)!write(STDOUT_FILENO, end_sequences, strlen(end_sequences));
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
}

int top_screen_key(int milliseconds)
{
    struct pollfd terminal = {.fd = STDIN_FILENO};
    int key;

    timeout(milliseconds);
    key = getch();
    /* getch() also returns ERR, at once, on a terminal that was closed. */
    return key == ERR && poll(&terminal, 1, 0) == 1 ? TOP_KEY_GONE : key;
}

/* ---- drawing ---- */

/* Draws a character, or sets the attributes of a mark. */
static void put_piece(const struct terminal *terminal, const char *piece, size_t length)
{
    static const struct {
        const char *mark;
        attr_t attributes;
    } looks[] = {
        {BOLD, A_BOLD},
        {DIM, A_DIM},
        {RED, COLOR_PAIR(COLOR_RED)},
        {GREEN, COLOR_PAIR(COLOR_GREEN)},
        {YELLOW, COLOR_PAIR(COLOR_YELLOW)},
    };

    size_t i = 0;

    (void)terminal;
    while (i < ELEMENTS(looks) && *piece != *looks[i].mark)
        i++;
    if (i < ELEMENTS(looks))
        (void)attr_on(looks[i].attributes, NULL);
    else if (*piece == *PLAIN)
        (void)standend();
    else
        (void)addnstr(piece, (int)length);
}

/* Draws a line, cut at the width. Draws nothing below the screen. An inverse line is as wide as the
 * screen, without colours. */
static void put_line(unsigned y, const char *text, bool inverse)
{
    if (move((int)y, 0) == ERR)
        return;
    terminal_split(&screen, text, (unsigned)COLS, put_piece);
    if (inverse)
        (void)mvchgat((int)y, 0, -1, A_REVERSE, 0, NULL);
}

/* Lines above the rows, and the one for keys below them. */
#define HEAD 3
#define FOOT 1
/* Deaths at the bottom, with their title, on a screen that has room for them. */
#define DEATHS_MAX   6
#define DEATHS_SHARE 4

#define HELP "q quit  Space opens and closes a group or cell  / filter  > sort by the next column"

static const json_t *deaths_of(const struct top *top)
{
    return json_object_get(top->source.deaths, "deaths");
}

static unsigned deaths_height(const struct top *top)
{
    const unsigned n = (unsigned)json_array_size(deaths_of(top)) + 1;
    const unsigned room = (unsigned)LINES / DEATHS_SHARE;
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
    put_line(0, first, false);
    if (*top->source.problem)
        (void)snprintf(second, sizeof(second), YELLOW "%s; trying again" PLAIN,
                       SAFE(top->source.problem));
    put_line(1, second, false);
    top_header(line, (unsigned)COLS, top->choice.sort);
    put_line(2, line, true);
}

static void draw_rows(struct top *top, unsigned height)
{
    char line[TOP_LINE_MAX];

    top->shown = height;
    follow_selection(top);
    for (unsigned i = 0; i < height && top->first + i < top->rows.n; i++) {
        top_line(line, (unsigned)COLS, &top->rows.items[top->first + i]);
        put_line(HEAD + i, line, top->first + i == top->at);
    }
    if (top->rows.n == 0)
        put_line(HEAD, *top->choice.filter ? "nothing matches the filter" : "no groups", false);
}

static void draw_deaths(const struct top *top, unsigned y, unsigned height)
{
    char line[TOP_LINE_MAX];

    if (height == 0)
        return;
    put_line(y, "LAST DEATHS", true);
    for (unsigned i = 0; i + 1 < height; i++) {
        top_death(line, json_array_get(deaths_of(top), i));
        put_line(y + 1 + i, line, false);
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
                       *filter ? "  " : "", HELP);
    put_line((unsigned)LINES - 1, line, false);
}

void top_screen_draw(struct top *top)
{
    const unsigned height = (unsigned)LINES, deaths = deaths_height(top);
    const unsigned rows = height > HEAD + deaths + FOOT ? height - HEAD - deaths - FOOT : 0;

    (void)erase();
    draw_head(top);
    draw_rows(top, rows);
    draw_deaths(top, HEAD + rows, deaths);
    draw_foot(top);
    (void)refresh();
}
