/* SPDX-License-Identifier: MIT */

/* The protocol without a socket: reading calls, writing answers, and the encodings of bytes. */

#include "shared/base/base64.h"
#include "shared/base/utf8.h"
#include "supervisor/channel/held-blob.h"
#include "supervisor/varlink/account.h"
#include "supervisor/varlink/reply.h"
#include "supervisor/varlink/varlink.h"
#include "tests/unit/suite.h"
#include <jansson.h>

/* ---- calls ---- */

static struct varlink_call call;
static struct varlink_problem problem;

static int parse(const char *text)
{
    varlink_call_deinit(&call);
    problem = (struct varlink_problem){{0}, {0}};
    return varlink_parse(&call, text, strlen(text), &problem);
}

TEST(a_call_is_taken_apart)
{
    ck_assert_int_eq(parse("{\"method\":\"a.b.C\",\"parameters\":{\"x\":1},\"more\":true}"), 0);
    ck_assert_str_eq(call.method, "a.b.C");
    ck_assert_mem_eq(call.parameters, "{\"x\":1}", 7);
    ck_assert(call.more && !call.oneway && !call.upgrade);
}

TEST(white_space_around_a_call_is_ignored)
{
    ck_assert_int_eq(parse(" \n\t{\"method\" : \"a.b.C\"}\r\n"), 0);
    ck_assert_str_eq(call.method, "a.b.C");
}

TEST(absent_and_null_members_are_the_same)
{
    ck_assert_int_eq(parse("{\"method\":\"a.b.C\",\"parameters\":null,\"oneway\":null}"), 0);
    ck_assert_ptr_null(call.parameters);
    ck_assert(!call.oneway);
}

TEST(what_is_no_object_is_malformed)
{
    static const char *const texts[] = {
        "", "{", "[]", "7", "null", "{\"method\":\"a.b.C\"}x", "{\"method\":\"\xff\"}",
    };

    for (size_t i = 0; i < ELEMENTS(texts); i++)
        ck_assert_msg(parse(texts[i]) == VARLINK_E_MALFORMED, "%s", texts[i]);
}

TEST(members_of_a_wrong_type_are_named)
{
    static const char *const texts[][2] = {
        {"{\"parameters\":{}}", "method"},
        {"{\"method\":7}", "method"},
        {"{\"method\":\"a\",\"method\":\"b\"}", "method"},
        {"{\"method\":\"a\",\"more\":null,\"more\":true}", "more"},
        {"{\"method\":\"a\\u0000b\"}", "method"},
        {"{\"method\":\"a.b.C\",\"parameters\":[]}", "parameters"},
        {"{\"method\":\"a.b.C\",\"more\":1}", "more"},
        {"{\"method\":\"a.b.C\",\"surprise\":1}", "surprise"},
    };

    for (size_t i = 0; i < ELEMENTS(texts); i++) {
        ck_assert_msg(parse(texts[i][0]) == VARLINK_E_INVALID, "%s", texts[i][0]);
        ck_assert_str_eq(problem.member, texts[i][1]);
    }
}

TEST(a_wrong_call_that_wants_no_answer_says_so)
{
    ck_assert_int_eq(parse("{\"method\":7,\"oneway\":true}"), VARLINK_E_INVALID);
    ck_assert(call.oneway);
}

TEST(more_values_than_any_call_has_are_malformed)
{
    char text[8192] = "{\"method\":\"a.b.C\",\"parameters\":{\"x\":[0";

    for (unsigned i = 0; i < VARLINK_VALUES_MAX; i++)
        strcat(text, ",0");
    strcat(text, "]}}");
    ck_assert_int_eq(parse(text), VARLINK_E_MALFORMED);
}

TEST(commas_and_brackets_inside_strings_are_no_values)
{
    char text[8192] = "{\"method\":\"a.b.C\",\"parameters\":{\"x\":\"\\\"";
    size_t length = strlen(text);

    memset(text + length, ',', 4000);
    strcpy(text + length + 4000, "\"}}");
    ck_assert_int_eq(parse(text), 0);
}

TEST(a_method_is_split_at_its_last_dot)
{
    ck_assert_uint_eq(varlink_interface_length("io.troupe.Jobs.Do"), strlen("io.troupe.Jobs"));
    ck_assert_uint_eq(varlink_interface_length("Do"), 0);
    ck_assert_uint_eq(varlink_interface_length("io.troupe.Jobs."), 0);
    ck_assert_uint_eq(varlink_interface_length(""), 0);
}

static const char DESCRIPTION[] =
    "# Of something. type Wrong (a: int)\n"
    "# Version 7 of it\n"
    "interface a.b\n\n"
    "type Choice (none,\n  all)\n"
    "type Inner (name: ?string, type: ?string)\n"
    "method Other(x: int) -> ()\n"
    "# name: (a comment, not a field)\n"
    "method C(\n"
    "  name: string, # the name\n"
    "  key: ?string, data: ?string, number: ?int, span_usec: ?int,\n"
    "  choice: ?Choice, own: ?(one, two), flag: ?bool, inner: ?Inner,\n"
    "  words: ?[]string, inners: ?[]Inner\n"
    ") -> (name: string)\n"
    "error Inner (other: string)\n";

static struct interface interface;
static struct varlink_object given;

static int take(const char *parameters)
{
    char text[512];

    snprintf(text, sizeof(text), "{\"method\":\"a.b.C\",\"parameters\":%s}", parameters);
    ck_assert_int_eq(parse(text), 0);
    interface_read(&interface, DESCRIPTION);
    return varlink_read(&given, &call, interface_find(&interface, 'm', "C", 1), &problem);
}

TEST(a_description_has_its_declarations)
{
    interface_read(&interface, DESCRIPTION);
    ck_assert_int_eq(interface.version, 7);
    ck_assert_uint_eq(interface.n, 5);
    ck_assert_ptr_null(interface_find(&interface, 't', "Wrong", 5));
    ck_assert_ptr_null(interface_find(&interface, 'e', "C", 1));
    ck_assert_mem_eq(interface_find(&interface, 'e', "Inner", 5)->name, "other", 5);
}

TEST(parameters_are_read_as_described)
{
    struct varlink_object inner;

    ck_assert_int_eq(take("{\"name\":\"n\\u00e9\",\"key\":\"a\\u0000b\",\"number\":5,\"flag\":true,"
                          "\"span_usec\":-1,\"choice\":\"all\",\"own\":\"one\","
                          "\"inner\":{\"type\":\"t\"}}"),
                     0);
    ck_assert_str_eq(varlink_string(&given, "name"), "n\xc3\xa9");
    struct varlink_bytes bytes = varlink_bytes(&given, "key");
    ck_assert_uint_eq(bytes.size, 3);
    ck_assert_mem_eq(bytes.data, "a\0b", 3);
    ck_assert_int_eq(varlink_int(&given, "number", 1), 5);
    ck_assert(varlink_bool(&given, "flag"));
    ck_assert_uint_eq(varlink_usec(&given, "span_usec", 1), USEC_INFINITY);
    ck_assert_int_eq(varlink_choice(&given, "choice"), 1);
    ck_assert_int_eq(varlink_choice(&given, "own"), 0);
    ck_assert(varlink_object(&given, "inner", &inner));
    ck_assert_str_eq(varlink_string(&inner, "type"), "t");
    ck_assert(!varlink_has(&inner, "name"));
    /* Reading them does not change them. */
    ck_assert_str_eq(varlink_string(&given, "name"), "n\xc3\xa9");
}

TEST(absent_parameters_have_no_value)
{
    struct varlink_object inner;

    ck_assert_int_eq(take("{\"name\":\"\",\"number\":null}"), 0);
    ck_assert_str_eq(varlink_string(&given, "name"), "");
    ck_assert(!varlink_has(&given, "number"));
    ck_assert_int_eq(varlink_int(&given, "number", 7), 7);
    ck_assert_int_eq(varlink_choice(&given, "choice"), -1);
    ck_assert(!varlink_bool(&given, "flag"));
    ck_assert_ptr_null(varlink_bytes(&given, "key").data);
    ck_assert(!varlink_object(&given, "inner", &inner));
    ck_assert_ptr_null(varlink_string(&inner, "type"));
}

TEST(parameters_that_are_missing_unknown_or_of_a_wrong_type_are_named)
{
    static const char *const texts[][2] = {
        {"{}", "name"},
        {"{\"name\":null}", "name"},
        {"{\"name\":\"n\",\"nmae\":1}", "nmae"},
        {"{\"name\":\"n\",\"name\":\"m\"}", "name"},
        {"{\"name\":null,\"name\":\"m\"}", "name"},
        {"{\"name\":\"n\",\"flag\":null,\"flag\":null}", "flag"},
        {"{\"name\":\"n\",\"number\":1.5}", "number"},
        {"{\"name\":\"n\",\"number\":99999999999999999999}", "number"},
        {"{\"name\":\"n\",\"number\":\"1\"}", "number"},
        {"{\"name\":\"n\",\"flag\":0}", "flag"},
        {"{\"name\":\"n\",\"choice\":1}", "choice"},
        {"{\"name\":\"n\",\"inner\":[]}", "inner"},
        {"{\"name\":\"n\",\"inner\":{\"other\":1}}", "other"},
        {"{\"name\":\"n\",\"inner\":{\"type\":1}}", "type"},
        {"{\"name\":\"a\\u0000\"}", "name"},
    };

    for (size_t i = 0; i < ELEMENTS(texts); i++) {
        ck_assert_msg(take(texts[i][0]) == VARLINK_E_INVALID, "%s", texts[i][0]);
        ck_assert_str_eq(problem.member, texts[i][1]);
    }
}

TEST(values_that_are_not_allowed_are_refused_with_those_that_are)
{
    static const char *const texts[][3] = {
        {"{\"name\":\"n\",\"number\":-1}", "number", "0 or more"},
        {"{\"name\":\"n\",\"span_usec\":-2}", "span_usec",
         "microseconds; 0 = the default, -1 = no limit"},
        {"{\"name\":\"n\",\"choice\":\"al\"}", "choice", "none, all"},
        {"{\"name\":\"n\",\"own\":\"one, two\"}", "own", "one, two"},
    };
    char key[VARLINK_KEY_MAX + 2] = "", text[300];

    for (size_t i = 0; i < ELEMENTS(texts); i++) {
        ck_assert_msg(take(texts[i][0]) == VARLINK_E_REFUSED, "%s", texts[i][0]);
        ck_assert_str_eq(problem.member, texts[i][1]);
        ck_assert_str_eq(problem.allowed, texts[i][2]);
    }
    memset(key, 'k', VARLINK_KEY_MAX + 1);
    snprintf(text, sizeof(text), "{\"name\":\"n\",\"key\":\"%s\"}", key);
    ck_assert_int_eq(take(text), VARLINK_E_REFUSED);
    snprintf(text, sizeof(text), "{\"name\":\"n\",\"key\":\"%s\"}", key + 1);
    ck_assert_int_eq(take(text), 0);
}

/* ---- answers ---- */

static struct blob_quota blobs;
static struct accounts accounts;

/* The taker counts what hangs by owner. */
TEST(a_user_who_connects_again_is_the_same_owner)
{
    blob_quota_init(&blobs);
    accounts_init(&accounts, &blobs);
    struct account *account = account_get(&accounts, 1000, false);
    struct account *other = account_get(&accounts, 1001, false);
    uint64_t owner = account->blobs->owner;
    ck_assert_uint_ne(other->blobs->owner, owner);
    (void)account_put(account);
    account = account_get(&accounts, 1000, false);
    ck_assert_uint_eq(account->blobs->owner, owner);
    (void)account_put(account);
    (void)account_put(other);
}
static struct reply reply;

static void setup(void)
{
    blob_quota_init(&blobs);
    accounts_init(&accounts, &blobs);
    reply_init(&reply, account_get(&accounts, 0, true), 1 << 20);
    ck_assert_ptr_nonnull(reply.account);
}

static void teardown(void)
{
    reply_deinit(&reply);
    account_put(reply.account);
    varlink_call_deinit(&call);
}

static const char *text(void)
{
    reply_raw(&reply, "", 1);
    ck_assert_int_eq(reply.error, 0);
    return reply.data;
}

TEST(members_are_separated_and_nested)
{
    reply_object(&reply, NULL);
    reply_int(&reply, "a", INT64_MIN);
    reply_array(&reply, "b");
    reply_bool(&reply, NULL, true);
    reply_object(&reply, NULL);
    reply_end_object(&reply);
    reply_end_array(&reply);
    reply_uint(&reply, "c", UINT64_MAX);
    reply_uint_if(&reply, "d", 0);
    reply_string_if(&reply, "e", NULL);
    reply_end_object(&reply);
    ck_assert_str_eq(text(), "{\"a\":-9223372036854775808,\"b\":[true,{}],"
                             "\"c\":9223372036854775807}");
}

TEST(every_byte_string_becomes_a_string_that_parses)
{
    char bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    reply_array(&reply, NULL);
    reply_text(&reply, NULL, bytes, sizeof(bytes));
    reply_end_array(&reply);
    json_t *parsed = json_loadb(reply.data, reply.size, 0, NULL);
    ck_assert_ptr_nonnull(parsed);
    /* 1 to 127 as they are; NUL and the 128 others are replacement characters of three bytes. */
    ck_assert_uint_eq(json_string_length(json_array_get(parsed, 0)), 127 + 3 * 129);
    ck_assert_mem_eq(json_string_value(json_array_get(parsed, 0)), "\xef\xbf\xbd", 3);
    ck_assert_mem_eq(json_string_value(json_array_get(parsed, 0)) + 3, bytes + 1, 127);
    json_decref(parsed);
}

TEST(text_is_left_readable_and_bytes_become_base64)
{
    reply_object(&reply, NULL);
    reply_payload(&reply, "t", "gr\xc3\xbc\xc3\x9f\x65\n", 8);
    reply_payload(&reply, "b", "a\0b", 3);
    reply_payload(&reply, "e", "", 0);
    reply_end_object(&reply);
    ck_assert_str_eq(text(), "{\"t\":{\"encoding\":\"utf8\",\"data\":\"gr\xc3\xbc\xc3\x9f"
                             "e\\n\"},"
                             "\"b\":{\"encoding\":\"base64\",\"data\":\"YQBi\"},"
                             "\"e\":{\"encoding\":\"utf8\",\"data\":\"\"}}");
}

TEST(a_reply_beyond_its_limit_fails_and_can_be_taken_back)
{
    char large[200];

    memset(large, 1, sizeof(large));
    reply.limit = 100;
    reply_object(&reply, NULL);
    reply_int(&reply, "a", 1);
    struct reply_mark mark = reply_mark(&reply);
    reply_payload(&reply, "b", large, sizeof(large));
    ck_assert_int_eq(reply.error, -EMSGSIZE);
    reply_rewind(&reply, mark);
    reply_int(&reply, "c", 2);
    reply_end_object(&reply);
    ck_assert_str_eq(text(), "{\"a\":1,\"c\":2}");
}

/* ---- encodings ---- */

TEST(base64_of_every_length_comes_back)
{
    unsigned char bytes[64], back[64];
    char encoded[96];
    size_t size;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 37 + 200);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        base64_encode(encoded, bytes, n);
        ck_assert_int_eq(base64_decode(back, &size, encoded, base64_size(n)), 0);
        ck_assert_uint_eq(size, n);
        ck_assert_mem_eq(back, bytes, n);
    }
}

TEST(base64_is_that_of_the_standard)
{
    char encoded[8];

    base64_encode(encoded, "\xfb\xff\xbf", 3);
    ck_assert_mem_eq(encoded, "+/+/", 4);
    base64_encode(encoded, "foob", 4);
    ck_assert_mem_eq(encoded, "Zm9vYg==", 8);
}

TEST(what_is_not_quite_base64_is_refused)
{
    static const char *const texts[] = {
        "A",    "AA",   "AAA",   "====", "A===",     "AA=A", "AB==",
        "AAB=", "AA A", "AA\nA", "AAA-", "AA==AAAA", "!!!!", "AAAAA===",
    };
    char back[16];
    size_t size;

    for (size_t i = 0; i < ELEMENTS(texts); i++)
        ck_assert_msg(base64_decode(back, &size, texts[i], strlen(texts[i])) == -EINVAL, "%s",
                      texts[i]);
}

TEST(utf8_is_strict)
{
    static const char *const wrong[] = {
        "\x80",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xe2\x82",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!utf8_is_text(wrong[i], strlen(wrong[i])), "%zu", i);
    ck_assert(utf8_is_text("\x7f\xc2\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", 13));
    ck_assert(utf8_is_text("", 0));
    ck_assert(!utf8_is_text("a\0b", 3));
}

const struct suite suite = {.setup = setup, .teardown = teardown};
