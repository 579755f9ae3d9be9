/* SPDX-License-Identifier: MIT */
#include "supervisor/message/mailbox.h"

#include "shared/base/cleanup.h"
#include <assert.h>

void mailbox_init(struct mailbox *mailbox)
{
    *mailbox = (struct mailbox){0};
    list_init(&mailbox->messages);
    list_init(&mailbox->answers);
    list_init(&mailbox->stash);
    shares_init(&mailbox->shares);
}

void mailbox_deinit(struct mailbox *mailbox)
{
    assert(mailbox->n == 0 && list_empty(&mailbox->answers));
    index_deinit(&mailbox->stash_by_id);
    shares_deinit(&mailbox->shares);
}

/* Returns what counts of `all` for the group of this share. */
static uint64_t count_for(const struct share *share, unsigned kind, uint64_t all)
{
    return share ? all - (share->shares->used[kind] - share->used[kind]) / 2 : all;
}

bool mailbox_has_room(const struct mailbox *mailbox, const struct share *share, uint64_t bytes,
                      uint64_t max, uint64_t memory_max)
{
    /* A message larger than MailboxMemoryMax= is admitted into an empty mailbox: otherwise it never
     * would be. */
    return count_for(share, MAILBOX_SHARE_N, mailbox->n) < max &&
           (mailbox->n == 0 ||
            (bytes <= memory_max &&
             count_for(share, MAILBOX_SHARE_BYTES, mailbox->bytes) <= memory_max - bytes));
}

static void mailbox_count(struct mailbox *mailbox, struct envelope *envelope,
                          enum envelope_place place)
{
    assert(!list_linked(&envelope->link));
    envelope->place = place;
    mailbox->n += place != ENVELOPE_ANSWERS;
    *(place == ENVELOPE_ANSWERS ? &mailbox->answer_bytes : &mailbox->bytes) +=
        envelope_bytes(envelope);
}

void mailbox_add(struct mailbox *mailbox, struct envelope *envelope)
{
    mailbox_count(mailbox, envelope, ENVELOPE_WAITS);
    list_push_back(&mailbox->messages, &envelope->link);
}

void mailbox_count_for(struct envelope *envelope, struct share *share)
{
    envelope->share = share;
    list_push_back(&share->entries[0], &envelope->share_link);
    share_add(share, MAILBOX_SHARE_N, 1);
    share_add(share, MAILBOX_SHARE_BYTES, envelope_bytes(envelope));
}

static void discount(struct envelope *envelope)
{
    if (!envelope->share)
        return;
    list_unlink(&envelope->share_link);
    share_sub(envelope->share, MAILBOX_SHARE_N, 1);
    share_sub(envelope->share, MAILBOX_SHARE_BYTES, envelope_bytes(envelope));
    envelope->share = share_unref(envelope->share);
}

void mailbox_give_away(struct mailbox *mailbox, struct list *ret)
{
    shares_clear(&mailbox->shares);
    list_append(ret, &mailbox->messages);
    list_init(&mailbox->messages);
    mailbox->n = mailbox->bytes = 0;
}

void mailbox_add_front(struct mailbox *mailbox, struct envelope *envelope)
{
    mailbox_count(mailbox, envelope, ENVELOPE_WAITS);
    list_push_front(&mailbox->messages, &envelope->link);
}

void mailbox_add_answer(struct mailbox *mailbox, struct envelope *envelope)
{
    mailbox_count(mailbox, envelope, ENVELOPE_ANSWERS);
    list_push_back(&mailbox->answers, &envelope->link);
}

void mailbox_add_answer_front(struct mailbox *mailbox, struct envelope *envelope)
{
    mailbox_count(mailbox, envelope, ENVELOPE_ANSWERS);
    list_push_front(&mailbox->answers, &envelope->link);
}

void mailbox_add_stash(struct mailbox *mailbox, struct envelope *envelope)
{
    mailbox_count(mailbox, envelope, ENVELOPE_STASHED);
    mailbox->n_stashed++;
    index_add(&mailbox->stash_by_id, &envelope->by_id, envelope->id);
    envelope->in_hand = false;
    list_push_back(&mailbox->stash, &envelope->link);
}

void mailbox_set_in_hand(struct mailbox *mailbox, struct envelope *envelope, bool in_hand)
{
    if (envelope->in_hand != in_hand)
        mailbox->n_in_hand += in_hand ? 1 : UINT64_MAX;
    envelope->in_hand = in_hand;
}

/* Appends `stash`, which belongs to `from`, to the stash of `to`. */
static void move_stash(struct mailbox *from, struct mailbox *to, struct list *stash)
{
    list_until_empty (envelope, stash, struct envelope, link) {
        const bool in_hand = envelope->in_hand;

        mailbox_take(from, envelope);
        mailbox_add_stash(to, envelope);
        mailbox_set_in_hand(to, envelope, in_hand);
    }
}

void mailbox_swap_worker(struct mailbox *a, struct mailbox *b)
{
    struct list stash = LIST_INIT(stash);

    list_swap(&a->answers, &b->answers);
    SWAP(a->answer_bytes, b->answer_bytes);
    list_swap(&a->stash, &stash);
    move_stash(b, a, &b->stash);
    move_stash(a, b, &stash);
}

struct envelope *mailbox_oldest(const struct mailbox *mailbox)
{
    return list_first_entry(&mailbox->messages, struct envelope, link);
}

struct envelope *mailbox_next(const struct mailbox *mailbox, bool paused)
{
    struct envelope *answer = list_first_entry(&mailbox->answers, struct envelope, link);
    struct envelope *message = paused ? NULL : mailbox_oldest(mailbox);

    if (!answer || !message)
        return answer ? answer : message;
    return answer->id < message->id ? answer : message;
}

struct envelope *mailbox_stashed(const struct mailbox *mailbox, uint64_t id)
{
    return index_find_entry(&mailbox->stash_by_id, id, struct envelope, by_id);
}

void mailbox_take(struct mailbox *mailbox, struct envelope *envelope)
{
    discount(envelope);
    list_unlink(&envelope->link);
    if (envelope->place == ENVELOPE_ANSWERS) {
        mailbox->answer_bytes -= envelope_bytes(envelope);
    } else {
        mailbox->n--;
        mailbox->bytes -= envelope_bytes(envelope);
    }
    if (envelope->place == ENVELOPE_STASHED) {
        index_remove(&mailbox->stash_by_id, &envelope->by_id);
        mailbox->n_stashed--;
        mailbox->n_in_hand -= envelope->in_hand;
    }
    envelope->place = ENVELOPE_NOWHERE;
}

bool mailbox_idle(const struct mailbox *mailbox)
{
    return list_empty(&mailbox->messages) && list_empty(&mailbox->answers);
}
