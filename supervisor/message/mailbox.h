/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages that wait in the supervisor for one actor, in three lists: messages; answers, which are
 * for the present worker, even while paused; and copies of messages that its worker stashed.
 * Messages and stash count towards MailboxMax= and MailboxMemoryMax=.
 */

#include "shared/base/list.h"
#include "supervisor/message/envelope.h"
#include <stdbool.h>
#include <stdint.h>

struct mailbox {
    struct list messages;
    struct list answers;
    struct list stash; /* in the order of stashing */
    struct index stash_by_id;
    uint64_t n, bytes; /* of messages and stash */
    uint64_t n_stashed;
    uint64_t n_in_hand; /* of the stash: their handlers have begun */
    uint64_t answer_bytes;
};

void mailbox_init(struct mailbox *mailbox);
void mailbox_deinit(struct mailbox *mailbox); /* empty */

/* Whether one more message of `bytes` is within the bounds; a mailbox that is empty takes any. */
bool mailbox_has_room(const struct mailbox *mailbox, uint64_t bytes, uint64_t max,
                      uint64_t memory_max);

/* These functions take the message over. */
void mailbox_add(struct mailbox *mailbox, struct envelope *envelope);
void mailbox_add_front(struct mailbox *mailbox, struct envelope *envelope);
void mailbox_add_answer(struct mailbox *mailbox, struct envelope *envelope);
void mailbox_add_answer_front(struct mailbox *mailbox, struct envelope *envelope);
void mailbox_add_stash(struct mailbox *mailbox, struct envelope *envelope);
/* Marks a message in the stash: its handler has begun. */
void mailbox_set_in_hand(struct mailbox *mailbox, struct envelope *envelope, bool in_hand);

/* Swaps the parts that belong to workers: answers and stash. */
void mailbox_swap_worker(struct mailbox *a, struct mailbox *b);

/*
 * The next message or answer in the order of sending; with `paused`, only answers. NULL = none. It
 * stays in the mailbox until mailbox_take().
 */
struct envelope *mailbox_next(const struct mailbox *mailbox, bool paused);
struct envelope *mailbox_oldest(const struct mailbox *mailbox);
struct envelope *mailbox_stashed(const struct mailbox *mailbox, uint64_t id);

/* Takes a message out of its list; the caller owns it. */
void mailbox_take(struct mailbox *mailbox, struct envelope *envelope);

bool mailbox_idle(const struct mailbox *mailbox); /* no message and no answer waits */
