/* SPDX-License-Identifier: MIT */
/* Each field of each record of slots, cells, groups, deaths, actors and clients outlives the
 * supervisor. */
#include "supervisor/client/attachment-save.h"
#include "supervisor/event/death-save.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/group-save.h"
#include "supervisor/message/actor-save.h"
#include "supervisor/message/ask/ask-save.h"
#include "supervisor/message/dead-letter/dead-letter-save.h"
#include "supervisor/message/delivery/delivery-save.h"
#include "supervisor/message/envelope-save.h"
#include "supervisor/message/exchange/exchange-save.h"
#include "supervisor/message/inheritance.h"
#include "supervisor/message/schedule/schedule-save.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/store/store.h"
#include "tests/unit/succession/odd.h"
#include "tests/unit/suite.h"

static const struct record *const SAVED[] = {&GROUP_RECORD,
                                             &CELL_RECORD,
                                             &DEATH_RECORD,
                                             &ACTOR_RECORD,
                                             &ENVELOPE_RECORD,
                                             &STORE_STATS_RECORD,
                                             &MESSAGES_RECORD,
                                             &EXCHANGE_RECORD,
                                             &SCHEDULE_RECORD,
                                             &INBOX_RECORD,
                                             &ASK_RECORD,
                                             &DEAD_LETTER_RECORD,
                                             &CLIENT_SUBMIT_RECORD,
                                             &CLIENT_WAIT_RECORD,
                                             &CLIENT_ANSWER_RECORD};
static const struct record *const KEPT[] = {&SLOT_RECORD, &CELL_KEPT_RECORD, &GROUP_KEPT_RECORD};

static void *new_row(const struct record *record)
{
    void *row = calloc(1, record->size);

    ck_assert_ptr_nonnull(row);
    return row;
}

TEST(each_field_gets_through_an_upgrade, .n = ELEMENTS(SAVED))
{
    void *row = new_row(SAVED[_i]), *found = new_row(SAVED[_i]);

    odd_check_upgrade(SAVED[_i], row, found);
    free(row);
    free(found);
}

TEST(a_number_in_shared_memory_that_is_out_of_bounds_is_noticed, .n = ELEMENTS(KEPT))
{
    const struct record *record = KEPT[_i];
    void *row = new_row(record);

    for (size_t i = 0; i < record->n; i++) {
        const struct field *field = &record->fields[i];

        odd_fill(record, MEDIUM_MEMORY, row, 0);
        ck_assert(record_is_sound(record, row));
        if (field->type != FIELD_NUMBER || field->max == 0)
            continue;
        field_store(field, row, field->max + 1);
        ck_assert_msg(!record_is_sound(record, row), "%s", field->name);
    }
    free(row);
}

const struct suite suite = {.name = "records"};
