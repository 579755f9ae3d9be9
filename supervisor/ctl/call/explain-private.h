/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct explanation {
    const char *name; /* without the interface */
    int (*explain)(const json_t *parameters);
};

/* Errors that only io.troupe.Actors has; explain-actors.c. */
extern const struct explanation explain_actors[];
extern const size_t n_explain_actors;

/* Errors of org.varlink.service; explain-connection.c. */
extern const struct explanation explain_service[];
extern const size_t n_explain_service;

/* Errors that any call may end with; explain-connection.c. */
extern const struct explanation explain_connection[];
extern const size_t n_explain_connection;
