/* SPDX-License-Identifier: MIT */
#pragma once

/* The Varlink protocol, without a socket: reads a call, and its parameters as the interface
 * describes them. https://varlink.org/Method-Call */

#include "shared/base/clock.h"
#include "supervisor/varlink/interface.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Values, including members and elements, in a call: bounds the work for one. */
#define VARLINK_VALUES_MAX 1024

/* Bytes of a message. */
#define VARLINK_MESSAGE_MAX ((size_t)1 << 20)

enum {
    _VARLINK_E_SUCCESS,
    VARLINK_E_MALFORMED, /* not a JSON object, or too many values */
    VARLINK_E_INVALID,   /* a member is missing, unknown, there twice, or of the wrong type */
    VARLINK_E_REFUSED,   /* a value is not allowed */
};

/* A member that is wrong, and what would be allowed. */
struct varlink_problem {
    char member[64]; /* cut if it is longer */
    char allowed[INTERFACE_WORDS_SIZE];
};

struct varlink_call {
    char *text;             /* owned: the message, followed by room for its strings */
    char *strings;          /* decoded when they are read, each in the place of its text */
    const char *method;     /* never NULL */
    const char *parameters; /* JSON; NULL = none */
    bool more, oneway, upgrade;
};

/* clang-format off */
#define VARLINK_CALL_NULL {0}
/* clang-format on */

/* Parses one message, without its NUL. 0, VARLINK_E_MALFORMED, VARLINK_E_INVALID with `*problem`,
 * or -ENOMEM. Call varlink_call_deinit() in any case. `oneway` is valid also after
 * VARLINK_E_INVALID. */
int varlink_parse(struct varlink_call *ret, const char *message, size_t size,
                  struct varlink_problem *problem);
void varlink_call_deinit(struct varlink_call *call);

/* The length of the interface's name in "a.b.Method"; 0 if the method's or interface's name is
 * missing. */
size_t varlink_interface_length(const char *method);

/* Fields of any struct in a call. */
#define VARLINK_FIELDS_MAX 24

/* An object in a call. It borrows from the call and the description. */
struct varlink_object {
    const struct varlink_call *call;
    const struct interface_field *fields;
    const char *values[VARLINK_FIELDS_MAX]; /* in the order of the fields; NULL = absent or null */
};

/*
 * Reads the parameters of a call, and checks them and all objects in them. Strings contain no NUL
 * unless their name is "key" or "data"; keys have at most VARLINK_KEY_MAX bytes. Numbers are not
 * negative, but durations ("…_usec") may be -1, and "size" may be anything. Returns 0,
 * VARLINK_E_INVALID or VARLINK_E_REFUSED with `*problem`.
 */
int varlink_read(struct varlink_object *ret, const struct varlink_call *call,
                 const struct interface_field *fields, struct varlink_problem *problem);

#define VARLINK_KEY_MAX 255

struct varlink_bytes {
    const char *data; /* ends with a NUL; NULL = absent */
    size_t size;
};

/* Whether they are part of a text; NULL = not. The time depends on the text's size, not on theirs.
 */
static inline bool varlink_bytes_in(const struct varlink_bytes *bytes, const char *text,
                                    size_t size)
{
    return text && memmem(text, size, bytes->data, bytes->size);
}

/* The members of an object by name, which the interface must describe with that type. The
 * results are valid as long as the call. */
bool varlink_has(const struct varlink_object *object, const char *name);
const char *varlink_string(const struct varlink_object *object, const char *name); /* or NULL */
struct varlink_bytes varlink_bytes(const struct varlink_object *object, const char *name);
bool varlink_bool(const struct varlink_object *object, const char *name);
int64_t varlink_int(const struct varlink_object *object, const char *name, int64_t otherwise);
/* A duration or date: -1 is USEC_INFINITY, and 0 is the same as absent. */
usec_t varlink_usec(const struct varlink_object *object, const char *name, usec_t otherwise);
/* The number of a word in its enumeration; -1 = absent. */
int varlink_choice(const struct varlink_object *object, const char *name);
/* Returns whether the object is there; an absent one has no members. */
bool varlink_object(const struct varlink_object *object, const char *name,
                    struct varlink_object *ret);
