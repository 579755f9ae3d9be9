/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the watches (loop-watch.c) and the back ends of the loop: a slot per
 * watch, and the back ends' operations on it. */

#include "supervisor/loop/loop-private.h"

enum watch_state {
    WATCH_FREE,
    WATCH_RESTING, /* not armed: paused, or in its callback */
    WATCH_PENDING, /* in loop.pending: to be armed at the end of the turn */
    WATCH_ARMED,   /* by the kernel */
    WATCH_UPDATE,  /* in loop.updates: armed for other events than are wanted */
    WATCH_CANCEL,  /* in loop.cancels: unwatched, still armed; io_uring only */
    WATCH_FIRED,   /* in loop.fired: not a descriptor, its callback is due in this turn */
};

enum watch_kind {
    WATCH_FD,
    WATCH_WORD,
    WATCH_COUNTER, /* an eventfd that the peer also holds */
};

struct watch_slot {
    struct list link; /* in the list of the state */
    enum watch_state state : 8;
    enum watch_kind kind : 8;
    bool in_set; /* the epoll set has `set_fd` */
    uint32_t index, generation;
    int fd;
    int set_fd;       /* `fd`, or a duplicate */
    int result;       /* of the read of a counter */
    uint64_t counter; /* the value read; slots live as long as the loop, so a late write is safe */
    uint32_t events;  /* wanted; of a word: the expected value */
    uint32_t armed_events; /* requested from the kernel */
    const _Atomic uint32_t *word;
    struct loop_watch *watch;
    loop_fn fn;
    void *userdata;
};

static inline uint64_t loop_slot_id(const struct watch_slot *slot)
{
    return (uint64_t)slot->generation << 32 | (slot->index + 1);
}

/* The slot at the head of a list; the list is not empty. */
static inline struct watch_slot *loop_slot_first(const struct list *list)
{
    return list_first_entry(list, struct watch_slot, link);
}

static inline void loop_slot_move(struct watch_slot *slot, enum watch_state state,
                                  struct list *list)
{
    list_unlink(&slot->link);
    slot->state = state;
    if (list)
        list_push_back(list, &slot->link);
}

static inline void loop_slot_give_back(struct loop *loop, struct watch_slot *slot)
{
    slot->generation++;
    list_unlink(&slot->link);
    slot->state = WATCH_FREE;
    /* The slot used last is the most likely to be in the cache. */
    list_push_front(&loop->free, &slot->link);
}

/* NULL if the slot has a new owner: the completion or the watch is stale. */
struct watch_slot *loop_slot_find(const struct loop *loop, uint64_t id);

/* Handles a back end's report about an armed watch: calls back for a descriptor; a word or an
 * eventfd waits for loop_deliver_words(). `result`: ready events or bytes read, or -errno. */
void loop_slot_complete(struct loop *loop, struct watch_slot *slot, int result);
