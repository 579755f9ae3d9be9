/* SPDX-License-Identifier: MIT */
#include "supervisor/web/parameter.h"
#include "tests/unit/suite.h"

static const struct parameter table[] = {
    {.name = "id", .type = PARAMETER_TEXT},
    {.name = "n", .type = PARAMETER_NUMBER},
    {.name = "all", .type = PARAMETER_FLAG},
    {.name = "limit", .type = PARAMETER_LIMIT},
    {.name = "reason", .type = PARAMETER_TEXT, .object = "filter"},
    {.name = "offset", .type = PARAMETER_NUMBER, .local = true},
    {.name = NULL},
};
static struct parameters parameters;
static struct parameter_reason reason;

static void set_up(void)
{
    ck_assert_int_eq(parameters_init(&parameters), 0);
}

static void tear_down(void)
{
    parameters_deinit(&parameters);
}

static int add(const char *name, const char *value)
{
    return parameters_add_text(&parameters, table, name, value, &reason);
}

static int add_body(const char *body)
{
    return parameters_add_body(&parameters, table, body, strlen(body), &reason);
}

static void expect(const json_t *json, const char *text)
{
    _cleanup_free_ char *found = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

    ck_assert_str_eq(found, text);
}

TEST(a_query_becomes_a_call)
{
    ck_assert_int_eq(add("id", "x\"y"), 0);
    ck_assert_int_eq(add("n", "9223372036854775807"), 0);
    ck_assert_int_eq(add("all", "true"), 0);
    ck_assert_int_eq(add("reason", "job"), 0);
    ck_assert_int_eq(add("offset", "7"), 0);
    ck_assert_int_eq(parameters_complete(&parameters, table), 0);
    expect(parameters.call, "{\"all\":true,\"filter\":{\"reason\":\"job\"},\"id\":\"x\\\"y\","
                            "\"limit\":50,\"n\":9223372036854775807}");
    expect(parameters.local, "{\"offset\":7}");
}

TEST(a_body_becomes_the_same_call)
{
    ck_assert_int_eq(add_body("{\"id\":\"x\",\"n\":1,\"reason\":\"job\"}"), 0);
    expect(parameters.call, "{\"filter\":{\"reason\":\"job\"},\"id\":\"x\",\"n\":1}");
}

TEST(what_is_no_value_of_its_type_is_refused)
{
    static const char *const wrong[][2] = {
        {"n", "-1"},    {"n", ""},        {"n", "1x"},      {"n", "9223372036854775808"},
        {"n", " 1"},    {"all", "yes"},   {"limit", "0"},   {"limit", "201"},
        {"id", "\xff"}, {"nothing", "1"}, {"filter", "{}"}, {"", "x"},
    };
    static const char *const bodies[] = {
        "",
        "[]",
        "{\"id\":1}",
        "{\"n\":1.5}",
        "{\"n\":\"1\"}",
        "{\"n\":-1}",
        "{",
        "{\"id\":{}}",
        "{\"filter\":{}}",
        "{\"x\":null}",
        "{\"id\":\"a\",\"id\":\"b\"}",
        "{\"id\":\"\\u0000\"}",
    };

    for (size_t i = 0; i < ELEMENTS(wrong); i++) {
        ck_assert_int_eq(add(wrong[i][0], wrong[i][1]), PARAMETER_E_BAD);
        ck_assert_str_ne(reason.text, "");
    }
    for (size_t i = 0; i < ELEMENTS(bodies); i++)
        ck_assert_msg(add_body(bodies[i]) == PARAMETER_E_BAD, "%s", bodies[i]);
}

TEST(a_parameter_that_is_there_twice_is_refused)
{
    ck_assert_int_eq(add("n", "1"), 0);
    ck_assert_int_eq(add("n", "1"), PARAMETER_E_BAD);
}

TEST(text_is_bounded)
{
    char text[PARAMETER_TEXT_MAX + 2];

    memset(text, 'x', sizeof(text));
    text[PARAMETER_TEXT_MAX + 1] = '\0';
    ck_assert_int_eq(add("id", text), PARAMETER_E_BAD);
    ck_assert_int_eq(add(text, "x"), PARAMETER_E_BAD);
    ck_assert_str_eq(reason.text, "a parameter: there is no such parameter");
    text[PARAMETER_TEXT_MAX] = '\0';
    ck_assert_int_eq(add("id", text), 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
