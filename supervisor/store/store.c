/* SPDX-License-Identifier: MIT */

/* The loop's side of the store. */

#include "supervisor/store/store.h"

#include "shared/base/cleanup.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/store-private.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* The first time until it is tried whether there is space again, or to open the database. */
#define RETRY USEC_PER_SEC
/* The batch of tasks that are held. */
#define HELD UINT64_MAX
/* From when on a transaction is slow. */
#define SLOW (5 * USEC_PER_SEC)
/* How long tasks are ended in one turn, and how many between two looks at the clock. */
#define DONE_BUDGET (2 * USEC_PER_MSEC)
#define DONE_MIN    64
/* Pages in the log before it is copied into the database. */
#define LOG_PAGES 2000

static const char *const STATES[_STORE_N_STATES] = {
    [STORE_OPENING] = "opening", [STORE_OPEN] = "open",         [STORE_FULL] = "full",
    [STORE_FAILED] = "failed",   [STORE_UNUSABLE] = "unusable",
};

/* Hands all pending tasks to the thread. */
static void hand_over(struct store *store)
{
    loop_undefer(&store->handover);
    timer_disarm(loop_timers(store->loop), &store->lazy);
    if (list_empty(&store->pending) || store->stopping)
        return;
    pthread_mutex_lock(&store->mutex);
    list_append(&store->queue, &store->pending);
    store->handed = store->batch++;
    pthread_mutex_unlock(&store->mutex);
    pthread_cond_signal(&store->wake);
}

static void on_handover(struct loop_deferred *deferred)
{
    struct store *store = list_entry(deferred, struct store, handover);

    if (!store->resting)
        hand_over(store);
}

static void on_lazy(struct timer *timer, usec_t now)
{
    on_handover(&list_entry(timer, struct store, lazy)->handover);
}

/* Sets the timer to `after`, unless it runs. */
static void run_timer(struct store *store, struct timer *timer, usec_t after)
{
    if (!timer_armed(timer))
        timer_arm(loop_timers(store->loop), timer, usec_add(loop_now(store->loop), after));
}

static void make_pending(struct store *store, struct store_task *task)
{
    task->batch = store->batch;
    list_push_back(&store->pending, &task->link);
}

/* Ends the waiting of tasks that are held until `now`. */
static void release(struct store *store, usec_t now)
{
    struct list *node;

    while ((node = list_first(&store->held)) && task_of(node)->held_until <= now) {
        list_unlink(node);
        make_pending(store, task_of(node));
        loop_defer(store->loop, &store->handover);
    }
    if (node)
        run_timer(store, &store->hold, usec_sub(task_of(node)->held_until, now));
}

static void on_hold(struct timer *timer, usec_t now)
{
    release(list_entry(timer, struct store, hold), now);
}

static void hold(struct store *store, struct store_task *task)
{
    run_timer(store, &store->hold, STORE_HOLD);
    task->batch = HELD;
    task->held_until = loop_now(store->loop) + STORE_HOLD;
    list_push_back(&store->held, &task->link);
}

static void add_query(struct store *store, struct store_task *task)
{
    task->taken = false;
    pthread_mutex_lock(&store->mutex);
    query_queue_add(&store->queries, task);
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
}

void store_add(struct store *store, struct store_task *task)
{
    store->n_waiting++;
    if (task->query) {
        add_query(store, task);
        return;
    }
    if (task->urgency == STORE_HELD) {
        hold(store, task);
        return;
    }
    make_pending(store, task);
    if (task->urgency == STORE_LAZY)
        run_timer(store, &store->lazy, STORE_LAZY_MAX);
    else
        loop_defer(store->loop, &store->handover);
}

/* Fails once the thread has taken the query: done() then follows. */
static bool cancel_query(struct store *store, struct store_task *task)
{
    bool waits;

    pthread_mutex_lock(&store->mutex);
    waits = !task->taken;
    if (waits)
        query_queue_remove(task);
    pthread_mutex_unlock(&store->mutex);
    if (waits)
        store->n_waiting--;
    return waits;
}

bool store_cancel(struct store *store, struct store_task *task)
{
    bool waits;

    if (task->query)
        return cancel_query(store, task);
    if (task->batch == HELD) {
        list_unlink(&task->link);
        task->batch = 0;
        store->n_waiting--;
        return true;
    }
    /* Pending tasks are the loop's own, but most are with the thread already. */
    pthread_mutex_lock(&store->mutex);
    waits = task->batch > store->taken;
    if (waits)
        list_unlink(&task->link);
    pthread_mutex_unlock(&store->mutex);
    if (waits) {
        task->batch = 0;
        store->n_waiting--;
    }
    return waits;
}

/* Takes the thread's report. Returns whether the state has changed. */
static bool see_report(struct store *store)
{
    const enum store_state before = store->seen.state;

    if (store->seen.serial == store->report.serial)
        return false;
    store->seen = store->report;
    if (store->next_number == 0)
        store->next_number = store->seen.first_number;
    return store->seen.state != before;
}

static void call_done(struct store *store, usec_t until)
{
    struct list *node;

    for (unsigned n = 1; (node = list_first(&store->done)); n++) {
        list_unlink(node);
        store->n_waiting--;
        task_of(node)->done(task_of(node), task_of(node)->error);
        if (n % DONE_MIN == 0 && clock_now() >= until)
            return;
    }
}

/* When the disk fails, all tasks end at once. */
static void on_turn(struct loop_deferred *deferred)
{
    struct store *store = list_entry(deferred, struct store, turn);
    const usec_t now = loop_now(store->loop);

    if (store->done_at != now)
        call_done(store, usec_add(clock_now(), DONE_BUDGET));
    store->done_at = now;
    if (!list_empty(&store->done))
        loop_defer(store->loop, &store->turn);
    else if (store->settled &&
             (store_rests(store) || store_is_stuck(store) || store_has_ended(store)))
        store->settled(store->userdata);
}

static void on_event(void *userdata, uint32_t events)
{
    struct store *store = userdata;
    eventfd_t unused;
    bool changed;

    (void)eventfd_read(store->event_fd, &unused);
    pthread_mutex_lock(&store->mutex);
    list_append(&store->done, &store->finished);
    changed = see_report(store);
    store->at_rest = store->rests;
    store->is_stuck = store->stuck;
    store->has_ended = store->ended;
    pthread_mutex_unlock(&store->mutex);
    if (changed && store->changed)
        store->changed(store->userdata, store->seen.state);
    on_turn(&store->turn);
}

void store_work(struct store *store, usec_t timeout)
{
    struct pollfd wait = {.fd = store->event_fd, .events = POLLIN};

    release(store, USEC_INFINITY);
    hand_over(store);
    if (list_empty(&store->done) && poll(&wait, 1, (int)(timeout / USEC_PER_MSEC) + 1) > 0)
        on_event(store, POLLIN);
    call_done(store, USEC_INFINITY);
}

/* The loop's thread handles all signals. */
static int start_thread(struct store *store)
{
    sigset_t all, saved;
    int r;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &saved);
    r = pthread_create(&store->thread, NULL, store_run, store);
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return -r;
}

/* With the monotonic clock, for retries. */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

/* SQLite's own bookkeeping of memory costs a lock in each allocation. */
static void configure_sqlite(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int store_new(struct store **ret, struct loop *loop, const struct store_options *options)
{
    struct store *store = calloc(1, sizeof(*store));
    int r;

    if (!store)
        return -ENOMEM;
    store->loop = loop;
    store->vfs = options->vfs;
    store->format = options->format;
    store->log_pages = options->log_pages > 0 ? options->log_pages : LOG_PAGES;
    store->retry = options->retry > 0 ? options->retry : RETRY;
    store->changed = options->changed;
    store->settled = options->settled;
    store->userdata = options->userdata;
    (void)snprintf(store->path, sizeof(store->path), "%s", options->path);
    store->batch = 1;
    configure_sqlite();
    list_init(&store->pending);
    list_init(&store->held);
    query_queue_init(&store->queries);
    list_init(&store->queue);
    list_init(&store->finished);
    list_init(&store->done);
    loop_deferred_init(&store->turn, on_turn);
    loop_deferred_init(&store->handover, on_handover);
    timer_init(&store->lazy, on_lazy);
    timer_init(&store->hold, on_hold);
    store_worker_init(store);
    store->worker.database.opened = options->opened;
    (void)pthread_mutex_init(&store->mutex, NULL);
    init_condition(&store->wake);
    store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = store->event_fd < 0
            ? -errno
            : loop_watch_fd(loop, &store->watch, store->event_fd, POLLIN, on_event, store);
    if (r == 0)
        r = start_thread(store);
    if (r < 0) {
        loop_unwatch(loop, &store->watch);
        close_fd(store->event_fd);
        free(store);
        return r;
    }
    *ret = store;
    return 0;
}

/* done() may add tasks. */
static void cancel_pending(struct store *store)
{
    struct list *node;

    while ((node = list_first(&store->pending)) || (node = list_first(&store->held))) {
        list_unlink(node);
        store->n_waiting--;
        task_of(node)->done(task_of(node), -ECANCELED);
    }
}

/* Ends all queries: done() gets -ECANCELED. */
static void cancel_queries(struct store *store)
{
    struct store_task *query;

    while ((query = query_queue_take(&store->queries))) {
        query->error = -ECANCELED;
        query->taken = true;
        list_push_back(&store->finished, &query->link);
    }
}

static void rest(struct store *store, bool resting)
{
    pthread_mutex_lock(&store->mutex);
    store->resting = resting;
    store->rests = store->at_rest = false;
    store->stuck = store->is_stuck = false;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
}

void store_rest(struct store *store)
{
    if (store->resting)
        return;
    hand_over(store);
    rest(store, true);
}

void store_resume(struct store *store)
{
    rest(store, false);
    loop_defer(store->loop, &store->handover);
}

bool store_rests(const struct store *store)
{
    return store->at_rest && list_empty(&store->done);
}

bool store_is_stuck(const struct store *store)
{
    return store->is_stuck;
}

void store_end(struct store *store, enum store_end how)
{
    if (store->stopping)
        return;
    release(store, USEC_INFINITY);
    hand_over(store);
    pthread_mutex_lock(&store->mutex);
    cancel_queries(store);
    store->end = how;
    store->stopping = true;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
}

bool store_has_ended(const struct store *store)
{
    return store->has_ended && list_empty(&store->done);
}

void store_abandon(struct store *store)
{
    loop_undefer(&store->handover);
    loop_undefer(&store->turn);
    timer_disarm(loop_timers(store->loop), &store->lazy);
    timer_disarm(loop_timers(store->loop), &store->hold);
    loop_unwatch(store->loop, &store->watch);
}

struct store *store_free(struct store *store)
{
    if (!store)
        return NULL;
    store_end(store, STORE_END);
    (void)pthread_join(store->thread, NULL);
    cancel_queries(store);
    list_append(&store->done, &store->finished);
    call_done(store, USEC_INFINITY);
    cancel_pending(store);
    store_abandon(store);
    close_fd(store->event_fd);
    (void)pthread_cond_destroy(&store->wake);
    (void)pthread_mutex_destroy(&store->mutex);
    free(store);
    return NULL;
}

enum store_state store_state(const struct store *store)
{
    return store->seen.state;
}

const char *store_state_to_string(enum store_state state)
{
    return STATES[state];
}

const char *store_problem(const struct store *store)
{
    return store->seen.problem;
}

static usec_t writing_since(const struct store *store)
{
    return atomic_load_explicit(&store->writing_since, memory_order_relaxed);
}

bool store_is_writing(const struct store *store)
{
    return writing_since(store) > 0;
}

bool store_is_slow(const struct store *store)
{
    const usec_t since = writing_since(store);

    return since > 0 && usec_sub(clock_now(), since) > SLOW;
}

int64_t store_next_number(struct store *store)
{
    return store->next_number++;
}

uint64_t store_id_key(const struct store *store)
{
    return store->seen.id_key;
}
