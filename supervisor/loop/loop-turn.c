/* SPDX-License-Identifier: MIT */
/* The turns of the loop, and how long they take; the hot set. */
#include "supervisor/loop/loop-private.h"
#include <errno.h>
#include <sched.h>

/* How long due timers wait for sources that still have something to read. */
#define CATCH_UP_USEC USEC_PER_MSEC

/* How long hot sources are polled in one turn, and how many of those that have work between two
 * looks at the clock. The others come first in the next turn. */
#define HOT_USEC (4 * USEC_PER_MSEC)
#define HOT_LOOK 4

/* Timers that fire in one turn; the others wait for the next turn, after its events. */
#define TIMERS_PER_TURN 256

/* How long loop_defer_late() waits: while there is work, and while the loop spins. */
#define LATE_USEC      20
#define LATE_IDLE_USEC 4

/* ---- the hot set ---- */

/* Busy turns after which a source that had no part in them is cooled. Polling it costs a read of
 * one cache line per turn; cooling and heating it again costs a system call each. */
#define QUIET_TURNS 64

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

/* Polls the sources. Returns whether there was any work. */
static bool run_hot(struct loop *loop)
{
    unsigned n = 0;
    loop_take_all(&loop->hot_pass, &loop->hot);
    while (!list_empty(&loop->hot_pass)) {
        struct loop_hot *hot = list_first_entry(&loop->hot_pass, struct loop_hot, link);
        list_unlink(&hot->link);
        list_push_back(&loop->hot, &hot->link);
        loop->current_hot = hot;
        bool found = hot->poll(hot);
        n += found;
        /* NULL if poll() has unheated the source, which may be freed. */
        if (found && loop->current_hot)
            hot->worked = loop->n_busy_turns;
        if (found && n % HOT_LOOK == 0 && clock_now() - loop->now >= HOT_USEC)
            break;
    }
    loop->current_hot = NULL;
    if (!list_empty(&loop->hot_pass)) {
        list_append(&loop->hot_pass, &loop->hot);
        loop_take_all(&loop->hot, &loop->hot_pass);
    }
    return n > 0;
}

/* Cools the quiet sources, or all. */
static void cool_hot(struct loop *loop, bool all)
{
    loop_take_all(&loop->hot_pass, &loop->hot);
    while (!list_empty(&loop->hot_pass)) {
        struct loop_hot *hot = list_first_entry(&loop->hot_pass, struct loop_hot, link);
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

/* ---- turns ---- */

#define MEASURE_PERIOD (30 * USEC_PER_SEC)

static void note_turn(struct loop *loop, usec_t end)
{
    const usec_t took = usec_sub(end, loop->now);

    if (end - loop->measured_since >= MEASURE_PERIOD) {
        /* A turn as long as a period leaves no previous period to remember. */
        loop->longest_recent[1] =
            end - loop->measured_since < 2 * MEASURE_PERIOD ? loop->longest_recent[0] : 0;
        loop->longest_recent[0] = 0;
        loop->measured_since = end;
    }
    if (took > loop->longest_recent[0])
        loop->longest_recent[0] = took;
    if (took > loop->longest_turn)
        loop->longest_turn = took;
}

/* Measures the turn that began at loop->now. */
static inline void measure_turn(struct loop *loop, usec_t end)
{
    if (end - loop->now > loop->longest_recent[0] || end - loop->measured_since >= MEASURE_PERIOD)
        note_turn(loop, end);
}

/* Serves descriptors in order, and words (the rings' traffic) after all of them. */
static bool run_events(struct loop *loop)
{
    bool any = loop->backend->pass_on(loop);
    loop_deliver_words(loop);
    return any;
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

/* Two rounds: a job is handed over in the first and published to its worker in the second.
 * Functions that the second round defers run in the next turn. */
static bool run_deferred(struct loop *loop)
{
    bool any = !list_empty(&loop->deferred);
    run_deferred_list(loop, &loop->deferred);
    run_deferred_list(loop, &loop->deferred);
    return any;
}

/* Returns whether the error is temporary: the call is repeated in the next turn. */
static bool is_passing(int error)
{
    return error == -EINTR || error == -ETIME || error == -EAGAIN || error == -EBUSY;
}

bool loop_has_news(const struct loop *loop)
{
    const struct loop_backend *backend = loop->backend;

    return backend->has_events(loop) || !backend->may_fetch || backend->may_fetch(loop);
}

/* Reads all sources. Before a timer fires, everything that has arrived by then is read first, for
 * at most CATCH_UP_USEC: completions that the kernel reports only on request, and descriptors that
 * are read in pieces. Returns 0 or -errno. */
static int read_sources(struct loop *loop, bool *ret_found)
{
    usec_t until = 0;
    *ret_found = false;
    for (;;) {
        bool found = run_events(loop);
        found |= run_hot(loop);
        *ret_found |= found;
        if (timer_queue_next(&loop->timers) > loop->now)
            return 0;
        if (until == 0)
            until = usec_add(clock_now(), CATCH_UP_USEC);
        else if (!found || clock_now() >= until)
            return 0;
        (void)loop->backend->arm(loop);
        int r = loop->backend->fetch(loop, true);
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

/* The restart of a worker comes before the release of its predecessor's resources. */
#define LEFTOVERS_DELAY (2 * USEC_PER_MSEC)

/* When to release the leftovers; USEC_INFINITY = there are none. */
static usec_t leftovers_due(const struct loop *loop)
{
    return loop->n_leftovers > 0 ? usec_add(loop->leftovers_since, LEFTOVERS_DELAY) : USEC_INFINITY;
}

/* Does not read the clock after a turn without work if no timer is armed. */
static int sleep_until_due(struct loop *loop, bool worked)
{
    usec_t next = timer_queue_next(&loop->timers);
    if (leftovers_due(loop) < next)
        next = leftovers_due(loop);
    if (next == USEC_INFINITY && !worked)
        return loop->backend->sleep(loop, USEC_INFINITY);
    usec_t now = clock_now();
    measure_turn(loop, now);
    if (next == USEC_INFINITY)
        return loop->backend->sleep(loop, USEC_INFINITY);
    usec_t timeout = usec_sub(next, now);
    return timeout > 0 ? loop->backend->sleep(loop, timeout) : loop->backend->fetch(loop, false);
}

/* If sched_yield() takes longer, another process needs the CPU. */
#define YIELD_USEC 10

/* Offers the CPU instead of sleeping. */
static int yield(struct loop *loop)
{
    const usec_t before = clock_now();
    measure_turn(loop, before);
    (void)sched_yield();
    if (usec_sub(clock_now(), before) > YIELD_USEC)
        loop->awake_until = 0;
    return loop->backend->fetch(loop, false);
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

/* After a turn without work: returns whether to spin for another one before cooling the hot set. */
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

/* Returns whether another turn follows immediately. */
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
    bool release = leftovers_due(loop) <= loop->now;
    bool all_armed = loop->backend->arm(loop);
    bool may_sleep = all_armed && !release && !loop->stop && list_empty(&loop->hot) &&
                     list_empty(&loop->deferred) && list_empty(&loop->late) &&
                     !loop->backend->has_events(loop);
    int r;
    if (!may_sleep)
        r = loop->backend->fetch(loop, false);
    else if (loop->now < loop->awake_until)
        r = yield(loop);
    else
        r = sleep_until_due(loop, worked);
    loop->slept = may_sleep;
    if (release && all_armed && r >= 0)
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
            measure_turn(loop, now);
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

struct loop_turns loop_turns(const struct loop *loop)
{
    const usec_t *recent = loop->longest_recent;

    return (struct loop_turns){.n = loop->n_busy_turns,
                               .longest = loop->longest_turn,
                               .recent = recent[0] > recent[1] ? recent[0] : recent[1]};
}
