/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What waits in the supervisor for one actor, in three lists: messages; answers, which belong to
 * the worker of now and also reach one that is paused; and a shadow of what its worker has stashed.
 * Messages and stash count towards MailboxMax= and MailboxMemoryMax=.
 */

#include "shared/list.h"
#include "supervisor/message/letter.h"
#include <stdbool.h>
#include <stdint.h>

struct postbox {
    struct list messages;
    struct list answers;
    struct list stash; /* in the order of stashing */
    struct index stash_by_id;
    uint64_t n, bytes; /* of messages and stash */
    uint64_t n_stashed;
    uint64_t n_in_hand; /* of these: their handlers wait for something */
    uint64_t answer_bytes;
};

void postbox_init(struct postbox *postbox);
void postbox_deinit(struct postbox *postbox); /* empty */

/* Whether one more of `bytes` would be within the bounds. */
bool postbox_has_room(const struct postbox *postbox, uint64_t bytes, uint64_t max,
                      uint64_t memory_max);

/* All take the letter over. */
void postbox_add(struct postbox *postbox, struct letter *letter);
void postbox_add_front(struct postbox *postbox, struct letter *letter);
void postbox_add_answer(struct postbox *postbox, struct letter *letter);
void postbox_add_answer_front(struct postbox *postbox, struct letter *letter);
void postbox_add_stash(struct postbox *postbox, struct letter *letter);
/* Of a letter in the stash: whether its handler has begun. */
void postbox_set_in_hand(struct postbox *postbox, struct letter *letter, bool in_hand);

/* Swaps what belongs to workers: answers and stash. */
void postbox_swap_worker(struct postbox *a, struct postbox *b);

/*
 * What is to go next: messages and answers in the order in which they were sent, with `paused`
 * answers alone. NULL = nothing. It stays where it is until postbox_take().
 */
struct letter *postbox_next(const struct postbox *postbox, bool paused);
struct letter *postbox_oldest(const struct postbox *postbox);
struct letter *postbox_stashed(const struct postbox *postbox, uint64_t id);

/* Takes a letter out of whichever list it is in: the caller owns it. */
void postbox_take(struct postbox *postbox, struct letter *letter);

bool postbox_idle(const struct postbox *postbox); /* no message and no answer waits */
