/* SPDX-License-Identifier: MIT */
#include "tests/unit/succession/memory-saver.h"

#include "supervisor/channel/payload.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

static void *copy(const void *bytes, size_t size)
{
    void *to = malloc(size > 0 ? size : 1);

    ck_assert_ptr_nonnull(to);
    if (size > 0)
        memcpy(to, bytes, size);
    return to;
}

static int add(struct saver *base, const char *kind, const struct saved_writer *row,
               const struct payload *payload)
{
    struct memory_saver *saver = (struct memory_saver *)base;
    struct memory_row *to = &saver->rows[saver->n_rows++];

    ck_assert_uint_le(saver->n_rows, MEMORY_SAVER_ROWS);
    to->kind = kind;
    to->fields = copy(row->bytes, row->size);
    to->size = row->size;
    if (payload && payload->size > 0 && payload->size <= sizeof(to->payload)) {
        to->payload_size = (size_t)payload->size;
        memcpy(to->payload, payload_data(payload), to->payload_size);
    }
    return 0;
}

void memory_saver_init(struct memory_saver *saver)
{
    *saver = (struct memory_saver){.saver = {.add = add}};
}

void memory_saver_deinit(struct memory_saver *saver)
{
    for (size_t i = 0; i < saver->n_rows; i++)
        free(saver->rows[i].fields);
    saver->n_rows = 0;
}

struct saved_reader memory_saver_read(const struct memory_saver *saver, size_t i, const char *kind)
{
    const struct memory_row *row = &saver->rows[i];

    ck_assert_uint_lt(i, saver->n_rows);
    ck_assert_str_eq(row->kind, kind);
    return (struct saved_reader){
        .at = row->fields,
        .end = row->fields + row->size,
        .payload = row->payload,
        .payload_size = row->payload_size,
    };
}

void memory_saver_damage(const struct memory_saver *saver, size_t i,
                         void (*check)(void *userdata, struct saved_reader *row), void *userdata)
{
    const struct memory_row *row = &saver->rows[i];

    for (size_t n = 0; n < 2 * row->size; n++) {
        const size_t size = n < row->size ? n : row->size;
        uint8_t *fields = copy(row->fields, size);
        struct saved_reader reader = {.at = fields, .end = fields + size, .payload = ""};

        if (n >= row->size)
            fields[n - row->size] ^= 0xff;
        check(userdata, &reader);
        free(fields);
    }
}
