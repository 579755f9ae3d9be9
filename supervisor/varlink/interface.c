/* SPDX-License-Identifier: MIT */
#include "supervisor/varlink/interface.h"

#include <assert.h>
#include <ctype.h>
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
    size_t size = 0;

    while (isalnum((unsigned char)at[size]) || at[size] == '_' || at[size] == '.')
        size++;
    return size;
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
                (struct interface_declaration){*at, name, size, strchr(name, '(') + 1, NULL};
        }
    }
}

static const struct interface_field *read_fields(struct interface *interface, const char *text);

const struct interface_field *interface_find(struct interface *interface, char kind,
                                             const char *name, size_t size)
{
    for (size_t i = 0; i < interface->n; i++) {
        struct interface_declaration *there = &interface->declarations[i];

        if (there->kind != kind || there->size != size || memcmp(there->name, name, size) != 0)
            continue;
        if (!there->fields)
            there->fields = read_fields(interface, there->text);
        return there->fields;
    }
    return NULL;
}

static void read_type(struct interface *interface, const char *at, struct interface_field *ret)
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
    ret->fields =
        *at == '(' ? read_fields(interface, at + 1) : interface_find(interface, 't', at, size);
    assert(ret->fields);
    ret->kind = ret->fields->kind == INTERFACE_WORD ? INTERFACE_ENUM : INTERFACE_STRUCT;
}

/* Reads the field at `*at`, and moves that on. Returns false at the end. */
static bool read_field(struct interface *interface, const char **at, struct interface_field *ret)
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

static const struct interface_field *read_fields(struct interface *interface, const char *text)
{
    struct interface_field list[INTERFACE_LIST_MAX + 1], *fields;
    size_t n = 0;

    /* Lists within this one are read first. */
    while (read_field(interface, &text, &list[n])) {
        n++;
        assert(n < INTERFACE_LIST_MAX);
    }
    list[n++] = (struct interface_field){.kind = INTERFACE_ANY};
    assert(interface->n_fields + n <= INTERFACE_FIELDS_MAX);
    fields = &interface->fields[interface->n_fields];
    memcpy(fields, list, n * sizeof(list[0]));
    interface->n_fields += n;
    return fields;
}

int interface_word(const struct interface_field *words, const char *word)
{
    for (int i = 0; words[i].name; i++)
        if (is_name(words[i].name, words[i].size, word))
            return i;
    return -1;
}

void interface_print_words(char *text, const struct interface_field *words)
{
    size_t size = 0;

    for (; words->name && size < INTERFACE_WORDS_SIZE; words++)
        size += (size_t)snprintf(text + size, INTERFACE_WORDS_SIZE - size, "%s%.*s",
                                 size > 0 ? ", " : "", (int)words->size, words->name);
}
