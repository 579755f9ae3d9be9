/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What outlives the supervisor, described once. A record is a struct; a table lists its fields, and
 * says of each in which media it is kept. One writer and one reader interpret the tables.
 *
 *     #define ROW ticket // the struct
 *     #define TICKET(F)
 *         F(STORED, number, NUMBER(number))
 *         F(STORED, holder, TEXT(holder)) // holder and holder_size
 *         F(UPGRADE, seen, BELOW(seen, _SEEN_N - 1))
 *     const struct record TICKET_RECORD = RECORD("ticket", TICKET);
 *
 * A supervisor only takes over from one whose tables are the same: see record_digest(). So fields
 * have no versions, and may come, go and change places at will, but for the database, which
 * schema.h migrates.
 */

#include "supervisor/succession/saved-row.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum medium {
    MEDIUM_DISK = 1 << 0,    /* a column of the database */
    MEDIUM_UPGRADE = 1 << 1, /* a row of the file that an upgrade hands over */
    MEDIUM_MEMORY = 1 << 2,  /* shared memory, which outlives a crash and an upgrade */
};

/* The media of a field, as the first argument of F(). */
#define MEDIA_ALL     (MEDIUM_DISK | MEDIUM_UPGRADE | MEDIUM_MEMORY)
#define MEDIA_STORED  (MEDIUM_DISK | MEDIUM_UPGRADE)
#define MEDIA_KEPT    (MEDIUM_UPGRADE | MEDIUM_MEMORY)
#define MEDIA_DISK    MEDIUM_DISK
#define MEDIA_UPGRADE MEDIUM_UPGRADE
#define MEDIA_MEMORY  MEDIUM_MEMORY

enum field_type {
    FIELD_NUMBER, /* of `size` bytes */
    FIELD_BOOL,
    FIELD_TEXT,   /* const char *, with its size: borrowed, not terminated */
    FIELD_WORD,   /* const char *, terminated, or NULL: borrowed */
    FIELD_STRING, /* char[], terminated */
    FIELD_ARRAY,  /* of numbers of `size` bytes, most of them 0 */
    FIELD_RECORD, /* a struct with a table of its own */
    FIELD_LIST,   /* an array of such structs, of which the first `count` are used */
};

struct record;

struct field {
    const char *name;
    const struct record *record;
    uint64_t max;     /* a number above is damage; 0 = any will do */
    uint64_t absent;  /* with `optional`: the value that the database stores as NULL */
    uint32_t at;      /* offset of the member */
    uint32_t size_at; /* offset of a text's size, a uint32_t, or of a list's count */
    uint32_t room;    /* elements of an array or a list; bytes of a string */
    uint8_t size;     /* of a number */
    uint8_t count_size;
    uint8_t type; /* enum field_type */
    uint8_t media;
    bool is_signed, optional;
};

struct record {
    const char *name; /* also the kind of its rows in an upgrade */
    const struct field *fields;
    size_t n;
    size_t size; /* of the struct */
};

#define FIELD_MEMBER(member) ((struct ROW *)NULL)->member
#define FIELD_BASIC(member)                                                                        \
    .at = offsetof(struct ROW, member), .size = sizeof(FIELD_MEMBER(member)),                      \
    .type = _Generic(FIELD_MEMBER(member), bool                                                    \
                     : FIELD_BOOL, default                                                         \
                     : FIELD_NUMBER),                                                              \
    .is_signed = _Generic(FIELD_MEMBER(member), int32_t                                            \
                          : true, int64_t                                                          \
                          : true, default                                                          \
                          : false)

/* The types of fields. */
#define NUMBER(member)          FIELD_BASIC(member)
#define BELOW(member, maximum)  FIELD_BASIC(member), .max = (maximum) /* 0 … maximum */
#define OPTIONAL(member, value) NUMBER(member), .optional = true, .absent = (value)
#define TEXT(member)                                                                               \
    .type = FIELD_TEXT, .at = offsetof(struct ROW, member),                                        \
    .size_at = offsetof(struct ROW, member##_size)
#define WORD(member) .type = FIELD_WORD, .at = offsetof(struct ROW, member)
#define STRING(member)                                                                             \
    .type = FIELD_STRING, .at = offsetof(struct ROW, member), .room = sizeof(FIELD_MEMBER(member))
#define ARRAY(member)    FIRST(member, sizeof(FIELD_MEMBER(member)) / sizeof(FIELD_MEMBER(member)[0]))
#define FIRST(member, n) /* elements of an array */                                                \
    .type = FIELD_ARRAY, .at = offsetof(struct ROW, member),                                       \
    .size = sizeof(FIELD_MEMBER(member)[0]), .room = (n)
#define SUBRECORD(member, table)                                                                   \
    .type = FIELD_RECORD, .at = offsetof(struct ROW, member), .record = &(table)
#define LIST(member, count, table)                                                                 \
    .type = FIELD_LIST, .at = offsetof(struct ROW, member),                                        \
    .size_at = offsetof(struct ROW, count), .count_size = sizeof(FIELD_MEMBER(count)),             \
    .room = sizeof(FIELD_MEMBER(member)) / sizeof(FIELD_MEMBER(member)[0]), .record = &(table)

/* Makes an entry of a table of fields from one of the list. */
#define FIELD(kept, column, ...) {.name = #column, .media = MEDIA_##kept, __VA_ARGS__},

/* Makes a record of a list of fields, or of the fields themselves. */
#define RECORD(kind, list) RECORD_OF(kind, list(FIELD))
#define RECORD_OF(kind, ...)                                                                       \
    {                                                                                              \
        .name = (kind), .fields = (const struct field[]){__VA_ARGS__},                             \
        .n = sizeof((const struct field[]){__VA_ARGS__}) / sizeof(struct field),                   \
        .size = sizeof(struct ROW)                                                                 \
    }

/* A list of fields with their types also describes the struct: `struct name { LIST(MEMBER) };` */
#define MEMBER(kept, column, type, ...)      type column;
#define TYPED_FIELD(kept, column, type, ...) FIELD(kept, column, __VA_ARGS__)

/* Writes the fields that an upgrade hands over. */
void record_put(struct saved_writer *writer, const struct record *record, const void *row);
/* Fills in these fields; pointers are borrowed from the reader's bytes. Others stay. Damage shows
 * in the reader, and what is read of the row then is within bounds. */
void record_get(struct saved_reader *reader, const struct record *record, void *row);

/* record_put() in a row of this kind. */
void record_save(struct saver *saver, const struct record *record, const void *row,
                 const struct payload *payload);

/* Whether a struct in shared memory, which may be damaged after a crash, is within bounds. */
bool record_is_sound(const struct record *record, const void *row);

/* Mixes all that decides how the record is written into `digest`. */
uint64_t record_digest(uint64_t digest, const struct record *record);

/* The number in the member of a field, and back: for those who bring it to another medium. */
uint64_t field_load(const struct field *field, const void *row);
void field_store(const struct field *field, void *row, uint64_t value);
