/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between loop-*.c: loop.c sets the loop up and keeps deferred functions,
 * loop-turn.c runs and measures the turns, loop-hot.c polls the hot set, loop-watch.c keeps the
 * watches, loop-close.c releases what the ring may still hold, and a back end (loop-backend.h)
 * waits. */

#include "shared/ring/spin.h"
#include "supervisor/loop/loop-backend.h"
#include "supervisor/loop/loop-epoll.h"
#include "supervisor/loop/loop-ring.h"
#include "supervisor/loop/loop.h"
#include <assert.h>

struct watch_slot;

/* A resource to release later: the ring may still hold it, or its release takes long. */
struct loop_leftover {
    void *start; /* memory; NULL = the descriptor */
    size_t size;
    int fd;
    uint64_t owner; /* of the descriptor, for loop->close() */
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
    usec_t leftovers_since;                /* the oldest one's turn */
    void (*close)(int fd, uint64_t owner); /* by loop_set_close() */

    /* loop-turn.c. The longest turn ever, of the period since `measured_since`, and of the one
     * before. */
    usec_t longest_turn, longest_recent[2];
    usec_t measured_since;
};

#define LOOP_MEASURE_PERIOD (30 * USEC_PER_SEC)

/* Measures the turn that began at loop->now. loop_note_turn(): the slow path of
 * loop_measure_turn(). */
void loop_note_turn(struct loop *loop, usec_t end);
static inline void loop_measure_turn(struct loop *loop, usec_t end)
{
    if (end - loop->now > loop->longest_recent[0] ||
        end - loop->measured_since >= LOOP_MEASURE_PERIOD)
        loop_note_turn(loop, end);
}

/* Moves everything from `from` to `to`, which is empty. */
static inline void loop_take_all(struct list *to, struct list *from)
{
    assert(list_empty(to));
    if (list_empty(from))
        return;
    list_push_front(from, to);
    list_unlink(from);
}

/* Polls all sources. Returns whether there was any work. */
bool loop_run_hot(struct loop *loop);
/* Cools the quiet sources, or all. */
void loop_cool_hot(struct loop *loop, bool all);

/* The restart of a worker comes before the release of its predecessor's resources. */
#define LOOP_LEFTOVERS_DELAY (2 * USEC_PER_MSEC)

/* When to release the leftovers; USEC_INFINITY = there are none. */
static inline usec_t loop_leftovers_due(const struct loop *loop)
{
    return loop->n_leftovers > 0 ? usec_add(loop->leftovers_since, LOOP_LEFTOVERS_DELAY)
                                 : USEC_INFINITY;
}
/* Releases all. Everything must be armed (loop_backend.arm()): the ring has let go of them. */
void loop_release_leftovers(struct loop *loop);

/* Calls back for the words and eventfds in this turn's events. */
void loop_deliver_words(struct loop *loop);

/* Frees the slots. The back end is gone already. */
void loop_free_slots(struct loop *loop);
