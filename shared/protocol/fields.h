/* SPDX-License-Identifier: MIT */
#pragma once

/* The kinds of fields that records are made of, and their bytes. A record's table lists its fields
 * in the order of its bytes; its struct, its put and its get are made from the table.
 *
 *   u8 u32 i32 u64           as they are
 *   usec                     u64
 *   enumeration, TYPE, LAST  u8, 0 … LAST
 *   flags, KNOWN             u32 without unknown bits
 *   signal_number            u8, 1 … PROTOCOL_SIGNAL_MAX
 *   process_id               i32, at least 1
 *   bytes, MAX               u32 size, so many bytes; members NAME and NAME_size
 *   optional, MAX            u32 1 + size, or 0 for NULL; bytes
 *   topic                    type as bytes, key as optional
 *   id                       u64 high, u64 low, u32 size, name
 *   payload                  u64 size, u64 serial, u8 form, tail
 *   content                  u64 size, u64 serial, u8 form, u8 type size, u16 1 + key size (0 = no
 *                            key), u32 zero, type, key, tail
 *
 * A payload's tail is zero bytes up to a multiple of 8 from the record's beginning, inline data,
 * and a zero byte: inline data is aligned and terminated like text. */

#define PROTOCOL_MEMBER_u8(name)                      uint8_t name;
#define PROTOCOL_MEMBER_u32(name)                     uint32_t name;
#define PROTOCOL_MEMBER_i32(name)                     int32_t name;
#define PROTOCOL_MEMBER_u64(name)                     uint64_t name;
#define PROTOCOL_MEMBER_usec(name)                    usec_t name;
#define PROTOCOL_MEMBER_enumeration(name, type, last) type name;
#define PROTOCOL_MEMBER_flags(name, known)            uint32_t name;
#define PROTOCOL_MEMBER_signal_number(name)           uint8_t name;
#define PROTOCOL_MEMBER_process_id(name)              int32_t name;
#define PROTOCOL_MEMBER_bytes(name, max)                                                           \
    const char *name;                                                                              \
    uint32_t name##_size;
#define PROTOCOL_MEMBER_optional(name, max)                                                        \
    const char *name;                                                                              \
    uint32_t name##_size;
#define PROTOCOL_MEMBER_topic(name)   struct topic name;
#define PROTOCOL_MEMBER_id(name)      struct protocol_id name;
#define PROTOCOL_MEMBER_payload(name) struct payload_wire name;
#define PROTOCOL_MEMBER_content(name) struct protocol_content name;
#define PROTOCOL_MEMBER(kind, ...)    PROTOCOL_MEMBER_##kind(__VA_ARGS__)

/* Declares struct protocol_NAME, its put and its get from its table PROTOCOL_FIELDS_NAME. */
#define PROTOCOL_RECORD(name)                                                                      \
    struct protocol_##name {                                                                       \
        PROTOCOL_FIELDS_##name(PROTOCOL_MEMBER)                                                    \
    };                                                                                             \
    int protocol_put_##name(void *body, uint32_t size, const struct protocol_##name *record);      \
    int protocol_get_##name(const void *body, uint32_t size, struct protocol_##name *ret);

/* The maximum size of a record without inline data. */
#define PROTOCOL_ROOM(name) (0u PROTOCOL_FIELDS_##name(PROTOCOL_ROOM_OF))

#define PROTOCOL_ROOM_OF(kind, ...)                 +PROTOCOL_ROOM_##kind(__VA_ARGS__)
#define PROTOCOL_ROOM_u8(name)                      1u
#define PROTOCOL_ROOM_u32(name)                     4u
#define PROTOCOL_ROOM_i32(name)                     4u
#define PROTOCOL_ROOM_u64(name)                     8u
#define PROTOCOL_ROOM_usec(name)                    8u
#define PROTOCOL_ROOM_enumeration(name, type, last) 1u
#define PROTOCOL_ROOM_flags(name, known)            4u
#define PROTOCOL_ROOM_signal_number(name)           1u
#define PROTOCOL_ROOM_process_id(name)              4u
#define PROTOCOL_ROOM_bytes(name, max)              (4u + (max))
#define PROTOCOL_ROOM_optional(name, max)           (4u + (max))
#define PROTOCOL_ROOM_topic(name)                   (8u + TOPIC_TYPE_MAX + TOPIC_KEY_MAX)
#define PROTOCOL_ROOM_id(name)                      (20u + PROTOCOL_NAME_MAX)
#define PROTOCOL_ROOM_payload(name)                 PAYLOAD_FIXED
#define PROTOCOL_ROOM_content(name)                 PROTOCOL_CONTENT_FIXED
