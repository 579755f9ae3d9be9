/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/loop.h"
#include "shared/base/fault.h"
#include "supervisor/loop/loop-private.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/*
 * Busy turns after which a source that had no part in them is cooled. Watching it costs a
 * glance at a cache line per turn, cooling and heating it again a system call on either side.
 */
#define QUIET_TURNS 64

/* How long reading on may keep timers that are due from firing. */
#define CATCH_UP_USEC USEC_PER_MSEC

/* Timers that fire in one turn: a burst of them must not hold up what arrives meanwhile. */
#define TIMERS_PER_TURN 256

/* How long something may be late for the sake of those that come after it: while there is work, */
#define LATE_USEC 20
/* and while there is none. */
#define LATE_IDLE_USEC 4

int loop_new(struct loop **ret, const struct loop_options *options, const char **ret_reason)
{
    struct loop *loop = fault_inject("alloc") < 0 ? NULL : calloc(1, sizeof(*loop));
    if (!loop)
        return -ENOMEM;
    int r = loop_ring_init(&loop->ring, options->entries > 0 ? options->entries : 1024,
                           options->force_eventfd, ret_reason);
    if (r != 0) {
        free(loop);
        return r;
    }
    struct list *lists[] = {&loop->free,          &loop->pending, &loop->updates,  &loop->cancels,
                            &loop->fired,         &loop->hot,     &loop->hot_pass, &loop->deferred,
                            &loop->deferred_pass, &loop->late};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        list_init(lists[i]);
    loop->now = clock_now();
    *ret = loop;
    return 0;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    loop_ring_deinit(&loop->ring);
    timer_queue_deinit(&loop->timers);
    loop_release_leftovers(loop, loop->n_leftovers);
    loop_free_slots(loop);
    free(loop->leftovers);
    free(loop);
}

enum wake_backend loop_wake_backend(const struct loop *loop)
{
    return loop->ring.futex ? WAKE_FUTEX : WAKE_EVENTFD;
}

usec_t loop_now(const struct loop *loop)
{
    return loop->now;
}

usec_t loop_realtime(struct loop *loop)
{
    if (loop->realtime == 0)
        loop->realtime = clock_realtime();
    return loop->realtime;
}

struct timer_queue *loop_timers(struct loop *loop)
{
    return &loop->timers;
}

void loop_set_spin(struct loop *loop, usec_t limit)
{
    loop->spinning = false;
    spin_init(&loop->spin, limit < SPIN_USEC_MAX ? (uint32_t)limit : SPIN_USEC_MAX);
}

void loop_stop(struct loop *loop)
{
    loop->stop = true;
}

/* Descriptors are served as they come, words (the rings' traffic) after all of them. */
static bool run_completions(struct loop *loop)
{
    unsigned n = io_uring_cq_ready(&loop->ring.uring);
    for (unsigned i = 0; i < n; i++) {
        struct io_uring_cqe *cqe;
        if (io_uring_peek_cqe(&loop->ring.uring, &cqe) != 0)
            break;
        uint64_t id = cqe->user_data;
        int result = cqe->res;
        io_uring_cqe_seen(&loop->ring.uring, cqe);
        loop_complete(loop, id, result);
    }
    loop_deliver_words(loop);
    return n > 0;
}

/* Takes all of `from` over; `to` is empty. */
static void list_take_all(struct list *to, struct list *from)
{
    assert(list_empty(to));
    if (list_empty(from))
        return;
    list_push_front(from, to);
    list_unlink(from);
}

void loop_hot_init(struct loop_hot *hot, bool (*poll_fn)(struct loop_hot *),
                   bool (*cool_fn)(struct loop_hot *))
{
    list_init(&hot->link);
    hot->poll = poll_fn;
    hot->cool = cool_fn;
    hot->worked = 0;
    hot->patience = SPIN_PATIENCE_MAX;
}

void loop_heat(struct loop *loop, struct loop_hot *hot)
{
    hot->worked = loop->n_busy_turns;
    if (!list_linked(&hot->link))
        list_push_back(&loop->hot, &hot->link);
}

void loop_unheat(struct loop *loop, struct loop_hot *hot)
{
    list_unlink(&hot->link);
    if (loop->current_hot == hot)
        loop->current_hot = NULL;
    if (loop->told == hot)
        loop->told = NULL;
    if (loop->asking == hot)
        loop->asking = NULL;
}

void loop_told(struct loop *loop, struct loop_hot *hot)
{
    loop->told = hot;
}

static bool run_hot(struct loop *loop)
{
    bool worked = false;
    list_take_all(&loop->hot_pass, &loop->hot);
    while (!list_empty(&loop->hot_pass)) {
        struct loop_hot *hot = list_entry(list_first(&loop->hot_pass), struct loop_hot, link);
        list_unlink(&hot->link);
        list_push_back(&loop->hot, &hot->link);
        loop->current_hot = hot;
        bool found = hot->poll(hot);
        worked |= found;
        /* Not if it unheated itself: then it may be gone. */
        if (found && loop->current_hot)
            hot->worked = loop->n_busy_turns;
    }
    loop->current_hot = NULL;
    return worked;
}

static void cool_hot(struct loop *loop, bool all)
{
    list_take_all(&loop->hot_pass, &loop->hot);
    while (!list_empty(&loop->hot_pass)) {
        struct loop_hot *hot = list_entry(list_first(&loop->hot_pass), struct loop_hot, link);
        list_unlink(&hot->link);
        list_push_back(&loop->hot, &hot->link);
        if (!all && loop->n_busy_turns - hot->worked < QUIET_TURNS)
            continue;
        loop->current_hot = hot;
        bool cooled = hot->cool(hot);
        if (!loop->current_hot)
            continue;
        if (cooled)
            list_unlink(&hot->link);
        else
            hot->worked = loop->n_busy_turns;
    }
    loop->current_hot = NULL;
}

void loop_deferred_init(struct loop_deferred *deferred, void (*fn)(struct loop_deferred *))
{
    list_init(&deferred->link);
    deferred->late = false;
    deferred->fn = fn;
}

void loop_defer(struct loop *loop, struct loop_deferred *deferred)
{
    if (list_linked(&deferred->link) && !deferred->late)
        return;
    list_unlink(&deferred->link);
    list_push_back(&loop->deferred, &deferred->link);
    deferred->late = false;
}

void loop_defer_late(struct loop *loop, struct loop_deferred *deferred)
{
    if (list_linked(&deferred->link))
        return;
    if (list_empty(&loop->late))
        loop->late_since = loop->now;
    list_push_back(&loop->late, &deferred->link);
    deferred->late = true;
}

void loop_undefer(struct loop_deferred *deferred)
{
    list_unlink(&deferred->link);
}

static void run_deferred_list(struct loop *loop, struct list *list)
{
    list_take_all(&loop->deferred_pass, list);
    while (!list_empty(&loop->deferred_pass)) {
        struct list *node = list_first(&loop->deferred_pass);
        struct loop_deferred *deferred = list_entry(node, struct loop_deferred, link);
        list_unlink(node);
        deferred->fn(deferred);
    }
}

/*
 * A job is handed over in the first round and shown to its worker in the second. What is deferred
 * there runs in the next turn.
 */
static bool run_deferred(struct loop *loop)
{
    bool any = !list_empty(&loop->deferred);
    run_deferred_list(loop, &loop->deferred);
    run_deferred_list(loop, &loop->deferred);
    return any;
}

/* What is queued stays so and is tried again. */
static bool is_passing(int error)
{
    return error == -EINTR || error == -ETIME || error == -EAGAIN || error == -EBUSY;
}

/* Without sleeping, and without a system call unless the kernel or we have something to tell. */
static int submit(struct loop *loop)
{
    struct io_uring *uring = &loop->ring.uring;
    unsigned flags = IO_URING_READ_ONCE(*uring->sq.kflags);
    if (io_uring_sq_ready(uring) == 0 && !(flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)))
        return 0;
    return io_uring_submit_and_get_events(uring);
}

/*
 * Reads what has arrived. Before a timer goes off, this is all that has arrived by now, wherever it
 * still lies: in the kernel, which hands completions over only when it is asked, or behind a
 * descriptor that is read bit by bit. While there is a lot of it, deadlines do not wait for all.
 * 0 or -errno.
 */
static int read_sources(struct loop *loop, bool *ret_found)
{
    usec_t until = 0;
    *ret_found = false;
    for (;;) {
        bool found = run_completions(loop);
        found |= run_hot(loop);
        *ret_found |= found;
        if (timer_queue_next(&loop->timers) > loop->now)
            return 0;
        if (until == 0)
            until = usec_add(clock_now(), CATCH_UP_USEC);
        else if (!found || clock_now() >= until)
            return 0;
        (void)loop_queue_submissions(loop);
        int r = submit(loop);
        if (r < 0 && !is_passing(r))
            return r;
    }
}

static bool run_timers(struct loop *loop)
{
    if (timer_queue_next(&loop->timers) > loop->now)
        return false;
    timer_queue_run(&loop->timers, loop->now, TIMERS_PER_TURN);
    return true;
}

/* A turn that found nothing to do is short: without a timer nobody needs to know when it ends. */
static int submit_and_sleep(struct loop *loop, bool worked)
{
    struct io_uring *uring = &loop->ring.uring;
    usec_t next = timer_queue_next(&loop->timers);
    if (next == USEC_INFINITY && !worked)
        return io_uring_submit_and_wait(uring, 1);
    usec_t now = clock_now();
    loop_measure_turn(loop, now);
    if (next == USEC_INFINITY)
        return io_uring_submit_and_wait(uring, 1);
    usec_t timeout = usec_sub(next, now);
    if (timeout == 0)
        return submit(loop);
    struct io_uring_cqe *cqe;
    struct __kernel_timespec ts = {.tv_sec = (long long)(timeout / USEC_PER_SEC),
                                   .tv_nsec = (long long)(timeout % USEC_PER_SEC * 1000)};
    return io_uring_submit_and_wait_timeout(uring, &cqe, 1, &ts, NULL);
}

static bool start_spinning(struct loop *loop)
{
    loop->asking = loop->told;
    loop->spin.patience = loop->asking ? loop->asking->patience : SPIN_PATIENCE_MAX;
    return loop->spinning = spin_begin(&loop->spin, loop->now);
}

static void stop_spinning(struct loop *loop, bool found)
{
    loop->spinning = false;
    spin_end(&loop->spin, loop->now, found);
    if (loop->asking)
        loop->asking->patience = loop->spin.patience;
}

/* A turn has found nothing to do: whether to take another one before everything hot is cooled. */
static bool spin_on(struct loop *loop)
{
    bool hope = !list_empty(&loop->hot);
    if (!loop->spinning && !(hope && start_spinning(loop)))
        return false;
    if (hope && spin_more(&loop->spin, loop->now))
        return true;
    stop_spinning(loop, false);
    return false;
}

/* Whether this turn is followed by another one, with work or hope for some. */
static bool go_on(struct loop *loop, bool worked)
{
    if (worked && loop->spinning)
        stop_spinning(loop, true);
    return worked || spin_on(loop);
}

static void run_late(struct loop *loop, bool on)
{
    usec_t idle = loop->spinning ? loop->now - loop->spin.began : 0;
    if (!on || idle >= LATE_IDLE_USEC || loop->now - loop->late_since >= LATE_USEC)
        run_deferred_list(loop, &loop->late);
}

static int finish_turn(struct loop *loop, bool worked)
{
    loop->n_busy_turns += worked;
    bool on = go_on(loop, worked);
    if (!list_empty(&loop->late))
        run_late(loop, on);
    if (worked || !on)
        cool_hot(loop, !on);
    unsigned n_leftovers = loop->n_leftovers;
    bool all_queued = loop_queue_submissions(loop);
    bool may_sleep = all_queued && n_leftovers == 0 && !loop->stop && list_empty(&loop->hot) &&
                     list_empty(&loop->deferred) && list_empty(&loop->late) &&
                     io_uring_cq_ready(&loop->ring.uring) == 0;
    int r = may_sleep ? submit_and_sleep(loop, worked) : submit(loop);
    loop->slept = may_sleep;
    if (n_leftovers > 0 && all_queued && r >= 0)
        loop_release_leftovers(loop, n_leftovers);
    return r < 0 && !is_passing(r) ? r : 0;
}

int loop_run(struct loop *loop)
{
    int r = 0;
    loop->slept = true;
    while (r == 0 && !loop->stop) {
        usec_t now = clock_now();
        if (!loop->slept)
            loop_measure_turn(loop, now);
        loop->now = now;
        loop->realtime = 0;
        bool worked;
        r = read_sources(loop, &worked);
        worked |= run_timers(loop);
        worked |= run_deferred(loop);
        if (r == 0)
            r = finish_turn(loop, worked);
    }
    loop->stop = false;
    return r;
}
