/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shared by the parts of the loop: loop.c runs turns, loop-turn.c measures them, loop-watch.c keeps
 * what is waited for, loop-close.c what is to be released.
 */

#include "shared/ring/spin.h"
#include "supervisor/loop/loop-ring.h"
#include "supervisor/loop/loop.h"

struct watch_slot;

/* What is released when the turn is over: the ring may still hold it, or it takes long. */
struct loop_leftover {
    void *start; /* memory; NULL = the descriptor */
    size_t size;
    int fd;
};

struct loop {
    struct loop_ring ring;
    struct timer_queue timers;
    usec_t now;
    usec_t realtime; /* 0 = not asked for in this turn */
    bool stop;
    bool slept;            /* the last turn ended with a wait for something to happen */
    unsigned n_busy_turns; /* those in which anything was done */
    bool spinning;
    struct spin spin;
    struct loop_hot *told;   /* who was handed something last; NULL if he is gone, */
    struct loop_hot *asking; /* or when this try began: whose patience it is */

    /* loop-watch.c: slots never move once allocated, since lists link them. */
    struct watch_slot **chunks;
    uint32_t n_chunks;
    struct list free, pending, updates, cancels, fired;

    struct list hot, hot_pass;
    struct loop_hot *current_hot; /* whose callback runs; NULL if it left the set in it */
    struct list deferred, deferred_pass;
    struct list late; /* deferred as well, but not for every turn */
    usec_t late_since;

    struct loop_leftover *leftovers;
    unsigned n_leftovers, leftovers_allocated;

    /* loop-turn.c: the longest turn ever, of the period that began at `measured_since`, and of the
     * one before. */
    usec_t longest_turn, longest_recent[2];
    usec_t measured_since;
};

/* A turn has ended that began at loop->now, and is the longest of its period or begins another. */
void loop_note_turn(struct loop *loop, usec_t end);

#define LOOP_MEASURE_PERIOD (30 * USEC_PER_SEC)

/* A turn has ended that began at loop->now. */
static inline void loop_measure_turn(struct loop *loop, usec_t end)
{
    if (end - loop->now > loop->longest_recent[0] ||
        end - loop->measured_since >= LOOP_MEASURE_PERIOD)
        loop_note_turn(loop, end);
}

/* Releases the first `n`: those that were there before the last submission of cancellations. */
void loop_release_leftovers(struct loop *loop, unsigned n);

/* A completion: calls back (descriptors), or puts off until loop_deliver_words() (words). */
void loop_complete(struct loop *loop, uint64_t id, int result);
void loop_deliver_words(struct loop *loop);

/* Turns everything the callbacks asked for into submissions. False if some had to stay behind. */
bool loop_queue_submissions(struct loop *loop);

/* Frees the slots; nothing may be armed in the kernel any more. */
void loop_free_slots(struct loop *loop);
