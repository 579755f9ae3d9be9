/* SPDX-License-Identifier: MIT */
/*
 * Every record there is, made from its table: random values in all fields come back, and no other
 * number of bytes is taken for the record.
 */

#include "shared/protocol/protocol-requests.h"
#include "tests/unit/suite.h"

#define ROUNDS     20
#define INLINE_MAX 100

static _Alignas(
    8) uint8_t body[PROTOCOL_CHECKPOINT_MAX + PROTOCOL_JOB_RARE_MAX + PROTOCOL_BODY_MAX];

/* ---- random values ---- */

/* Each field's bytes are a piece of this. */
static char pool[PROTOCOL_CHECKPOINT_MAX + 4096];

static uint64_t any(void)
{
    return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(any() % n);
}

/* The ends of the range come up often. */
static uint32_t any_size(uint32_t max)
{
    const uint32_t choice = below(4);

    return choice == 0 ? 0 : choice == 1 ? max : below(max + 1);
}

static void fill_id(struct protocol_id *id)
{
    *id = (struct protocol_id){0};
    if (below(2) == 0) {
        id->high = any();
        id->low = any();
    } else {
        memset(id->name, 'x', 1 + below(PROTOCOL_NAME_MAX));
    }
}

static void fill_payload(struct payload_wire *payload)
{
    if (below(2) == 0)
        *payload = (struct payload_wire){.data = pool, .size = any_size(INLINE_MAX)};
    else
        *payload = (struct payload_wire){
            .form = PAYLOAD_BLOB, .size = any() % (PAYLOAD_BLOB_MAX + 1), .serial = any()};
}

static void fill_topic(struct topic *topic)
{
    topic->type = pool;
    topic->type_size = any_size(TOPIC_TYPE_MAX);
    topic->key = below(3) == 0 ? NULL : pool;
    topic->key_size = topic->key ? any_size(TOPIC_KEY_MAX) : 0;
}

#define FILL_u8(member)                      record->member = (uint8_t)any();
#define FILL_u32(member)                     record->member = (uint32_t)any();
#define FILL_i32(member)                     record->member = (int32_t)any();
#define FILL_u64(member)                     record->member = any();
#define FILL_usec(member)                    record->member = any();
#define FILL_enumeration(member, type, last) record->member = (type)below(last + 1u);
#define FILL_flags(member, known)            record->member = (uint32_t)any() & (known);
#define FILL_signal_number(member)           record->member = (uint8_t)(1 + below(PROTOCOL_SIGNAL_MAX));
#define FILL_process_id(member)              record->member = (int32_t)(1 + below(INT32_MAX));
#define FILL_bytes(member, max)                                                                    \
    record->member = pool + below(100);                                                            \
    record->member##_size = any_size(max);
#define FILL_optional(member, max)                                                                 \
    record->member = below(3) == 0 ? NULL : pool;                                                  \
    record->member##_size = record->member ? any_size(max) : 0;
#define FILL_topic(member)   fill_topic(&record->member);
#define FILL_id(member)      fill_id(&record->member);
#define FILL_payload(member) fill_payload(&record->member);
#define FILL_content(member)                                                                       \
    fill_topic(&record->member.topic);                                                             \
    fill_payload(&record->member.payload);
#define FILL(kind, ...) FILL_##kind(__VA_ARGS__)

/* ---- comparison ---- */

static bool same_bytes(const void *a, uint64_t a_size, const void *b, uint64_t b_size)
{
    return a_size == b_size && (a_size == 0 || memcmp(a, b, (size_t)a_size) == 0);
}

static bool same_id(const struct protocol_id *a, const struct protocol_id *b)
{
    return a->high == b->high && a->low == b->low && strcmp(a->name, b->name) == 0;
}

/* Inline data is aligned and ends as text does. */
static bool same_payload(const struct payload_wire *a, const struct payload_wire *b)
{
    if (a->form == PAYLOAD_BLOB)
        return b->form == a->form && a->size == b->size && a->serial == b->serial && !b->data;
    return b->form == a->form && b->serial == 0 && same_bytes(a->data, a->size, b->data, b->size) &&
           (uintptr_t)b->data % 8 == 0 && ((const char *)b->data)[b->size] == '\0';
}

static bool same_content(const struct protocol_content *a, const struct protocol_content *b)
{
    return topic_compare(&a->topic, &b->topic) == 0 && same_payload(&a->payload, &b->payload);
}

#define SAME_u8(member)                      &&record->member == copy->member
#define SAME_u32(member)                     SAME_u8(member)
#define SAME_i32(member)                     SAME_u8(member)
#define SAME_u64(member)                     SAME_u8(member)
#define SAME_usec(member)                    SAME_u8(member)
#define SAME_enumeration(member, type, last) SAME_u8(member)
#define SAME_flags(member, known)            SAME_u8(member)
#define SAME_signal_number(member)           SAME_u8(member)
#define SAME_process_id(member)              SAME_u8(member)
#define SAME_bytes(member, max)                                                                    \
    &&same_bytes(record->member, record->member##_size, copy->member, copy->member##_size)
#define SAME_optional(member, max) &&!record->member == !copy->member SAME_bytes(member, max)
#define SAME_topic(member)         &&topic_compare(&record->member, &copy->member) == 0
#define SAME_id(member)            &&same_id(&record->member, &copy->member)
#define SAME_payload(member)       &&same_payload(&record->member, &copy->member)
#define SAME_content(member)       &&same_content(&record->member, &copy->member)
#define SAME(kind, ...)            SAME_##kind(__VA_ARGS__)

/* ---- where a struct's members are ---- */

/* Moves `at` behind the next member, if that is where the compiler puts it. */
static bool passes(size_t *at, size_t offset, size_t size, size_t alignment)
{
    const size_t expected = (*at + alignment - 1) / alignment * alignment;

    *at = offset + size;
    return offset == expected;
}

#define NEXT(member)                                                                               \
    &&passes(&at, (size_t)((const char *)&record->member - (const char *)record),                  \
             sizeof(record->member), _Alignof(typeof(record->member)))
#define PASS_u8(member)                      NEXT(member)
#define PASS_u32(member)                     NEXT(member)
#define PASS_i32(member)                     NEXT(member)
#define PASS_u64(member)                     NEXT(member)
#define PASS_usec(member)                    NEXT(member)
#define PASS_enumeration(member, type, last) NEXT(member)
#define PASS_flags(member, known)            NEXT(member)
#define PASS_signal_number(member)           NEXT(member)
#define PASS_process_id(member)              NEXT(member)
#define PASS_bytes(member, max)              NEXT(member) NEXT(member##_size)
#define PASS_optional(member, max)           PASS_bytes(member, max)
#define PASS_topic(member)                   NEXT(member)
#define PASS_id(member)                      NEXT(member)
#define PASS_payload(member)                 NEXT(member)
#define PASS_content(member)                 NEXT(member)
#define PASS(kind, ...)                      PASS_##kind(__VA_ARGS__)

/* ---- all of it for one record ---- */

struct record {
    const char *name;
    size_t size;
    uint32_t room;
    void (*fill)(void *);
    bool (*same)(const void *, const void *);
    bool (*complete)(const void *);
    int (*put)(void *, uint32_t, const void *);
    int (*get)(const void *, uint32_t, void *);
};

#define DEFINE(name)                                                                               \
    static void fill_##name(void *value)                                                           \
    {                                                                                              \
        struct protocol_##name *record = value;                                                    \
        PROTOCOL_FIELDS_##name(FILL)                                                               \
    }                                                                                              \
    static bool same_##name(const void *a, const void *b)                                          \
    {                                                                                              \
        const struct protocol_##name *record = a, *copy = b;                                       \
        return true PROTOCOL_FIELDS_##name(SAME);                                                  \
    }                                                                                              \
    static bool complete_##name(const void *value)                                                 \
    {                                                                                              \
        const struct protocol_##name *record = value;                                              \
        size_t at = 0;                                                                             \
        return true PROTOCOL_FIELDS_##name(PASS) && (at + _Alignof(struct protocol_##name) - 1) /  \
                                                            _Alignof(struct protocol_##name) *     \
                                                            _Alignof(struct protocol_##name) ==    \
                                                        sizeof(*record);                           \
    }                                                                                              \
    static int put_##name(void *at, uint32_t size, const void *value)                              \
    {                                                                                              \
        return protocol_put_##name(at, size, value);                                               \
    }                                                                                              \
    static int get_##name(const void *at, uint32_t size, void *ret)                                \
    {                                                                                              \
        return protocol_get_##name(at, size, ret);                                                 \
    }

#define RECORD(name)                                                                               \
    {#name,                                                                                        \
     sizeof(struct protocol_##name),                                                               \
     PROTOCOL_ROOM(name),                                                                          \
     fill_##name,                                                                                  \
     same_##name,                                                                                  \
     complete_##name,                                                                              \
     put_##name,                                                                                   \
     get_##name},

PROTOCOL_RECORDS(DEFINE)

static const struct record records[] = {PROTOCOL_RECORDS(RECORD)};

static union {
    _Alignas(16) char bytes[1024];
} value, copy;

static void set_up(void)
{
    srandom(1);
    for (size_t i = 0; i < sizeof(pool); i++)
        pool[i] = (char)('a' + i % 26);
}

TEST(every_record_comes_back, .n = ELEMENTS(records))
{
    const struct record *record = &records[_i];

    ck_assert_uint_le(record->size, sizeof(value));
    for (int round = 0; round < ROUNDS; round++) {
        record->fill(&value);
        const int size = record->put(body, sizeof(body), &value);
        ck_assert_msg(size > 0, "%s: %d", record->name, size);
        ck_assert_uint_le((uint32_t)size, record->room + INLINE_MAX);
        ck_assert_int_eq(record->put(body, (uint32_t)size, &value), size);
        ck_assert_int_eq(record->get(body, (uint32_t)size, &copy), 0);
        ck_assert_msg(record->same(&value, &copy), "%s", record->name);
    }
}

/* Between the sizes that are tried: some hundred of a large record. */
static int step_of(int size)
{
    return 1 + size / 512;
}

TEST(a_record_of_any_other_size_is_refused_and_reads_as_zero, .n = ELEMENTS(records))
{
    static const char zeros[sizeof(copy)];
    const struct record *record = &records[_i];

    for (int round = 0; round < ROUNDS; round++) {
        record->fill(&value);
        const int size = record->put(body, sizeof(body), &value);
        for (int less = 0; less <= size + 1; less += step_of(size)) {
            if (less == size)
                continue;
            memset(&copy, 0xff, sizeof(copy));
            ck_assert_msg(record->get(body, (uint32_t)less, &copy) == -EBADMSG, "%s: %d of %d",
                          record->name, less, size);
            ck_assert_mem_eq(&copy, zeros, record->size);
        }
    }
}

TEST(a_record_is_never_written_into_less_room, .n = ELEMENTS(records))
{
    const struct record *record = &records[_i];

    for (int round = 0; round < ROUNDS; round++) {
        record->fill(&value);
        const int size = record->put(body, sizeof(body), &value);
        for (int less = 0; less < size; less += step_of(size)) {
            memset(body, 0x55, sizeof(body));
            ck_assert_int_eq(record->put(body, (uint32_t)less, &value), -EMSGSIZE);
            ck_assert_uint_eq(body[less], 0x55);
        }
    }
}

/* What it says is of no interest, as long as nothing is read beyond the record (see check-asan). */
TEST(any_bytes_can_be_read, .n = ELEMENTS(records))
{
    const struct record *record = &records[_i];

    for (int round = 0; round < 20 * ROUNDS; round++) {
        const uint32_t size = below(200);
        uint8_t *bytes = malloc(size + 1u);

        ck_assert_ptr_nonnull(bytes);
        for (uint32_t i = 0; i < size; i++)
            bytes[i] = below(2) == 0 ? 0 : (uint8_t)any();
        int r = record->get(bytes, size, &copy);
        ck_assert(r == 0 || r == -EBADMSG);
        free(bytes);
    }
}

TEST(every_member_of_a_record_is_in_its_table_in_that_order, .n = ELEMENTS(records))
{
    ck_assert_msg(records[_i].complete(&value), "%s", records[_i].name);
}

/* ---- limits ---- */

static const struct payload_wire hello = {.form = PAYLOAD_INLINE, .data = "hello", .size = 5};
static const struct payload_wire blob = {.form = PAYLOAD_BLOB, .size = 1 << 20, .serial = 9};

TEST(an_inline_payloads_end_is_a_zero_byte)
{
    struct protocol_job job_copy, job = {.payload = hello};
    int size = protocol_put_job(body, sizeof(body), &job);

    body[size - 1] = 1;
    ck_assert_int_eq(protocol_get_job(body, (uint32_t)size, &job_copy), -EBADMSG);
}

TEST(an_impossible_crash_is_refused)
{
    for (unsigned i = 0; i < 4; i++) {
        struct protocol_crashed crash, odd = {0};

        odd.signal = i == 0 ? 0 : i == 1 ? PROTOCOL_SIGNAL_MAX + 1 : 9;
        odd.pid = i == 2 ? 0 : i == 3 ? -1 : 1;
        int size = protocol_put_crashed(body, sizeof(body), &odd);
        ck_assert_int_eq(protocol_get_crashed(body, (uint32_t)size, &crash), -EBADMSG);
    }
}

TEST(the_largest_fields_stay_below_the_largest_body)
{
    struct protocol_done done = {
        .reason = pool, .reason_size = PROTOCOL_REASON_MAX, .payload = blob};
    struct protocol_submit submit = {.name = pool,
                                     .name_size = PROTOCOL_NAME_MAX,
                                     .key = pool,
                                     .key_size = PROTOCOL_KEY_MAX,
                                     .payload = blob};
    struct protocol_message message = {.content = {.topic = {.type = pool,
                                                             .type_size = TOPIC_TYPE_MAX,
                                                             .key = pool,
                                                             .key_size = TOPIC_KEY_MAX}}};

    memset(done.id.name, 'x', PROTOCOL_NAME_MAX);
    ck_assert_int_gt(protocol_put_done(body, PROTOCOL_BODY_MAX, &done), PROTOCOL_REASON_MAX);
    ck_assert_int_gt(protocol_put_submit(body, PROTOCOL_BODY_MAX, &submit), 0);
    ck_assert_int_gt(protocol_put_message(body, PROTOCOL_MESSAGE_FIXED, &message), 0);
    ck_assert_uint_lt(PROTOCOL_MESSAGE_FIXED, PROTOCOL_BODY_MAX);
}

TEST(fields_above_their_limits_are_not_sent)
{
    struct protocol_done done = {.reason = pool, .reason_size = PROTOCOL_REASON_MAX + 1};
    struct protocol_job job = {.key = pool, .key_size = PROTOCOL_KEY_MAX + 1};
    struct protocol_forward forward = {.key = pool, .key_size = TOPIC_KEY_MAX + 1};
    struct protocol_result result = {.payload = {.data = pool, .size = UINT64_C(1) << 32}};
    struct protocol_tell tell = {.content.topic = {.type = pool, .type_size = TOPIC_TYPE_MAX + 1}};

    ck_assert_int_eq(protocol_put_done(body, sizeof(body), &done), -EMSGSIZE);
    ck_assert_int_eq(protocol_put_job(body, sizeof(body), &job), -EMSGSIZE);
    ck_assert_int_eq(protocol_put_forward(body, sizeof(body), &forward), -EMSGSIZE);
    ck_assert_int_eq(protocol_put_result(body, sizeof(body), &result), -EMSGSIZE);
    ck_assert_int_eq(protocol_put_tell(body, sizeof(body), &tell), -EMSGSIZE);
    tell.content.topic = (struct topic){.type = pool, .key = pool, .key_size = TOPIC_KEY_MAX + 1};
    ck_assert_int_eq(protocol_put_tell(body, sizeof(body), &tell), -EMSGSIZE);
}

/* Bytes 8 … 12 of the body are the size. */
static void set_size(uint32_t size)
{
    memcpy(body + 8, &size, sizeof(size));
}

TEST(fields_above_their_limits_are_not_taken)
{
    struct protocol_lookup lookup;
    struct protocol_terminated terminated;

    memset(body, 'x', sizeof(body));
    set_size(PROTOCOL_KEY_MAX);
    ck_assert_int_eq(protocol_get_lookup(body, 12 + PROTOCOL_KEY_MAX, &lookup), 0);
    set_size(PROTOCOL_KEY_MAX + 1);
    ck_assert_int_eq(protocol_get_lookup(body, 12 + PROTOCOL_KEY_MAX + 1, &lookup), -EBADMSG);
    set_size(PROTOCOL_REASON_MAX);
    ck_assert_int_eq(protocol_get_terminated(body, 12 + PROTOCOL_REASON_MAX, &terminated), 0);
    set_size(PROTOCOL_REASON_MAX + 1);
    ck_assert_int_eq(protocol_get_terminated(body, 12 + PROTOCOL_REASON_MAX + 1, &terminated),
                     -EBADMSG);
}

TEST(impossible_values_are_refused)
{
    struct protocol_result result = {.outcome = PROTOCOL_CANCELLED + 1}, result_copy;
    struct protocol_done done = {.end = PROTOCOL_END_DEAD + 1}, done_copy;
    struct protocol_done why = {.cause = PROTOCOL_CAUSE_DEPENDENCY + 1};
    struct protocol_submit submit = {.flags = PROTOCOL_SUBMIT_KNOWN + 1}, submit_copy;
    struct protocol_job job = {.payload = {.form = PAYLOAD_BLOB, .size = PAYLOAD_BLOB_MAX + 1}};
    struct protocol_job job_copy;

    int size = protocol_put_result(body, sizeof(body), &result);
    ck_assert_int_eq(protocol_get_result(body, (uint32_t)size, &result_copy), -EBADMSG);
    size = protocol_put_done(body, sizeof(body), &done);
    ck_assert_int_eq(protocol_get_done(body, (uint32_t)size, &done_copy), -EBADMSG);
    size = protocol_put_done(body, sizeof(body), &why);
    ck_assert_int_eq(protocol_get_done(body, (uint32_t)size, &done_copy), -EBADMSG);
    size = protocol_put_submit(body, sizeof(body), &submit);
    ck_assert_int_eq(protocol_get_submit(body, (uint32_t)size, &submit_copy), -EBADMSG);
    size = protocol_put_job(body, sizeof(body), &job);
    ck_assert_int_eq(protocol_get_job(body, (uint32_t)size, &job_copy), -EBADMSG);
}

TEST(no_byte_of_a_contents_head_can_be_wrong)
{
    struct protocol_tell tell_copy, tell = {.content.topic = {.type = "", .key = ""}};
    int size = protocol_put_tell(body, sizeof(body), &tell);

    for (int at = PROTOCOL_TELL_CONTENT; at < (int)PROTOCOL_TELL_CONTENT + 24; at++) {
        uint8_t saved = body[at];
        body[at] = 0xff;
        ck_assert_msg(protocol_get_tell(body, (uint32_t)size, &tell_copy) == -EBADMSG, "%d", at);
        body[at] = saved;
    }
}

TEST(the_bytes_of_a_content_are_the_same_in_all_records_between_which_it_moves)
{
    static _Alignas(8) uint8_t other[PROTOCOL_BODY_MAX];
    const struct protocol_content content = {
        .topic = {.type = "order.created", .type_size = 13, .key = "tenant-7", .key_size = 8},
        .payload = hello,
    };
    struct protocol_content content_copy;
    struct protocol_tell tell = {.to = 1, .content = content};
    struct protocol_message message = {.id = 1, .content = content};
    struct protocol_replied replied = {.cookie = 1, .content = content};
    const uint8_t *bytes = body + PROTOCOL_TELL_CONTENT;
    uint32_t size = (uint32_t)protocol_put_tell(body, sizeof(body), &tell) - PROTOCOL_TELL_CONTENT;
    uint32_t taken;

    ck_assert_int_eq(protocol_put_message(other, sizeof(other), &message),
                     (int)(PROTOCOL_MESSAGE_CONTENT + size));
    ck_assert_mem_eq(bytes, other + PROTOCOL_MESSAGE_CONTENT, size);
    ck_assert_int_eq(protocol_put_replied(other, sizeof(other), &replied),
                     (int)(PROTOCOL_REPLIED_CONTENT + size));
    ck_assert_mem_eq(bytes, other + PROTOCOL_REPLIED_CONTENT, size);

    ck_assert_int_eq(protocol_get_content(bytes, sizeof(body) / 2, &content_copy, &taken), 0);
    ck_assert_uint_eq(taken, size);
    ck_assert(same_content(&content, &content_copy));
    for (uint32_t less = 0; less < size; less++)
        ck_assert_int_eq(protocol_get_content(bytes, less, &content_copy, &taken), -EBADMSG);
}

TEST(a_messages_head_is_that_of_the_whole_message)
{
    static _Alignas(8) uint8_t other[PROTOCOL_MESSAGE_CONTENT];
    struct protocol_message message;

    fill_message(&message);
    ck_assert_int_gt(protocol_put_message(body, sizeof(body), &message), 0);
    protocol_put_message_head(other, &message);
    ck_assert_mem_eq(body, other, sizeof(other));
}

/* ---- ids ---- */

TEST(bad_names_in_ids_are_refused)
{
    static const struct {
        const char *bytes;
        uint32_t size;
    } bad[] = {{"a b", 3}, {"-a", 2},  {".a", 2},      {"a\0b", 3},
               {"\0", 1},  {"a/b", 3}, {"\xc3\xa9", 2}};

    for (size_t i = 0; i < ELEMENTS(bad); i++) {
        struct protocol_by_id by_id = {.id.name = "abc"};

        by_id.id.name[bad[i].size] = '\0';
        int size = protocol_put_by_id(body, sizeof(body), &by_id);
        memcpy(body + size - bad[i].size, bad[i].bytes, bad[i].size);
        ck_assert_int_eq(protocol_get_by_id(body, (uint32_t)size, &by_id), -EBADMSG);
    }
}

TEST(a_name_that_spells_a_made_id_is_that_id)
{
    struct protocol_by_id by_id = {.id.name = "0123456789abcdeffedcba9876543210"}, by_id_copy;
    int size = protocol_put_by_id(body, sizeof(body), &by_id);

    ck_assert_int_eq(protocol_get_by_id(body, (uint32_t)size, &by_id_copy), 0);
    ck_assert_uint_eq(by_id_copy.id.high, UINT64_C(0x0123456789abcdef));
    ck_assert_uint_eq(by_id_copy.id.low, UINT64_C(0xfedcba9876543210));
    ck_assert_str_eq(by_id_copy.id.name, "");
}

const struct suite suite = {.setup = set_up};
