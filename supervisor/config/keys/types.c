/* SPDX-License-Identifier: MIT */
#include "supervisor/config/keys/types.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/envfile.h"
#include "supervisor/config/syntax/strv.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/config/syntax/words.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int invalid(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return CONFIG_KEY_E_INVALID;
}

/* Converts a result of values.h. */
static int check_result(int result, const char **ret_reason)
{
    if (result == 0)
        return 0;
    return invalid(ret_reason, result == VALUES_E_RANGE ? "out of range" : "no valid value");
}

static int check_range(const struct config_key *key, uint64_t value, const char **ret_reason)
{
    if (value == UINT64_MAX && key->infinity)
        return 0;
    if (value < (uint64_t)key->min || value > (uint64_t)key->max)
        return invalid(ret_reason, "out of range");
    return 0;
}

/* ---- numbers ---- */

typedef int (*values_fn)(const char *text, uint64_t *ret);

static int parse_number(const struct config_key *key, const char *value, values_fn parse,
                        uint64_t *ret, const char **ret_reason)
{
    uint64_t number;
    int r;

    r = check_result(parse(value, &number), ret_reason);
    if (r == 0)
        r = check_range(key, number, ret_reason);
    if (r == 0)
        *ret = number;
    return r;
}

static int parse_unsigned(const struct config_key *key, const char *value, void *field,
                          const char **ret_reason)
{
    values_fn parse = key->type == &CONFIG_TYPE_WORKERS ? values_workers : values_count;
    uint64_t number = 0;
    int r = parse_number(key, value, parse, &number, ret_reason);

    if (r == 0)
        *(unsigned *)field = (unsigned)number;
    return r;
}

static int parse_count(const struct config_key *key, const char *value, void *field,
                       const char **ret_reason)
{
    return parse_number(key, value, values_count, field, ret_reason);
}

static int parse_integer(const struct config_key *key, const char *value, void *field,
                         const char **ret_reason)
{
    int64_t number;
    int r = check_result(values_integer(value, &number), ret_reason);

    if (r != 0)
        return r;
    if (number < key->min || number > key->max)
        return invalid(ret_reason, "out of range");
    *(int *)field = (int)number;
    return 0;
}

static int parse_size(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    return parse_number(key, value, values_size, field, ret_reason);
}

static int parse_size32(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    uint64_t number = 0;
    int r = parse_number(key, value, values_size, &number, ret_reason);

    if (r == 0)
        *(uint32_t *)field = (uint32_t)number;
    return r;
}

static int parse_time(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    return parse_number(key, value, values_time, field, ret_reason);
}

static int parse_timeout(const struct config_key *key, const char *value, void *field,
                         const char **ret_reason)
{
    int r = parse_number(key, value, values_time, field, ret_reason);

    if (r == 0 && *(usec_t *)field == 0)
        *(usec_t *)field = USEC_INFINITY;
    return r;
}

static int parse_percent(const struct config_key *key, const char *value, void *field,
                         const char **ret_reason)
{
    return parse_number(key, value, values_percent, field, ret_reason);
}

static int parse_fraction(const struct config_key *key, const char *value, void *field,
                          const char **ret_reason)
{
    double number;
    int r = check_result(values_fraction(value, &number), ret_reason);

    if (r != 0)
        return r;
    if (number > (double)key->max)
        return invalid(ret_reason, "out of range");
    *(double *)field = number;
    return 0;
}

static int parse_signal(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    (void)key;
    return check_result(values_signal(value, field), ret_reason);
}

static int parse_choice(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    for (const struct config_choice *choice = key->choices; choice->name; choice++)
        if (strcmp(choice->name, value) == 0) {
            *(int *)field = choice->value;
            return 0;
        }
    return invalid(ret_reason, "unknown");
}

/* ---- text ---- */

static void clear_text(void *field)
{
    free(*(char **)field);
    *(char **)field = NULL;
}

static bool equal_text(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;

    return left && right ? strcmp(left, right) == 0 : left == right;
}

static int parse_text(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    char *copy = strdup(value);

    (void)key;
    (void)ret_reason;
    if (!copy)
        return -ENOMEM;
    clear_text(field);
    *(char **)field = copy;
    return 0;
}

static int parse_path(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    if (*value != '/')
        return invalid(ret_reason, "not an absolute path");
    if (strlen(value) >= PATH_MAX)
        return invalid(ret_reason, "too long");
    return parse_text(key, value, field, ret_reason);
}

/* ---- lists ---- */

static void clear_strv(void *field)
{
    *(config_strv *)field = strv_free(*(config_strv *)field);
}

static bool equal_strv(const void *a, const void *b)
{
    return strv_equal(*(const char *const *const *)a, *(const char *const *const *)b);
}

/* Refuses the prefixes of systemd (such as "-" and "@"), which have no meaning here. */
static const char *find_fault_in_program(const char *program)
{
    if (*program == '\0')
        return "the program is missing";
    if (strchr("-@+!:|", *program))
        return "the prefixes - @ + ! : | of systemd are not supported";
    if (strchr(program, '%'))
        return "the program itself cannot have specifiers";
    if (*program != '/' && strchr(program, '/'))
        return "the path of the program is not absolute";
    if (strlen(program) >= PATH_MAX)
        return "the path of the program is too long";
    return NULL;
}

static const char *find_fault_in_command(const char *const *words)
{
    const char *fault = find_fault_in_program(words[0]);

    for (; !fault && *words; words++)
        if (words_bad_specifier(*words))
            fault = "an unknown specifier (a per cent sign itself is written %%)";
    return fault;
}

static int parse_command(const struct config_key *key, const char *value, void *field,
                         const char **ret_reason)
{
    _cleanup_strv_ config_strv words = NULL;
    int r;

    (void)key;
    r = words_split(value, true, &words, ret_reason);
    if (r != 0)
        return r < 0 ? r : CONFIG_KEY_E_INVALID;
    *ret_reason =
        words ? find_fault_in_command((const char *const *)words) : "the program is missing";
    if (*ret_reason)
        return CONFIG_KEY_E_INVALID;
    clear_strv(field);
    *(config_strv *)field = TAKE_PTR(words);
    return 0;
}

static bool is_full(const config_strv *list)
{
    return strv_length((const char *const *)*list) >= STRV_MAX;
}

static const char TOO_MANY[] = "more than 4096 in all";

static int parse_environment(const struct config_key *key, const char *value, void *field,
                             const char **ret_reason)
{
    _cleanup_strv_ config_strv words = NULL;
    int r;

    (void)key;
    r = words_split(value, false, &words, ret_reason);
    if (r != 0)
        return r < 0 ? r : CONFIG_KEY_E_INVALID;
    for (size_t i = 0; words && words[i]; i++) {
        size_t name_size = strcspn(words[i], "=");

        if (is_full(field))
            return invalid(ret_reason, TOO_MANY);
        if (words[i][name_size] != '=')
            return invalid(ret_reason, "'=' is missing (quote a value that has spaces)");
        if (!envfile_name_valid(words[i], name_size))
            return invalid(ret_reason, "not the name of a variable");
        r = envfile_set(field, words[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int parse_files(const struct config_key *key, const char *value, void *field,
                       const char **ret_reason)
{
    const char *path = *value == '-' ? value + 1 : value;

    (void)key;
    if (*path != '/')
        return invalid(ret_reason, "not an absolute path");
    if (strlen(path) >= PATH_MAX)
        return invalid(ret_reason, "too long");
    if (is_full(field))
        return invalid(ret_reason, TOO_MANY);
    return strv_append(field, value);
}

static bool contains(const char *const *strings, const char *text)
{
    for (; strings && *strings; strings++)
        if (strcmp(*strings, text) == 0)
            return true;
    return false;
}

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

bool config_name_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= CONFIG_GROUP_NAME_MAX && strspn(name, LETTERS_AND_DIGITS) > 0 &&
           strspn(name, LETTERS_AND_DIGITS "_.@-") == length;
}

static int parse_groups(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    _cleanup_strv_ config_strv words = NULL;
    int r;

    (void)key;
    r = words_split(value, false, &words, ret_reason);
    if (r != 0)
        return r < 0 ? r : CONFIG_KEY_E_INVALID;
    for (size_t i = 0; words && words[i]; i++) {
        if (!config_name_valid(words[i]))
            return invalid(ret_reason, "not the name of a group");
        if (contains(*(const char *const *const *)field, words[i]))
            continue;
        if (is_full(field))
            return invalid(ret_reason, TOO_MANY);
        r = strv_append(field, words[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

#define SCALAR(name, type, function)                                                               \
    const struct config_type name = {.size = sizeof(type), .parse = (function)}
#define TEXT(name, function)                                                                       \
    const struct config_type name = {                                                              \
        .size = sizeof(char *), .parse = (function), .clear = clear_text, .equal = equal_text}
#define LIST(name, function)                                                                       \
    const struct config_type name = {.size = sizeof(config_strv),                                  \
                                     .parse = (function),                                          \
                                     .clear = clear_strv,                                          \
                                     .equal = equal_strv}

SCALAR(CONFIG_TYPE_UNSIGNED, unsigned, parse_unsigned);
SCALAR(CONFIG_TYPE_WORKERS, unsigned, parse_unsigned);
SCALAR(CONFIG_TYPE_COUNT, uint64_t, parse_count);
SCALAR(CONFIG_TYPE_INTEGER, int, parse_integer);
SCALAR(CONFIG_TYPE_SIZE, uint64_t, parse_size);
SCALAR(CONFIG_TYPE_SIZE32, uint32_t, parse_size32);
SCALAR(CONFIG_TYPE_TIME, usec_t, parse_time);
SCALAR(CONFIG_TYPE_TIMEOUT, usec_t, parse_timeout);
SCALAR(CONFIG_TYPE_FRACTION, double, parse_fraction);
SCALAR(CONFIG_TYPE_PERCENT, uint64_t, parse_percent);
SCALAR(CONFIG_TYPE_SIGNAL, int, parse_signal);
SCALAR(CONFIG_TYPE_CHOICE, int, parse_choice);
TEXT(CONFIG_TYPE_TEXT, parse_text);
TEXT(CONFIG_TYPE_PATH, parse_path);
LIST(CONFIG_TYPE_COMMAND, parse_command);
LIST(CONFIG_TYPE_ENVIRONMENT, parse_environment);
LIST(CONFIG_TYPE_FILES, parse_files);
LIST(CONFIG_TYPE_GROUPS, parse_groups);
