/* SPDX-License-Identifier: MIT */
#include "tests/unit/succession/odd.h"

#include "tests/unit/suite.h"

static const char *const TEXTS[] = {"odd", "odder", "oddest", "odd one out", "at odds"};

static const uint8_t *at(const void *row, size_t offset)
{
    return (const uint8_t *)row + offset;
}

static uint8_t *to(void *row, size_t offset)
{
    return (uint8_t *)row + offset;
}

static uint64_t odd_number(const struct field *field, unsigned seed)
{
    uint64_t number = UINT64_C(0x9e3779b97f4a7c15) * (seed + 3);

    if (field->size < 8)
        number &= (UINT64_C(1) << (8 * field->size)) - 1;
    if (field->max > 0)
        number = 1 + number % field->max;
    if (field->is_signed && field->size == 4)
        number = (uint64_t)(int64_t)(int32_t)number;
    return number;
}

static void fill_list(const struct field *field, unsigned media, void *row, unsigned seed)
{
    const uint64_t n = field->room > 2 ? 2 : field->room;

    memcpy(to(row, field->size_at), &n, field->count_size);
    for (size_t i = 0; i < n; i++)
        odd_fill(field->record, media, to(row, field->at + i * field->record->size),
                 seed + 7 * (unsigned)i);
}

static void fill_field(const struct field *field, unsigned media, void *row, unsigned seed)
{
    const char *text = TEXTS[seed % ELEMENTS(TEXTS)];
    const uint32_t size = (uint32_t)strlen(text);
    uint64_t number;

    switch ((enum field_type)field->type) {
    case FIELD_NUMBER:
        field_store(field, row, odd_number(field, seed));
        break;
    case FIELD_BOOL:
        field_store(field, row, seed % 2);
        break;
    case FIELD_TEXT:
        memcpy(to(row, field->at), &text, sizeof(text));
        memcpy(to(row, field->size_at), &size, sizeof(size));
        break;
    case FIELD_WORD:
        memcpy(to(row, field->at), &text, sizeof(text));
        break;
    case FIELD_STRING:
        (void)snprintf((char *)to(row, field->at), field->room, "%s", text);
        break;
    case FIELD_ARRAY:
        for (size_t i = 0; i < field->room; i++) {
            number = odd_number(field, seed + (unsigned)i);
            memcpy(to(row, field->at + i * field->size), &number, field->size);
        }
        break;
    case FIELD_RECORD:
        odd_fill(field->record, media, to(row, field->at), seed);
        break;
    case FIELD_LIST:
        fill_list(field, media, row, seed);
        break;
    }
}

void odd_fill(const struct record *record, unsigned media, void *row, unsigned seed)
{
    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & media)
            fill_field(&record->fields[i], media, row, seed + (unsigned)i);
}

static void check(const struct record *record, const struct field *field, bool equal)
{
    ck_assert_msg(equal, "the field \"%s\" of \"%s\" is lost", field->name, record->name);
}

static void compare_list(const struct field *field, unsigned media, const void *expected,
                         const void *found)
{
    uint64_t n = 0;

    memcpy(&n, at(expected, field->size_at), field->count_size);
    ck_assert_mem_eq(at(expected, field->size_at), at(found, field->size_at), field->count_size);
    for (size_t i = 0; i < n; i++) {
        const size_t offset = field->at + i * field->record->size;

        odd_compare(field->record, media, at(expected, offset), at(found, offset));
    }
}

static bool texts_are_equal(const struct field *field, const void *expected, const void *found)
{
    const char *a, *b;
    uint32_t size, found_size;

    memcpy(&a, at(expected, field->at), sizeof(a));
    memcpy(&b, at(found, field->at), sizeof(b));
    if (field->type == FIELD_WORD)
        return a && b ? strcmp(a, b) == 0 : a == b;
    memcpy(&size, at(expected, field->size_at), sizeof(size));
    memcpy(&found_size, at(found, field->size_at), sizeof(found_size));
    return size == found_size && (size == 0 || memcmp(a, b, size) == 0);
}

static bool is_equal(const struct field *field, unsigned media, const void *expected,
                     const void *found)
{
    switch ((enum field_type)field->type) {
    case FIELD_NUMBER:
    case FIELD_BOOL:
        return field_load(field, expected) == field_load(field, found);
    case FIELD_TEXT:
    case FIELD_WORD:
        return texts_are_equal(field, expected, found);
    case FIELD_STRING:
        return strcmp((const char *)at(expected, field->at), (const char *)at(found, field->at)) ==
               0;
    case FIELD_ARRAY:
        return memcmp(at(expected, field->at), at(found, field->at),
                      (size_t)field->room * field->size) == 0;
    case FIELD_RECORD:
        odd_compare(field->record, media, at(expected, field->at), at(found, field->at));
        return true;
    case FIELD_LIST:
        compare_list(field, media, expected, found);
        return true;
    }
    return false;
}

void odd_compare(const struct record *record, unsigned media, const void *expected,
                 const void *found)
{
    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & media)
            check(record, &record->fields[i], is_equal(&record->fields[i], media, expected, found));
}

void odd_check_upgrade(const struct record *record, void *row, void *found)
{
    struct saved_writer writer = {0};
    struct saved_reader reader;

    for (unsigned seed = 0; seed < 2; seed++) {
        odd_fill(record, MEDIUM_UPGRADE, row, seed);
        odd_fill(record, MEDIUM_UPGRADE, found, seed + 1);
        record_put(&writer, record, row);
        ck_assert(!writer.failed);
        reader = (struct saved_reader){.at = writer.bytes, .end = writer.bytes + writer.size};
        record_get(&reader, record, found);
        ck_assert_msg(!reader.damaged && reader.at == reader.end, "\"%s\" is not read whole",
                      record->name);
        odd_compare(record, MEDIUM_UPGRADE, row, found);
        writer.size = 0;
    }
    free(writer.bytes);
}
