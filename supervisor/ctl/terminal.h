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

struct terminal {
    FILE *file;
    unsigned width; /* columns; 0 = lines are not cut */
    bool is_terminal;
    bool colors;
    bool utf8;
};

/* Needs setlocale() before. `colors` false = none even on a terminal ($NO_COLOR and dumb ones have
 * none either). */
void terminal_init(struct terminal *terminal, FILE *file, bool colors);

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
