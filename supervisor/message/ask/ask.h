/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Open asks: their askers, wanted replies and time limits. An ask ends once: with the first reply
 * of a matching type, with its failure, or with its asker. Its handle then finds nothing. Handles
 * are random: only an actor that gets the message can reply.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/protocol/topic.h"
#include "supervisor/loop/timer.h"
#include "supervisor/message/envelope.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct message_context;

/* `reply` is a borrowed PROTOCOL_REPLIED, or NULL with `error` (errno) and `reason`. */
typedef void (*ask_done_fn)(void *userdata, const struct envelope *reply, int error,
                            const char *reason);

struct ask {
    struct list link;             /* in the asker's list, or in the table's, once it has ended */
    struct index_entry by_cookie; /* in the asker's index */
    struct index_entry by_handle; /* in the table's */
    struct message_context *context;
    uint64_t handle;
    bool open;           /* has not ended */
    bool quiet;          /* a failure does not call `done`: router_ask() returns it */
    struct actor *asker; /* NULL = `done` is called */
    uint64_t asked_by;   /* the asker's reference, kept when the ask has ended; 0 = none */
    uint64_t cookie;     /* the asker's own number */
    uint32_t copies;     /* messages in transit: exchanges make several */
    uint32_t weight;     /* its share of ACTOR_ASKS_MAX */
    struct timer timer;
    ask_done_fn done;
    void *userdata;
    uint8_t wanted_size;
    char wanted[TOPIC_TYPE_MAX];
};

struct ask_table {
    struct index by_handle;
    struct list ended; /* oldest first; the next ask takes the place of the oldest */
    uint64_t n_open, n_made;
    uint64_t random[32]; /* for handles */
    uint32_t n_random;   /* not used yet */
};

void ask_table_init(struct ask_table *table);
void ask_table_deinit(struct ask_table *table);

struct ask_options {
    struct actor *asker;
    uint64_t cookie;
    struct topic wanted; /* the type alone */
    usec_t timeout;      /* USEC_INFINITY = none */
    ask_done_fn done;
    void *userdata;
};

/* 0 or -ENOMEM. */
int ask_new(struct ask **ret, struct message_context *context, const struct ask_options *options);

struct ask *ask_get(const struct ask_table *table, uint64_t handle); /* NULL = it has ended */

/* The asker, even after the ask has ended, until another takes its place; 0 = not known. */
uint64_t ask_asked_by(const struct ask_table *table, uint64_t handle);

/* Ends an ask without notifying its asker. */
void ask_end(struct ask *ask);
/* Like ask_end(), but finds the ask by the asker's own number. */
void ask_end_cookie(struct actor *asker, uint64_t cookie);
/* Like ask_end(), but for all asks of one asker. */
void ask_end_all(struct actor *asker);
/* Swaps the open asks of two askers whose workers swap places. */
void ask_swap_all(struct actor *a, struct actor *b);

/* Replaces one message of the ask by `n` copies. False: the asker has too many open. */
bool ask_share(struct ask *ask, uint32_t n);

/* Whether the ask waits for a reply of this type. */
bool ask_wants(const struct ask *ask, const struct topic *topic);

/* Ends an ask with a reply, which it takes over, or with a failure: without memory, later. */
void ask_answer(struct ask *ask, struct envelope *reply);
void ask_fail(struct ask *ask, int error, const char *reason);

/* One of its messages will not be handled: fails the ask if it was the last one. */
void ask_envelope_died(struct message_context *context, uint64_t handle, int error,
                       const char *reason);
