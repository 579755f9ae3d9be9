/* SPDX-License-Identifier: MIT */
#include "supervisor/succession/waiting-room.h"
#include "tests/unit/succession/memory-saver.h"
#include "tests/unit/succession/odd.h"
#include "tests/unit/suite.h"

struct stamp {
    uint16_t place;
    char word[8];
};

struct ticket {
    uint64_t number;
    int32_t change;
    uint8_t colour;
    bool valid;
    const char *holder, *note;
    uint32_t holder_size;
    char train[16];
    uint64_t prices[3];
    struct stamp first, stamps[4];
    uint8_t n_stamps;
    uint32_t seat; /* in shared memory only */
};

#define ROW stamp
static const struct record STAMP =
    RECORD_OF("stamp", FIELD(KEPT, place, NUMBER(place)) FIELD(KEPT, word, STRING(word)));
#undef ROW

#define ROW ticket
#define TICKET_FIELDS(F)                                                                           \
    F(UPGRADE, number, NUMBER(number))                                                             \
    F(KEPT, change, NUMBER(change))                                                                \
    F(KEPT, colour, BELOW(colour, 6))                                                              \
    F(KEPT, valid, NUMBER(valid))                                                                  \
    F(UPGRADE, holder, TEXT(holder))                                                               \
    F(UPGRADE, note, WORD(note))                                                                   \
    F(KEPT, train, STRING(train))                                                                  \
    F(KEPT, prices, ARRAY(prices))                                                                 \
    F(KEPT, first, SUBRECORD(first, STAMP))                                                        \
    F(KEPT, stamps, LIST(stamps, n_stamps, STAMP))                                                 \
    F(MEMORY, seat, BELOW(seat, 99))
static const struct field TICKET_TABLE[] = {TICKET_FIELDS(FIELD)};
static const struct record TICKET = RECORD("ticket", TICKET_FIELDS);

static struct saved_reader reader_of(const struct saved_writer *writer)
{
    return (struct saved_reader){
        .at = writer->bytes, .end = writer->bytes + writer->size, .payload = ""};
}

TEST(each_field_of_each_type_gets_through_an_upgrade)
{
    struct ticket row = {0}, found = {.seat = 5};

    odd_check_upgrade(&TICKET, &row, &found);
    ck_assert_uint_eq(found.seat, 5); /* of another medium: untouched */
}

TEST(what_is_cut_off_or_out_of_range_is_damage_and_within_bounds)
{
    struct ticket row = {0}, found;
    struct saved_writer writer = {0};

    odd_fill(&TICKET, MEDIUM_UPGRADE, &row, 1);
    record_put(&writer, &TICKET, &row);
    for (size_t i = 0; i < writer.size; i++) {
        struct saved_reader reader = reader_of(&writer);

        writer.bytes[i] ^= 0x80;
        record_get(&reader, &TICKET, &found);
        ck_assert_uint_le(found.colour, 6);
        ck_assert_uint_le(found.n_stamps, 4);
        ck_assert_ptr_nonnull(memchr(found.train, '\0', sizeof(found.train)));
        writer.bytes[i] ^= 0x80;
    }
    free(writer.bytes);
}

TEST(a_struct_in_shared_memory_is_checked_by_its_table)
{
    struct ticket row = {0};

    odd_fill(&TICKET, MEDIUM_MEMORY, &row, 1);
    ck_assert(record_is_sound(&TICKET, &row));
    row.seat = 100;
    ck_assert(!record_is_sound(&TICKET, &row));
    row.seat = 99;
    row.n_stamps = 5;
    ck_assert(!record_is_sound(&TICKET, &row));
    row.n_stamps = 4;
    ck_assert(record_is_sound(&TICKET, &row));
    memset(row.stamps[3].word, 'x', sizeof(row.stamps[3].word));
    ck_assert(!record_is_sound(&TICKET, &row));
}

/* Returns the digest of a table that differs from TICKET in one field. */
static uint64_t digest_with(size_t i, struct field other)
{
    struct field fields[ELEMENTS(TICKET_TABLE)];
    const struct record changed = {
        .name = "ticket", .fields = fields, .n = TICKET.n, .size = TICKET.size};

    memcpy(fields, TICKET_TABLE, sizeof(fields));
    fields[i] = other;
    return record_digest(0, &changed);
}

TEST(any_change_of_a_table_changes_the_digest)
{
    const uint64_t digest = record_digest(0, &TICKET);
    struct field field = TICKET_TABLE[2];

    ck_assert_uint_eq(digest_with(2, field), digest);
    field.max = 7;
    ck_assert_uint_ne(digest_with(2, field), digest);
    field = TICKET_TABLE[2];
    field.media = MEDIUM_UPGRADE;
    ck_assert_uint_ne(digest_with(2, field), digest);
    field = TICKET_TABLE[2];
    field.name = "color";
    ck_assert_uint_ne(digest_with(2, field), digest);
    field = TICKET_TABLE[10];
    field.at += 4;
    ck_assert_uint_ne(digest_with(10, field), digest);
    ck_assert_uint_ne(record_digest(0, &STAMP), digest);
}

static void keep(struct waiting_room *room, const char *kind, uint64_t number, uint64_t value)
{
    struct saved_writer writer = {0};

    saved_put_number(&writer, value);
    struct saved_reader row = reader_of(&writer);
    ck_assert_int_eq(waiting_room_add(room, kind, number, &row), 0);
    free(writer.bytes);
}

static uint64_t find(const struct waiting_room *room, const char *kind, uint64_t number)
{
    struct saved_reader row;

    return waiting_room_find(room, kind, number, &row) ? saved_get_number(&row) : 0;
}

static void note_dropped(void *userdata, struct saved_reader *row)
{
    *(uint64_t *)userdata = saved_get_number(row);
}

TEST(rows_wait_by_kind_and_number_until_they_are_claimed_or_dropped)
{
    struct waiting_room room;
    uint64_t dropped = 0;

    waiting_room_init(&room);
    keep(&room, "a", 1, 11);
    keep(&room, "b", 1, 12);
    keep(&room, "a", 2, 13);
    keep(&room, "a", 3, 14);
    ck_assert_uint_eq(find(&room, "a", 1), 11);
    ck_assert_uint_eq(find(&room, "b", 1), 12);
    waiting_room_remove(&room, "a", 1);
    waiting_room_remove(&room, "a", 1);
    ck_assert_uint_eq(find(&room, "a", 1), 0);
    waiting_room_keep(&room, "a", 3);
    ck_assert_uint_eq(waiting_room_settle(&room, "a", note_dropped, &dropped), 1);
    ck_assert_uint_eq(dropped, 13);
    ck_assert_uint_eq(find(&room, "a", 2), 0);
    ck_assert_uint_eq(find(&room, "a", 3), 14);
    ck_assert_uint_eq(find(&room, "b", 1), 12);
    waiting_room_deinit(&room);
}

TEST(rows_that_wait_are_saved_again)
{
    struct waiting_room room;
    struct memory_saver saver;

    waiting_room_init(&room);
    memory_saver_init(&saver);
    keep(&room, "a", 7, 70);
    waiting_room_save(&room, &saver.saver);
    struct saved_reader row = memory_saver_read(&saver, 0, "a");
    ck_assert_uint_eq(saved_get_number(&row), 70);
    ck_assert(!saved_has_more(&row));
    memory_saver_deinit(&saver);
    waiting_room_deinit(&room);
}
