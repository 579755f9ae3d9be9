/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Prints text for people. Lines may contain marks for colours and any character. Colours and
 * characters that the terminal or file does not support are dropped or replaced by ASCII, and lines
 * are cut at its width.
 */

#include <stdbool.h>
#include <stdio.h>

/*
 * Marks are single control characters; format_safe() removes them from other text. Colours last
 * until PLAIN.
 */
#define PLAIN  "\001"
#define BOLD   "\002"
#define DIM    "\003"
#define RED    "\004"
#define GREEN  "\005"
#define YELLOW "\006"

struct terminal {
    FILE *file;
    unsigned width;  /* in columns; 0 = do not cut lines */
    unsigned height; /* in lines; 0 = not known */
    bool is_terminal;
    bool colors; /* it has them, and $NO_COLOR is not set */
    bool utf8;
};

/* Call setlocale() first. */
void terminal_init(struct terminal *terminal, FILE *file);

/* Reads the size again, for lines that are printed repeatedly. */
void terminal_measure(struct terminal *terminal);

/* Writes bytes unchanged; on a terminal, a newline follows text that does not end in one. Returns
 * false if that fails. */
bool terminal_write(const struct terminal *terminal, const void *data, size_t size);

/* Prints one line; the format has no newline. */
void terminal_print(const struct terminal *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Like terminal_print(), but without a newline, for lines that are overwritten. Cut one column
 * earlier. */
void terminal_print_over(const struct terminal *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The number of columns of a text, without its marks. */
unsigned terminal_text_width(const char *text);

/*
 * Error messages: one line each on standard error, after "troupectl: ". Control characters are
 * escaped; messages are cut after 4 KiB.
 */

/* As printf(3), without a newline. */
#define complain(...) complain_unknown(NULL, "", __VA_ARGS__)

/* Like complain(), but appends "; did you mean 'NEAREST'?", or `hint` if `nearest` is NULL or
 * empty. */
void complain_unknown(const char *nearest, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
