/* SPDX-License-Identifier: MIT */
#pragma once

/* The event loop: the only place where the supervisor sleeps, and the only user of io_uring. Where
 * io_uring is not available, it uses epoll.
 *
 * The loop waits for readiness (poll on descriptors, futex waits on cursor words); the owner makes
 * the non-blocking call itself. The kernel never holds an owner's buffer, so an owner may go away
 * at any time. A generation number in the user data identifies stale completions.
 *
 * One turn: completions (descriptors before rings), the hot set, due timers, deferred functions,
 * one submission. Timers are deadlines, so everything that has arrived by then is read before they
 * fire, even after the process was stopped for a while. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "shared/ring/wake.h"
#include "supervisor/loop/timer.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

enum loop_kind {
    LOOP_ANY, /* io_uring where it is available, else epoll */
    LOOP_IO_URING,
    LOOP_EPOLL,
};

/* "io_uring" or "epoll". */
const char *loop_kind_to_string(enum loop_kind kind);
/* The reverse of loop_kind_to_string(). 0 or -EINVAL. */
int loop_kind_from_string(const char *text, enum loop_kind *ret);

enum {
    _LOOP_E_SUCCESS,
    LOOP_E_UNAVAILABLE, /* io_uring: not in this kernel, switched off, or forbidden by a seccomp
                           filter */
};

struct loop_options {
    enum loop_kind kind; /* with LOOP_ANY, $TROUPE_LOOP may name another, for tests */
    unsigned entries;    /* submission queue; 0 = 1024 */
    bool force_eventfd;  /* as if the kernel had no futex operations */
};

/* 0, -errno, or only with LOOP_IO_URING LOOP_E_UNAVAILABLE. `*ret_reason`: why io_uring is not
 * available, if it was tried: one line that says what to change (kernel.io_uring_disabled, a
 * seccomp filter, a kernel without io_uring, RLIMIT_MEMLOCK), static text; else NULL. */
int loop_new(struct loop **ret, const struct loop_options *options, const char **ret_reason);
void loop_free(struct loop *loop); /* NULL allowed */

/* LOOP_IO_URING or LOOP_EPOLL. */
enum loop_kind loop_kind(const struct loop *loop);

/* WAKE_FUTEX if io_uring has IORING_OP_FUTEX_WAIT and WAKE and eventfds are not forced. */
enum wake_backend loop_wake_backend(const struct loop *loop);

/* Makes loop_wake_backend() return WAKE_EVENTFD from now on. Words can still be watched if they
 * could before. */
void loop_use_eventfds(struct loop *loop);

/* Whether there may be an event of a watched descriptor that its callback does not know yet. Costs
 * no system call, so it is always true with epoll; with io_uring it is rarely true without such an
 * event, and never false with one. */
bool loop_has_news(const struct loop *loop);

/* The time at the beginning of this turn. */
usec_t loop_now(const struct loop *loop);
/* Call before the first turn, after work that may have taken long: timers count from this time. */
void loop_update_now(struct loop *loop);
/* CLOCK_REALTIME, read at most once a turn: for times that are noted with every job. */
usec_t loop_realtime(struct loop *loop);
struct timer_queue *loop_timers(struct loop *loop);

/* The longest turns, without sleep: how long clients may have waited. */
struct loop_turns {
    unsigned n;     /* turns with work, modulo 2^32 */
    usec_t longest; /* since the start */
    usec_t recent;  /* in the last minute or so */
};
struct loop_turns loop_turns(const struct loop *loop);

/* Sets how long to poll the hot set without work before sleeping; 0, the default = not at all. */
void loop_set_spin(struct loop *loop, usec_t limit);

/* Does not sleep before `until` (monotonic), unless another process needs the CPU: for an event
 * that occurs sooner than a sleeping process wakes up. No effect if the limit of loop_set_spin() is
 * 0. */
void loop_stay_awake(struct loop *loop, usec_t until);

/* Runs turns until loop_stop(). 0 or the -errno that made it impossible to continue. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* A wait, armed or not (id 0). Embedded in its owner, which ends it with loop_unwatch(). It must
 * not be armed twice (asserted). */
typedef void (*loop_fn)(void *userdata, uint32_t events);

struct loop_watch {
    uint64_t id;
};

/* clang-format off */
#define LOOP_WATCH_NULL {.id = 0}
/* clang-format on */

/* Level-triggered: `fn` is called with the ready poll(2) events, once a turn, until loop_unwatch().
 * `fn` may unwatch or free its owner. 0 or -ENOMEM; a descriptor that the kernel refuses to poll is
 * reported as POLLNVAL. */
int loop_watch_fd(struct loop *loop, struct loop_watch *watch, int fd, uint32_t events, loop_fn fn,
                  void *userdata);

/* Changes the events of a descriptor's watch; 0 pauses it: nothing is reported, not even errors. */
int loop_watch_events(struct loop *loop, struct loop_watch *watch, uint32_t events);

/* One-shot: `fn` is called with events 0 when *word differs from `expected` or its writer wakes it.
 * The mapping may go away before. WAKE_FUTEX only. */
int loop_watch_word(struct loop *loop, struct loop_watch *watch, const _Atomic uint32_t *word,
                    uint32_t expected, loop_fn fn, void *userdata);

/* Watches an eventfd in blocking mode that a peer also holds. A read(2) here could block even after
 * a poll, since the peer may read first and clear O_NONBLOCK: io_uring reads it, epoll does not
 * change the count. `fn` is called with POLLIN after each write to it until loop_unwatch(), with
 * POLLERR if it cannot be watched. */
int loop_watch_eventfd(struct loop *loop, struct loop_watch *watch, int fd, loop_fn fn,
                       void *userdata);

/* Ends a watch. Allowed at any time before the descriptor is closed, even if it is not armed, and
 * in its own callback. */
void loop_unwatch(struct loop *loop, struct loop_watch *watch);

/* Shuts a socket down; milliseconds later, when io_uring no longer holds it, a taker drains and
 * closes it (taker.h). For sockets that peers may have filled; unwatch them first. Also for other
 * descriptors whose close must not delay urgent work. */
void loop_close(struct loop *loop, int fd);
/* Like loop_close(), with the owner of what is in the socket, for the function that closes it. */
void loop_close_owned(struct loop *loop, int fd, uint64_t owner);
/* Like loop_close_owned(), for a socket with which each system call takes long (toll.h): another
 * process shuts it down. */
void loop_close_elsewhere(struct loop *loop, int fd, uint64_t owner);
/* Sets the function that closes the descriptors. The default is close(2). */
void loop_set_close(struct loop *loop, void (*fn)(int fd, uint64_t owner, bool elsewhere));
/* Unmaps memory some milliseconds later, after more urgent work. NULL does nothing. */
void loop_unmap(struct loop *loop, void *start, size_t size);

/* Wakes up to WAKE_PEER_MAX sleepers on the word, with the next submission of this turn. WAKE_FUTEX
 * only. */
void loop_wake_word(struct loop *loop, const _Atomic uint32_t *word);

/* Wakes the peer at the other end of a socket immediately, with wake_socket(). */
void loop_wake_socket(struct loop *loop, int fd);

/* A source of the hot set, which is polled every turn without a system call. `poll` does a bounded
 * piece of work and returns whether there was any. `cool` is called when the source was quiet for
 * some turns or the loop is about to sleep: it raises its sleeping flag, checks again, and arms a
 * wait; or returns false if there is something to read, and the source stays hot. */
struct loop_hot {
    struct list link;
    bool (*poll)(struct loop_hot *hot);
    bool (*cool)(struct loop_hot *hot);
    /* Private to the loop: */
    unsigned worked;   /* n_busy_turns when there was work here last */
    uint32_t patience; /* see struct spin: learnt after loop_told() */
};

void loop_hot_init(struct loop_hot *hot, bool (*poll)(struct loop_hot *),
                   bool (*cool)(struct loop_hot *));
/* Adds it to the set. Idempotent. */
void loop_heat(struct loop *loop, struct loop_hot *hot);
/* Removes it without calling cool(), before its owner goes away. Allowed from its own callbacks. */
void loop_unheat(struct loop *loop, struct loop_hot *hot);

/* Call after handing work to the peer of this source. The loop learns for each source whether
 * spinning for the answer pays off, or takes the CPU from the peer. */
void loop_told(struct loop *loop, struct loop_hot *hot);

/* A function to run once, at the end of a turn. */
struct loop_deferred {
    struct list link;
    bool late;
    void (*fn)(struct loop_deferred *deferred);
};

void loop_deferred_init(struct loop_deferred *deferred, void (*fn)(struct loop_deferred *));
/* Runs it at the end of this turn, before sleeping. Idempotent. */
void loop_defer(struct loop *loop, struct loop_deferred *deferred);
/* Runs it when there is no other work for some turns, or after 20 µs: for work that is cheaper in
 * batches. Idempotent. */
void loop_defer_late(struct loop *loop, struct loop_deferred *deferred);
void loop_undefer(struct loop_deferred *deferred);
