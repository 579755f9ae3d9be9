/* SPDX-License-Identifier: MIT */
#include "worker/query/json-reader.h"

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
    for (at++; *at != '"'; at++) {
        if (*at == '\\')
            at++;
        if (*at == '\0')
            return NULL;
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

const char *json_reader_skip(const char *value)
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
    const char *end = json_reader_skip(value);

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

const char *json_reader_member(const char *object, const char *path)
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

const char *json_reader_first(const char *array)
{
    const char *element;

    if (*array != '[')
        return NULL;
    element = skip_space(array + 1);
    return *element == ']' || *element == '\0' ? NULL : element;
}

const char *json_reader_next(const char *element)
{
    return after(element, ',');
}

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

    if (read_hex(at, &code) < 0 || code == 0)
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

int json_reader_string(const char *value, char *ret)
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

int json_reader_number(const char *value, int64_t *ret)
{
    char *end;

    if (*value != '-' && (*value < '0' || *value > '9'))
        return -EINVAL;
    errno = 0;
    *ret = strtoll(value, &end, 10);
    return errno != 0 || *end == '.' || *end == 'e' || *end == 'E' ? -EINVAL : 0;
}
