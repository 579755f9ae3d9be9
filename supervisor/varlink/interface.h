/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads the description of an interface: the text of its .varlink file, which is the only list of
 * its methods, parameters and enumerations. https://varlink.org/Interface-Definition
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERFACE_DECLARATIONS_MAX 80
/* Fields and words of the declarations that are used, and of one of them. */
#define INTERFACE_FIELDS_MAX 400
#define INTERFACE_LIST_MAX   40

enum interface_kind {
    INTERFACE_WORD, /* of an enumeration */
    INTERFACE_BOOL,
    INTERFACE_INT,
    INTERFACE_STRING,
    INTERFACE_ANY, /* "object" */
    INTERFACE_STRUCT,
    INTERFACE_ENUM,
};

/* A field of a struct, or a word of an enumeration. */
struct interface_field {
    const char *name; /* not terminated; NULL ends the list */
    size_t size;
    bool optional, array;
    enum interface_kind kind;
    const struct interface_field *fields; /* of a struct or an enumeration */
};

struct interface {
    const char *text; /* borrowed */
    int version;      /* that a comment states as "Version 1" */
    size_t n, n_fields;
    struct interface_declaration {
        char kind;        /* 'm'ethod, 't'ype or 'e'rror */
        const char *name; /* not terminated */
        size_t size;
        const char *text;                     /* behind its "(" */
        const struct interface_field *fields; /* read when they are needed */
    } declarations[INTERFACE_DECLARATIONS_MAX];
    struct interface_field fields[INTERFACE_FIELDS_MAX];
};

/* Finds the declarations of a description of ours, which has no mistakes. */
void interface_read(struct interface *ret, const char *text);

/* Returns the parameters of a method ('m') or the fields of a type ('t') or error ('e'); NULL =
 * there is none of that name. */
const struct interface_field *interface_find(struct interface *interface, char kind,
                                             const char *name, size_t size);

/* Returns the number of a word in an enumeration; -1 = it has no such word. */
int interface_word(const struct interface_field *words, const char *word);

#define INTERFACE_WORDS_SIZE 512

/* Writes the words of an enumeration as "none, all". `text` holds INTERFACE_WORDS_SIZE bytes. */
void interface_print_words(char *text, const struct interface_field *words);
