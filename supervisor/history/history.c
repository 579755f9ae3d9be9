/* SPDX-License-Identifier: MIT */

/* The loop's side of the history. */

#include "supervisor/history/history.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/history/history-private.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#define RETRY (5 * USEC_PER_SEC)
/* The history leaves this much of the disk to the store of durable jobs and everything else. */
#define FREE_MIN ((uint64_t)64 << 20)
/* How long the end waits for the thread. */
#define END_TIMEOUT 5

/* ---- groups ---- */

static struct history_group *find_known(const struct history *history, const char *name)
{
    list_for_each (node, &history->known)
        if (strcmp(list_entry(node, struct history_group, known)->name, name) == 0)
            return list_entry(node, struct history_group, known);
    return NULL;
}

static struct history_group *new_group(struct history *history, const char *name)
{
    struct history_group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->history = history;
    group->name = strdup(name);
    if (!group->name) {
        free(group);
        return NULL;
    }
    list_push_back(&history->known, &group->known);
    return group;
}

struct history_group *history_use(struct history *history, const char *name, usec_t keep,
                                  uint64_t max)
{
    struct history_group *group = find_known(history, name);
    const bool is_new = !group;

    if (is_new)
        group = new_group(history, name);
    if (!group)
        return NULL;
    pthread_mutex_lock(&history->mutex);
    group->asked_keep = keep < INT64_MAX ? keep : INT64_MAX;
    group->asked_max = max < INT64_MAX ? max : INT64_MAX;
    group->asked = true;
    history->groups_changed = true;
    if (is_new)
        list_push_back(&history->asked, &group->link);
    pthread_cond_signal(&history->wake);
    pthread_mutex_unlock(&history->mutex);
    return group;
}

/* ---- rows ---- */

const char *history_row_text(const struct history_row *row, enum history_text which)
{
    const char *text = row->texts;

    for (unsigned i = 0; i < which; i++)
        text += row->sizes[i] + 1;
    return text;
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

struct text {
    const char *data;
    size_t size;
};

static struct history_row *make_row(const struct text texts[_HISTORY_N_TEXTS])
{
    struct history_row *row;
    size_t size = 0;
    char *at;

    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++)
        size += texts[i].size + 1;
    row = malloc(sizeof(*row) + size);
    if (!row)
        return NULL;
    memset(row, 0, sizeof(*row));
    at = row->texts;
    for (unsigned i = 0; i < _HISTORY_N_TEXTS; i++) {
        row->sizes[i] = (uint16_t)texts[i].size;
        if (texts[i].size > 0)
            memcpy(at, texts[i].data, texts[i].size);
        at[texts[i].size] = '\0';
        at += texts[i].size + 1;
    }
    return row;
}

void history_note(struct history_group *group, struct job *job, const char *worker, bool excerpt)
{
    char id[PROTOCOL_ID_TEXT], bytes[HISTORY_EXCERPT_MAX];
    struct text texts[_HISTORY_N_TEXTS] = {{NULL, 0}};

    if (job_make_rare(job) < 0) {
        group->history->n_dropped++;
        return;
    }
    if (job->rare->past)
        return;
    texts[HISTORY_ID] = (struct text){job_format_id(job, id), strlen(id)};
    if (worker)
        texts[HISTORY_WORKER] = (struct text){worker, strlen(worker)};
    if (job->rare->tags)
        texts[HISTORY_TAGS] = (struct text){job->rare->tags, strlen(job->rare->tags)};
    texts[HISTORY_KEY] = (struct text){job->key, job->key_size};
    if (excerpt)
        texts[HISTORY_EXCERPT] = (struct text){bytes, take_excerpt(job, bytes)};
    job->rare->past = make_row(texts);
    if (!job->rare->past) {
        group->history->n_dropped++;
        return;
    }
    job->rare->past->group = group;
    job->rare->past->payload_size = excerpt ? job->payload.size : 0;
}

/* Appends the reason, which is the last text. Without memory it is left out. */
static struct history_row *add_reason(struct history_row *row, const char *reason)
{
    const size_t size = reason ? strnlen(reason, PROTOCOL_REASON_MAX) : 0;
    const size_t offset = (size_t)(history_row_text(row, HISTORY_REASON) - (const char *)row);
    struct history_row *longer = size > 0 ? realloc(row, offset + size + 1) : NULL;

    if (!longer)
        return row;
    longer->sizes[HISTORY_REASON] = (uint16_t)size;
    memcpy((char *)longer + offset, reason, size);
    ((char *)longer)[offset + size] = '\0';
    return longer;
}

void history_add(struct job *job)
{
    struct history_row *row = TAKE_PTR(job->rare->past);
    struct history *history = row->group->history;
    uint64_t bytes;

    row = add_reason(row, job->reason);
    row->facts = job->facts;
    row->state = job->state;
    bytes = history_row_bytes(row);
    if (atomic_load_explicit(&history->queued, memory_order_relaxed) + bytes > QUEUE_BYTES) {
        history->n_dropped++;
        free(row);
        return;
    }
    (void)atomic_fetch_add_explicit(&history->queued, bytes, memory_order_relaxed);
    list_push_back(&history->pending, &row->link);
    history->n_pending++;
    loop_defer(history->loop, &history->handover);
}

/* Hands the rows of this turn to the thread. The first one wakes it, and those that fill a batch:
 * in between it sleeps. */
static void hand_over(struct history *history)
{
    const size_t n = history->n_pending;
    bool wakes;

    loop_undefer(&history->handover);
    if (n == 0)
        return;
    history->n_pending = 0;
    pthread_mutex_lock(&history->mutex);
    if (history->n_rows == 0)
        history->since = loop_now(history->loop);
    wakes =
        history->n_rows == 0 || (history->n_rows < BATCH_MIN && history->n_rows + n >= BATCH_MIN);
    list_append(&history->rows, &history->pending);
    history->n_rows += n;
    pthread_mutex_unlock(&history->mutex);
    if (wakes)
        pthread_cond_signal(&history->wake);
}

static void on_handover(struct loop_deferred *deferred)
{
    hand_over(list_entry(deferred, struct history, handover));
}

/* ---- calls ---- */

static void free_rows(struct list *rows)
{
    struct list *node;

    while ((node = list_first(rows))) {
        list_unlink(node);
        free(list_entry(node, struct history_row, link));
    }
}

void history_call_free(struct history_call *call)
{
    free_rows(&call->hits);
    free(call->filter.group);
    free(call->filter.id);
    free(call->filter.key);
    free(call->filter.tag);
    free(call->filter.text);
    for (char **name = call->reader.groups; name && *name; name++)
        free(*name);
    free(call->reader.groups);
    free(call);
}

static size_t count_calls(const struct history *history, uid_t uid)
{
    size_t n = 0;

    list_for_each (node, &history->active)
        n += list_entry(node, struct history_call, active)->uid == uid;
    return n;
}

bool history_has_room(const struct history *history, uid_t uid)
{
    return count_calls(history, uid) < HISTORY_CALLS_MAX;
}

void history_call_init(struct history_call *call, uid_t uid)
{
    list_init(&call->hits);
    list_init(&call->link);
    list_init(&call->active);
    call->filter.state = call->filter.cause = call->filter.failed = -1;
    call->reader.uid = JOB_NOBODY;
    call->uid = uid;
}

void history_begin_call(struct history *history, struct history_call *call)
{
    hand_over(history);
    call->spent = 0;
    call->error = 0;
    list_push_back(&history->active, &call->active);
    pthread_mutex_lock(&history->mutex);
    list_push_back(&history->calls, &call->link);
    pthread_cond_signal(&history->wake);
    pthread_mutex_unlock(&history->mutex);
}

void history_leave(struct history_call *call)
{
    call->owner = NULL;
    atomic_store_explicit(&call->left, true, memory_order_relaxed);
}

/* ---- what the thread reports ---- */

static void finish_calls(struct list *finished)
{
    struct list *node;

    while ((node = list_first(finished))) {
        struct history_call *call = list_entry(node, struct history_call, link);

        list_unlink(node);
        list_unlink(&call->active);
        call->done(call);
    }
}

static void on_event(void *userdata, uint32_t events)
{
    struct history *history = userdata;
    struct list finished = LIST_INIT(finished);
    eventfd_t unused;
    bool changed;

    (void)events;
    (void)eventfd_read(history->event_fd, &unused);
    pthread_mutex_lock(&history->mutex);
    list_swap(&finished, &history->finished);
    changed = strcmp(history->seen, history->problem) != 0;
    (void)snprintf(history->seen, sizeof(history->seen), "%s", history->problem);
    pthread_mutex_unlock(&history->mutex);
    if (changed && history->changed)
        history->changed(history->userdata);
    finish_calls(&finished);
}

const char *history_problem(const struct history *history)
{
    return history->seen;
}

const char *history_problem_of(const struct history *history)
{
    return history ? history->seen : "out of memory when the history was opened";
}

struct history_stats history_stats(struct history *history)
{
    struct history_stats stats;

    pthread_mutex_lock(&history->mutex);
    stats = history->stats;
    pthread_mutex_unlock(&history->mutex);
    stats.n_dropped += history->n_dropped;
    return stats;
}

/* ---- begin and end ---- */

/* The loop's thread handles all signals. */
static int start_thread(struct history *history)
{
    sigset_t all, saved;
    int r;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &saved);
    r = pthread_create(&history->thread, NULL, history_run, history);
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return -r;
}

static void init_shared(struct history *history)
{
    pthread_condattr_t attributes;

    (void)pthread_mutex_init(&history->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&history->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    list_init(&history->rows);
    list_init(&history->calls);
    list_init(&history->finished);
    list_init(&history->asked);
}

static void free_group(struct history_group *group)
{
    free(group->name);
    free(group);
}

/* Frees the groups of a list of the thread's but those that are in use. */
static void free_groups(struct list *groups)
{
    struct list *node;

    while ((node = list_first(groups))) {
        list_unlink(node);
        if (!list_entry(node, struct history_group, link)->history)
            free_group(list_entry(node, struct history_group, link));
    }
}

static void free_history(struct history *history)
{
    struct list *node;

    loop_unwatch(history->loop, &history->watch);
    close_fd(history->event_fd);
    free_groups(&history->groups);
    free_groups(&history->retired);
    while ((node = list_first(&history->known))) {
        list_unlink(node);
        free_group(list_entry(node, struct history_group, known));
    }
    free_rows(&history->rows);
    (void)pthread_cond_destroy(&history->wake);
    (void)pthread_mutex_destroy(&history->mutex);
    free(history);
}

int history_new(struct history **ret, struct loop *loop, const struct history_options *options)
{
    struct history *history = calloc(1, sizeof(*history));
    int r;

    if (!history)
        return -ENOMEM;
    history->loop = loop;
    history->changed = options->changed;
    history->userdata = options->userdata;
    history->retry = options->retry > 0 ? options->retry : RETRY;
    history->free_min = options->free_min > 0 ? options->free_min : FREE_MIN;
    history->database = (struct history_database)HISTORY_DATABASE_NULL;
    (void)snprintf(history->path, sizeof(history->path), "%s", options->path);
    list_init(&history->pending);
    list_init(&history->active);
    list_init(&history->known);
    list_init(&history->groups);
    list_init(&history->retired);
    loop_deferred_init(&history->handover, on_handover);
    init_shared(history);
    history->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = history->event_fd < 0
            ? -errno
            : loop_watch_fd(loop, &history->watch, history->event_fd, POLLIN, on_event, history);
    if (r == 0)
        r = start_thread(history);
    if (r < 0) {
        free_history(history);
        return r;
    }
    *ret = history;
    return 0;
}

struct history *history_free(struct history *history)
{
    struct timespec until;

    if (!history)
        return NULL;
    hand_over(history);
    pthread_mutex_lock(&history->mutex);
    history->stopping = true;
    pthread_cond_signal(&history->wake);
    pthread_mutex_unlock(&history->mutex);
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_TIMEOUT;
    if (pthread_timedjoin_np(history->thread, NULL, &until) != 0) {
        loop_unwatch(history->loop, &history->watch);
        return NULL;
    }
    on_event(history, POLLIN);
    free_history(history);
    return NULL;
}
