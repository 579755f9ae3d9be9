/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages that wait in the supervisor for one actor, in three lists: messages; answers, which are
 * for the present worker, even while paused; and copies of messages that its worker stashed.
 * Messages and stash count towards MailboxMax= and MailboxMemoryMax=. The messages that come once a
 * bound is half reached are also counted for the groups of their senders: see mailbox_has_room().
 */

#include "shared/base/list.h"
#include "shared/base/share.h"
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
    struct shares shares; /* of the groups of senders, by MAILBOX_SHARE_*: some of the messages */
};

enum {
    MAILBOX_SHARE_N,
    MAILBOX_SHARE_BYTES,
};

void mailbox_init(struct mailbox *mailbox);
void mailbox_deinit(struct mailbox *mailbox); /* empty */

/* Whether one more message of `bytes` is within the bounds; a mailbox that is empty takes any. Only
 * half of what is counted for other groups than that of `share` counts, so that no group fills the
 * mailbox for all others; NULL = all counts. */
bool mailbox_has_room(const struct mailbox *mailbox, const struct share *share, uint64_t bytes,
                      uint64_t max, uint64_t memory_max);

/* These functions take the message over. */
void mailbox_add(struct mailbox *mailbox, struct envelope *envelope);
/* Counts a message that waits for the group of its sender. Takes over a reference to the share. */
void mailbox_count_for(struct envelope *envelope, struct share *share);
void mailbox_add_front(struct mailbox *mailbox, struct envelope *envelope);
void mailbox_add_answer(struct mailbox *mailbox, struct envelope *envelope);
void mailbox_add_answer_front(struct mailbox *mailbox, struct envelope *envelope);
void mailbox_add_stash(struct mailbox *mailbox, struct envelope *envelope);
/* Marks a message in the stash: its handler has begun. */
void mailbox_set_in_hand(struct mailbox *mailbox, struct envelope *envelope, bool in_hand);

/* Moves all messages that wait to an empty list. Their `share` is not valid any more. */
void mailbox_give_away(struct mailbox *mailbox, struct list *ret);
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
