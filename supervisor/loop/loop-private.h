/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between loop-*.c: loop.c sets the loop up, keeps deferred functions, and
 * releases what the ring may still hold; loop-turn.c runs and measures the turns and polls the hot
 * set; loop-watch.c keeps the watches; and a back end waits. */

#include "shared/ring/spin.h"
#include "supervisor/loop/loop.h"
#include <assert.h>
#include <liburing.h>
#include <sys/epoll.h>

struct watch_slot;

/* A back end. The loop chooses one when it is set up; watches, turns, timers and the hot set do not
 * depend on the choice. */
struct loop_backend {
    void (*deinit)(struct loop *loop);

    /* Makes the kernel wait for every watch in loop->pending, loop->updates and loop->cancels.
     * False if some must wait for the next turn; watches that the kernel has no room for are tried
     * again. */
    bool (*arm)(struct loop *loop);
    /* Ends a watch, armed or not. Its slot and its descriptor may be reused immediately. */
    void (*unwatch)(struct loop *loop, struct watch_slot *slot);

    /* Fetches events, without sleeping. A back end for which this is not cheap may skip it unless
     * `all` is set. 0 or -errno. */
    int (*fetch)(struct loop *loop, bool all);
    /* Like fetch(), but sleeps until an event, or for `timeout` (USEC_INFINITY = no limit). */
    int (*sleep)(struct loop *loop, usec_t timeout);
    /* Whether fetch() might find something, without a system call. NULL = not known. */
    bool (*may_fetch)(const struct loop *loop);
    /* Whether there are fetched events that were not delivered yet. */
    bool (*has_events)(const struct loop *loop);
    /* Delivers fetched events to loop_slot_complete(). Returns whether there were any. */
    bool (*pass_on)(struct loop *loop);

    /* Implements loop_wake_word(). */
    void (*wake_word)(struct loop *loop, const _Atomic uint32_t *word);
};

extern const struct loop_backend loop_backend_ring, loop_backend_epoll;

/* The io_uring, tested before use. */
struct loop_ring {
    struct io_uring uring;
    bool futex; /* IORING_OP_FUTEX_WAIT and _WAKE work */
};

/*
 * The epoll, for where io_uring is not available. Descriptors are watched level-triggered and stay
 * in the set until they are unwatched or paused. Eventfds of peers are watched edge-triggered and
 * never read, so nothing can block: each write wakes, whatever the counter says. There are no
 * words: peers are woken through descriptors.
 */
#define LOOP_EPOLL_EVENTS 128

struct loop_epoll {
    int fd;
    struct epoll_event events[LOOP_EPOLL_EVENTS]; /* fetched and not delivered yet */
    int n_events;
    usec_t fetched_at;  /* loop->now of the last look */
    struct list failed; /* watches that the kernel refuses; reported in every turn */
    usec_t retry_at;    /* the kernel has no room for some in loop->pending or ->updates */
};

/* A resource to release later: the ring may still hold it, or its release takes long. */
struct loop_leftover {
    void *start; /* memory; NULL = the descriptor */
    size_t size;
    int fd;
    uint64_t owner; /* of the descriptor, for loop->close() */
    bool elsewhere; /* likewise */
};

struct loop {
    const struct loop_backend *backend;
    union {
        struct loop_ring ring;
        struct loop_epoll epoll;
    };
    enum wake_backend wake;
    struct timer_queue timers;
    usec_t now;
    usec_t realtime; /* 0 = not read in this turn */
    bool stop;
    bool slept;            /* the last turn ended asleep */
    unsigned n_busy_turns; /* turns with work, ever */
    usec_t awake_until;    /* no sleep before */
    bool spinning;
    struct spin spin;
    struct loop_hot *told;   /* the source of the last loop_told(); NULL if it is gone */
    struct loop_hot *asking; /* `told` at the start of this spin; sets its length */

    /* loop-watch.c. Slots never move, since lists link them. */
    struct watch_slot **chunks;
    uint32_t n_chunks;
    struct list free, pending, updates, cancels, fired;

    struct list hot, hot_pass;
    struct loop_hot *current_hot; /* source whose callback runs; NULL if it has left the set */
    struct list deferred, deferred_pass;
    struct list late; /* by loop_defer_late() */
    usec_t late_since;

    struct loop_leftover *leftovers;
    unsigned n_leftovers, leftovers_allocated;
    usec_t leftovers_since;                                /* the oldest one's turn */
    void (*close)(int fd, uint64_t owner, bool elsewhere); /* by loop_set_close() */

    /* loop-turn.c. The longest turn ever, of the period since `measured_since`, and of the one
     * before. */
    usec_t longest_turn, longest_recent[2];
    usec_t measured_since;
};

/* Moves everything from `from` to `to`, which is empty. */
static inline void loop_take_all(struct list *to, struct list *from)
{
    assert(list_empty(to));
    if (list_empty(from))
        return;
    list_push_front(from, to);
    list_unlink(from);
}

/* Releases all. Everything must be armed (loop_backend.arm()): the ring has let go of them. */
void loop_release_leftovers(struct loop *loop);

/* Calls back for the words and eventfds in this turn's events. */
void loop_deliver_words(struct loop *loop);

/* Frees the slots. The back end is gone already. */
void loop_free_slots(struct loop *loop);

/* Set up a back end. Return 0, -errno, or LOOP_E_UNAVAILABLE with `*ret_reason`. `force_eventfd`:
 * no futex operations. */
int loop_ring_init(struct loop_ring *ring, unsigned entries, bool force_eventfd,
                   const char **ret_reason);
int loop_epoll_init(struct loop_epoll *epoll);

/* Fill in a futex operation, for which liburing 2.3 has no helper. */
void loop_ring_prep_futex_wait(struct io_uring_sqe *sqe, const void *word, unsigned expected);
void loop_ring_prep_futex_wake(struct io_uring_sqe *sqe, const void *word, unsigned n_waiters);
