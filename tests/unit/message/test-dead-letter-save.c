/* SPDX-License-Identifier: MIT */
#include "supervisor/message/message-save.h"
#include "tests/unit/succession/memory-saver.h"
#include "tests/unit/succession/odd.h"
#include "tests/unit/suite.h"

static struct dead_letters before, after;
static struct death_log deaths;
static struct memory_saver saver;
static struct waiting_room room;

static void setup(void)
{
    dead_letters_init(&before, 10, 1 << 20);
    dead_letters_init(&after, 10, 1 << 20);
    death_log_init(&deaths, 10);
    memory_saver_init(&saver);
    waiting_room_init(&room);
}

static void teardown(void)
{
    dead_letters_deinit(&before);
    dead_letters_deinit(&after);
    death_log_deinit(&deaths);
    memory_saver_deinit(&saver);
    waiting_room_deinit(&room);
}

static void add_letter(enum dead_letter_reason reason, int64_t row)
{
    struct payload payload = PAYLOAD_NULL;
    struct death *death = death_new(&deaths);
    const struct dead_letter letter = {
        .reason = reason,
        .row = row,
        .sender = "shop/1",
        .recipient = "stock/0",
        .sender_ref = 7,
        .recipient_ref = 9,
        .topic = {.type = "order.created", .type_size = 13, .key = "", .key_size = 0},
        .message = 42,
        .sent_at = 43,
        .options = {.max_retries = 3, .timeout = 4, .priority = 5},
        .submitter_uid = 6,
        .code = -7,
        .text = "why",
        .attempts = 8,
        .cause = ATTEMPT_CAUSE_RETRY,
        .deaths = {death},
        .n_deaths = 1,
    };

    ck_assert_ptr_nonnull(death);
    ck_assert_int_eq(payload_set(&payload, "data", 4), 0);
    ck_assert_uint_gt(dead_letter_add(&before, &letter, &payload), 0);
    death_unref(death);
}

/* Whether a letter with that row and id was waiting. */
static bool claim(int64_t row, uint64_t id, struct payload *payload)
{
    const struct dead_letter like = {.row = row, .id = id};

    return dead_letter_claim(&after, &deaths, &room, &like, payload);
}

static const struct dead_letter *find(struct dead_letters *letters, uint64_t id)
{
    const struct dead_letter *letter = dead_letter_find(letters, id);

    ck_assert_ptr_nonnull(letter);
    return letter;
}

TEST(letters_are_restored_with_all_they_say)
{
    const struct dead_letter *a, *b;
    struct payload payload = PAYLOAD_NULL;
    struct saved_reader row;

    add_letter(DEAD_JOB, 5); /* is in the store */
    add_letter(DEAD_UNHANDLED, 0);
    add_letter(DEAD_ERROR, 0);
    dead_letters_save(&before, &saver.saver);
    ck_assert_uint_eq(saver.n_rows, 3);
    for (size_t i = 0; i < 3; i++) {
        row = memory_saver_read(&saver, i, DEAD_LETTER_ROW);
        ck_assert_int_eq(dead_letter_restore_row(&after, &deaths, &room, &row), 0);
    }
    ck_assert_uint_eq(after.tally->counts[DEAD_JOB], 0); /* they have been counted */
    ck_assert_uint_eq(after.tally->last_id, 3);
    ck_assert_ptr_null(dead_letter_find(&after, 1)); /* until its row is read */
    ck_assert_int_eq(payload_set(&payload, "data", 4), 0);
    ck_assert(!claim(6, 1, &payload));
    ck_assert(claim(5, 1, &payload));
    for (uint64_t id = 1; id <= 3; id++) {
        a = find(&after, id);
        b = find(&before, id);
        odd_compare(&DEAD_LETTER_RECORD, MEDIUM_UPGRADE, b, a);
        ck_assert_int_eq(topic_compare(&a->topic, &b->topic), 0);
        ck_assert_uint_eq(a->n_deaths, 1);
        ck_assert_uint_eq(a->payload.size, 4);
        ck_assert_mem_eq(payload_data(&a->payload), "data", 4);
    }
}

TEST(a_letter_with_another_id_than_its_row_is_not_added)
{
    add_letter(DEAD_JOB, 5);
    dead_letters_save(&before, &saver.saver);
    struct saved_reader row = memory_saver_read(&saver, 0, DEAD_LETTER_ROW);
    ck_assert_int_eq(dead_letter_restore_row(&after, &deaths, &room, &row), 0);
    ck_assert(!claim(5, 2, NULL));
    ck_assert_ptr_null(dead_letter_find(&after, 1));
}

TEST(the_tally_goes_on_in_memory_that_outlives_the_supervisor)
{
    struct dead_letter_tally kept = {0};

    dead_letters_resume(&before, &kept);
    add_letter(DEAD_UNHANDLED, 0);
    dead_letters_resume(&after, &kept);
    ck_assert_uint_eq(after.tally->counts[DEAD_UNHANDLED], 1);
    ck_assert_uint_eq(after.inherited_id, 1);
    ck_assert_uint_eq(dead_letter_reserve_id(&after), 2);
    kept.last_id = DEAD_LETTER_ID_MAX + 1; /* damaged */
    dead_letters_resume(&after, &kept);
    ck_assert_uint_eq(dead_letter_reserve_id(&after), 1);
}

TEST(a_payload_that_was_dropped_is_still_known_to_be_missing)
{
    add_letter(DEAD_UNHANDLED, 0);
    list_entry(list_first(&before.rings[DEAD_LETTERS]), struct dead_letter, link)->payload_dropped =
        true;
    dead_letters_save(&before, &saver.saver);
    struct saved_reader row = memory_saver_read(&saver, 0, DEAD_LETTER_ROW);
    row.payload_size = 0;
    ck_assert_int_eq(dead_letter_restore_row(&after, &deaths, &room, &row), 0);
    ck_assert(find(&after, 1)->payload_dropped);
    ck_assert_uint_eq(find(&after, 1)->payload_size, 4);
}

static void restore_damaged(void *userdata, struct saved_reader *row)
{
    (void)dead_letter_restore_row(&after, &deaths, &room, row);
}

TEST(damaged_letters_do_no_harm)
{
    add_letter(DEAD_UNHANDLED, 0);
    dead_letters_save(&before, &saver.saver);
    memory_saver_damage(&saver, 0, restore_damaged, NULL);
    struct saved_reader row = memory_saver_read(&saver, 0, DEAD_LETTER_ROW);
    row.end -= 2;
    ck_assert_int_eq(dead_letter_restore_row(&after, &deaths, &room, &row), -EBADMSG);
}

TEST(an_id_that_leaves_no_room_above_it_is_refused)
{
    before.tally->last_id = DEAD_LETTER_ID_MAX;
    add_letter(DEAD_UNHANDLED, 0);
    dead_letters_save(&before, &saver.saver);
    struct saved_reader row = memory_saver_read(&saver, 0, DEAD_LETTER_ROW);
    ck_assert_int_eq(dead_letter_restore_row(&after, &deaths, &room, &row), -EBADMSG);
    ck_assert_uint_eq(after.tally->last_id, 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
