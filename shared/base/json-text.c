/* SPDX-License-Identifier: MIT */
#include "shared/base/json-text.h"

#include "shared/base/utf8.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at)
{
    for (at += 1 + strcspn(at + 1, "\"\\"); *at != '"'; at += strcspn(at, "\"\\")) {
        if (*at == '\\')
            at++;
        if (*at == '\0')
            return NULL;
        at++;
    }
    return at + 1;
}

/* Skips an object or array by counting brackets. */
static const char *skip_nested(const char *at)
{
    size_t depth = 0;

    do {
        if (*at == '"') {
            at = skip_string(at);
            if (!at)
                return NULL;
            continue;
        }
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        else if (*at == '\0')
            return NULL;
        at++;
    } while (depth > 0);
    return at;
}

const char *json_text_skip(const char *value)
{
    size_t size;

    if (*value == '"')
        return skip_string(value);
    if (*value == '{' || *value == '[')
        return skip_nested(value);
    size = strspn(value, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    return size > 0 ? value + size : NULL;
}

/* Returns what follows the separator behind a value, or NULL. */
static const char *after(const char *value, char separator)
{
    const char *end = json_text_skip(value);

    if (!end)
        return NULL;
    end = skip_space(end);
    return *end == separator ? skip_space(end + 1) : NULL;
}

static const char *member(const char *object, const char *name, size_t size)
{
    const char *key, *value;

    if (*object != '{')
        return NULL;
    for (key = skip_space(object + 1); key && *key == '"'; key = after(value, ',')) {
        value = after(key, ':');
        if (!value)
            return NULL;
        if (strncmp(key + 1, name, size) == 0 && key[1 + size] == '"')
            return value;
    }
    return NULL;
}

const char *json_text_member(const char *object, const char *path)
{
    while (object) {
        size_t size = strcspn(path, ".");

        object = member(object, path, size);
        if (path[size] == '\0')
            return object;
        path += size + 1;
    }
    return NULL;
}

const char *json_text_first(const char *container)
{
    const char *first;

    if (*container != '[' && *container != '{')
        return NULL;
    first = skip_space(container + 1);
    return *first == ']' || *first == '}' || *first == '\0' ? NULL : first;
}

const char *json_text_next(const char *value)
{
    return after(value, ',');
}

const char *json_text_value(const char *name)
{
    return after(name, ':');
}

/* ---- strings and numbers ---- */

static int read_hex(const char *at, uint32_t *ret)
{
    char digits[5] = "", *end;

    strncpy(digits, at, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4)
        return -EINVAL;
    *ret = (uint32_t)strtoul(digits, &end, 16);
    return 0;
}

/* Reads the four digits of \u, and those of the second half of a pair. Returns the end, or NULL. */
static const char *read_unicode(const char *at, char **to)
{
    uint32_t code, low;

    if (read_hex(at, &code) < 0 || (code >= 0xdc00 && code < 0xe000))
        return NULL;
    at += 4;
    if (code >= 0xd800 && code < 0xdc00) {
        if (at[0] != '\\' || at[1] != 'u' || read_hex(at + 2, &low) < 0 || low < 0xdc00 ||
            low > 0xdfff)
            return NULL;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    *to += utf8_put(*to, code);
    return at;
}

static const char *read_escape(const char *at, char **to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (*at == 'u')
        return read_unicode(at + 1, to);
    found = *at ? strchr(names, *at) : NULL;
    if (!found)
        return NULL;
    *(*to)++ = values[found - names];
    return at + 1;
}

int json_text_string(const char *value, char *ret)
{
    const char *at = value + 1;
    char *to = ret;

    if (*value != '"')
        return -EINVAL;
    while (at && *at != '"') {
        if (*at == '\0')
            return -EINVAL;
        if (*at == '\\')
            at = read_escape(at + 1, &to);
        else
            *to++ = *at++;
    }
    *to = '\0';
    return at ? (int)(to - ret) : -EINVAL;
}

int json_text_number(const char *value, int64_t *ret)
{
    char *end;

    if (*value != '-' && (*value < '0' || *value > '9'))
        return -EINVAL;
    errno = 0;
    *ret = strtoll(value, &end, 10);
    return errno != 0 || *end == '.' || *end == 'e' || *end == 'E' ? -EINVAL : 0;
}

/* ---- the grammar: each function returns what follows, or NULL if the text is malformed ---- */

struct check {
    size_t values_left;
    unsigned depth;
};

static const char *check_value(struct check *check, const char *at);

static const char *check_string(const char *at)
{
    char character[4], *to;

    if (*at++ != '"')
        return NULL;
    while (at && *at != '"') {
        to = character;
        if ((unsigned char)*at < 0x20)
            return NULL;
        at = *at == '\\' ? read_escape(at + 1, &to) : at + 1;
    }
    return at ? at + 1 : NULL;
}

static const char *check_digits(const char *at)
{
    const size_t n = strspn(at, "0123456789");

    return n > 0 ? at + n : NULL;
}

static const char *check_number(const char *at)
{
    at += *at == '-';
    at = *at == '0' ? at + 1 : check_digits(at);
    if (at && *at == '.')
        at = check_digits(at + 1);
    if (at && (*at == 'e' || *at == 'E')) {
        at++;
        at = check_digits(*at == '+' || *at == '-' ? at + 1 : at);
    }
    return at;
}

static const char *check_word(const char *at, const char *word)
{
    const size_t size = strlen(word);

    return strncmp(at, word, size) == 0 ? at + size : NULL;
}

static const char *check_item(struct check *check, const char *at, bool is_member)
{
    if (is_member) {
        at = check_string(at);
        at = at ? skip_space(at) : NULL;
        if (!at || *at != ':')
            return NULL;
        at = skip_space(at + 1);
    }
    at = check_value(check, at);
    return at ? skip_space(at) : NULL;
}

static const char *check_container(struct check *check, const char *at, char end)
{
    if (check->depth++ == JSON_TEXT_DEPTH_MAX)
        return NULL;
    at = skip_space(at + 1);
    if (*at != end)
        at = check_item(check, at, end == '}');
    while (at && *at == ',')
        at = check_item(check, skip_space(at + 1), end == '}');
    check->depth--;
    return at && *at == end ? at + 1 : NULL;
}

static const char *check_value(struct check *check, const char *at)
{
    if (check->values_left-- == 0)
        return NULL;
    switch (*at) {
    case '{':
        return check_container(check, at, '}');
    case '[':
        return check_container(check, at, ']');
    case '"':
        return check_string(at);
    case 't':
        return check_word(at, "true");
    case 'f':
        return check_word(at, "false");
    case 'n':
        return check_word(at, "null");
    default:
        return check_number(at);
    }
}

bool json_text_check(const char *text, size_t size, size_t max_values)
{
    struct check check = {.values_left = max_values};
    const char *end;

    if (!utf8_is_text(text, size))
        return false;
    end = check_value(&check, skip_space(text));
    return end && *skip_space(end) == '\0';
}
