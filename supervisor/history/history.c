/* SPDX-License-Identifier: MIT */
#include "supervisor/history/history.h"

#include "shared/base/cleanup.h"
#include "shared/base/share.h"
#include "shared/base/utf8.h"
#include "supervisor/history/history-rows.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The rows that wait may take this much memory. A submitter's rows of a group may take as much as
 * remains free for all others. */
#define QUEUE_BYTES ((uint64_t)32 << 20)
/* The kind of shares: bytes of rows that wait. */
#define SHARED_BYTES 0
/* Rows in a batch. */
#define BATCH_MAX 1000u
/* The history leaves this much of the disk to the store of durable jobs and everything else. */
#define FREE_MIN (64 << 20)
/* Rows that are removed with a batch, beside as many as it adds; and how often to look for old
 * ones. */
#define PRUNE_MAX   128
#define PRUNE_EVERY (10 * USEC_PER_SEC)
#define PRUNE_SHARE 16 /* of the shortest History= at most */
/* How long a search runs before rows, and other searches, have their turn; and until its page is
 * complete with what it has found. */
#define SEARCH_USEC (5 * USEC_PER_MSEC)
#define PAGE_USEC   (500 * USEC_PER_MSEC)

struct history {
    struct loop *loop;
    struct store *store;
    char *path;
    void (*changed)(void *userdata);
    void (*settled)(void *userdata);
    void *userdata;
    struct batch *pending; /* waits for more rows; NULL = none */
    struct timer delay;    /* until it is written */
    struct timer prune;    /* until the next look for old rows */
    struct shares shares;  /* of the rows that wait */
    struct list active;    /* struct history_call.active */
    int64_t last;          /* the thread's: the number of the row that was added last */
    struct history_stats stats;
    bool off;                  /* as last reported */
    char full[PATH_MAX + 128]; /* why no row is added although the store works; "" = some are */
};

/* Rows that are written together, or the bounds of a group; old rows are removed with either. */
struct batch {
    struct store_task task;
    struct history *history;
    struct list rows;
    size_t n;
    char *group; /* NULL = no bounds */
    usec_t keep;
    uint64_t max;
    /* What its transaction has found. */
    bool no_space, more;
    size_t n_lost; /* rows for which no number was free */
    uint64_t n_rows;
    usec_t shortest; /* History= of a group with rows */
};

/* ---- rows ---- */

/* NULL allowed. */
static void free_row(struct history_row *row)
{
    if (row && row->share) {
        share_sub(row->share, SHARED_BYTES, row->size);
        share_unref(row->share);
    }
    free(row);
}

static void free_rows(struct list *rows)
{
    list_until_empty (row, rows, struct history_row, link) {
        list_unlink(&row->link);
        free_row(row);
    }
}

/* Copies the beginning of the payload. Returns its size. */
static size_t take_excerpt(const struct job *job, char ret[HISTORY_EXCERPT_MAX])
{
    const void *data = payload_data(&job->payload);
    size_t size =
        job->payload.size < HISTORY_EXCERPT_MAX ? (size_t)job->payload.size : HISTORY_EXCERPT_MAX;

    if (size == 0)
        return 0;
    if (data)
        memcpy(ret, data, size);
    else if (pread(job->payload.fd, ret, size, 0) != (ssize_t)size)
        return 0;
    return size < job->payload.size ? utf8_whole(ret, size) : size;
}

static void set(const char **text, uint32_t *size, const char *value)
{
    *text = value ? value : "";
    *size = (uint32_t)strlen(*text);
}

void history_note(struct history *history, struct job *job, const char *group, const char *worker,
                  bool excerpt)
{
    char id[PROTOCOL_ID_TEXT], bytes[HISTORY_EXCERPT_MAX];
    struct history_row row = {
        .key = job->key_size > 0 ? job->key : "",
        .key_size = job->key_size,
        .excerpt = bytes,
        .reason = "",
    };

    if (job->rare && job->rare->past)
        return;
    set(&row.group, &row.group_size, group);
    set(&row.id, &row.id_size, job_format_id(job, id));
    set(&row.worker, &row.worker_size, worker);
    set(&row.tags, &row.tags_size, job->rare ? job->rare->tags : NULL);
    if (excerpt) {
        row.payload_size = job->payload.size;
        row.excerpt_size = (uint32_t)take_excerpt(job, bytes);
    }
    if (job_make_rare(job) < 0 || !(job->rare->past = history_row_copy(&row)))
        history->stats.n_dropped++;
}

/* Completes what was noted; NULL without memory. */
static struct history_row *complete(struct job *job)
{
    struct history_row *past = TAKE_PTR(job->rare->past), *row;

    past->facts = job->facts;
    past->state = job->state;
    set(&past->reason, &past->reason_size, job->reason);
    row = history_row_copy(past);
    free(past);
    return row;
}

/* ---- batches ---- */

/* Calls back when the problem has come or gone. */
static void tell(struct history *history)
{
    const bool off = *history_problem(history) != '\0';

    if (off == history->off)
        return;
    history->off = off;
    if (history->changed)
        history->changed(history->userdata);
}

static bool has_space(const struct history *history)
{
    struct statvfs status;

    return statvfs(history->path, &status) < 0 ||
           (uint64_t)status.f_bavail * status.f_frsize >= FREE_MIN;
}

static int put_rows(struct batch *batch, struct database *database)
{
    int r = 0;

    batch->n_lost = 0;
    list_for_each_entry (row, &batch->rows, struct history_row, link) {
        if (r >= 0)
            r = history_rows_add(database, row, &batch->history->last);
        batch->n_lost += r > 0;
    }
    return r < 0 ? r : 0;
}

static int apply_batch(struct store_task *task, struct database *database)
{
    struct batch *batch = list_entry(task, struct batch, task);
    size_t left = PRUNE_MAX + batch->n;
    int r = 0;

    if (batch->group)
        r = history_rows_use(database, batch->group, batch->keep, batch->max);
    batch->no_space = batch->n > 0 && !has_space(batch->history);
    if (r == 0 && !batch->no_space)
        r = put_rows(batch, database);
    if (r == 0)
        r = history_rows_prune(database, clock_realtime(), &left);
    if (r == 0)
        r = history_rows_measure(database, &batch->n_rows, &batch->shortest);
    batch->more = left == 0;
    return r;
}

static void note_space(struct history *history, bool no_space)
{
    history->full[0] = '\0';
    if (no_space)
        (void)snprintf(history->full, sizeof(history->full),
                       "%s: nothing is added while its disk has less than %d MiB free",
                       history->path, FREE_MIN >> 20);
    tell(history);
}

static void plan_prune(struct history *history, usec_t after)
{
    timer_arm(loop_timers(history->loop), &history->prune, loop_now(history->loop) + after);
}

/* Returns how long after a batch to look for old rows again. */
static usec_t prune_pause(const struct batch *batch)
{
    const usec_t share = batch->shortest / PRUNE_SHARE;

    return batch->more ? 0 : share < PRUNE_EVERY ? share : PRUNE_EVERY;
}

static void on_written(struct store_task *task, int result)
{
    struct batch *batch = list_entry(task, struct batch, task);
    struct history *history = batch->history;

    history->stats.n_dropped += result != 0 || batch->no_space ? batch->n : batch->n_lost;
    if (result == 0) {
        history->stats.n_rows = batch->n_rows;
        if (batch->n > 0)
            note_space(history, batch->no_space);
    }
    if (result != 0)
        plan_prune(history, PRUNE_EVERY);
    else if (batch->n_rows > 0)
        plan_prune(history, prune_pause(batch));
    free_rows(&batch->rows);
    free(batch->group);
    free(batch);
}

/* Returns an empty batch; NULL without memory. */
static struct batch *new_batch(struct history *history)
{
    struct batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return NULL;
    batch->history = history;
    batch->task.apply = apply_batch;
    batch->task.done = on_written;
    list_init(&batch->rows);
    return batch;
}

/* Hands the pending batch to the store. */
static void hand_over(struct history *history)
{
    struct batch *batch = TAKE_PTR(history->pending);

    timer_disarm(loop_timers(history->loop), &history->delay);
    if (batch)
        store_add(history->store, &batch->task);
}

static void on_delay(struct timer *timer, usec_t now)
{
    hand_over(list_entry(timer, struct history, delay));
}

static void on_prune(struct timer *timer, usec_t now)
{
    struct history *history = list_entry(timer, struct history, prune);
    struct batch *batch = new_batch(history);

    if (batch)
        store_add(history->store, &batch->task);
    else
        plan_prune(history, PRUNE_EVERY);
}

/* Begins a batch, which is written after a time. */
static bool begin_batch(struct history *history)
{
    struct batch *batch = new_batch(history);

    if (!batch)
        return false;
    timer_arm(loop_timers(history->loop), &history->delay, loop_now(history->loop) + HISTORY_DELAY);
    batch->task.addition = true;
    history->pending = batch;
    return true;
}

/* Counts the row among those that wait, unless its submitter would exceed its share. */
static bool take_room(struct history *history, struct history_row *row)
{
    char owner[PROTOCOL_NAME_MAX + 16];
    struct share *share;

    (void)snprintf(owner, sizeof(owner), "%u %s", (unsigned)row->submitter_uid, row->group);
    share = share_get(&history->shares, owner, strlen(owner));
    if (!share)
        return false;
    if (share->used[SHARED_BYTES] + history->shares.used[SHARED_BYTES] + row->size > QUEUE_BYTES) {
        share_unref(share);
        return false;
    }
    share_add(share, SHARED_BYTES, row->size);
    row->share = share;
    return true;
}

void history_add(struct history *history, struct job *job)
{
    struct history_row *row = complete(job);

    if (!row || !take_room(history, row) || !(history->pending || begin_batch(history))) {
        history->stats.n_dropped++;
        free_row(row);
        return;
    }
    list_push_back(&history->pending->rows, &row->link);
    if (++history->pending->n == BATCH_MAX)
        hand_over(history);
}

int history_use(struct history *history, const char *group, usec_t keep, uint64_t max)
{
    struct batch *batch = new_batch(history);

    if (!batch || !(batch->group = strdup(group))) {
        free(batch);
        return -ENOMEM;
    }
    batch->keep = keep;
    batch->max = max;
    store_add(history->store, &batch->task);
    return 0;
}

/* ---- calls ---- */

void history_call_free(struct history_call *call)
{
    free_rows(&call->hits);
    free(call->filter.group);
    free(call->filter.id);
    free(call->filter.key);
    free(call->filter.tag);
    free(call->filter.text);
    free(call->reader.groups);
    free(call);
}

bool history_has_room(const struct history *history, uid_t uid)
{
    size_t n = 0;

    list_for_each_entry (call, &history->active, struct history_call, active)
        n += call->uid == uid;
    return n < HISTORY_CALLS_MAX;
}

void history_call_init(struct history_call *call, uid_t uid)
{
    list_init(&call->hits);
    list_init(&call->active);
    call->filter.state = call->filter.cause = call->filter.failed = -1;
    call->reader.uid = JOB_NOBODY;
    call->uid = uid;
}

static int search(struct history_call *call, struct database *database)
{
    const usec_t began = clock_now();
    const int r = history_rows_search(database, call, SEARCH_USEC);

    call->spent += usec_sub(clock_now(), began);
    return r == 0 && !history_rows_enough(call) && call->spent < PAGE_USEC ? STORE_E_MORE : r;
}

static int purge(struct history_call *call, struct database *database)
{
    size_t left = BATCH_MAX;
    int r;

    if (call->before == 0)
        call->before = (int64_t)clock_realtime() + HISTORY_LATE_MAX;
    r = history_rows_purge(database, call->filter.group, call->before, &left);
    call->n_hits += BATCH_MAX - left;
    return r == 0 && left == 0 ? STORE_E_MORE : r;
}

/* Calls are queued with the batches, so a search sees the jobs that ended before it. */
static int apply_call(struct store_task *task, struct database *database)
{
    struct history_call *call = list_entry(task, struct history_call, task);

    if (atomic_load_explicit(&call->left, memory_order_relaxed))
        return -ECANCELED;
    return call->purge ? purge(call, database) : search(call, database);
}

static void on_called(struct store_task *task, int result)
{
    struct history_call *call = list_entry(task, struct history_call, task);

    call->error = result;
    list_unlink(&call->active);
    call->done(call);
}

void history_begin_call(struct history *history, struct history_call *call)
{
    hand_over(history);
    call->spent = call->bytes = call->n_hits = call->n_stuck = 0;
    call->task = (struct store_task){.apply = apply_call, .done = on_called, .impatient = true};
    list_push_back(&history->active, &call->active);
    store_add(history->store, &call->task);
}

void history_leave(struct history_call *call)
{
    call->owner = NULL;
    if (!call->purge)
        atomic_store_explicit(&call->left, true, memory_order_relaxed);
}

/* ---- state ---- */

static void on_changed(void *userdata, enum store_state state)
{
    tell(userdata);
}

static void on_settled(void *userdata)
{
    const struct history *history = userdata;

    if (history->settled)
        history->settled(history->userdata);
}

const char *history_problem(const struct history *history)
{
    if (!history)
        return "out of memory when the history was opened";
    return *history->full != '\0' ? history->full : store_problem(history->store);
}

struct history_stats history_stats(const struct history *history)
{
    struct history_stats stats = history->stats;

    stats.bytes = store_stats(history->store).bytes;
    return stats;
}

int history_new(struct history **ret, struct loop *loop, const struct history_options *options)
{
    struct history *history = calloc(1, sizeof(*history));
    const struct store_options store = {
        .path = options->path,
        .format = &HISTORY_FORMAT,
        .changed = on_changed,
        .settled = on_settled,
        .userdata = history,
    };
    int r;

    if (!history || !(history->path = strdup(options->path))) {
        free(history);
        return -ENOMEM;
    }
    history->loop = loop;
    history->changed = options->changed;
    history->settled = options->settled;
    history->userdata = options->userdata;
    list_init(&history->active);
    shares_init(&history->shares);
    timer_init(&history->delay, on_delay);
    timer_init(&history->prune, on_prune);
    r = store_new(&history->store, loop, &store);
    if (r < 0) {
        free(history->path);
        free(history);
        return r;
    }
    on_prune(&history->prune, 0);
    *ret = history;
    return 0;
}

struct store *history_store(struct history *history)
{
    return history ? history->store : NULL;
}

void history_hurry(struct history *history)
{
    hand_over(history);
    list_for_each_entry (call, &history->active, struct history_call, active)
        call->left = true;
}

void history_abandon(struct history *history)
{
    store_abandon(history->store);
    timer_disarm(loop_timers(history->loop), &history->delay);
    timer_disarm(loop_timers(history->loop), &history->prune);
}

struct history *history_free(struct history *history)
{
    if (!history)
        return NULL;
    history_hurry(history);
    (void)store_free(history->store); /* ends batches, which set the timer */
    shares_deinit(&history->shares);
    timer_disarm(loop_timers(history->loop), &history->prune);
    free(history->path);
    free(history);
    return NULL;
}
