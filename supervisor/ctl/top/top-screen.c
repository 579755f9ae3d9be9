/* SPDX-License-Identifier: MIT */

/* The screen of top: any terminal that knows the sequences of a VT220, as all do today. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/top/top.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* The second screen, without a cursor; and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

/* How long the rest of a key's sequence may take; else it is the key Escape. */
#define ESCAPE_MS 25

static struct terminal screen;
static struct termios settings_before;

static void on_resize(int signal)
{
    (void)signal;
}

bool top_screen_open(const struct terminal *terminal)
{
    /* Without SA_RESTART, so that it interrupts the wait for a key. */
    const struct sigaction action = {.sa_handler = on_resize};
    const char *term = getenv("TERM");
    struct termios settings;

    if (!term || strcmp(term, "dumb") == 0 || tcgetattr(STDIN_FILENO, &settings_before) < 0)
        return false;
    settings = settings_before;
    settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    settings.c_cc[VSUSP] = _POSIX_VDISABLE; /* a shell would not restore the screen */
    if (tcsetattr(STDIN_FILENO, TCSANOW, &settings) < 0)
        return false;
    (void)sigaction(SIGWINCH, &action, NULL);
    (void)setvbuf(stdout, NULL, _IOFBF, (size_t)64 << 10);
    screen = *terminal;
    fputs(ENTER, stdout);
    return true;
}

void top_screen_close(void)
{
    (void)!write(STDOUT_FILENO, LEAVE, strlen(LEAVE));
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
}

/* ---- keys ---- */

static const struct {
    const char *sequence;
    int key;
} KEYS[] = {
    {"\033[A", TOP_KEY_UP},         {"\033OA", TOP_KEY_UP},    {"\033[B", TOP_KEY_DOWN},
    {"\033OB", TOP_KEY_DOWN},       {"\033[C", TOP_KEY_RIGHT}, {"\033OC", TOP_KEY_RIGHT},
    {"\033[D", TOP_KEY_LEFT},       {"\033OD", TOP_KEY_LEFT},  {"\033[5~", TOP_KEY_PAGE_UP},
    {"\033[6~", TOP_KEY_PAGE_DOWN}, {"\033[H", TOP_KEY_HOME},  {"\033OH", TOP_KEY_HOME},
    {"\033[1~", TOP_KEY_HOME},      {"\033[F", TOP_KEY_END},   {"\033OF", TOP_KEY_END},
    {"\033[4~", TOP_KEY_END},
};

/* What was typed and not taken. */
static char typed[64];
static size_t n_typed;

/* Returns whether something came, or TOP_KEY_GONE. */
static int read_typed(int milliseconds)
{
    struct pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t n;

    if (poll(&terminal, 1, milliseconds) <= 0)
        return 0;
    n = read(STDIN_FILENO, typed + n_typed, sizeof(typed) - n_typed);
    if (n > 0)
        n_typed += (size_t)n;
    return n > 0 ? 1 : n < 0 && errno == EINTR ? 0 : TOP_KEY_GONE;
}

static int take(size_t size, int key)
{
    n_typed -= size;
    memmove(typed, typed + size, n_typed);
    return key;
}

int top_screen_key(int milliseconds)
{
    int r = n_typed > 0 ? 1 : read_typed(milliseconds);

    if (r <= 0)
        return r < 0 ? r : TOP_KEY_NONE;
    if (typed[0] != '\033')
        return take(1, (unsigned char)typed[0]);
    if (n_typed < 3)
        (void)read_typed(ESCAPE_MS);
    for (size_t i = 0; i < ELEMENTS(KEYS); i++) {
        const size_t size = strlen(KEYS[i].sequence);

        if (size <= n_typed && memcmp(typed, KEYS[i].sequence, size) == 0)
            return take(size, KEYS[i].key);
    }
    if (n_typed > 1 && (typed[1] == '[' || typed[1] == 'O'))
        return take(n_typed, TOP_KEY_NONE); /* another key */
    return take(1, '\033');
}

/* ---- drawing ---- */

/* The last column stays free, where some terminals begin a new line. */
static unsigned row_width(void)
{
    return screen.width > 1 ? screen.width - 1 : 1;
}

/* Writes a line, cut at the width; `inverse` lines are filled to it. Nothing beyond the height. */
static void put_line(unsigned y, const char *text, bool inverse)
{
    struct terminal plain = screen;
    const unsigned width = terminal_text_width(text);

    if (y >= screen.height)
        return;
    /* A change of colour would end the inverse. */
    plain.colors = screen.colors && !inverse;
    printf("\033[%u;1H%s", y + 1, inverse ? "\033[7m" : "");
    terminal_print_over(&plain, "%s", text);
    if (inverse)
        printf("%*s\033[0m", width < row_width() ? (int)(row_width() - width) : 0, "");
}

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
    const unsigned room = screen.height / DEATHS_SHARE;
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
    top_header(line, row_width(), top->choice.sort);
    put_line(2, line, true);
}

static void draw_rows(struct top *top, unsigned height)
{
    char line[TOP_LINE_MAX];

    top->shown = height;
    follow_selection(top);
    for (unsigned i = 0; i < height && top->first + i < top->rows.n; i++) {
        top_line(line, row_width(), &top->rows.items[top->first + i]);
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
                       *filter ? "  " : "", KEYS);
    put_line(screen.height - 1, line, false);
}

void top_screen_draw(struct top *top)
{
    unsigned height, deaths, rows;

    terminal_measure(&screen);
    height = screen.height;
    deaths = deaths_height(top);
    rows = height > HEAD + deaths + FOOT ? height - HEAD - deaths - FOOT : 0;
    fputs("\033[2J", stdout);
    draw_head(top);
    draw_rows(top, rows);
    draw_deaths(top, HEAD + rows, deaths);
    draw_foot(top);
    (void)fflush(stdout);
}
