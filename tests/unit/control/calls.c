/* SPDX-License-Identifier: MIT */
#include "tests/unit/control/calls.h"

#define PER_PART 256 /* items that a part of a call looks at, at most */

struct fake_client *client;

/* ---- the clock: linked with --wrap=clock_now ---- */

static usec_t added, per_look;

usec_t __real_clock_now(void);
usec_t __wrap_clock_now(void);

usec_t __wrap_clock_now(void)
{
    added += per_look;
    return __real_clock_now() + added;
}

void slow_down(void)
{
    per_look = USEC_PER_MSEC / 2;
}

/* ---- calls ---- */

void connect_client(void)
{
    per_look = 0;
    fake_setup();
    client = fake_connect();
}

void disconnect_client(void)
{
    fake_disconnect(client);
    fake_teardown();
}

json_t *parameters_of(json_t *answer)
{
    ck_assert_ptr_nonnull(answer);
    ck_assert_msg(!json_object_get(answer, "error"), "refused: %s",
                  json_string_value(json_object_get(answer, "error")));
    return json_object_get(answer, "parameters");
}

json_t *ask(const char *text)
{
    return parameters_of(fake_ask(client, text));
}

const char *string(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

void check_refused(const char *error, const char *key, const char *value, const char *text)
{
    json_t *parameters = fake_refused(client, error, text);

    if (key)
        ck_assert_str_eq(string(parameters, key), value);
}

void check_refused_next(const char *error, const char *key, const char *value)
{
    json_t *answer = fake_receive(client);

    ck_assert_str_eq(strrchr(string(answer, "error"), '.') + 1, error);
    ck_assert_str_eq(string(json_object_get(answer, "parameters"), key), value);
}

void check_done(const char *text)
{
    ask(text);
}

static unsigned n_turns;
static struct loop_deferred turn;

static bool has_answer(void)
{
    char byte;

    return client->size > 0 || recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Reading a long answer takes turns, too: they do not count. */
static void on_turn(struct loop_deferred *deferred)
{
    n_turns += !has_answer();
    loop_defer(fake_parts.loop, deferred);
}

void count_turns(void)
{
    slow_down();
    n_turns = 0;
    loop_deferred_init(&turn, on_turn);
    loop_defer(fake_parts.loop, &turn);
}

unsigned counted_turns(void)
{
    loop_undefer(&turn);
    return n_turns;
}

unsigned turns_of(const char *text, json_t **ret)
{
    count_turns();
    *ret = ask(text);
    return counted_turns();
}

void check_turns(unsigned turns, unsigned n_items, unsigned n_calls)
{
    json_t *reply;
    const unsigned of_one = turns_of(SUPERVISOR("GetInfo", "{}"), &reply);

    ck_assert_uint_ge(turns, n_items / PER_PART + n_calls * (of_one - 1));
}
