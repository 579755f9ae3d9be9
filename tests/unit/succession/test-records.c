/* SPDX-License-Identifier: MIT */
/* Each field of each record outlives the supervisor. */
#include "supervisor/upgrade/kinds.h"
#include "tests/unit/succession/odd.h"
#include "tests/unit/suite.h"

static void *new_row(const struct record *record)
{
    void *row = calloc(1, record->size);

    ck_assert_ptr_nonnull(row);
    return row;
}

TEST(each_field_gets_through_an_upgrade)
{
    const struct record *record;

    for (size_t i = 0; (record = upgrade_record(i)); i++) {
        void *row = new_row(record), *found = new_row(record);

        odd_check_upgrade(record, row, found);
        free(row);
        free(found);
    }
}

static void check_bounds(const struct record *record)
{
    void *row = new_row(record);

    for (size_t i = 0; i < record->n; i++) {
        const struct field *field = &record->fields[i];

        if (!(field->media & MEDIUM_MEMORY))
            continue;
        odd_fill(record, MEDIUM_MEMORY, row, 0);
        ck_assert(record_is_sound(record, row));
        if (field->type != FIELD_NUMBER || field->max == 0)
            continue;
        field_store(field, row, field->max + 1);
        ck_assert_msg(!record_is_sound(record, row), "%s: %s", record->name, field->name);
    }
    free(row);
}

TEST(a_number_in_shared_memory_that_is_out_of_bounds_is_noticed)
{
    const struct record *record;

    for (size_t i = 0; (record = upgrade_record(i)); i++)
        check_bounds(record);
}
