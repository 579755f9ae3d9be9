/* SPDX-License-Identifier: MIT */
/* Types whose fields are a number, a name or a few of them. */

#include "supervisor/config/keys/types-private.h"

#include "shared/base/log.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/config/syntax/words.h"
#include <string.h>

static int parse_number(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    uint64_t number = 0;
    int r = config_type_check(key->type->number(value, &number), ret_reason);
    const int64_t compared = (int64_t)number; /* beyond INT64_MAX: negative, so below any minimum */

    if (r != 0)
        return r;
    if (!(key->infinity && number == UINT64_MAX) && (compared < key->min || compared > key->max))
        return config_type_invalid(ret_reason, "out of range");
    if (key->type->size == sizeof(uint32_t))
        *(uint32_t *)field = (uint32_t)number;
    else
        *(uint64_t *)field = number;
    return 0;
}

static int signed_number(const char *text, uint64_t *ret)
{
    return values_integer(text, (int64_t *)ret);
}

static int timeout(const char *text, uint64_t *ret)
{
    int r = values_time(text, ret);

    if (r == 0 && *ret == 0)
        *ret = USEC_INFINITY;
    return r;
}

/* "4", "50%", "2..16" */
static int parse_pool_size(const struct config_key *key, const char *value, void *field,
                           const char **ret_reason)
{
    struct config_size *size = field;
    uint64_t low, high;
    int r = config_type_check(values_workers_range(value, &low, &high), ret_reason);

    if (r != 0)
        return r;
    if (low > high)
        return config_type_invalid(ret_reason, "its first number is above the second one");
    if (high < (uint64_t)key->min || high > (uint64_t)key->max)
        return config_type_invalid(ret_reason, "out of range");
    *size = (struct config_size){.low = (unsigned)low, .high = (unsigned)high};
    return 0;
}

/* "100/1min" */
static int parse_rate(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    const char *slash = strchr(value, '/');
    struct config_rate rate = {0};
    char count[32] = "";

    if (strcmp(value, "infinity") == 0) {
        *(struct config_rate *)field = rate;
        return 0;
    }
    if (!slash || (size_t)(slash - value) >= sizeof(count))
        return config_type_invalid(ret_reason, "no valid value");
    memcpy(count, value, (size_t)(slash - value));
    if (values_count(count, &rate.n) != 0 || values_time(slash + 1, &rate.period) != 0)
        return config_type_invalid(ret_reason, "no valid value");
    if (rate.n == 0 || rate.n > 1000000 || rate.period < USEC_PER_MSEC ||
        rate.period > UINT64_C(24) * 3600 * USEC_PER_SEC)
        return config_type_invalid(ret_reason, "out of range");
    *(struct config_rate *)field = rate; /* a group runs on after a mistake in its file */
    return 0;
}

static int parse_fraction(const struct config_key *key, const char *value, void *field,
                          const char **ret_reason)
{
    double number;
    int r = config_type_check(values_fraction(value, &number), ret_reason);

    if (r != 0)
        return r;
    if (number > (double)key->max)
        return config_type_invalid(ret_reason, "out of range");
    *(double *)field = number;
    return 0;
}

static int parse_signal(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    return config_type_check(values_signal(value, field), ret_reason);
}

static int add_status(struct config_statuses *statuses, const char *word, const char **ret_reason)
{
    uint64_t code;
    int signal, r;

    if (strspn(word, "0123456789") == strlen(word)) {
        r = config_type_check(values_count(word, &code), ret_reason);
        if (r == 0 && code > UINT8_MAX)
            r = config_type_invalid(ret_reason, "no exit status");
        if (r == 0)
            statuses->codes[code / 64] |= UINT64_C(1) << code % 64;
        return r;
    }
    r = config_type_check(values_signal(word, &signal), ret_reason);
    if (r == 0)
        statuses->signals |= UINT64_C(1) << (signal - 1);
    return r;
}

static int parse_choice(const struct config_key *key, const char *value, void *field,
                        const char **ret_reason)
{
    const int n = words_find(key->allowed, value);

    if (n < 0)
        return config_type_invalid(ret_reason, "unknown");
    *(int *)field = n;
    return 0;
}

/* `allowed` is "no, yes". */
static int parse_bool(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    const int n = words_find(key->allowed, value);

    if (n < 0)
        return config_type_invalid(ret_reason, "unknown");
    *(bool *)field = n > 0;
    return 0;
}

static int parse_mode(const struct config_key *key, const char *value, void *field,
                      const char **ret_reason)
{
    const size_t length = strlen(value);

    if (length > 4 || strspn(value, "01234567") != length)
        return config_type_invalid(ret_reason, "not an octal number of up to four digits");
    if (length == 4 && *value != '0')
        return config_type_invalid(ret_reason, "out of range");
    *(unsigned *)field = (unsigned)strtoul(value, NULL, 8);
    return 0;
}

static int parse_error(const struct config_key *key, const char *value, void *field,
                       const char **ret_reason)
{
    const int error = sandbox_error(value);

    if (error < 0)
        return config_type_invalid(ret_reason, "unknown");
    *(int *)field = error;
    return 0;
}

static int parse_log_level(const struct config_key *key, const char *value, void *field,
                           const char **ret_reason)
{
    return log_level_from_string(value, field) < 0 ? config_type_invalid(ret_reason, "unknown") : 0;
}

static void clear_statuses(void *field)
{
    *(struct config_statuses *)field = (struct config_statuses){0};
}

static int parse_statuses(const struct config_key *key, const char *value, void *field,
                          const char **ret_reason)
{
    struct config_statuses statuses = *(struct config_statuses *)field;
    _cleanup_strv_ config_strv words = NULL;
    int r = config_type_split(value, false, &words, ret_reason);

    for (size_t i = 0; r == 0 && words && words[i]; i++)
        r = add_status(&statuses, words[i], ret_reason);
    if (r == 0)
        *(struct config_statuses *)field = statuses;
    return r;
}

/* clang-format off */
#define NUMBER(type_, read) {.size = sizeof(type_), .parse = parse_number, .number = (read)}
#define SCALAR(type_, function) {.size = sizeof(type_), .parse = (function)}
const struct config_type CONFIG_TYPE_UNSIGNED = NUMBER(unsigned, values_count);
const struct config_type CONFIG_TYPE_POOL_SIZE = SCALAR(struct config_size, parse_pool_size);
const struct config_type CONFIG_TYPE_COUNT = NUMBER(uint64_t, values_count);
const struct config_type CONFIG_TYPE_INTEGER = NUMBER(int, signed_number);
const struct config_type CONFIG_TYPE_SIZE = NUMBER(uint64_t, values_size);
const struct config_type CONFIG_TYPE_SIZE32 = NUMBER(uint32_t, values_size);
const struct config_type CONFIG_TYPE_TIME = NUMBER(usec_t, values_time);
const struct config_type CONFIG_TYPE_TIMEOUT = NUMBER(usec_t, timeout);
const struct config_type CONFIG_TYPE_PERCENT = NUMBER(uint64_t, values_percent);
const struct config_type CONFIG_TYPE_FRACTION = SCALAR(double, parse_fraction);
const struct config_type CONFIG_TYPE_RATE = SCALAR(struct config_rate, parse_rate);
const struct config_type CONFIG_TYPE_SIGNAL = SCALAR(int, parse_signal);
const struct config_type CONFIG_TYPE_STATUSES = {.size = sizeof(struct config_statuses), .parse = parse_statuses, .clear = clear_statuses};
const struct config_type CONFIG_TYPE_CHOICE = SCALAR(int, parse_choice);
const struct config_type CONFIG_TYPE_BOOL = SCALAR(bool, parse_bool);
const struct config_type CONFIG_TYPE_LOG_LEVEL = SCALAR(int, parse_log_level);
const struct config_type CONFIG_TYPE_MODE = SCALAR(unsigned, parse_mode);
const struct config_type CONFIG_TYPE_ERROR = SCALAR(int, parse_error);
/* clang-format on */
