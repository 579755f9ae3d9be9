/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Open asks: who waits for which reply, until when. An ask ends once: with the first reply whose
 * type fits, with its failure, or with its asker. Handles are index and generation: one that has
 * ended finds nothing.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/protocol/topic.h"
#include "supervisor/loop/timer.h"
#include "supervisor/message/ask/recipients.h"
#include "supervisor/message/envelope.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct message_context;

/* `reply` is a PROTOCOL_REPLIED message to be looked at, or NULL: then `error` (errno) and
 * `reason`. */
typedef void (*ask_done_fn)(void *userdata, const struct envelope *reply, int error,
                            const char *reason);

struct ask {
    struct list link;             /* in the asker's list, or the free list */
    struct index_entry by_cookie; /* in the asker's index */
    struct message_context *context;
    uint64_t handle; /* 0 = free */
    uint32_t index, generation;
    bool quiet;          /* `done` is not told of its failure: whoever asks is being told now */
    struct actor *asker; /* NULL = `done` is called */
    uint64_t asked_by;   /* its reference, also when it has ended; 0 = nobody's */
    uint64_t cookie;     /* the asker's own */
    uint64_t recipient;  /* to whom it was handed: who may reply; 0 = not handed over yet */
    uint32_t copies;     /* messages on their way: exchanges make more */
    uint32_t weight;     /* so many asks it counts for its asker */
    struct recipients *recipients; /* there are, or were, several: all to whom it was handed */
    struct timer timer;
    ask_done_fn done;
    void *userdata;
    uint8_t wanted_size;
    char wanted[TOPIC_TYPE_MAX];
};

struct ask_table {
    struct ask **entries;
    uint32_t n_entries, n_allocated;
    struct list free;
    uint64_t n_open;
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

/* Who asked, also when it has ended, as long as no other has its place; 0 = not known. */
uint64_t ask_asked_by(const struct ask_table *table, uint64_t handle);

/* Ends it without a word. */
void ask_end(struct ask *ask);
/* The asker's own number for it. */
void ask_end_cookie(struct actor *asker, uint64_t cookie);
/* All of one asker's: its worker is dead. */
void ask_end_all(struct actor *asker);

/* Two askers swap their open asks, as their workers swap places. */
void ask_swap_all(struct actor *a, struct actor *b);

/* There are `n` messages of it instead of one. 0, -EBUSY (its asker has too many open), -ENOMEM. */
int ask_share(struct ask *ask, uint32_t n);
/* One of its messages was written into an inbox: who may reply. */
void ask_handed(struct ask *ask, uint64_t actor);

/* Whether a reply of this type, from this actor, is what is waited for. */
bool ask_wants(const struct ask *ask, const struct topic *topic);
bool ask_may_reply(const struct ask *ask, uint64_t actor);

/* Ends it with a reply (moved from; frees it), or with a failure. */
void ask_answer(struct ask *ask, struct envelope *reply);
void ask_fail(struct ask *ask, int error, const char *reason);

/* One of its messages will be handled by nobody: fails the ask if it was the last. */
void ask_envelope_died(struct message_context *context, uint64_t handle, int error,
                       const char *reason);
