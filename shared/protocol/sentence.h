/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The texts of errors of the control socket. troupectl and libtroupe share them, so that both
 * report an error in the same words.
 */

#include <stdbool.h>
#include <stdio.h>

struct sentence {
    const char *name; /* of the error, without its interface: the meaning is the same in all */
    int error;        /* -errno */
    /* {name} stands for that member of the error's parameters, {name:count} and {name:bytes} for a
     * number, {name:length} for the number of items. */
    const char *text;
    const char *hint;   /* follows unless the reply suggests a similar name; NULL = none */
    const char *member; /* the sentence fits only errors with this member; NULL = all */
};

/* Returns whether the parameters of an error have that member. */
typedef bool (*sentence_has_fn)(const void *parameters, const char *member);

/* Returns the sentence for the full name of an error, or NULL if this version does not know it.
 * Static. */
const struct sentence *sentence_find(const char *error, sentence_has_fn has,
                                     const void *parameters);

/* Returns -errno for the full name of an error; -EPROTO if this version does not know it. */
int sentence_error(const char *error);

/* Writes a member of the parameters; `format` is "count", "bytes", "length" or "". */
typedef void (*sentence_put_fn)(FILE *file, const void *parameters, const char *name,
                                const char *format);

/* Writes the text of a sentence; `put` writes each member. */
void sentence_write(FILE *file, const struct sentence *sentence, sentence_put_fn put,
                    const void *parameters);

/* Writes the name of an error that this version does not know as words: "QueueTooLong" is "queue
 * too long". */
void sentence_write_name(FILE *file, const char *error);
