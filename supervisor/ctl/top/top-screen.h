/* SPDX-License-Identifier: MIT */
#pragma once

/* A full-screen terminal, by ncurses: lines with marks as in terminal.h, and keys. */

#include <stdbool.h>

/* Keys beside characters. */
enum {
    TOP_KEY_GONE = -2, /* the terminal is gone: no key will come */
    TOP_KEY_NONE = -1, /* nothing came in time, or a signal */
    TOP_KEY_UP = 0x110000,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE,
    TOP_KEY_RESIZE, /* the size has changed: draw again */
};

/* Returns false if the terminal cannot do it. `colors`: use them if it has them. */
bool top_screen_open(bool colors);
/* Restores the terminal. Idempotent. */
void top_screen_close(void);
/* Like top_screen_close(), but for a signal handler of a process that ends. */
void top_screen_abandon(void);

unsigned top_screen_width(void);
unsigned top_screen_height(void);

/* Begins a new picture, which is shown by top_screen_show(). */
void top_screen_clear(void);
/* Writes a line, cut at the width; `inverse` lines are filled to it. Nothing beyond the height. */
void top_screen_line(unsigned y, const char *text, bool inverse);
void top_screen_show(void);

/* Waits for a key, for at most so many milliseconds. Returns a character or TOP_KEY_*. */
int top_screen_key(int milliseconds);
