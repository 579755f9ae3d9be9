/* SPDX-License-Identifier: MIT */

/* Watches of descriptors, futex words and eventfds. */

#include "shared/base/fault.h"
#include "supervisor/loop/loop-slot.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#define CHUNK_SLOTS 128

struct watch_slot *loop_slot_find(const struct loop *loop, uint64_t id)
{
    uint32_t index = (uint32_t)id - 1;
    if (index / CHUNK_SLOTS >= loop->n_chunks)
        return NULL;
    struct watch_slot *slot = &loop->chunks[index / CHUNK_SLOTS][index % CHUNK_SLOTS];
    return slot->state != WATCH_FREE && slot->generation == (uint32_t)(id >> 32) ? slot : NULL;
}

static int slots_grow(struct loop *loop)
{
    if (fault_inject("alloc") < 0)
        return -ENOMEM;
    struct watch_slot **chunks =
        reallocarray(loop->chunks, loop->n_chunks + 1, sizeof(struct watch_slot *));
    if (!chunks)
        return -ENOMEM;
    loop->chunks = chunks;
    struct watch_slot *chunk = calloc(CHUNK_SLOTS, sizeof(struct watch_slot));
    if (!chunk)
        return -ENOMEM;
    for (uint32_t i = 0; i < CHUNK_SLOTS; i++) {
        chunk[i].index = loop->n_chunks * CHUNK_SLOTS + i;
        list_push_back(&loop->free, &chunk[i].link);
    }
    loop->chunks[loop->n_chunks++] = chunk;
    return 0;
}

void loop_free_slots(struct loop *loop)
{
    for (uint32_t i = 0; i < loop->n_chunks; i++)
        free(loop->chunks[i]);
    free(loop->chunks);
}

static int slot_take(struct loop *loop, struct watch_slot **ret)
{
    if (list_empty(&loop->free)) {
        int r = slots_grow(loop);
        if (r < 0)
            return r;
    }
    *ret = list_first_entry(&loop->free, struct watch_slot, link);
    list_unlink(&(*ret)->link);
    return 0;
}

/* Makes a slot in no list, for a watch that is not armed: of two slots for one watch only one could
 * be ended, and the other would fire into freed memory. 0 or -ENOMEM. */
static int slot_for(struct loop *loop, struct loop_watch *watch, enum watch_kind kind, loop_fn fn,
                    void *userdata, struct watch_slot **ret)
{
    assert(watch->id == 0);
    struct watch_slot *slot;
    int r = slot_take(loop, &slot);
    if (r < 0)
        return r;
    slot->kind = kind;
    slot->watch = watch;
    slot->fn = fn;
    slot->userdata = userdata;
    watch->id = loop_slot_id(slot);
    *ret = slot;
    return 0;
}

int loop_watch_fd(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events, loop_fn fn,
                  void *userdata)
{
    struct watch_slot *slot;
    int r = slot_for(loop, watch, WATCH_FD, fn, userdata, &slot);
    if (r < 0)
        return r;
    slot->fd = fd;
    slot->events = events;
    loop_slot_move(slot, events != 0 ? WATCH_PENDING : WATCH_RESTING,
                   events != 0 ? &loop->pending : NULL);
    return 0;
}

int loop_watch_word(struct loop *loop, struct loop_watch *watch, const _Atomic uint32_t *word,
                    uint32_t expected, loop_fn fn, void *userdata)
{
    struct watch_slot *slot;
    int r = slot_for(loop, watch, WATCH_WORD, fn, userdata, &slot);
    if (r < 0)
        return r;
    slot->word = word;
    slot->events = expected;
    loop_slot_move(slot, WATCH_PENDING, &loop->pending);
    return 0;
}

int loop_watch_eventfd(struct loop *loop, struct loop_watch *watch, int fd, loop_fn fn,
                       void *userdata)
{
    struct watch_slot *slot;
    int r = slot_for(loop, watch, WATCH_COUNTER, fn, userdata, &slot);
    if (r < 0)
        return r;
    slot->fd = fd;
    loop_slot_move(slot, WATCH_PENDING, &loop->pending);
    return 0;
}

int loop_watch_events(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
    struct watch_slot *slot = loop_slot_find(loop, watch->id);
    if (!slot)
        return -ENOENT;
    assert(slot->kind == WATCH_FD);
    slot->events = events;
    /* Unwanted events of an armed watch are dropped when they occur, which costs less than an
     * update for every change. */
    switch (slot->state) {
    case WATCH_RESTING:
        if (events != 0)
            loop_slot_move(slot, WATCH_PENDING, &loop->pending);
        break;
    case WATCH_PENDING:
        if (events == 0)
            loop_slot_move(slot, WATCH_RESTING, NULL);
        break;
    case WATCH_ARMED:
    case WATCH_UPDATE:
        if (events & ~slot->armed_events)
            loop_slot_move(slot, WATCH_UPDATE, &loop->updates);
        else
            loop_slot_move(slot, WATCH_ARMED, NULL);
        break;
    default:
        assert(false);
    }
    return 0;
}

void loop_unwatch(struct loop *loop, struct loop_watch *watch)
{
    if (watch->id == 0)
        return;
    struct watch_slot *slot = loop_slot_find(loop, watch->id);
    watch->id = 0;
    if (!slot)
        return;
    loop->backend->unwatch(loop, slot);
}

void loop_wake_word(struct loop *loop, const _Atomic uint32_t *word)
{
    loop->backend->wake_word(loop, word);
}

void loop_wake_socket(struct loop *loop, int fd)
{
    const uint64_t begin = spin_wake_begin(&loop->spin);
    wake_socket(fd);
    spin_wake_end(&loop->spin, begin);
}

static void deliver_fd(struct loop *loop, struct watch_slot *slot, int result)
{
    uint32_t events = result >= 0 ? (uint32_t)result : POLLNVAL;
    /* Nothing has happened to the descriptor: the kernel was short of something. */
    if (result == -ECANCELED || result == -EINTR || result == -EAGAIN || result == -ENOMEM)
        events = 0;
    events &= slot->events != 0 ? slot->events | POLLERR | POLLHUP | POLLNVAL : 0;
    if (events != 0)
        slot->fn(slot->userdata, events);
    /* True only for the same watch: a new watch in this slot is pending or paused. */
    if (slot->state == WATCH_RESTING && slot->events != 0)
        loop_slot_move(slot, WATCH_PENDING, &loop->pending);
}

void loop_slot_complete(struct loop *loop, struct watch_slot *slot, int result)
{
    if (slot->kind != WATCH_FD) {
        slot->result = result;
        loop_slot_move(slot, WATCH_FIRED, &loop->fired);
    } else {
        loop_slot_move(slot, WATCH_RESTING, NULL);
        deliver_fd(loop, slot, result);
    }
}

static void deliver_word(struct loop *loop, struct watch_slot *slot)
{
    loop_fn fn = slot->fn;
    void *userdata = slot->userdata;
    slot->watch->id = 0;
    loop_slot_give_back(loop, slot);
    fn(userdata, 0);
}

static void deliver_counter(struct loop *loop, struct watch_slot *slot)
{
    uint32_t generation = slot->generation;
    bool interrupted = slot->result == -EINTR || slot->result == -ECANCELED;
    loop_slot_move(slot, WATCH_RESTING, NULL);
    if (!interrupted)
        slot->fn(slot->userdata, slot->result == sizeof(uint64_t) ? POLLIN : POLLERR);
    if (slot->generation == generation && slot->state == WATCH_RESTING)
        loop_slot_move(slot, WATCH_PENDING, &loop->pending);
}

void loop_deliver_words(struct loop *loop)
{
    while (!list_empty(&loop->fired)) {
        struct watch_slot *slot = loop_slot_first(&loop->fired);
        if (slot->kind == WATCH_WORD)
            deliver_word(loop, slot);
        else
            deliver_counter(loop, slot);
    }
}
