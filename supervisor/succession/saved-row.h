/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Rows in which an upgrade hands over what only the process knows: a kind, fields, and a payload.
 * The parts of the supervisor write and read their own fields; upgrade/ brings them to the next
 * supervisor, which writes the same fields: see upgrade/kinds.c. Fields have no names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct payload;

/* Valid when zeroed. */
struct saved_writer {
    uint8_t *bytes; /* owned */
    size_t size, room;
    bool failed; /* out of memory */
};

void saved_put_number(struct saved_writer *writer, uint64_t number);
void saved_put_bytes(struct saved_writer *writer, const void *bytes, size_t size);
void saved_put_text(struct saved_writer *writer, const char *text); /* or NULL */
/* Appends fields that have been written already. */
void saved_put_raw(struct saved_writer *writer, const void *bytes, size_t size);
/* Fields put between the two form one field, or a list. */
size_t saved_begin(struct saved_writer *writer);
void saved_end(struct saved_writer *writer, size_t begin);

/* Where rows go; upgrade/ has one that writes them into a file. */
struct saver {
    int (*add)(struct saver *saver, const char *kind, const struct saved_writer *row,
               const struct payload *payload);
    int error; /* -errno of the first row that could not be added; none is added after it */
};

/* Saves a row, and ends the writer. `kind` is static; `payload` NULL = none. */
void saved_add(struct saver *saver, const char *kind, struct saved_writer *row,
               const struct payload *payload);

/* Reads borrowed bytes, and trusts nothing in them. */
struct saved_reader {
    const uint8_t *at, *end;
    bool damaged;        /* a field is cut off, too long or out of range */
    const void *payload; /* of the row; never NULL */
    size_t payload_size;
};

static inline bool saved_has_more(const struct saved_reader *reader)
{
    return reader->at < reader->end && !reader->damaged;
}

/* Returns the next field; 0 if it is missing or damaged. */
uint64_t saved_get_number(struct saved_reader *reader);
/* Like saved_get_number(), but for a number of `0 … max`; any other is damage, and read as 0. */
uint64_t saved_get_below(struct saved_reader *reader, uint64_t max);
/* Returns `*ret_size` borrowed bytes; never NULL. */
const void *saved_get_bytes(struct saved_reader *reader, size_t *ret_size);
/* Returns a borrowed text, or NULL if that was written. */
const char *saved_get_string(struct saved_reader *reader);
/* Copies a text, NULL as "", into `size` bytes. One that does not fit is damage, and read as "". */
void saved_get_text(struct saved_reader *reader, char *text, size_t size);
/* Returns a reader of the fields between saved_begin() and saved_end(). */
struct saved_reader saved_get_fields(struct saved_reader *reader);
