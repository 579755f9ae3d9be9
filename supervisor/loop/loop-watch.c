/* SPDX-License-Identifier: MIT */

/* Watches descriptors, futex words and eventfds through the ring. */

#include "shared/base/fault.h"
#include "supervisor/loop/loop-private.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#define CHUNK_SLOTS 128

enum watch_state {
    WATCH_FREE,
    WATCH_RESTING, /* not armed: paused, or in its callback */
    WATCH_PENDING, /* in loop.pending: to be armed with the next submission */
    WATCH_ARMED,   /* by the kernel */
    WATCH_UPDATE,  /* in loop.updates: armed for other events than are wanted */
    WATCH_CANCEL,  /* in loop.cancels: unwatched, still armed */
    WATCH_FIRED,   /* in loop.fired: not a descriptor, its callback is due in this turn */
};

enum watch_kind {
    WATCH_FD,
    WATCH_WORD,
    WATCH_COUNTER, /* an eventfd that is read, not polled */
};

struct watch_slot {
    struct list link; /* in the list that the state says */
    enum watch_state state;
    uint32_t index, generation;
    enum watch_kind kind;
    int fd;
    int result;       /* of the read of a counter */
    uint64_t counter; /* what it read; slots live as long as the loop, so a late write is safe */
    uint32_t events;  /* wanted; of a word: the expected value */
    uint32_t armed_events; /* what the kernel was asked for */
    const _Atomic uint32_t *word;
    struct loop_watch *watch;
    loop_fn fn;
    void *userdata;
};

static uint64_t slot_id(const struct watch_slot *slot)
{
    return (uint64_t)slot->generation << 32 | (slot->index + 1);
}

/* NULL if the slot has a new owner: the completion or the watch is stale. */
static struct watch_slot *slot_find(const struct loop *loop, uint64_t id)
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
    *ret = list_entry(list_first(&loop->free), struct watch_slot, link);
    list_unlink(&(*ret)->link);
    return 0;
}

static void slot_move(struct watch_slot *slot, enum watch_state state, struct list *list)
{
    list_unlink(&slot->link);
    slot->state = state;
    if (list)
        list_push_back(list, &slot->link);
}

static void slot_give_back(struct loop *loop, struct watch_slot *slot)
{
    slot->generation++;
    list_unlink(&slot->link);
    slot->state = WATCH_FREE;
    /* The slot used last is the most likely to be in the cache. */
    list_push_front(&loop->free, &slot->link);
}

/* NULL if the queue is full even after a submission: the caller tries again in the next turn. */
static struct io_uring_sqe *get_sqe(struct loop *loop)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring.uring);
    if (!sqe) {
        (void)io_uring_submit(&loop->ring.uring);
        sqe = io_uring_get_sqe(&loop->ring.uring);
    }
    return sqe;
}

/* A slot in no list, for a watch that is not armed: of two slots for one watch only one could be
 * ended, and the other would fire into freed memory. 0 or -ENOMEM. */
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
    watch->id = slot_id(slot);
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
    slot_move(slot, events != 0 ? WATCH_PENDING : WATCH_RESTING,
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
    slot_move(slot, WATCH_PENDING, &loop->pending);
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
    slot_move(slot, WATCH_PENDING, &loop->pending);
    return 0;
}

int loop_watch_events(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
    struct watch_slot *slot = slot_find(loop, watch->id);
    if (!slot)
        return -ENOENT;
    assert(slot->kind == WATCH_FD);
    slot->events = events;
    /* Unwanted events of an armed watch are dropped when they come, which costs less than an update
     * for every change. */
    switch (slot->state) {
    case WATCH_RESTING:
        if (events != 0)
            slot_move(slot, WATCH_PENDING, &loop->pending);
        break;
    case WATCH_PENDING:
        if (events == 0)
            slot_move(slot, WATCH_RESTING, NULL);
        break;
    case WATCH_ARMED:
    case WATCH_UPDATE:
        if (events & ~slot->armed_events)
            slot_move(slot, WATCH_UPDATE, &loop->updates);
        else
            slot_move(slot, WATCH_ARMED, NULL);
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
    struct watch_slot *slot = slot_find(loop, watch->id);
    watch->id = 0;
    if (!slot)
        return;
    if (slot->state == WATCH_ARMED || slot->state == WATCH_UPDATE)
        slot_move(slot, WATCH_CANCEL, &loop->cancels);
    else
        slot_give_back(loop, slot);
}

void loop_wake_word(struct loop *loop, const _Atomic uint32_t *word)
{
    struct io_uring_sqe *sqe = loop->ring.futex ? get_sqe(loop) : NULL;
    if (!sqe) {
        wake_futex_wake(word);
        return;
    }
    loop_ring_prep_futex_wake(sqe, (const void *)word, INT_MAX);
    sqe->flags |= loop->ring.quiet_success;
}

void loop_wake_eventfd(struct loop *loop, int fd)
{
    static const uint64_t one = 1;
    struct io_uring_sqe *sqe = get_sqe(loop);
    if (!sqe)
        return wake_eventfd_wake(fd);
    io_uring_prep_write(sqe, fd, &one, sizeof(one), 0);
    sqe->flags |= loop->ring.quiet_success;
    sqe->user_data = 0;
    /* At once: the owner may close the descriptor in this turn, and its number may be reused before
     * the turn's submission. */
    (void)io_uring_submit(&loop->ring.uring);
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
    /* True for the same watch only: a new one in this slot is pending or paused. */
    if (slot->state == WATCH_RESTING && slot->events != 0)
        slot_move(slot, WATCH_PENDING, &loop->pending);
}

void loop_complete(struct loop *loop, uint64_t id, int result)
{
    struct watch_slot *slot = slot_find(loop, id);
    if (!slot)
        return;
    if (slot->state == WATCH_CANCEL) {
        slot_give_back(loop, slot);
    } else if (slot->kind != WATCH_FD) {
        slot->result = result;
        slot_move(slot, WATCH_FIRED, &loop->fired);
    } else {
        slot_move(slot, WATCH_RESTING, NULL);
        deliver_fd(loop, slot, result);
    }
}

static void deliver_word(struct loop *loop, struct watch_slot *slot)
{
    loop_fn fn = slot->fn;
    void *userdata = slot->userdata;
    slot->watch->id = 0;
    slot_give_back(loop, slot);
    fn(userdata, 0);
}

static void deliver_counter(struct loop *loop, struct watch_slot *slot)
{
    uint32_t generation = slot->generation;
    bool interrupted = slot->result == -EINTR || slot->result == -ECANCELED;
    slot_move(slot, WATCH_RESTING, NULL);
    if (!interrupted)
        slot->fn(slot->userdata, slot->result == sizeof(uint64_t) ? POLLIN : POLLERR);
    if (slot->generation == generation && slot->state == WATCH_RESTING)
        slot_move(slot, WATCH_PENDING, &loop->pending);
}

void loop_deliver_words(struct loop *loop)
{
    while (!list_empty(&loop->fired)) {
        struct watch_slot *slot = list_entry(list_first(&loop->fired), struct watch_slot, link);
        if (slot->kind == WATCH_WORD)
            deliver_word(loop, slot);
        else
            deliver_counter(loop, slot);
    }
}

static void arm(struct watch_slot *slot, struct io_uring_sqe *sqe)
{
    switch (slot->kind) {
    case WATCH_FD:
        io_uring_prep_poll_add(sqe, slot->fd, slot->events);
        slot->armed_events = slot->events;
        break;
    case WATCH_WORD:
        loop_ring_prep_futex_wait(sqe, (const void *)slot->word, slot->events);
        break;
    case WATCH_COUNTER:
        io_uring_prep_read(sqe, slot->fd, &slot->counter, sizeof(slot->counter), 0);
        break;
    }
    sqe->user_data = slot_id(slot);
}

/* Fails if the poll has completed meanwhile; then its completion arms it for the new events. */
static void update(struct loop *loop, struct watch_slot *slot, struct io_uring_sqe *sqe)
{
    io_uring_prep_poll_update(sqe, slot_id(slot), 0, slot->events, IORING_POLL_UPDATE_EVENTS);
    sqe->flags |= loop->ring.quiet_success;
    sqe->user_data = 0;
    slot->armed_events = slot->events;
}

bool loop_queue_submissions(struct loop *loop)
{
    struct io_uring_sqe *sqe;
    while (!list_empty(&loop->cancels)) {
        struct watch_slot *slot = list_entry(list_first(&loop->cancels), struct watch_slot, link);
        if (!(sqe = get_sqe(loop)))
            return false;
        io_uring_prep_cancel64(sqe, slot_id(slot), 0);
        sqe->flags |= loop->ring.quiet_success;
        sqe->user_data = 0;
        slot_give_back(loop, slot);
    }
    while (!list_empty(&loop->updates)) {
        struct watch_slot *slot = list_entry(list_first(&loop->updates), struct watch_slot, link);
        if (!(sqe = get_sqe(loop)))
            return false;
        update(loop, slot, sqe);
        slot_move(slot, WATCH_ARMED, NULL);
    }
    while (!list_empty(&loop->pending)) {
        struct watch_slot *slot = list_entry(list_first(&loop->pending), struct watch_slot, link);
        if (!(sqe = get_sqe(loop)))
            return false;
        arm(slot, sqe);
        slot_move(slot, WATCH_ARMED, NULL);
    }
    return true;
}
