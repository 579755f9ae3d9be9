/* SPDX-License-Identifier: MIT */
#include "supervisor/varlink/interface.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Skips white space, comments, and the commas between fields. */
static const char *skip_blank(const char *at)
{
    at += strspn(at, " \n,");
    while (*at == '#') {
        at += strcspn(at, "\n");
        at += strspn(at, " \n,");
    }
    return at;
}

static size_t name_size(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
}

static bool is_name(const char *at, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(at, name, size) == 0;
}

/* Returns what follows a type: a name, or fields in brackets. */
static const char *skip_type(const char *at)
{
    unsigned depth = 0;

    if (*at != '(')
        return at + name_size(at);
    do {
        depth += *at == '(';
        depth -= *at == ')';
        at = skip_blank(at + 1);
    } while (depth > 0);
    return at;
}

void interface_read(struct interface *ret, const char *text)
{
    static const char *const kinds[] = {"type", "method", "error"};
    static const char mark[] = "\n# Version ";
    const char *at = skip_blank(text), *version = strstr(text, mark);

    *ret = (struct interface){.text = text};
    ret->version = version ? atoi(version + sizeof(mark) - 1) : 0;
    for (; *at != '\0'; at = skip_blank(at + strcspn(at, "\n"))) {
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            const char *name = at + strlen(kinds[i]) + 1;
            const size_t size = name_size(name);

            if (!is_name(at, name_size(at), kinds[i]) || size == 0)
                continue;
            assert(ret->n < INTERFACE_DECLARATIONS_MAX);
            ret->declarations[ret->n++] =
                (struct interface_declaration){*at, name, size, strchr(name, '(') + 1};
        }
    }
}

const char *interface_find(const struct interface *interface, char kind, const char *name,
                           size_t size)
{
    for (size_t i = 0; i < interface->n; i++) {
        const struct interface_declaration *there = &interface->declarations[i];

        if (there->kind == kind && there->size == size && memcmp(there->name, name, size) == 0)
            return there->fields;
    }
    return NULL;
}

/* Fields that have no types are words. */
static bool is_enum(const char *fields)
{
    const char *at = skip_blank(fields);

    return *at != ')' && *skip_blank(at + name_size(at)) != ':';
}

static void read_type(const struct interface *interface, const char *at,
                      struct interface_field *ret)
{
    static const char *const kinds[] = {
        [INTERFACE_BOOL] = "bool",
        [INTERFACE_INT] = "int",
        [INTERFACE_STRING] = "string",
        [INTERFACE_ANY] = "object",
    };
    const size_t size = name_size(at);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i] && is_name(at, size, kinds[i])) {
            ret->kind = (enum interface_kind)i;
            return;
        }
    ret->fields = *at == '(' ? at + 1 : interface_find(interface, 't', at, size);
    assert(ret->fields);
    ret->kind = is_enum(ret->fields) ? INTERFACE_ENUM : INTERFACE_STRUCT;
}

bool interface_next(const struct interface *interface, const char **at, struct interface_field *ret)
{
    const char *name = skip_blank(*at), *type;

    if (*name == ')')
        return false;
    *ret = (struct interface_field){.name = name, .size = name_size(name)};
    type = skip_blank(name + ret->size);
    *at = type;
    if (*type != ':')
        return true;
    type = skip_blank(type + 1);
    ret->optional = *type == '?';
    type += ret->optional;
    ret->array = strncmp(type, "[]", 2) == 0;
    type += ret->array ? 2 : 0;
    read_type(interface, type, ret);
    *at = skip_type(type);
    return true;
}

int interface_word(const char *words, const char *word)
{
    struct interface_field field;

    for (int i = 0; interface_next(NULL, &words, &field); i++)
        if (is_name(field.name, field.size, word))
            return i;
    return -1;
}

void interface_print_words(char *text, const char *words)
{
    struct interface_field field;
    size_t size = 0;

    while (interface_next(NULL, &words, &field) && size < INTERFACE_WORDS_SIZE)
        size += (size_t)snprintf(text + size, INTERFACE_WORDS_SIZE - size, "%s%.*s",
                                 size > 0 ? ", " : "", (int)field.size, field.name);
}
