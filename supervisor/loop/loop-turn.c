/* SPDX-License-Identifier: MIT */
/* The turns of the loop, and how long they take. */
#include "supervisor/loop/loop-private.h"
#include <errno.h>
#include <sched.h>

/* How long due timers wait for sources that still have something to read. */
#define CATCH_UP_USEC USEC_PER_MSEC

/* Timers that fire in one turn; the others wait for the next, behind what has arrived. */
#define TIMERS_PER_TURN 256

/* How long loop_defer_late() waits: while there is work, and while the loop spins. */
#define LATE_USEC      20
#define LATE_IDLE_USEC 4

/* Serves descriptors as they come, and words (the rings' traffic) after all of them. */
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

static void run_deferred_list(struct loop *loop, struct list *list)
{
    loop_take_all(&loop->deferred_pass, list);
    while (!list_empty(&loop->deferred_pass)) {
        struct list *node = list_first(&loop->deferred_pass);
        struct loop_deferred *deferred = list_entry(node, struct loop_deferred, link);
        list_unlink(node);
        deferred->fn(deferred);
    }
}

/* Two rounds: a job is handed over in the first and published to its worker in the second. What the
 * second round defers runs in the next turn. */
static bool run_deferred(struct loop *loop)
{
    bool any = !list_empty(&loop->deferred);
    run_deferred_list(loop, &loop->deferred);
    run_deferred_list(loop, &loop->deferred);
    return any;
}

/* Temporary errors: the queued submissions are tried again. */
static bool is_passing(int error)
{
    return error == -EINTR || error == -ETIME || error == -EAGAIN || error == -EBUSY;
}

/* Does not sleep, and makes no system call unless there is something to submit or to reap. */
static int submit(struct loop *loop)
{
    struct io_uring *uring = &loop->ring.uring;
    unsigned flags = IO_URING_READ_ONCE(*uring->sq.kflags);
    if (io_uring_sq_ready(uring) == 0 && !(flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)))
        return 0;
    return io_uring_submit_and_get_events(uring);
}

/* Reads what has arrived. Before a timer fires, everything that has arrived by then is read first,
 * for at most CATCH_UP_USEC: completions that the kernel reports only on request, and descriptors
 * that are read in pieces. Returns 0 or -errno. */
static int read_sources(struct loop *loop, bool *ret_found)
{
    usec_t until = 0;
    *ret_found = false;
    for (;;) {
        bool found = run_completions(loop);
        found |= loop_run_hot(loop);
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

/* Does not read the clock after a turn without work if no timer is armed. */
static int submit_and_sleep(struct loop *loop, bool worked)
{
    struct io_uring *uring = &loop->ring.uring;
    usec_t next = timer_queue_next(&loop->timers);
    if (loop_leftovers_due(loop) < next)
        next = loop_leftovers_due(loop);
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

/* If sched_yield() takes longer, another process needs the CPU. */
#define YIELD_USEC 10

/* Offers the CPU instead of sleeping. */
static int submit_and_yield(struct loop *loop)
{
    const usec_t before = clock_now();
    loop_measure_turn(loop, before);
    (void)sched_yield();
    if (usec_sub(clock_now(), before) > YIELD_USEC)
        loop->awake_until = 0;
    return submit(loop);
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

/* After a turn without work: whether to spin for another one before cooling the hot set. */
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

/* Whether another turn follows at once. */
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
        loop_cool_hot(loop, !on);
    bool release = loop_leftovers_due(loop) <= loop->now;
    bool all_queued = loop_queue_submissions(loop);
    bool may_sleep = all_queued && !release && !loop->stop && list_empty(&loop->hot) &&
                     list_empty(&loop->deferred) && list_empty(&loop->late) &&
                     io_uring_cq_ready(&loop->ring.uring) == 0;
    int r;
    if (!may_sleep)
        r = submit(loop);
    else if (loop->now < loop->awake_until)
        r = submit_and_yield(loop);
    else
        r = submit_and_sleep(loop, worked);
    loop->slept = may_sleep;
    if (release && all_queued && r >= 0)
        loop_release_leftovers(loop);
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

void loop_note_turn(struct loop *loop, usec_t end)
{
    const usec_t took = usec_sub(end, loop->now);

    if (end - loop->measured_since >= LOOP_MEASURE_PERIOD) {
        /* A turn as long as a period leaves no previous period to remember. */
        loop->longest_recent[1] =
            end - loop->measured_since < 2 * LOOP_MEASURE_PERIOD ? loop->longest_recent[0] : 0;
        loop->longest_recent[0] = 0;
        loop->measured_since = end;
    }
    if (took > loop->longest_recent[0])
        loop->longest_recent[0] = took;
    if (took > loop->longest_turn)
        loop->longest_turn = took;
}

struct loop_turns loop_turns(const struct loop *loop)
{
    const usec_t *recent = loop->longest_recent;

    return (struct loop_turns){.longest = loop->longest_turn,
                               .recent = recent[0] > recent[1] ? recent[0] : recent[1]};
}
