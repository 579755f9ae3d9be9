/* SPDX-License-Identifier: MIT */
#include "supervisor/succession/saved-row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the place of `size` more bytes, or NULL when out of memory. */
static uint8_t *extend(struct saved_writer *writer, size_t size)
{
    uint8_t *place;

    if (!writer->failed && size > writer->room - writer->size) {
        const size_t room = 2 * (writer->size + size) + 256;
        uint8_t *bytes = realloc(writer->bytes, room);

        writer->failed = !bytes;
        writer->bytes = bytes ? bytes : writer->bytes;
        writer->room = bytes ? room : writer->room;
    }
    if (writer->failed)
        return NULL;
    place = writer->bytes + writer->size;
    writer->size += size;
    return place;
}

void saved_put_number(struct saved_writer *writer, uint64_t number)
{
    uint8_t *place = extend(writer, sizeof(number));

    if (place)
        memcpy(place, &number, sizeof(number));
}

void saved_put_raw(struct saved_writer *writer, const void *bytes, size_t size)
{
    uint8_t *place = extend(writer, size);

    if (place && size > 0)
        memcpy(place, bytes, size);
}

void saved_put_bytes(struct saved_writer *writer, const void *bytes, size_t size)
{
    saved_put_number(writer, size);
    saved_put_raw(writer, bytes, size);
}

void saved_put_text(struct saved_writer *writer, const char *text)
{
    saved_put_bytes(writer, text, text ? strlen(text) + 1 : 0);
}

size_t saved_begin(struct saved_writer *writer)
{
    saved_put_number(writer, 0);
    return writer->size;
}

void saved_end(struct saved_writer *writer, size_t begin)
{
    const uint64_t size = writer->size - begin;

    if (!writer->failed)
        memcpy(writer->bytes + begin - sizeof(size), &size, sizeof(size));
}

void saved_add(struct saver *saver, const char *kind, struct saved_writer *row,
               const struct payload *payload)
{
    if (saver->error == 0)
        saver->error = row->failed ? -ENOMEM : saver->add(saver, kind, row, payload);
    free(row->bytes);
    *row = (struct saved_writer){0};
}

/* Nothing more is read. */
static void set_damaged(struct saved_reader *reader)
{
    reader->damaged = true;
    reader->at = reader->end;
}

uint64_t saved_get_number(struct saved_reader *reader)
{
    uint64_t number = 0;

    if (reader->at == reader->end)
        return 0;
    if ((size_t)(reader->end - reader->at) < sizeof(number)) {
        set_damaged(reader);
        return 0;
    }
    memcpy(&number, reader->at, sizeof(number));
    reader->at += sizeof(number);
    return number;
}

uint64_t saved_get_below(struct saved_reader *reader, uint64_t max)
{
    const uint64_t number = saved_get_number(reader);

    if (number <= max)
        return number;
    set_damaged(reader);
    return 0;
}

const void *saved_get_bytes(struct saved_reader *reader, size_t *ret_size)
{
    const uint64_t size = saved_get_number(reader);
    const uint8_t *bytes = reader->at;

    *ret_size = 0;
    if (size > (size_t)(reader->end - reader->at)) {
        set_damaged(reader);
        return "";
    }
    reader->at += size;
    *ret_size = (size_t)size;
    return size > 0 ? (const void *)bytes : "";
}

/* Its NUL is the last byte. */
static const char *get_string(struct saved_reader *reader, size_t *ret_size)
{
    const char *text = saved_get_bytes(reader, ret_size);

    if (*ret_size == 0)
        return NULL;
    if (memchr(text, '\0', *ret_size) == text + *ret_size - 1)
        return text;
    set_damaged(reader);
    return NULL;
}

const char *saved_get_string(struct saved_reader *reader)
{
    size_t size;

    return get_string(reader, &size);
}

void saved_get_text(struct saved_reader *reader, char *text, size_t size)
{
    size_t n;
    const char *string = get_string(reader, &n);

    text[0] = '\0';
    if (string && n <= size)
        memcpy(text, string, n);
    else if (string)
        set_damaged(reader);
}

struct saved_reader saved_get_fields(struct saved_reader *reader)
{
    size_t size;
    const uint8_t *bytes = saved_get_bytes(reader, &size);

    return (struct saved_reader){.at = bytes, .end = bytes + size, .payload = ""};
}
