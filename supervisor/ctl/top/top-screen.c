/* SPDX-License-Identifier: MIT */
#define NCURSES_WIDECHAR 1
#include "supervisor/ctl/top/top-screen.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/terminal.h"
#include <curses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

static SCREEN *screen;

/* For top_screen_abandon(). */
static struct termios settings_before;
static char end_sequences[256];

enum pair {
    PAIR_RED = 1,
    PAIR_GREEN,
    PAIR_YELLOW,
};

static void open_colors(void)
{
    if (!has_colors() || start_color() == ERR)
        return;
    (void)use_default_colors();
    (void)init_pair(PAIR_RED, COLOR_RED, -1);
    (void)init_pair(PAIR_GREEN, COLOR_GREEN, -1);
    (void)init_pair(PAIR_YELLOW, COLOR_YELLOW, -1);
}

static void prepare_to_abandon(void)
{
    static const char *const names[] = {"sgr0", "cnorm", "rmkx", "rmcup"};
    size_t used = 0;

    for (size_t i = 0; i < ELEMENTS(names); i++) {
        const char *text = tigetstr(names[i]);

        /* One with a delay, as of old terminals, is for tputs(3) only. */
        if (text && text != (const char *)-1 && !strstr(text, "$<") &&
            used + strlen(text) < sizeof(end_sequences)) {
            strcpy(end_sequences + used, text);
            used += strlen(text);
        }
    }
}

bool top_screen_open(bool colors)
{
    if (tcgetattr(STDOUT_FILENO, &settings_before) < 0)
        return false;
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return false;
    (void)set_term(screen);
    prepare_to_abandon();
    if (colors)
        open_colors();
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    (void)set_escdelay(25);
    return true;
}

void top_screen_close(void)
{
    if (!screen)
        return;
    (void)endwin();
    delscreen(screen);
    screen = NULL;
}

void top_screen_abandon(void)
{
    (void)!write(STDOUT_FILENO, end_sequences, strlen(end_sequences));
    (void)tcsetattr(STDOUT_FILENO, TCSANOW, &settings_before);
}

unsigned top_screen_width(void)
{
    return (unsigned)COLS;
}

unsigned top_screen_height(void)
{
    return (unsigned)LINES;
}

void top_screen_clear(void)
{
    (void)erase();
}

static attr_t color(enum pair pair)
{
    return (attr_t)COLOR_PAIR(pair);
}

/* Changes the attributes as a mark says. Returns false if it is none. */
static bool take_mark(char c, attr_t base)
{
    const struct {
        char mark;
        attr_t attributes;
    } looks[] = {
        {BOLD[0], A_BOLD},
        {DIM[0], A_DIM},
        {RED[0], color(PAIR_RED)},
        {GREEN[0], color(PAIR_GREEN)},
        {YELLOW[0], color(PAIR_YELLOW)},
    };

    if (c == PLAIN[0])
        (void)attrset((int)base);
    for (size_t i = 0; i < ELEMENTS(looks); i++)
        if (c == looks[i].mark)
            (void)attron((int)looks[i].attributes);
    return c >= PLAIN[0] && c <= YELLOW[0];
}

/* Reads a character; one that the locale does not know becomes '?'. */
static size_t take_character(const char *text, wchar_t *ret)
{
    const size_t length = mbrtowc(ret, text, strlen(text), &(mbstate_t){0});

    if (length == 0 || length > strlen(text) || wcwidth(*ret) < 0) {
        *ret = L'?';
        return length == 0 || length > strlen(text) ? 1 : length;
    }
    return length;
}

void top_screen_line(unsigned y, const char *text, bool inverse)
{
    const attr_t base = inverse ? A_REVERSE : A_NORMAL;
    int used = 0;

    if ((int)y >= LINES || move((int)y, 0) == ERR)
        return;
    (void)attrset((int)base);
    while (*text != '\0') {
        wchar_t wide[2] = {0};
        size_t length = 1;

        if (!take_mark(*text, base)) {
            length = take_character(text, wide);
            used += wcwidth(wide[0]);
            if (used > COLS)
                break;
            (void)addnwstr(wide, 1);
        }
        text += length;
    }
    for (; inverse && used < COLS; used++)
        (void)addch(' ');
    (void)attrset(A_NORMAL);
}

void top_screen_show(void)
{
    (void)refresh();
}

static const struct {
    int curses, ours;
} KEYS[] = {
    {KEY_UP, TOP_KEY_UP},         {KEY_DOWN, TOP_KEY_DOWN},
    {KEY_LEFT, TOP_KEY_LEFT},     {KEY_RIGHT, TOP_KEY_RIGHT},
    {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
    {KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
    {KEY_ENTER, TOP_KEY_ENTER},   {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
    {KEY_RESIZE, TOP_KEY_RESIZE},
};

/* Then getch() returns at once, again and again. */
static bool is_gone(void)
{
    struct pollfd terminal = {.fd = STDIN_FILENO};

    return poll(&terminal, 1, 0) == 1 && terminal.revents != 0;
}

int top_screen_key(int milliseconds)
{
    int key;

    timeout(milliseconds);
    key = getch();
    if (key == ERR)
        return is_gone() ? TOP_KEY_GONE : TOP_KEY_NONE;
    for (size_t i = 0; i < ELEMENTS(KEYS); i++)
        if (KEYS[i].curses == key)
            return KEYS[i].ours;
    switch (key) {
    case '\r':
    case '\n':
        return TOP_KEY_ENTER;
    case 27:
        return TOP_KEY_ESCAPE;
    case 127:
    case '\b':
        return TOP_KEY_BACKSPACE;
    default:
        return key < 256 ? key : TOP_KEY_NONE;
    }
}
