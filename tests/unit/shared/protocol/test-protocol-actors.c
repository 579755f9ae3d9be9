/* SPDX-License-Identifier: MIT */
#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include <check.h>
#include <string.h>

static _Alignas(8) uint8_t body[PROTOCOL_BODY_MAX];

static const struct protocol_content order = {
    .topic = {.type = "order.created", .type_size = 13, .key = "tenant-7", .key_size = 8},
    .payload = {.form = PAYLOAD_INLINE, .data = "hello", .size = 5},
};
static const struct protocol_content bare = {.payload = {.form = PAYLOAD_INLINE}};
static const struct protocol_content large = {
    .topic = {.type = "x", .type_size = 1},
    .payload = {.form = PAYLOAD_BLOB, .size = 1 << 20, .serial = 9}};

static void assert_same_content(const struct protocol_content *a, const struct protocol_content *b)
{
    const struct topic empty = {.type = ""};

    ck_assert_int_eq(topic_compare(a->topic.type ? &a->topic : &empty, &b->topic), 0);
    ck_assert_int_eq(a->payload.form, b->payload.form);
    ck_assert_uint_eq(a->payload.size, b->payload.size);
    ck_assert_uint_eq(a->payload.serial, b->payload.serial);
    if (a->payload.form == PAYLOAD_INLINE && a->payload.size > 0)
        ck_assert_mem_eq(a->payload.data, b->payload.data, a->payload.size);
}

/* See test-protocol.c. */
#define ROUND_TRIP(kind, value, copy)                                                              \
    do {                                                                                           \
        int _size = protocol_put_##kind(body, sizeof(body), (value));                              \
        ck_assert_int_gt(_size, 0);                                                                \
        for (int _less = 0; _less < _size; _less++) {                                              \
            ck_assert_int_eq(protocol_put_##kind(body, (uint32_t)_less, (value)), -EMSGSIZE);      \
            ck_assert_int_eq(protocol_put_##kind(body, sizeof(body), (value)), _size);             \
            ck_assert_int_eq(protocol_get_##kind(body, (uint32_t)_less, (copy)), -EBADMSG);        \
        }                                                                                          \
        ck_assert_int_eq(protocol_get_##kind(body, (uint32_t)_size + 1, (copy)), -EBADMSG);        \
        ck_assert_int_eq(protocol_get_##kind(body, (uint32_t)_size, (copy)), 0);                   \
    } while (0)

START_TEST(a_message_comes_back)
{
    const struct protocol_content *contents[] = {&order, &bare, &large};
    struct protocol_message copy;

    for (size_t i = 0; i < ELEMENTS(contents); i++) {
        struct protocol_message message = {
            .id = 77,
            .sender = UINT64_C(5) << 32 | 3,
            .ask = 9,
            .timer = 4,
            .sent_at = 123456789,
            .flags = PROTOCOL_MESSAGE_REDELIVERED | PROTOCOL_MESSAGE_POOL,
            .attempt = 2,
            .content = *contents[i],
        };
        ROUND_TRIP(message, &message, &copy);
        ck_assert_uint_eq(copy.id, 77);
        ck_assert_uint_eq(copy.sender, message.sender);
        ck_assert_uint_eq(copy.ask, 9);
        ck_assert_uint_eq(copy.timer, 4);
        ck_assert_uint_eq(copy.sent_at, 123456789);
        ck_assert_uint_eq(copy.flags, message.flags);
        ck_assert_uint_eq(copy.attempt, 2);
        assert_same_content(&message.content, &copy.content);
    }
}
END_TEST

START_TEST(an_inline_payload_is_aligned_and_ends_in_a_zero_byte)
{
    char type[TOPIC_TYPE_MAX];
    struct protocol_message copy, message = {.content = order};

    memset(type, 'a', sizeof(type));
    message.content.topic.type = type;
    for (uint32_t size = 0; size <= sizeof(type); size++) {
        message.content.topic.type_size = size;
        int r = protocol_put_message(body, sizeof(body), &message);
        ck_assert_int_gt(r, 0);
        ck_assert_int_eq(protocol_get_message(body, (uint32_t)r, &copy), 0);
        ck_assert_uint_eq((uintptr_t)copy.content.payload.data % 8, 0);
        ck_assert_str_eq(copy.content.payload.data, "hello");
    }
}
END_TEST

START_TEST(the_bytes_of_a_content_are_the_same_in_a_tell_and_in_its_message)
{
    static _Alignas(8) uint8_t other[PROTOCOL_BODY_MAX];
    struct protocol_tell tell = {.to = 1, .content = order};
    struct protocol_message message = {.id = 1, .content = order};
    int a = protocol_put_tell(body, sizeof(body), &tell);
    int b = protocol_put_message(other, sizeof(other), &message);

    ck_assert_int_eq(a - 8, b - 48);
    ck_assert_mem_eq(body + 8, other + 48, (size_t)a - 8);
}
END_TEST

START_TEST(no_key_and_an_empty_key_differ)
{
    struct protocol_tell copy, tell = {.content = {.topic = {.type = "t", .type_size = 1}}};

    ROUND_TRIP(tell, &tell, &copy);
    ck_assert_ptr_null(copy.content.topic.key);
    tell.content.topic.key = "";
    ROUND_TRIP(tell, &tell, &copy);
    ck_assert_ptr_nonnull(copy.content.topic.key);
    ck_assert_uint_eq(copy.content.topic.key_size, 0);
}
END_TEST

START_TEST(an_ask_and_its_reply_come_back)
{
    struct protocol_ask ask = {
        .to = 5, .cookie = 6, .timeout = 7, .wanted = "answer", .wanted_size = 6, .content = order};
    struct protocol_ask ask_copy;
    struct protocol_reply reply = {.ask = 8, .content = large}, reply_copy;
    struct protocol_replied replied = {.cookie = 6, .from = 5, .content = order}, replied_copy;

    ROUND_TRIP(ask, &ask, &ask_copy);
    ck_assert_uint_eq(ask_copy.to, 5);
    ck_assert_uint_eq(ask_copy.cookie, 6);
    ck_assert_uint_eq(ask_copy.timeout, 7);
    ck_assert_uint_eq(ask_copy.wanted_size, 6);
    ck_assert_mem_eq(ask_copy.wanted, "answer", 6);
    assert_same_content(&ask.content, &ask_copy.content);
    ROUND_TRIP(reply, &reply, &reply_copy);
    ck_assert_uint_eq(reply_copy.ask, 8);
    assert_same_content(&reply.content, &reply_copy.content);
    ROUND_TRIP(replied, &replied, &replied_copy);
    ck_assert_uint_eq(replied_copy.cookie, 6);
    ck_assert_uint_eq(replied_copy.from, 5);
    assert_same_content(&replied.content, &replied_copy.content);
}
END_TEST

START_TEST(what_is_said_about_a_message_comes_back)
{
    struct protocol_forward forward = {.message = 1, .to = 2}, forward_copy;
    struct protocol_verdict verdict = {.message = 3, .code = -5, .text = "no", .text_size = 2};
    struct protocol_verdict verdict_copy;
    struct protocol_stash stash = {.message = 4, .flags = PROTOCOL_STASH_IN_HAND}, stash_copy;
    struct protocol_leave leave = {.reason = "done", .reason_size = 4}, leave_copy;

    ROUND_TRIP(leave, &leave, &leave_copy);
    ck_assert_uint_eq(leave_copy.reason_size, 4);
    ck_assert_mem_eq(leave_copy.reason, "done", 4);
    ROUND_TRIP(forward, &forward, &forward_copy);
    ck_assert_uint_eq(forward_copy.message, 1);
    ck_assert_uint_eq(forward_copy.to, 2);
    ck_assert(!forward_copy.new_key);
    ck_assert_ptr_null(forward_copy.key);
    forward.new_key = true;
    forward.key = "other";
    forward.key_size = 5;
    ROUND_TRIP(forward, &forward, &forward_copy);
    ck_assert(forward_copy.new_key);
    ck_assert_uint_eq(forward_copy.key_size, 5);
    ck_assert_mem_eq(forward_copy.key, "other", 5);
    ROUND_TRIP(verdict, &verdict, &verdict_copy);
    ck_assert_uint_eq(verdict_copy.message, 3);
    ck_assert_int_eq(verdict_copy.code, -5);
    ck_assert_mem_eq(verdict_copy.text, "no", 2);
    ROUND_TRIP(stash, &stash, &stash_copy);
    ck_assert_uint_eq(stash_copy.message, 4);
    ck_assert_uint_eq(stash_copy.flags, PROTOCOL_STASH_IN_HAND);
}
END_TEST

START_TEST(timers_come_back)
{
    struct protocol_timer timer = {.cookie = 1,
                                   .to = 2,
                                   .at = 3,
                                   .period = 4,
                                   .flags = PROTOCOL_TIMER_REALTIME,
                                   .content = order};
    struct protocol_timer copy;
    struct protocol_timer_cancel cancel = {
        .cookie = 5, .timer = 6, .to = 7, .type = "tick", .type_size = 4};
    struct protocol_timer_cancel cancel_copy;

    ROUND_TRIP(timer, &timer, &copy);
    ck_assert_uint_eq(copy.cookie, 1);
    ck_assert_uint_eq(copy.to, 2);
    ck_assert_uint_eq(copy.at, 3);
    ck_assert_uint_eq(copy.period, 4);
    ck_assert_uint_eq(copy.flags, PROTOCOL_TIMER_REALTIME);
    assert_same_content(&timer.content, &copy.content);
    ROUND_TRIP(timer_cancel, &cancel, &cancel_copy);
    ck_assert_uint_eq(cancel_copy.cookie, 5);
    ck_assert_uint_eq(cancel_copy.timer, 6);
    ck_assert_uint_eq(cancel_copy.to, 7);
    ck_assert_mem_eq(cancel_copy.type, "tick", 4);
}
END_TEST

START_TEST(requests_and_answers_come_back)
{
    struct protocol_named named = {.cookie = 1, .name = "bank/acct-1", .name_size = 11}, n;
    struct protocol_by_reference by = {.cookie = 2, .reference = 3}, b;
    struct protocol_subscription subscription = {
        .cookie = 4, .exchange = 5, .topic = {.type = "order", .type_size = 5, .key = ""}};
    struct protocol_subscription s;
    struct protocol_exchange exchange = {
        .cookie = 6, .type = EXCHANGE_PATTERN, .name = "x", .name_size = 1};
    struct protocol_exchange e;
    struct protocol_terminated terminated = {.reference = 7, .cause = "gone", .cause_size = 4}, t;
    struct protocol_answer answer = {.cookie = 8, .value = 9}, a;

    ROUND_TRIP(named, &named, &n);
    ck_assert_mem_eq(n.name, "bank/acct-1", 11);
    ROUND_TRIP(by_reference, &by, &b);
    ck_assert_uint_eq(b.reference, 3);
    ROUND_TRIP(subscription, &subscription, &s);
    ck_assert_uint_eq(s.exchange, 5);
    ck_assert_ptr_nonnull(s.topic.key);
    ck_assert_int_eq(topic_compare(&subscription.topic, &s.topic), 0);
    ROUND_TRIP(exchange, &exchange, &e);
    ck_assert_int_eq(e.type, EXCHANGE_PATTERN);
    ROUND_TRIP(terminated, &terminated, &t);
    ck_assert_uint_eq(t.reference, 7);
    ck_assert_mem_eq(t.cause, "gone", 4);
    ROUND_TRIP(answer, &answer, &a);
    ck_assert_uint_eq(a.cookie, 8);
    ck_assert_uint_eq(a.value, 9);
}
END_TEST

START_TEST(fields_beyond_their_bounds_are_refused_on_both_sides)
{
    char text[300] = "";
    struct protocol_tell copy, tell = {.content = order};

    tell.content.topic.type = tell.content.topic.key = text;
    tell.content.topic.type_size = TOPIC_TYPE_MAX + 1;
    ck_assert_int_eq(protocol_put_tell(body, sizeof(body), &tell), -EMSGSIZE);
    tell.content.topic.type_size = 0;
    tell.content.topic.key_size = TOPIC_KEY_MAX + 1;
    ck_assert_int_eq(protocol_put_tell(body, sizeof(body), &tell), -EMSGSIZE);
    tell.content.topic.key_size = 0;
    int size = protocol_put_tell(body, sizeof(body), &tell);
    ck_assert_int_gt(size, 0);
    /* form, type size, key size, the zero word, payload size, serial of an inline payload, end */
    for (int at = 8; at < 32; at++) {
        uint8_t saved = body[at];
        body[at] = 0xff;
        ck_assert_msg(protocol_get_tell(body, (uint32_t)size, &copy) == -EBADMSG, "byte %d", at);
        body[at] = saved;
    }
    body[size - 1] = 1;
    ck_assert_int_eq(protocol_get_tell(body, (uint32_t)size, &copy), -EBADMSG);
}
END_TEST

START_TEST(the_largest_fields_fit_into_the_fixed_room)
{
    char text[300];
    struct protocol_message message = {.content = {.topic = {.type = text,
                                                             .type_size = TOPIC_TYPE_MAX,
                                                             .key = text,
                                                             .key_size = TOPIC_KEY_MAX}}};

    memset(text, 'a', sizeof(text));
    ck_assert_int_gt(protocol_put_message(body, PROTOCOL_MESSAGE_FIXED, &message), 0);
    ck_assert_uint_lt(PROTOCOL_MESSAGE_FIXED, PROTOCOL_BODY_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("protocol-actors");
    TCase *tc = tcase_create("records");

    tcase_add_test(tc, a_message_comes_back);
    tcase_add_test(tc, an_inline_payload_is_aligned_and_ends_in_a_zero_byte);
    tcase_add_test(tc, the_bytes_of_a_content_are_the_same_in_a_tell_and_in_its_message);
    tcase_add_test(tc, no_key_and_an_empty_key_differ);
    tcase_add_test(tc, an_ask_and_its_reply_come_back);
    tcase_add_test(tc, what_is_said_about_a_message_comes_back);
    tcase_add_test(tc, timers_come_back);
    tcase_add_test(tc, requests_and_answers_come_back);
    tcase_add_test(tc, fields_beyond_their_bounds_are_refused_on_both_sides);
    tcase_add_test(tc, the_largest_fields_fit_into_the_fixed_room);
    suite_add_tcase(suite, tc);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
