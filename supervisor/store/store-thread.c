/* SPDX-License-Identifier: MIT */

/* The thread of the store. */

#include "shared/base/cleanup.h"
#include "shared/base/probe.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/pieces.h"
#include "supervisor/store/store-private.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* For how long, and up to how many bytes, a transaction takes tasks: bounds the time until the
 * first of them is done. Tasks that have been begun get a part of it first. */
#define TRANSACTION_USEC  (20 * USEC_PER_MSEC)
#define TRANSACTION_BYTES (4 * PIECE_SIZE)
#define BEGUN_BYTES       PIECE_SIZE

/* With so much space within the database's file, and for the log, the reserve is not needed. */
#define FREE_MIN (8 << 20)
#define LOG_MIN  (4 << 20)

/* The tasks of a transaction while the disk is full: a small one may still have space. */
#define FULL_TASKS 64

/* How often, and for how long, to try the lock for writing while another program holds it. */
#define LOCKED_RETRY (10 * USEC_PER_MSEC)
#define LOCKED_MAX   (DATABASE_BUSY_MSEC * USEC_PER_MSEC)

static struct store *store_of(struct store_worker *worker)
{
    return list_entry(worker, struct store, worker);
}

void store_worker_init(struct store *store)
{
    struct store_worker *worker = &store->worker;

    worker->database = (struct database)DATABASE_NULL;
    list_init(&worker->tasks);
    list_init(&worker->begun);
    (void)snprintf(worker->reserve, sizeof(worker->reserve), "%s-reserve", store->path);
}

/* ---- what the loop hears ---- */

static void wake_loop(struct store *store)
{
    (void)eventfd_write(store->event_fd, 1);
}

static void set_state(struct store_worker *worker, enum store_state state)
{
    struct store *store = store_of(worker);
    struct store_report *report = &store->report;
    const char *problem = state == STORE_OPEN ? "" : worker->database.problem;

    if (report->serial > 0 && report->state == state && strcmp(report->problem, problem) == 0)
        return;
    pthread_mutex_lock(&store->mutex);
    report->serial++;
    report->state = state;
    /* Not before the database has been open, which counts the run. */
    report->first_number = worker->database.run > 0 ? job_number_first(worker->database.run) : 0;
    report->id_key = worker->database.id_key;
    (void)snprintf(report->problem, sizeof(report->problem), "%s", problem);
    pthread_mutex_unlock(&store->mutex);
    wake_loop(store);
}

/* 0 = nothing is being written. */
static void note_writing(struct store_worker *worker, usec_t since)
{
    atomic_store_explicit(&store_of(worker)->writing_since, since, memory_order_relaxed);
}

/* Forgets that another program holds the lock, when no task waits for it. */
static void forget_lock(struct store_worker *worker)
{
    if (worker->locked_since > 0)
        note_writing(worker, 0);
    worker->locked_since = 0;
}

/* Only this thread changes the state. */
static enum store_state state_of(struct store_worker *worker)
{
    return store_of(worker)->report.state;
}

static bool is_usable(struct store_worker *worker)
{
    return state_of(worker) == STORE_OPEN || state_of(worker) == STORE_FULL;
}

/* Hands tasks back to the loop. */
static void finish(struct store_worker *worker, struct list *tasks)
{
    struct store *store = store_of(worker);

    if (list_empty(tasks))
        return;
    pthread_mutex_lock(&store->mutex);
    list_append(&store->finished, tasks);
    pthread_mutex_unlock(&store->mutex);
    wake_loop(store);
}

/* Finishes all tasks with an error. `additions_only`: only additions, and with -EIO also impatient
 * tasks. */
static void finish_all(struct store_worker *worker, int error, bool additions_only)
{
    struct list refused = LIST_INIT(refused);

    list_append(&worker->tasks, &worker->begun);
    list_for_each_safe (node, &worker->tasks) {
        if (additions_only && !task_of(node)->addition &&
            !(error == -EIO && task_of(node)->impatient))
            continue;
        task_of(node)->error = error;
        list_unlink(node);
        list_push_back(&refused, node);
    }
    finish(worker, &refused);
}

/* Finishes queries that do not wait until the store works again. */
static void refuse_queries(struct store_worker *worker)
{
    struct store *store = store_of(worker);
    struct list refused = LIST_INIT(refused), all = LIST_INIT(all);

    pthread_mutex_lock(&store->mutex);
    query_queue_take_all(&store->queries, &all);
    list_for_each_safe (node, &all) {
        struct store_task *query = task_of(node);

        list_unlink(node);
        if (!query->impatient) {
            query_queue_add(&store->queries, query);
            continue;
        }
        query->taken = true;
        query->error = -EIO;
        list_push_back(&refused, node);
    }
    pthread_mutex_unlock(&store->mutex);
    finish(worker, &refused);
}

/* Finishes what is not accepted in this state. */
static void refuse(struct store_worker *worker)
{
    switch (state_of(worker)) {
    case STORE_FULL:
        return finish_all(worker, -ENOSPC, true);
    case STORE_FAILED:
        refuse_queries(worker);
        return finish_all(worker, -EIO, true);
    case STORE_UNUSABLE:
        return finish_all(worker, -EUCLEAN, false);
    default:
        return;
    }
}

/* ---- opening ---- */

/* The database is closed, or is no longer to be used. */
static void fail(struct store_worker *worker, int error)
{
    const bool for_good = error == -EUCLEAN || error == -ENOTSUP;

    forget_lock(worker);
    database_close(&worker->database, true);
    worker->retry_at = clock_now() + store_of(worker)->retry;
    set_state(worker, for_good ? STORE_UNUSABLE : STORE_FAILED);
}

static void become_open(struct store_worker *worker)
{
    worker->database.bare = false;
    set_state(worker, STORE_OPEN);
}

static void become_full(struct store_worker *worker)
{
    struct database *database = &worker->database;

    (void)unlink(worker->reserve);
    worker->reserved = false;
    database_limit(database, false);
    (void)snprintf(database->problem, sizeof(database->problem),
                   store_of(worker)->format
                       ? "%s: the disk is full"
                       : "%s: the disk is full; jobs are accepted again once it has %d MiB free, "
                         "or jobs have ended",
                   database->path, RESERVE_SIZE >> 20);
    worker->retry_at = clock_now() + store_of(worker)->retry;
    set_state(worker, STORE_FULL);
}

/* Makes the reserve, if it is missing or too small. A file system that cannot reserve space does
 * not keep the store from working. */
static bool make_reserve(struct store_worker *worker)
{
    _cleanup_close_ int fd =
        open(worker->reserve, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const int error = fd < 0 ? errno : posix_fallocate(fd, 0, RESERVE_SIZE);

    if (fd >= 0 && error != 0)
        (void)unlink(worker->reserve);
    worker->reserved = error != ENOSPC && error != EDQUOT;
    database_limit(&worker->database, !worker->reserved);
    return worker->reserved;
}

/* Copies the log into the database, so that its file can be used again. Not if the disk has no
 * space for it: a part would take the space that ends of jobs need in the log. Returns whether that
 * has not failed otherwise. */
static bool reuse_log(struct store_worker *worker)
{
    const struct database_room room = database_measure_room(&worker->database);
    const int r = room.growth <= room.disk ? database_checkpoint(&worker->database) : 0;

    if (r < 0 && r != -ENOSPC)
        fail(worker, r);
    return r == 0 || r == -ENOSPC;
}

/* Whether rows that have gone have left space within the file. */
static bool has_room_inside(struct store_worker *worker)
{
    const struct database_room room = database_measure_room(&worker->database);

    return room.free >= FREE_MIN && room.growth == 0 && room.log + room.disk >= LOG_MIN;
}

/* The disk is not full any more if there is space for the reserve, or within the database's file,
 * which never becomes smaller. */
static void look_for_space(struct store_worker *worker)
{
    worker->sweeps = !store_of(worker)->format;
    if (store_of(worker)->format || make_reserve(worker))
        become_open(worker);
    else if (reuse_log(worker))
        has_room_inside(worker) ? become_open(worker) : become_full(worker);
}

static int open_file(struct store_worker *worker)
{
    const struct store *store = store_of(worker);

    return store->format ? database_open_format(&worker->database, store->path, store->format)
                         : database_open(&worker->database, store->path, store->vfs);
}

static void open_database(struct store_worker *worker)
{
    int r;

    note_writing(worker, clock_now());
    r = open_file(worker);
    if (r == -ENOSPC) {
        (void)unlink(worker->reserve);
        r = open_file(worker);
    }
    note_writing(worker, 0);
    store_measure(store_of(worker), true);
    if (r < 0)
        fail(worker, r);
    else
        look_for_space(worker);
}

/* ---- transactions ---- */

/* Begins a transaction. Returns false while another program holds the lock for writing; queries are
 * still answered. After LOCKED_MAX, the lock becomes an error of the transaction. */
static bool begin(struct store_worker *worker)
{
    const usec_t now = clock_now(), since = worker->locked_since > 0 ? worker->locked_since : now;
    bool waits;

    note_writing(worker, since);
    waits = database_try_begin(&worker->database) == -EBUSY;
    worker->locked_since = waits && usec_sub(now, since) < LOCKED_MAX ? since : 0;
    return worker->locked_since == 0;
}

static bool takes_more(const struct store_worker *worker, uint64_t bytes_max, usec_t until)
{
    return worker->database.error == 0 && worker->n_left > 0 &&
           worker->database.n_bytes < bytes_max && clock_now() < until;
}

/* Returns what the task returned. */
static int apply_task(struct store_worker *worker, struct list *node, struct list *applied)
{
    const int r = task_of(node)->apply(task_of(node), &worker->database);

    worker->n_left--;
    list_unlink(node);
    task_of(node)->error = r;
    list_push_back(r == STORE_E_MORE ? &worker->begun : applied, node);
    return r;
}

/* Applies tasks that have been begun, in turn, until they have had their part of the transaction,
 * then new tasks; moves finished tasks to `applied`, and commits. Returns 0 or -errno. */
static int apply(struct store_worker *worker, struct list *applied)
{
    struct database *database = &worker->database;
    const usec_t until = clock_now() + TRANSACTION_USEC;
    struct list *node;
    usec_t took;
    bool sweeps = false;
    int r;

    worker->n_left = state_of(worker) == STORE_FULL ? FULL_TASKS : UINT_MAX;
    while ((node = list_first(&worker->begun)) && takes_more(worker, BEGUN_BYTES, until) &&
           apply_task(worker, node, applied) != STORE_E_MORE)
        continue;
    while ((node = list_first(&worker->tasks)) && takes_more(worker, TRANSACTION_BYTES, until))
        (void)apply_task(worker, node, applied);
    /* While the disk is full, a sweep must not keep ends of jobs from being written. */
    if (database->error == 0 && !store_of(worker)->format &&
        (state_of(worker) != STORE_FULL || list_empty(applied)))
        sweeps = pieces_sweep(database) == PIECES_E_MORE;
    took = clock_now();
    r = database_commit(database);
    took = usec_sub(clock_now(), took);
    worker->sweeps = r == 0 && sweeps;
    note_writing(worker, 0);
    if (r == 0)
        store_note_commit(store_of(worker), took);
    PROBE(store_synced, took);
    return r;
}

/* Returns whether to continue immediately. */
static bool on_failure(struct store_worker *worker, int error)
{
    const bool was_full = state_of(worker) == STORE_FULL;

    if (error == -ENOSPC) {
        become_full(worker);
        refuse(worker);
        worker->database.bare = was_full;
        return reuse_log(worker) && !was_full;
    }
    fail(worker, error);
    refuse(worker);
    return false;
}

static bool has_changes(const struct store_worker *worker)
{
    return !list_empty(&worker->tasks) || !list_empty(&worker->begun);
}

/* One transaction. After a failure, its tasks wait again. Returns whether to continue immediately.
 */
static bool commit(struct store_worker *worker)
{
    struct list applied = LIST_INIT(applied);
    int r;

    if (!begin(worker)) {
        worker->sweeps = false; /* until the next change */
        return false;
    }
    r = apply(worker, &applied);
    if (r == 0) {
        finish(worker, &applied);
        if (worker->reserved)
            database_lengthen_log(&worker->database);
        store_measure(store_of(worker), false);
        return true;
    }
    database_rollback(&worker->database);
    list_append(&applied, &worker->tasks);
    list_swap(&applied, &worker->tasks);
    return on_failure(worker, r);
}

/* Copies the log into the database from time to time: after the tasks are finished, so that they do
 * not wait for it. Returns whether to continue immediately. */
static bool checkpoint(struct store_worker *worker)
{
    const int pages = worker->database.log_pages;
    int r;

    if (pages < worker->pages_copied)
        worker->pages_copied = 0; /* the log has begun again */
    if (worker->rests || pages - worker->pages_copied < store_of(worker)->log_pages)
        return true;
    worker->pages_copied = pages;
    if (!worker->reserved && !store_of(worker)->format)
        (void)make_reserve(worker);
    note_writing(worker, clock_now());
    r = database_checkpoint(&worker->database);
    note_writing(worker, 0);
    return r == 0 || on_failure(worker, r);
}

/* ---- queries ---- */

static struct store_task *take_query(struct store *store)
{
    struct store_task *query;

    pthread_mutex_lock(&store->mutex);
    query = store->resting ? NULL : query_queue_take(&store->queries);
    if (query)
        query->taken = true;
    pthread_mutex_unlock(&store->mutex);
    return query;
}

static void finish_query(struct store_worker *worker, struct store_task *query, int error)
{
    struct list finished = LIST_INIT(finished);

    query->error = error;
    list_push_back(&finished, &query->link);
    finish(worker, &finished);
}

/* Puts a query behind the others: those, and changes, come first. */
static void put_back(struct store *store, struct store_task *query)
{
    pthread_mutex_lock(&store->mutex);
    query->taken = false;
    query_queue_add(&store->queries, query);
    pthread_mutex_unlock(&store->mutex);
}

static bool may_answer(struct store_worker *worker)
{
    return is_usable(worker) || state_of(worker) == STORE_UNUSABLE;
}

/* Answers the first query, outside of a transaction. */
static void answer(struct store_worker *worker)
{
    struct database *database = &worker->database;
    struct store_task *query = may_answer(worker) ? take_query(store_of(worker)) : NULL;
    int r;

    if (!query)
        return;
    if (!is_usable(worker)) {
        finish_query(worker, query, -EUCLEAN);
        return;
    }
    database->error = 0;
    r = query->apply(query, database);
    /* If memory is short, or another program holds a lock, only the query fails. One that found
     * damage is answered once the store is open again. */
    if (database->error < 0 && database->error != -ENOMEM && database->error != -EBUSY) {
        (void)on_failure(worker, database->error);
        r = STORE_E_MORE;
    }
    if (r == STORE_E_MORE)
        put_back(store_of(worker), query);
    else
        finish_query(worker, query, r);
}

/* ---- the thread ---- */

static bool must_sweep(struct store_worker *worker)
{
    return worker->sweeps && is_usable(worker) && !worker->rests;
}

static bool may_retry(struct store_worker *worker)
{
    return !worker->rests && (state_of(worker) == STORE_FULL || state_of(worker) == STORE_FAILED);
}

/* Returns when to retry after a failure; USEC_INFINITY = never. */
static usec_t retry_time(struct store_worker *worker)
{
    if (worker->locked_since > 0)
        return clock_now() + LOCKED_RETRY;
    return may_retry(worker) ? worker->retry_at : USEC_INFINITY;
}

/* While another program holds the lock, tasks stay in the queue, where store_cancel() finds them.
 */
static bool has_work(struct store *store)
{
    const bool locked = store->worker.locked_since > 0;

    return (!locked &&
            (!list_empty(&store->queue) || store->stopping || must_sweep(&store->worker))) ||
           (!store->resting && !query_queue_empty(&store->queries) && may_answer(&store->worker));
}

/* Tasks that wait until the store is open again do not keep it from resting. */
static void note_rest(struct store *store)
{
    struct store_worker *worker = &store->worker;
    const bool waits = has_changes(worker) && is_usable(worker);

    if (!store->resting || store->rests || store->stuck || !list_empty(&store->queue) ||
        (waits && (state_of(worker) != STORE_FULL || worker->locked_since > 0)))
        return;
    store->rests = !waits;
    store->stuck = waits;
    wake_loop(store);
}

/* Waits for tasks, for the time to retry, for the beginning or end of a rest, or for the end. */
static void wait_for_work(struct store *store)
{
    const usec_t retry_at = retry_time(&store->worker);
    const struct timespec until = usec_to_timespec(retry_at);
    int r = 0;

    while (!has_work(store) && store->worker.rests == store->resting && r == 0) {
        note_rest(store);
        r = retry_at != USEC_INFINITY ? pthread_cond_timedwait(&store->wake, &store->mutex, &until)
                                      : pthread_cond_wait(&store->wake, &store->mutex);
    }
}

/* Takes all tasks that wait. Returns false at the end, when there are none. */
static bool take(struct store *store)
{
    bool goes_on, locked;

    pthread_mutex_lock(&store->mutex);
    wait_for_work(store);
    store->rests = store->stuck = false;
    store->worker.rests = store->resting;
    locked = store->worker.locked_since > 0;
    goes_on = !store->stopping || !list_empty(&store->queue) || locked;
    if (!locked) {
        list_append(&store->worker.tasks, &store->queue);
        store->taken = store->handed;
    }
    pthread_mutex_unlock(&store->mutex);
    return goes_on;
}

/* Takes tasks that were added since: the earlier ones may take long. */
static void take_more(struct store *store)
{
    if (!has_changes(&store->worker))
        return;
    pthread_mutex_lock(&store->mutex);
    list_append(&store->worker.tasks, &store->queue);
    store->taken = store->handed;
    store->worker.rests = store->resting;
    pthread_mutex_unlock(&store->mutex);
}

static void retry(struct store_worker *worker)
{
    if (!may_retry(worker) || clock_now() < worker->retry_at)
        return;
    if (state_of(worker) == STORE_FAILED)
        open_database(worker);
    else
        look_for_space(worker);
}

/* Writes all changes, and answers a query after each transaction. */
static void change(struct store_worker *worker)
{
    while (is_usable(worker) && commit(worker) && checkpoint(worker) && has_changes(worker)) {
        answer(worker);
        take_more(store_of(worker));
    }
}

void *store_run(void *userdata)
{
    struct store *store = userdata;
    struct store_worker *worker = &store->worker;

    open_database(worker);
    while (take(store)) {
        retry(worker);
        refuse(worker);
        if (!has_changes(worker))
            forget_lock(worker);
        if (has_changes(worker) || must_sweep(worker))
            change(worker);
        answer(worker);
    }
    if (store->end == STORE_END_RUN && is_usable(worker) && !has_changes(worker))
        database_end_run(&worker->database);
    finish_all(worker, -ECANCELED, false);
    database_close(&worker->database, store->end == STORE_LEAVE || !is_usable(worker));
    pthread_mutex_lock(&store->mutex);
    store->ended = true;
    pthread_mutex_unlock(&store->mutex);
    wake_loop(store);
    return NULL;
}
