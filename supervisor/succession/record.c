/* SPDX-License-Identifier: MIT */
#include "supervisor/succession/record.h"

#include "shared/base/hash.h"
#include <string.h>

static void *member_of(const struct field *field, const void *row)
{
    return (uint8_t *)(uintptr_t)row + field->at;
}

static uint64_t load(const void *at, size_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)at;
    case 2:
        return *(const uint16_t *)at;
    case 4:
        return is_signed ? (uint64_t)(int64_t)(*(const int32_t *)at) : *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static void store(void *at, size_t size, uint64_t value)
{
    switch (size) {
    case 1:
        *(uint8_t *)at = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)at = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)at = (uint32_t)value;
        break;
    default:
        *(uint64_t *)at = value;
    }
}

uint64_t field_load(const struct field *field, const void *row)
{
    return load(member_of(field, row), field->size, field->is_signed);
}

void field_store(const struct field *field, void *row, uint64_t value)
{
    store(member_of(field, row), field->size, field->type == FIELD_BOOL ? value != 0 : value);
}

static uint64_t max_of(const struct field *field)
{
    return field->max == 0 ? UINT64_MAX : field->max;
}

static void *element_of(const struct field *field, const void *row, size_t i)
{
    const size_t size = field->type == FIELD_LIST ? field->record->size : field->size;

    return (uint8_t *)member_of(field, row) + i * size;
}

static uint64_t count_of(const struct field *field, const void *row)
{
    return load((const uint8_t *)row + field->size_at, field->count_size, false);
}

/* ---- writing ---- */

static void put_list(struct saved_writer *writer, const struct field *field, const void *row)
{
    const uint64_t n = count_of(field, row);

    saved_put_number(writer, n);
    for (size_t i = 0; i < n; i++)
        record_put(writer, field->record, element_of(field, row, i));
}

static void put_array(struct saved_writer *writer, const struct field *field, const void *row)
{
    const size_t pairs = saved_begin(writer);

    for (size_t i = 0; i < field->room; i++) {
        const uint64_t number = load(element_of(field, row, i), field->size, false);

        if (number == 0)
            continue;
        saved_put_number(writer, i);
        saved_put_number(writer, number);
    }
    saved_end(writer, pairs);
}

static void put_field(struct saved_writer *writer, const struct field *field, const void *row)
{
    const void *member = member_of(field, row);

    switch ((enum field_type)field->type) {
    case FIELD_NUMBER:
    case FIELD_BOOL:
        saved_put_number(writer, field_load(field, row));
        break;
    case FIELD_TEXT:
        saved_put_bytes(writer, *(const char *const *)member,
                        *(const uint32_t *)(const void *)((const uint8_t *)row + field->size_at));
        break;
    case FIELD_WORD:
        saved_put_text(writer, *(const char *const *)member);
        break;
    case FIELD_STRING:
        saved_put_text(writer, member);
        break;
    case FIELD_ARRAY:
        put_array(writer, field, row);
        break;
    case FIELD_RECORD:
        record_put(writer, field->record, member);
        break;
    case FIELD_LIST:
        put_list(writer, field, row);
        break;
    }
}

void record_put(struct saved_writer *writer, const struct record *record, const void *row)
{
    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & MEDIUM_UPGRADE)
            put_field(writer, &record->fields[i], row);
}

void record_save(struct saver *saver, const struct record *record, const void *row,
                 const struct payload *payload)
{
    struct saved_writer writer = {0};

    record_put(&writer, record, row);
    saved_add(saver, record->name, &writer, payload);
}

/* ---- reading ---- */

static void get_text(struct saved_reader *reader, const struct field *field, void *row)
{
    size_t size;

    *(const char **)member_of(field, row) = saved_get_bytes(reader, &size);
    *(uint32_t *)(void *)((uint8_t *)row + field->size_at) = (uint32_t)size;
}

static void get_list(struct saved_reader *reader, const struct field *field, void *row)
{
    const uint64_t n = saved_get_below(reader, field->room);

    store((uint8_t *)row + field->size_at, field->count_size, n);
    for (size_t i = 0; i < n; i++)
        record_get(reader, field->record, element_of(field, row, i));
}

static void get_array(struct saved_reader *reader, const struct field *field, void *row)
{
    struct saved_reader pairs = saved_get_fields(reader);

    memset(member_of(field, row), 0, (size_t)field->room * field->size);
    while (saved_has_more(&pairs)) {
        const uint64_t i = saved_get_below(&pairs, field->room - 1);

        store(element_of(field, row, i), field->size, saved_get_number(&pairs));
    }
    reader->damaged = reader->damaged || pairs.damaged;
}

static void get_field(struct saved_reader *reader, const struct field *field, void *row)
{
    void *member = member_of(field, row);

    switch ((enum field_type)field->type) {
    case FIELD_NUMBER:
        field_store(field, row, saved_get_below(reader, max_of(field)));
        break;
    case FIELD_BOOL:
        field_store(field, row, saved_get_below(reader, 1));
        break;
    case FIELD_TEXT:
        get_text(reader, field, row);
        break;
    case FIELD_WORD:
        *(const char **)member = saved_get_string(reader);
        break;
    case FIELD_STRING:
        saved_get_text(reader, member, field->room);
        break;
    case FIELD_ARRAY:
        get_array(reader, field, row);
        break;
    case FIELD_RECORD:
        record_get(reader, field->record, member);
        break;
    case FIELD_LIST:
        get_list(reader, field, row);
        break;
    }
}

void record_get(struct saved_reader *reader, const struct record *record, void *row)
{
    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & MEDIUM_UPGRADE)
            get_field(reader, &record->fields[i], row);
}

/* ---- checks ---- */

static bool list_is_sound(const struct field *field, const void *row)
{
    const uint64_t n = count_of(field, row);

    if (n > field->room)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!record_is_sound(field->record, element_of(field, row, i)))
            return false;
    return true;
}

static bool field_is_sound(const struct field *field, const void *row)
{
    const void *member = member_of(field, row);

    switch ((enum field_type)field->type) {
    case FIELD_NUMBER:
        return field_load(field, row) <= max_of(field);
    case FIELD_BOOL:
        return field_load(field, row) <= 1;
    case FIELD_STRING:
        return memchr(member, '\0', field->room);
    case FIELD_RECORD:
        return record_is_sound(field->record, member);
    case FIELD_LIST:
        return list_is_sound(field, row);
    case FIELD_ARRAY:
        return true;
    case FIELD_TEXT:
    case FIELD_WORD:
        return false; /* a pointer is of no use to another process */
    }
    return false;
}

bool record_is_sound(const struct record *record, const void *row)
{
    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & MEDIUM_MEMORY && !field_is_sound(&record->fields[i], row))
            return false;
    return true;
}

static uint64_t mix(uint64_t digest, uint64_t number)
{
    return hash_mix(digest ^ number) + number;
}

static uint64_t mix_text(uint64_t digest, const char *text)
{
    for (; *text != '\0'; text++)
        digest = mix(digest, (uint8_t)*text);
    return mix(digest, 0);
}

static uint64_t mix_field(uint64_t digest, const struct field *field)
{
    digest = mix_text(digest, field->name);
    digest = mix(digest, (uint64_t)field->type << 16 | (uint64_t)field->size << 8 | field->media);
    digest = mix(digest, field->room);
    digest = mix(digest, field->max);
    if (field->media & MEDIUM_MEMORY)
        digest = mix(digest, field->at);
    return field->record ? record_digest(digest, field->record) : digest;
}

uint64_t record_digest(uint64_t digest, const struct record *record)
{
    digest = mix_text(digest, record->name);
    for (size_t i = 0; i < record->n; i++)
        digest = mix_field(digest, &record->fields[i]);
    return digest;
}
