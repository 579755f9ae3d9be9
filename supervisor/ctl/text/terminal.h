/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where text for people goes. Lines carry marks for colours and may use any character; what the
 * terminal (or the file in its place) does not have is left out or spelt in ASCII on the way, and
 * lines are cut at its width.
 */

#include <stdbool.h>
#include <stdio.h>

/*
 * Marks: one control character each, which format_safe() lets nobody else write. Colours last until
 * PLAIN.
 */
#define PLAIN  "\001"
#define BOLD   "\002"
#define DIM    "\003"
#define RED    "\004"
#define GREEN  "\005"
#define YELLOW "\006"

enum terminal_color {
    TERMINAL_COLOR_AUTO, /* on a terminal that has them, unless $NO_COLOR is set */
    TERMINAL_COLOR_ALWAYS,
    TERMINAL_COLOR_NEVER,
};

/* "auto", "always", "never": 0 or -EINVAL. */
int terminal_color_from_string(enum terminal_color *ret, const char *text);

struct terminal {
    FILE *file;
    unsigned width; /* columns; 0 = lines are not cut */
    bool is_terminal;
    bool colors;
    bool utf8;
};

/* Needs setlocale() before. */
void terminal_init(struct terminal *terminal, FILE *file, enum terminal_color color);

/* The width may have changed: for what is printed again and again. */
void terminal_measure(struct terminal *terminal);

/* One line, without its newline in the format. */
void terminal_print(const struct terminal *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, without the newline, for lines that are overwritten: cut one column earlier. */
void terminal_print_over(const struct terminal *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Columns that a text takes, marks not counted. */
unsigned terminal_text_width(const char *text);
