/* SPDX-License-Identifier: MIT */
#include "shared/protocol/job-id.h"

#include <errno.h>
#include <string.h>

#define PROTOCOL_HEX_DIGITS 32

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Not isalnum(3), which depends on the locale. */
static bool is_name_character(char c)
{
    return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == ':' || c == '@' || c == '-';
}

bool protocol_name_valid(const char *name, size_t size)
{
    if (size == 0 || size > PROTOCOL_NAME_MAX || name[0] == '-' || name[0] == '.')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_name_character(name[i]))
            return false;
    return true;
}

bool protocol_tags_valid(const char *tags, size_t size)
{
    size_t n = 0;

    if (size > PROTOCOL_TAGS_MAX)
        return false;
    for (size_t i = 0, length; i <= size; i += length + 1) {
        const char *blank = memchr(tags + i, ' ', size - i);

        length = blank ? (size_t)(blank - tags) - i : size - i;
        if (!protocol_name_valid(tags + i, length) || ++n > PROTOCOL_TAGS)
            return false;
    }
    return true;
}

bool protocol_name_is_slot(const char *name, size_t size)
{
    static const char form[] = "@dddd-dd-ddTdd:dd:ddZ";
    const size_t length = sizeof(form) - 1;

    if (size <= length)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char c = name[size - length + i];

        if (form[i] == 'd' ? !is_digit(c) : c != form[i])
            return false;
    }
    return true;
}

static char *format_hex(uint64_t value, char *at)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[(value >> shift) & 0xf];
    return at;
}

char *protocol_id_format(const struct protocol_id *id, char *text)
{
    if (id->name[0] != '\0')
        memcpy(text, id->name, sizeof(id->name));
    else
        *format_hex(id->low, format_hex(id->high, text)) = '\0';
    return text;
}

/* 16 lower-case digits. */
static bool parse_hex(const char *text, uint64_t *ret)
{
    uint64_t value = 0;

    for (int i = 0; i < PROTOCOL_HEX_DIGITS / 2; i++) {
        char c = text[i];

        if (is_digit(c))
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret = value;
    return true;
}

int protocol_id_parse(struct protocol_id *ret, const char *text)
{
    size_t size = strnlen(text, PROTOCOL_ID_TEXT);

    if (!protocol_name_valid(text, size))
        return -EINVAL;
    *ret = (struct protocol_id){0};
    if (size == PROTOCOL_HEX_DIGITS && parse_hex(text, &ret->high) &&
        parse_hex(text + PROTOCOL_HEX_DIGITS / 2, &ret->low))
        return 0;
    ret->high = ret->low = 0;
    memcpy(ret->name, text, size);
    return 0;
}
