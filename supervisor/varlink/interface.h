/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads the description of an interface: the text of its .varlink file, which is the only list of
 * its methods, parameters and enumerations. https://varlink.org/Interface-Definition
 *
 * Fields are those of a struct, or the words of an enumeration: a pointer to the text behind "(".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERFACE_DECLARATIONS_MAX 80

/* Where its declarations are; the text is borrowed. */
struct interface {
    const char *text;
    int version; /* that a comment states as "Version 1" */
    size_t n;
    struct interface_declaration {
        char kind;        /* 'm'ethod, 't'ype or 'e'rror */
        const char *name; /* not terminated */
        size_t size;
        const char *fields;
    } declarations[INTERFACE_DECLARATIONS_MAX];
};

/* Finds the declarations of a description of ours, which has no mistakes. */
void interface_read(struct interface *ret, const char *text);

/* Returns the parameters of a method ('m') or the fields of a type ('t') or error ('e'); NULL =
 * there is none of that name. */
const char *interface_find(const struct interface *interface, char kind, const char *name,
                           size_t size);

enum interface_kind {
    INTERFACE_WORD, /* of an enumeration */
    INTERFACE_BOOL,
    INTERFACE_INT,
    INTERFACE_STRING,
    INTERFACE_ANY, /* "object" */
    INTERFACE_STRUCT,
    INTERFACE_ENUM,
};

struct interface_field {
    const char *name; /* not terminated */
    size_t size;
    bool optional, array;
    enum interface_kind kind;
    const char *fields; /* of a struct or an enumeration */
};

/* Reads the field at `*at`, and moves that on. Returns false at the end. */
bool interface_next(const struct interface *interface, const char **at,
                    struct interface_field *ret);

/* Returns the number of a word in an enumeration; -1 = it has no such word. */
int interface_word(const char *words, const char *word);

#define INTERFACE_WORDS_SIZE 512

/* Writes the words of an enumeration as "none, all". `text` holds INTERFACE_WORDS_SIZE bytes. */
void interface_print_words(char *text, const char *words);
