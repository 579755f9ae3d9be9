/* SPDX-License-Identifier: MIT */
#pragma once

/* Turns a browser's parameters into those of a Varlink call: named, typed, bounded. */

#include <jansson.h>
#include <stdbool.h>

#define PARAMETER_TEXT_MAX ((size_t)512)
/* The largest page of a list, and the default. */
#define PARAMETER_LIMIT_MAX     200
#define PARAMETER_LIMIT_DEFAULT 50

enum parameter_type {
    PARAMETER_TEXT,   /* UTF-8 of at most PARAMETER_TEXT_MAX bytes */
    PARAMETER_NUMBER, /* 0 or more, of 63 bits */
    PARAMETER_FLAG,   /* true or false */
    PARAMETER_LIMIT,  /* 1 to PARAMETER_LIMIT_MAX */
};

struct parameter {
    const char *name; /* NULL ends a table */
    enum parameter_type type;
    bool local;         /* not for the supervisor */
    const char *object; /* the object that it belongs to, "filter"; NULL = the call itself */
};

struct parameters {
    json_t *call;  /* owned; for the supervisor */
    json_t *local; /* owned; for the view */
};

enum {
    _PARAMETER_E_SUCCESS,
    PARAMETER_E_BAD, /* the reason lists permitted values */
};

/* The reason of a refusal, as a sentence. */
struct parameter_reason {
    char text[256];
};

/* Returns 0 or -ENOMEM. Release them with parameters_deinit(). */
int parameters_init(struct parameters *parameters);
void parameters_deinit(struct parameters *parameters);

/* Adds a parameter of a query string. Returns 0, PARAMETER_E_BAD or -ENOMEM. */
int parameters_add_text(struct parameters *parameters, const struct parameter *table,
                        const char *name, const char *value, struct parameter_reason *reason);

/* Like parameters_add_text(), but adds the members of a JSON object, the body of a request. */
int parameters_add_body(struct parameters *parameters, const struct parameter *table,
                        const char *body, size_t size, struct parameter_reason *reason);

/* Sets the default of a limit for the supervisor. Returns 0 or -ENOMEM. */
int parameters_complete(struct parameters *parameters, const struct parameter *table);
