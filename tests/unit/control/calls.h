/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * For tests of the methods: calls from one client to the socket of fake-client.h.
 */

#include "tests/unit/fake-client.h"
#include "tests/unit/suite.h"

#define CALL(method, parameters)     "{\"method\":\"" method "\",\"parameters\":" parameters "}"
#define SUPERVISOR(name, parameters) CALL("io.troupe.Supervisor." name, parameters)
#define JOBS(name, parameters)       CALL("io.troupe.Jobs." name, parameters)
#define ACTORS(name, parameters)     CALL("io.troupe.Actors." name, parameters)
#define MORE(method, parameters)                                                                   \
    "{\"method\":\"" method "\",\"more\":true,\"parameters\":" parameters "}"
#define ONEWAY(method, parameters)                                                                 \
    "{\"method\":\"" method "\",\"oneway\":true,\"parameters\":" parameters "}"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

/* The client that calls; connected before each test. */
extern struct fake_client *client;

/* Fixtures. */
void connect_client(void);
void disconnect_client(void);

/* The parameters of a reply that must not be an error. */
json_t *parameters_of(json_t *answer);
json_t *ask(const char *text);
void check_done(const char *text);

/* Expects an error (last part of its name), and one of its fields; `key` NULL = any. */
void check_refused(const char *error, const char *key, const char *value, const char *text);
/* The same for a call that was sent before. */
void check_refused_next(const char *error, const char *key, const char *value);

const char *string(json_t *object, const char *key);

/*
 * Slows the clock of this program down for the rest of the test: every part of a call uses up its
 * turn of the loop, so the number of turns does not depend on the machine.
 */
void slow_down(void);

/* Counts the turns in which the loop, slowed down, works on an answer to the client. */
void count_turns(void);
unsigned counted_turns(void);

/* The turns of the loop until the reply comes. */
unsigned turns_of(const char *text, json_t **ret);
/* Checks that `n_calls` calls took a turn for each part of the `n_items` that they looked at. */
void check_turns(unsigned turns, unsigned n_items, unsigned n_calls);
