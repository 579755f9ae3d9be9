/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads the text of troupe-trace (struct trace_output), all of which is hostile. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_FIELD_MAX 512

struct stack_line {
    bool is_thread; /* the frames that follow are its own, innermost first */
    int64_t thread;
    char name[STACK_FIELD_MAX];
    bool crashed, running; /* `running`: it could not be stopped, so it has no frames of C */

    /* For a frame; "" and 0 = not known. */
    bool python;
    char module[STACK_FIELD_MAX], function[STACK_FIELD_MAX], file[STACK_FIELD_MAX];
    uint64_t offset;
    int64_t line;
};

struct stack_reader {
    const char *at, *end;
};

/* Reads the next line; all strings are valid UTF-8 without control characters. Returns false at the
 * end, or where the text makes no sense. */
bool stack_next(struct stack_reader *reader, struct stack_line *ret);

/* Writes where the first thread is, or the one that crashed: "parse_chunk, image.c:311". It names
 * the innermost function that belongs neither to the C library nor to Python's interpreter. Returns
 * false if no function is known. */
bool stack_top(const char *text, size_t size, char *buffer, size_t buffer_size);
