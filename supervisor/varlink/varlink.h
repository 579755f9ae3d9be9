/* SPDX-License-Identifier: MIT */
#pragma once

/* The Varlink protocol, without a socket: reading a call, and its parameters into a struct.
 * https://varlink.org/Method-Call */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values (members and elements) in a call. Without this bound, 1 MiB of "[[],[],…" would become a
 * tree of 100 MiB and block the loop. */
#define VARLINK_VALUES_MAX 1024

/* Bytes of a message. */
#define VARLINK_MESSAGE_MAX ((size_t)1 << 20)

enum {
    _VARLINK_E_SUCCESS,
    VARLINK_E_MALFORMED, /* not a JSON object, or too many values */
    VARLINK_E_INVALID,   /* a member is missing, unknown or of the wrong type */
    VARLINK_E_REFUSED,   /* a value is not allowed */
};

struct varlink_call {
    json_t *root;       /* owned; everything below points into it */
    const char *method; /* never NULL */
    json_t *parameters; /* NULL = none */
    bool more, oneway, upgrade;
};

/* clang-format off */
#define VARLINK_CALL_NULL {0}
/* clang-format on */

/* Parses one message, without its NUL. 0, VARLINK_E_MALFORMED, VARLINK_E_INVALID with the member's
 * name in `*ret_bad`, which is borrowed from the call, or -ENOMEM. Call varlink_call_deinit() in
 * any case. `oneway` is valid also after VARLINK_E_INVALID. */
int varlink_parse(struct varlink_call *ret, const char *message, size_t size, const char **ret_bad);
void varlink_call_deinit(struct varlink_call *call);

/* The length of the interface's name in "a.b.Method"; 0 if the method's or interface's name is
 * missing. */
size_t varlink_interface_length(const char *method);

/* The type of a parameter, and of the struct member that it is stored in. */
enum varlink_type {
    VARLINK_STRING,  /* const char *; NULL = absent; without NUL inside */
    VARLINK_BYTES,   /* struct varlink_bytes: a string that may contain NUL; data NULL = absent */
    VARLINK_INT,     /* struct varlink_int */
    VARLINK_BOOL,    /* bool; absent = false */
    VARLINK_FLAG,    /* struct varlink_flag: absent and false differ */
    VARLINK_OBJECT,  /* json_t *; NULL = absent */
    VARLINK_SPAN,    /* usec_t: -1 means USEC_INFINITY; absent or 0 leaves it as it is */
    VARLINK_CHOICE, /* struct varlink_int: the number of a word in `allowed`, such as "none, all" */
};

struct varlink_bytes {
    const char *data;
    size_t size;
};

struct varlink_int {
    bool set;
    int64_t value;
};

struct varlink_flag {
    bool set, value;
};

struct varlink_parameter {
    const char *name; /* NULL ends the table */
    enum varlink_type type;
    bool required;
    size_t offset;       /* offsetof() in the target */
    const char *allowed; /* for the refusal of other values; NULL = any value of the type */
    int64_t min, max;    /* of integers; max is also the size of bytes; 0 = no maximum */
};

/* VARLINK_ROW("limit", INT, list_parameters, limit, .allowed = "1 to 9", .min = 1, .max = 9) */
#define VARLINK_ROW(name_, type_, target, member, ...)                                             \
    {                                                                                              \
        .name = (name_), .type = VARLINK_##type_, .offset = offsetof(struct target, member),       \
        __VA_ARGS__                                                                                \
    }

/* The row of that name; NULL = none. */
const struct varlink_parameter *varlink_find(const struct varlink_parameter *table,
                                             const char *name);

/* Checks the members of an object (NULL = no members) and stores them in `target`, which borrows
 * from `object`; absent ones, and null, leave it as it is: zeroed or a default. Returns 0, or
 * VARLINK_E_INVALID or VARLINK_E_REFUSED with the name of the member. */
int varlink_take(json_t *object, const struct varlink_parameter *table, void *target,
                 const char **ret_bad);
