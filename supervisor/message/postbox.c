/* SPDX-License-Identifier: MIT */
#include "supervisor/message/postbox.h"

#include <assert.h>

void postbox_init(struct postbox *postbox)
{
    *postbox = (struct postbox){0};
    list_init(&postbox->messages);
    list_init(&postbox->answers);
    list_init(&postbox->stash);
}

void postbox_deinit(struct postbox *postbox)
{
    assert(postbox->n == 0 && list_empty(&postbox->answers));
    index_deinit(&postbox->stash_by_id);
}

bool postbox_has_room(const struct postbox *postbox, uint64_t bytes, uint64_t max,
                      uint64_t memory_max)
{
    /* One that is larger than the whole memory is let in alone, rather than never. */
    return postbox->n < max &&
           (postbox->n == 0 || (bytes <= memory_max && postbox->bytes <= memory_max - bytes));
}

static void postbox_count(struct postbox *postbox, const struct letter *letter)
{
    assert(!list_linked(&letter->link));
    postbox->n++;
    postbox->bytes += letter_bytes(letter);
}

void postbox_add(struct postbox *postbox, struct letter *letter)
{
    postbox_count(postbox, letter);
    letter->place = LETTER_WAITS;
    list_push_back(&postbox->messages, &letter->link);
}

void postbox_add_front(struct postbox *postbox, struct letter *letter)
{
    postbox_count(postbox, letter);
    letter->place = LETTER_WAITS;
    list_push_front(&postbox->messages, &letter->link);
}

static void postbox_count_answer(struct postbox *postbox, struct letter *letter)
{
    assert(!list_linked(&letter->link));
    letter->place = LETTER_ANSWERS;
    postbox->answer_bytes += letter_bytes(letter);
}

void postbox_add_answer(struct postbox *postbox, struct letter *letter)
{
    postbox_count_answer(postbox, letter);
    list_push_back(&postbox->answers, &letter->link);
}

void postbox_add_answer_front(struct postbox *postbox, struct letter *letter)
{
    postbox_count_answer(postbox, letter);
    list_push_front(&postbox->answers, &letter->link);
}

void postbox_add_stash(struct postbox *postbox, struct letter *letter)
{
    postbox_count(postbox, letter);
    postbox->n_stashed++;
    index_add(&postbox->stash_by_id, &letter->by_id, letter->id);
    letter->place = LETTER_STASHED;
    letter->in_hand = false;
    list_push_back(&postbox->stash, &letter->link);
}

void postbox_set_in_hand(struct postbox *postbox, struct letter *letter, bool in_hand)
{
    if (letter->in_hand != in_hand)
        postbox->n_in_hand += in_hand ? 1 : UINT64_MAX;
    letter->in_hand = in_hand;
}

/* All of it at `from` goes to the end of that of `to`, which keeps what it has. */
static void move_stash(struct postbox *from, struct postbox *to, struct list *stash)
{
    struct list *node;

    while ((node = list_first(stash))) {
        struct letter *letter = list_entry(node, struct letter, link);
        const bool in_hand = letter->in_hand;

        postbox_take(from, letter);
        postbox_add_stash(to, letter);
        postbox_set_in_hand(to, letter, in_hand);
    }
}

void postbox_swap_worker(struct postbox *a, struct postbox *b)
{
    const uint64_t bytes = a->answer_bytes;
    struct list stash = LIST_INIT(stash);

    list_swap(&a->answers, &b->answers);
    a->answer_bytes = b->answer_bytes;
    b->answer_bytes = bytes;
    list_swap(&a->stash, &stash);
    move_stash(b, a, &b->stash);
    move_stash(a, b, &stash);
}

struct letter *postbox_oldest(const struct postbox *postbox)
{
    struct list *node = list_first(&postbox->messages);

    return node ? list_entry(node, struct letter, link) : NULL;
}

struct letter *postbox_next(const struct postbox *postbox, bool paused)
{
    struct list *node = list_first(&postbox->answers);
    struct letter *answer = node ? list_entry(node, struct letter, link) : NULL;
    struct letter *message = paused ? NULL : postbox_oldest(postbox);

    if (!answer || !message)
        return answer ? answer : message;
    return answer->id < message->id ? answer : message;
}

struct letter *postbox_stashed(const struct postbox *postbox, uint64_t id)
{
    struct index_entry *entry = index_find(&postbox->stash_by_id, id);

    return entry ? list_entry(entry, struct letter, by_id) : NULL;
}

void postbox_take(struct postbox *postbox, struct letter *letter)
{
    list_unlink(&letter->link);
    if (letter->place == LETTER_ANSWERS) {
        postbox->answer_bytes -= letter_bytes(letter);
    } else {
        postbox->n--;
        postbox->bytes -= letter_bytes(letter);
    }
    if (letter->place == LETTER_STASHED) {
        index_remove(&postbox->stash_by_id, &letter->by_id);
        postbox->n_stashed--;
        postbox->n_in_hand -= letter->in_hand;
    }
    letter->place = LETTER_NOWHERE;
}

bool postbox_idle(const struct postbox *postbox)
{
    return list_empty(&postbox->messages) && list_empty(&postbox->answers);
}
