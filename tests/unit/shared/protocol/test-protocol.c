/* SPDX-License-Identifier: MIT */
#include "shared/base/cleanup.h"
#include "shared/protocol/protocol.h"
#include <check.h>
#include <string.h>

static _Alignas(8) uint8_t body[PROTOCOL_BODY_MAX];

static const struct protocol_id made_id = {.high = UINT64_C(0x0123456789abcdef),
                                           .low = UINT64_C(0xfedcba9876543210)};
static const struct protocol_id chosen_id = {.name = "nightly:report@7"};
static const struct payload_wire hello = {.form = PAYLOAD_INLINE, .data = "hello", .size = 5};
static const struct payload_wire blob = {.form = PAYLOAD_BLOB, .size = 1 << 20, .serial = 9};

static void assert_same_id(const struct protocol_id *a, const struct protocol_id *b)
{
    ck_assert_uint_eq(a->high, b->high);
    ck_assert_uint_eq(a->low, b->low);
    ck_assert_str_eq(a->name, b->name);
}

static void assert_same_payload(const struct payload_wire *a, const struct payload_wire *b)
{
    ck_assert_int_eq(a->form, b->form);
    ck_assert_uint_eq(a->size, b->size);
    ck_assert_uint_eq(a->serial, b->serial);
    if (a->form == PAYLOAD_INLINE)
        ck_assert_mem_eq(a->data, b->data, a->size);
}

/*
 * Puts `value`, gets it back into `copy`, and checks what holds for every kind: it never fits into
 * fewer bytes, no shorter record is taken for a whole one, and a surplus byte is noticed.
 */
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

START_TEST(a_job_comes_back)
{
    struct protocol_job job = {
        .handle = UINT64_MAX,
        .attempt = 2,
        .max_attempts = 6,
        .timeout = USEC_INFINITY,
        .id = chosen_id,
        .key = "tenant",
        .key_size = 6,
        .payload = hello,
    };
    struct protocol_job copy;

    ROUND_TRIP(job, &job, &copy);
    ck_assert_uint_eq(copy.handle, UINT64_MAX);
    ck_assert_uint_eq(copy.attempt, 2);
    ck_assert_uint_eq(copy.max_attempts, 6);
    ck_assert_uint_eq(copy.timeout, USEC_INFINITY);
    assert_same_id(&copy.id, &chosen_id);
    ck_assert_uint_eq(copy.key_size, 6);
    ck_assert_mem_eq(copy.key, "tenant", 6);
    assert_same_payload(&copy.payload, &hello);
}
END_TEST

START_TEST(a_crash_comes_back_and_an_impossible_one_does_not)
{
    struct protocol_crashed crashed = {
        .handle = 7,
        .attempt = 2,
        .pid = 4711,
        .signal = 11,
        .core_dumped = true,
        .uptime = 1,
        .user = 2,
        .system = 3,
        .max_rss = 4,
        .command = "convert {}",
        .command_size = 10,
    };
    struct protocol_crashed copy;
    int size;

    ROUND_TRIP(crashed, &crashed, &copy);
    ck_assert_uint_eq(copy.handle, 7);
    ck_assert_uint_eq(copy.attempt, 2);
    ck_assert_int_eq(copy.pid, 4711);
    ck_assert_int_eq(copy.signal, 11);
    ck_assert(copy.core_dumped);
    ck_assert(copy.uptime == 1 && copy.user == 2 && copy.system == 3 && copy.max_rss == 4);
    ck_assert_uint_eq(copy.command_size, 10);
    ck_assert_mem_eq(copy.command, "convert {}", 10);
    for (unsigned i = 0; i < 4; i++) {
        struct protocol_crashed odd = crashed;

        odd.signal = i == 0 ? 0 : i == 1 ? PROTOCOL_SIGNAL_MAX + 1 : 9;
        odd.pid = i == 2 ? 0 : i == 3 ? -1 : 1;
        size = protocol_put_crashed(body, sizeof(body), &odd);
        ck_assert_int_eq(protocol_get_crashed(body, (uint32_t)size, &copy), -EBADMSG);
    }
}
END_TEST

START_TEST(a_jobs_inline_payload_is_aligned_and_ends_in_a_zero_byte)
{
    for (uint32_t key_size = 0; key_size < 9; key_size++) {
        struct protocol_job job = {.key = "any bytes", .key_size = key_size, .payload = hello};
        struct protocol_job copy;
        int size;

        memset(body, 0xff, sizeof(body));
        size = protocol_put_job(body, sizeof(body), &job);
        ck_assert_int_eq(protocol_get_job(body, (uint32_t)size, &copy), 0);
        ck_assert_uint_eq((uintptr_t)copy.payload.data % 8, 0);
        ck_assert_uint_eq(((const uint8_t *)copy.payload.data)[copy.payload.size], 0);

        body[size - 1] = 1; /* the zero byte is not one any more */
        ck_assert_int_eq(protocol_get_job(body, (uint32_t)size, &copy), -EBADMSG);
    }
}
END_TEST

START_TEST(a_start_comes_back)
{
    struct protocol_started started = {.handle = 5, .attempt = 3, .state_sequence = 8}, copy;

    ROUND_TRIP(started, &started, &copy);
    ck_assert_uint_eq(copy.state_sequence, 8);
    ck_assert_uint_eq(copy.handle, 5);
    ck_assert_uint_eq(copy.attempt, 3);
}
END_TEST

START_TEST(a_result_comes_back)
{
    struct protocol_result result = {
        .handle = 5, .attempt = 3, .outcome = PROTOCOL_CANCELLED, .code = -7, .payload = blob};
    struct protocol_result copy;

    ROUND_TRIP(result, &result, &copy);
    ck_assert_uint_eq(copy.handle, 5);
    ck_assert_uint_eq(copy.attempt, 3);
    ck_assert_int_eq(copy.outcome, PROTOCOL_CANCELLED);
    ck_assert_int_eq(copy.code, -7);
    assert_same_payload(&copy.payload, &blob);
}
END_TEST

START_TEST(a_look_up_and_its_answer_come_back)
{
    struct protocol_lookup lookup = {.cookie = 11, .name = "digest", .name_size = 6}, lookup_copy;
    struct protocol_found found = {.cookie = 11, .group = 12}, found_copy;

    ROUND_TRIP(lookup, &lookup, &lookup_copy);
    ck_assert_uint_eq(lookup_copy.cookie, 11);
    ck_assert_uint_eq(lookup_copy.name_size, 6);
    ck_assert_mem_eq(lookup_copy.name, "digest", 6);
    ROUND_TRIP(found, &found, &found_copy);
    ck_assert_uint_eq(found_copy.cookie, 11);
    ck_assert_uint_eq(found_copy.group, 12);
}
END_TEST

START_TEST(a_submission_comes_back)
{
    struct protocol_submit submit = {
        .cookie = 1,
        .group = 2,
        .flags = PROTOCOL_SUBMIT_DO,
        .max_retries = PROTOCOL_DEFAULT_RETRIES,
        .timeout = PROTOCOL_DEFAULT_USEC,
        .backoff_min = 4,
        .backoff_max = 5,
        .priority = 6,
        .delay = 7,
        .at = 8,
        .wait = USEC_INFINITY,
        .name = "job-1",
        .name_size = 5,
        .key = "k",
        .key_size = 1,
        .payload = blob,
    };
    struct protocol_submit copy;

    ROUND_TRIP(submit, &submit, &copy);
    ck_assert_uint_eq(copy.cookie, 1);
    ck_assert_uint_eq(copy.group, 2);
    ck_assert_uint_eq(copy.flags, PROTOCOL_SUBMIT_DO);
    ck_assert_uint_eq(copy.max_retries, PROTOCOL_DEFAULT_RETRIES);
    ck_assert_uint_eq(copy.timeout, PROTOCOL_DEFAULT_USEC);
    ck_assert_uint_eq(copy.backoff_min, 4);
    ck_assert_uint_eq(copy.backoff_max, 5);
    ck_assert_uint_eq(copy.priority, 6);
    ck_assert_uint_eq(copy.delay, 7);
    ck_assert_uint_eq(copy.at, 8);
    ck_assert_uint_eq(copy.wait, USEC_INFINITY);
    ck_assert_uint_eq(copy.name_size, 5);
    ck_assert_mem_eq(copy.name, "job-1", 5);
    ck_assert_uint_eq(copy.key_size, 1);
    ck_assert_mem_eq(copy.key, "k", 1);
    assert_same_payload(&copy.payload, &blob);
}
END_TEST

START_TEST(a_request_by_id_and_its_answers_come_back)
{
    struct protocol_by_id by_id = {.cookie = 3, .id = made_id}, by_id_copy;
    struct protocol_accepted accepted = {.cookie = 4, .id = chosen_id}, accepted_copy;
    struct protocol_refused refused = {
        .cookie = 5, .error = ESRCH, .reason = "no such job", .reason_size = 11};
    struct protocol_refused refused_copy;

    ROUND_TRIP(by_id, &by_id, &by_id_copy);
    ck_assert_uint_eq(by_id_copy.cookie, 3);
    assert_same_id(&by_id_copy.id, &made_id);
    ROUND_TRIP(accepted, &accepted, &accepted_copy);
    ck_assert_uint_eq(accepted_copy.cookie, 4);
    assert_same_id(&accepted_copy.id, &chosen_id);
    ROUND_TRIP(refused, &refused, &refused_copy);
    ck_assert_uint_eq(refused_copy.cookie, 5);
    ck_assert_uint_eq(refused_copy.error, ESRCH);
    ck_assert_uint_eq(refused_copy.reason_size, 11);
    ck_assert_mem_eq(refused_copy.reason, "no such job", 11);
}
END_TEST

START_TEST(an_end_comes_back)
{
    struct protocol_done done = {
        .cookie = 6,
        .id = made_id,
        .end = PROTOCOL_END_DEAD,
        .code = INT32_MIN,
        .attempts = 6,
        .reason = "signal 11",
        .reason_size = 9,
        .payload = hello,
    };
    struct protocol_done copy;

    ROUND_TRIP(done, &done, &copy);
    ck_assert_uint_eq(copy.cookie, 6);
    assert_same_id(&copy.id, &made_id);
    ck_assert_int_eq(copy.end, PROTOCOL_END_DEAD);
    ck_assert_int_eq(copy.code, INT32_MIN);
    ck_assert_uint_eq(copy.attempts, 6);
    ck_assert_uint_eq(copy.reason_size, 9);
    ck_assert_mem_eq(copy.reason, "signal 11", 9);
    assert_same_payload(&copy.payload, &hello);
}
END_TEST

START_TEST(the_largest_fields_stay_below_the_largest_body)
{
    static char text[PROTOCOL_REASON_MAX];
    struct protocol_done done = {.reason = text, .reason_size = sizeof(text), .payload = blob};
    struct protocol_submit submit = {.name = text,
                                     .name_size = PROTOCOL_NAME_MAX,
                                     .key = text,
                                     .key_size = PROTOCOL_KEY_MAX,
                                     .payload = blob};

    memset(done.id.name, 'x', PROTOCOL_NAME_MAX);
    ck_assert_int_gt(protocol_put_done(body, sizeof(body), &done), PROTOCOL_REASON_MAX);
    ck_assert_int_gt(protocol_put_submit(body, sizeof(body), &submit), 0);
}
END_TEST

START_TEST(fields_above_their_limits_are_not_sent)
{
    static char text[PROTOCOL_REASON_MAX + 1];
    struct protocol_done done = {.reason = text, .reason_size = sizeof(text)};
    struct protocol_job job = {.key = text, .key_size = PROTOCOL_KEY_MAX + 1};
    struct protocol_submit submit = {.name = text, .name_size = PROTOCOL_NAME_MAX + 1};
    struct protocol_result result = {.payload = {.data = text, .size = UINT64_C(1) << 32}};

    ck_assert_int_eq(protocol_put_done(body, sizeof(body), &done), -EMSGSIZE);
    ck_assert_int_eq(protocol_put_job(body, sizeof(body), &job), -EMSGSIZE);
    ck_assert_int_eq(protocol_put_submit(body, sizeof(body), &submit), -EMSGSIZE);
    ck_assert_int_eq(protocol_put_result(body, sizeof(body), &result), -EMSGSIZE);
}
END_TEST

START_TEST(fields_above_their_limits_are_not_taken)
{
    struct wire_writer writer = wire_writer(body, sizeof(body));
    static char text[PROTOCOL_REASON_MAX + 1];
    struct protocol_refused refused;
    struct protocol_lookup lookup;

    wire_put_u64(&writer, 1);
    wire_put_u32(&writer, EBUSY);
    wire_put_bytes(&writer, text, sizeof(text));
    ck_assert_int_eq(protocol_get_refused(body, (uint32_t)wire_written(&writer), &refused),
                     -EBADMSG);
    ck_assert_uint_eq(refused.reason_size, 0);

    writer = wire_writer(body, sizeof(body));
    wire_put_u64(&writer, 1);
    wire_put_bytes(&writer, text, PROTOCOL_KEY_MAX + 1);
    ck_assert_int_eq(protocol_get_lookup(body, (uint32_t)wire_written(&writer), &lookup), -EBADMSG);
    ck_assert_uint_eq(lookup.name_size, 0);
}
END_TEST

START_TEST(impossible_values_are_refused)
{
    struct protocol_result result = {.outcome = PROTOCOL_CANCELLED + 1}, result_copy;
    struct protocol_done done = {.end = PROTOCOL_END_TIMED_OUT + 1}, done_copy;
    struct protocol_submit submit = {.flags = PROTOCOL_SUBMIT_KNOWN + 1}, submit_copy;
    int size;

    size = protocol_put_result(body, sizeof(body), &result);
    ck_assert_int_eq(protocol_get_result(body, (uint32_t)size, &result_copy), -EBADMSG);
    size = protocol_put_done(body, sizeof(body), &done);
    ck_assert_int_eq(protocol_get_done(body, (uint32_t)size, &done_copy), -EBADMSG);
    size = protocol_put_submit(body, sizeof(body), &submit);
    ck_assert_int_eq(protocol_get_submit(body, (uint32_t)size, &submit_copy), -EBADMSG);
}
END_TEST

START_TEST(bad_names_in_ids_are_refused)
{
    static const struct {
        const char *bytes;
        uint32_t size;
    } bad[] = {{"a b", 3}, {"-a", 2},  {".a", 2},      {"a\0b", 3},
               {"\0", 1},  {"a/b", 3}, {"\xc3\xa9", 2}};

    for (size_t i = 0; i < ELEMENTS(bad); i++) {
        struct wire_writer writer = wire_writer(body, sizeof(body));
        struct protocol_by_id by_id;

        wire_put_u64(&writer, 1);
        wire_put_u64(&writer, 2);
        wire_put_u64(&writer, 3);
        wire_put_bytes(&writer, bad[i].bytes, bad[i].size);
        ck_assert_int_eq(protocol_get_by_id(body, (uint32_t)wire_written(&writer), &by_id),
                         -EBADMSG);
        ck_assert_str_eq(by_id.id.name, "");
    }
}
END_TEST

START_TEST(a_name_that_spells_a_made_id_is_that_id)
{
    struct protocol_by_id by_id = {.id.name = "0123456789abcdeffedcba9876543210"}, copy;
    int size = protocol_put_by_id(body, sizeof(body), &by_id);

    ck_assert_int_eq(protocol_get_by_id(body, (uint32_t)size, &copy), 0);
    assert_same_id(&copy.id, &made_id);
}
END_TEST

START_TEST(ids_have_a_text_form)
{
    char text[PROTOCOL_ID_TEXT];

    ck_assert_str_eq(protocol_id_format(&made_id, text), "0123456789abcdeffedcba9876543210");
    ck_assert_str_eq(protocol_id_format(&chosen_id, text), "nightly:report@7");
}
END_TEST

START_TEST(text_forms_are_read_back)
{
    static const char *const names[] = {"a",
                                        "A9._:@-",
                                        "0123456789abcdeffedcba987654321",   /* 31 digits */
                                        "0123456789abcdeffedcba98765432100", /* 33 */
                                        "0123456789ABCDEFFEDCBA9876543210",  /* upper case */
                                        "0123456789abcdeffedcba987654321g"};
    struct protocol_id id;

    ck_assert_int_eq(protocol_id_parse(&id, "0123456789abcdeffedcba9876543210"), 0);
    assert_same_id(&id, &made_id);
    for (size_t i = 0; i < ELEMENTS(names); i++) {
        ck_assert_int_eq(protocol_id_parse(&id, names[i]), 0);
        ck_assert_str_eq(id.name, names[i]);
        ck_assert_uint_eq(id.high, 0);
        ck_assert_uint_eq(id.low, 0);
    }
}
END_TEST

START_TEST(bad_text_forms_are_refused)
{
    static const char *const bad[] = {"", "-x", ".x", "a b", "a\n", "a/b", "ä", "a%", "*"};
    char text[PROTOCOL_NAME_MAX + 2] = "";
    struct protocol_id id;

    for (size_t i = 0; i < ELEMENTS(bad); i++)
        ck_assert_int_eq(protocol_id_parse(&id, bad[i]), -EINVAL);
    memset(text, 'x', PROTOCOL_NAME_MAX);
    ck_assert_int_eq(protocol_id_parse(&id, text), 0);
    text[PROTOCOL_NAME_MAX] = 'x';
    ck_assert_int_eq(protocol_id_parse(&id, text), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("protocol");
    TCase *tcase = tcase_create("protocol");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, a_job_comes_back);
    tcase_add_test(tcase, a_crash_comes_back_and_an_impossible_one_does_not);
    tcase_add_test(tcase, a_jobs_inline_payload_is_aligned_and_ends_in_a_zero_byte);
    tcase_add_test(tcase, a_start_comes_back);
    tcase_add_test(tcase, a_result_comes_back);
    tcase_add_test(tcase, a_look_up_and_its_answer_come_back);
    tcase_add_test(tcase, a_submission_comes_back);
    tcase_add_test(tcase, a_request_by_id_and_its_answers_come_back);
    tcase_add_test(tcase, an_end_comes_back);
    tcase_add_test(tcase, the_largest_fields_stay_below_the_largest_body);
    tcase_add_test(tcase, fields_above_their_limits_are_not_sent);
    tcase_add_test(tcase, fields_above_their_limits_are_not_taken);
    tcase_add_test(tcase, impossible_values_are_refused);
    tcase_add_test(tcase, bad_names_in_ids_are_refused);
    tcase_add_test(tcase, a_name_that_spells_a_made_id_is_that_id);
    tcase_add_test(tcase, ids_have_a_text_form);
    tcase_add_test(tcase, text_forms_are_read_back);
    tcase_add_test(tcase, bad_text_forms_are_refused);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
