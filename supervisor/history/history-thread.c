/* SPDX-License-Identifier: MIT */

/* The thread of the history. */

#include "shared/base/cleanup.h"
#include "supervisor/history/history-private.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* How long a search runs before rows, and other searches, have their turn; and until its page is
 * complete with what it has found. */
#define SEARCH_USEC (5 * USEC_PER_MSEC)
#define PAGE_USEC   (500 * USEC_PER_MSEC)
/* Rows that are removed at a time, beside as many as were added; and how often to look for old
 * ones. */
#define PRUNE_MAX   128
#define PRUNE_EVERY (10 * USEC_PER_SEC)
#define PRUNE_SHARE 16 /* of the shortest History= at most */
/* How long the end writes rows. */
#define END_USEC (4 * USEC_PER_SEC)

#define group_of(node) list_entry(node, struct history_group, link)
#define row_of(node)   list_entry(node, struct history_row, link)
#define call_of(node)  list_entry(node, struct history_call, link)

/* ---- what the loop hears ---- */

static void report(struct history *history, const char *problem)
{
    pthread_mutex_lock(&history->mutex);
    (void)snprintf(history->problem, sizeof(history->problem), "%s", problem);
    pthread_mutex_unlock(&history->mutex);
    (void)eventfd_write(history->event_fd, 1);
}

/* The history is off until it can be opened again. */
static void fail(struct history *history, int error)
{
    history_rollback(&history->database);
    history_database_close(&history->database);
    history->for_good = error == -EUCLEAN || error == -ENOTSUP;
    history->retry_at = clock_now() + history->retry;
    report(history, history->database.problem);
}

static uint64_t file_size(const char *path, const char *suffix)
{
    char name[PATH_MAX + 8];
    struct stat status;

    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static void measure(struct history *history)
{
    const uint64_t bytes = file_size(history->path, "") + file_size(history->path, "-wal");
    uint64_t n_rows = 0;

    list_for_each (node, &history->groups)
        n_rows += group_of(node)->n_rows;
    pthread_mutex_lock(&history->mutex);
    history->stats.n_rows = n_rows;
    history->stats.bytes = bytes;
    pthread_mutex_unlock(&history->mutex);
}

static void count_dropped(struct history *history, size_t n)
{
    pthread_mutex_lock(&history->mutex);
    history->stats.n_dropped += n;
    pthread_mutex_unlock(&history->mutex);
}

/* ---- groups ---- */

static struct history_group *find_group(const struct list *groups, const char *name)
{
    list_for_each (node, groups)
        if (strcmp(group_of(node)->name, name) == 0)
            return group_of(node);
    return NULL;
}

static struct history_group *make_group(struct history *history, const char *name)
{
    struct history_group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->name = strdup(name);
    if (!group->name) {
        free(group);
        return NULL;
    }
    list_push_back(&history->groups, &group->link);
    return group;
}

/* Takes the row of a group from the file. One without `history` is not in use. */
static int on_group(void *userdata, const char *name, const struct history_group *row)
{
    struct history *history = userdata;
    struct history_group *group = find_group(&history->groups, name);

    if (!group)
        group = make_group(history, name);
    if (!group)
        return -ENOMEM;
    if (!group->history) {
        group->keep = row->keep;
        group->max = row->max;
    }
    group->number = row->number;
    group->n_rows = row->n_rows;
    group->bytes = row->bytes;
    return 0;
}

/* A group that was read from the file is in use now: the loop has made another struct for it. */
static void take_group(struct history *history, struct history_group *group)
{
    struct history_group *former = find_group(&history->groups, group->name);

    if (former) {
        group->number = former->number;
        group->n_rows = former->n_rows;
        group->bytes = former->bytes;
        list_unlink(&former->link);
        list_push_back(&history->retired, &former->link);
    }
    list_push_back(&history->groups, &group->link);
}

/* Takes new groups and bounds; under the mutex. */
static void take_groups(struct history *history)
{
    struct list *node;

    while ((node = list_first(&history->asked))) {
        list_unlink(node);
        take_group(history, group_of(node));
    }
    list_for_each (each, &history->groups) {
        struct history_group *group = group_of(each);

        if (!group->asked)
            continue;
        group->asked = false;
        group->keep = group->asked_keep;
        group->max = group->asked_max;
        group->changed = true;
    }
    history->groups_changed = false;
    history->prune_at = 0;
}

/* ---- opening ---- */

static void open_database(struct history *history)
{
    int r = history_database_open(&history->database, history->path);

    if (r == 0) {
        list_for_each (node, &history->groups) {
            group_of(node)->number = 0;
            group_of(node)->n_rows = group_of(node)->bytes = 0;
            group_of(node)->changed = true;
        }
        r = history_read_groups(&history->database, on_group, history);
    }
    if (r < 0) {
        fail(history, r);
        return;
    }
    history->retry_at = 0;
    history->prune_at = 0;
    measure(history);
    report(history, "");
}

static bool is_open(const struct history *history)
{
    return history->database.handle != NULL;
}

/* ---- rows ---- */

static bool has_space(struct history *history)
{
    struct statvfs status;
    char problem[HISTORY_PROBLEM_MAX];

    if (statvfs(history->path, &status) < 0 ||
        (uint64_t)status.f_bavail * status.f_frsize >= history->free_min) {
        if (*history->problem != '\0')
            report(history, "");
        return true;
    }
    (void)snprintf(problem, sizeof(problem),
                   "%s: nothing is added while its disk has less than %llu MiB free", history->path,
                   (unsigned long long)(history->free_min >> 20));
    if (strcmp(problem, history->problem) != 0)
        report(history, problem);
    return false;
}

static int put_groups(struct history *history)
{
    int r = 0;

    list_for_each (node, &history->groups) {
        struct history_group *group = group_of(node);

        if (r == 0 && group->changed && (group->history || group->number != 0)) {
            r = history_put_group(&history->database, group);
            group->changed = r < 0;
        }
    }
    return r;
}

/* Removes at most `max` old rows, and rows beyond a group's bytes. Returns like history_prune(). */
static int prune(struct history *history, size_t max)
{
    const usec_t now = clock_realtime();
    usec_t every = PRUNE_EVERY;
    int r = 0;

    list_for_each (node, &history->groups) {
        struct history_group *group = group_of(node);
        size_t n = 0;

        if (group->n_rows > 0 && group->keep / PRUNE_SHARE < every)
            every = group->keep / PRUNE_SHARE;

        if (r == 0 && max > 0 && group->number != 0)
            r = history_prune(&history->database, group, (int64_t)usec_sub(now, group->keep), max,
                              &n);
        max -= n;
    }
    history->prune_at = max == 0 ? 0 : clock_now() + every;
    return r;
}

/* Adds rows, and frees them: if the transaction fails, they are lost. */
static int put_rows(struct history *history, struct list *rows, size_t *ret)
{
    struct list *node;
    size_t n_lost = 0;
    int r = 0;

    for (*ret = 0; *ret < BATCH_MAX && r == 0 && (node = list_first(rows)); ++*ret) {
        r = history_put_row(&history->database, row_of(node));
        if (r < 0)
            break;
        n_lost += r > 0; /* no number was free */
        r = 0;
        (void)atomic_fetch_sub_explicit(&history->queued, history_row_bytes(row_of(node)),
                                        memory_order_relaxed);
        list_unlink(node);
        free(row_of(node));
    }
    count_dropped(history, n_lost);
    return r;
}

static void drop_rows(struct history *history, struct list *rows)
{
    struct list *node;
    size_t n = 0;

    while ((node = list_first(rows))) {
        (void)atomic_fetch_sub_explicit(&history->queued, history_row_bytes(row_of(node)),
                                        memory_order_relaxed);
        list_unlink(node);
        free(row_of(node));
        n++;
    }
    count_dropped(history, n);
}

/* One transaction: adds rows, and removes old ones. What cannot be written is dropped. */
static void change(struct history *history, struct list *rows)
{
    size_t n = 0;
    int r;

    if (!list_empty(rows) && !has_space(history))
        drop_rows(history, rows);
    r = history_begin(&history->database);
    if (r == 0)
        r = put_groups(history);
    if (r == 0)
        r = put_rows(history, rows, &n);
    if (r == 0)
        r = prune(history, PRUNE_MAX + n);
    if (r == 0)
        r = put_groups(history);
    if (r == 0)
        r = history_commit(&history->database);
    if (r < 0) {
        count_dropped(history, n);
        fail(history, r);
    }
    measure(history);
}

/* ---- calls ---- */

static void finish(struct history *history, struct history_call *call)
{
    pthread_mutex_lock(&history->mutex);
    list_push_back(&history->finished, &call->link);
    pthread_mutex_unlock(&history->mutex);
    (void)eventfd_write(history->event_fd, 1);
}

/* Removes rows of the group that had ended when the call began. */
static int purge(struct history *history, struct history_call *call)
{
    struct history_group *group = find_group(&history->groups, call->filter.group);
    size_t n = 0;
    int r;

    if (call->before == 0)
        call->before = history->database.last > 0 ? history->database.last : INT64_MAX;
    call->complete = !group || group->number == 0;
    if (call->complete)
        return 0;
    r = history_begin(&history->database);
    if (r == 0)
        r = history_prune(&history->database, group, call->before, BATCH_MIN, &n);
    if (r == 0)
        r = put_groups(history);
    if (r == 0)
        r = history_commit(&history->database);
    call->n_hits += n;
    call->complete = n < BATCH_MIN;
    return r;
}

/* Advances a call. Returns whether it is done. */
static bool advance(struct history *history, struct history_call *call)
{
    const usec_t began = clock_now();
    int r = 0;

    if (!is_open(history))
        call->error = -EIO;
    if (!is_open(history) || atomic_load_explicit(&call->left, memory_order_relaxed))
        return true;
    if (call->purge)
        r = purge(history, call);
    else
        r = history_search(&history->database, call, &history->groups, SEARCH_USEC);
    call->spent += usec_sub(clock_now(), began);
    call->error = r;
    if (r < 0)
        fail(history, r);
    return r < 0 || call->complete ||
           (!call->purge && (history_call_is_full(call) || call->spent >= PAGE_USEC));
}

static void serve(struct history *history, struct list *calls)
{
    struct list *node = list_first(calls);

    if (!node)
        return;
    list_unlink(node);
    if (advance(history, call_of(node)))
        finish(history, call_of(node));
    else
        list_push_back(calls, node); /* the others first */
}

/* ---- the thread ---- */

/* When to do something without being asked, monotonic. */
static usec_t next_time(const struct history *history, bool has_rows)
{
    usec_t at = USEC_INFINITY;

    if (!is_open(history) && !history->for_good)
        return history->retry_at;
    if (is_open(history) && history->stats.n_rows > 0)
        at = history->prune_at;
    return has_rows && history->since + HISTORY_DELAY < at ? history->since + HISTORY_DELAY : at;
}

/* Whether rows that wait are to be taken. While the file cannot be opened, they stay in the queue.
 * Calls see all jobs that ended before them. */
static bool takes_rows(const struct history *history, const struct list *calls)
{
    return history->stopping || ((is_open(history) || history->for_good) && history->n_rows > 0 &&
                                 (history->n_rows >= BATCH_MIN || !list_empty(calls) ||
                                  clock_now() >= history->since + HISTORY_DELAY));
}

static bool has_work(const struct history *history, const struct list *rows,
                     const struct list *calls)
{
    return history->groups_changed || !list_empty(&history->calls) || !list_empty(calls) ||
           takes_rows(history, calls) || (!list_empty(rows) && is_open(history)) ||
           clock_now() >= next_time(history, history->n_rows > 0);
}

static void wait_for_work(struct history *history, const struct list *rows,
                          const struct list *calls)
{
    while (!has_work(history, rows, calls)) {
        const usec_t at = next_time(history, history->n_rows > 0);
        const struct timespec until = usec_to_timespec(at);

        if (at == USEC_INFINITY)
            (void)pthread_cond_wait(&history->wake, &history->mutex);
        else
            (void)pthread_cond_timedwait(&history->wake, &history->mutex, &until);
    }
}

/* Waits for something to do, and takes it. Returns false at the end. */
static bool take(struct history *history, struct list *rows, struct list *calls)
{
    bool continues;

    pthread_mutex_lock(&history->mutex);
    wait_for_work(history, rows, calls);
    if (history->groups_changed)
        take_groups(history);
    list_append(calls, &history->calls);
    if (takes_rows(history, calls)) {
        list_append(rows, &history->rows);
        history->n_rows = 0;
    }
    continues = !history->stopping;
    pthread_mutex_unlock(&history->mutex);
    return continues;
}

static void work(struct history *history, struct list *rows, struct list *calls)
{
    if (!is_open(history) && !history->for_good && clock_now() >= history->retry_at)
        open_database(history);
    if (history->for_good)
        drop_rows(history, rows);
    if (is_open(history) && (!list_empty(rows) || clock_now() >= history->prune_at))
        change(history, rows);
    serve(history, calls);
}

/* Writes what there is, unless that takes too long. */
static void end(struct history *history, struct list *rows, struct list *calls)
{
    const usec_t until = clock_now() + END_USEC;

    while (is_open(history) && !list_empty(rows) && clock_now() < until)
        change(history, rows);
    drop_rows(history, rows);
    while (!list_empty(calls)) {
        struct list *node = list_first(calls);

        list_unlink(node);
        call_of(node)->error = -ECANCELED;
        finish(history, call_of(node));
    }
    history_database_close(&history->database);
}

void *history_run(void *userdata)
{
    struct history *history = userdata;
    struct list rows = LIST_INIT(rows), calls = LIST_INIT(calls);

    open_database(history);
    while (take(history, &rows, &calls))
        work(history, &rows, &calls);
    end(history, &rows, &calls);
    return NULL;
}
