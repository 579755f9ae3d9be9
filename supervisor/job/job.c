/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job.h"

#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include "supervisor/event/death.h"
#include "supervisor/job/checkpoint.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/job/submitter.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BIT(state) (1u << (state))

/* Memory is given back when this much was freed, and there are so many jobs less. */
#define GIVE_BACK_BYTES ((uint64_t)16 << 20)
#define GIVE_BACK_JOBS  1024

/* The states that may follow each state. None follows an end. */
static const unsigned FOLLOWING[_JOB_N_STATES] = {
    [JOB_QUEUED] = BIT(JOB_RUNNING) | BIT(JOB_DELAYED) | BIT(JOB_BACKOFF) | BIT(JOB_PENDING) |
                   BIT(JOB_CANCELLED) | BIT(JOB_DEAD), /* its row is damaged */
    [JOB_RUNNING] = BIT(JOB_QUEUED) | BIT(JOB_BACKOFF) | BIT(JOB_SUCCEEDED) | BIT(JOB_REJECTED) |
                    BIT(JOB_CANCELLED) | BIT(JOB_DEAD),
    [JOB_BACKOFF] = BIT(JOB_QUEUED) | BIT(JOB_CANCELLED) | BIT(JOB_DEAD),
    [JOB_DELAYED] = BIT(JOB_QUEUED) | BIT(JOB_CANCELLED),
    [JOB_PENDING] = BIT(JOB_QUEUED) | BIT(JOB_CANCELLED) | BIT(JOB_SUCCEEDED) | BIT(JOB_REJECTED),
};

static const char *const STATES[_JOB_N_STATES] = {
    [JOB_QUEUED] = "queued",       [JOB_RUNNING] = "running",     [JOB_BACKOFF] = "backoff",
    [JOB_DELAYED] = "delayed",     [JOB_SUCCEEDED] = "succeeded", [JOB_REJECTED] = "rejected",
    [JOB_CANCELLED] = "cancelled", [JOB_DEAD] = "dead",           [JOB_PENDING] = "pending",
};

/* ---- nodes to be freed ---- */

#define DISCARDED_PER_TURN 256

static void link_discarded(struct job_table *table, struct heap_node *node)
{
    if (!node)
        return;
    node->parent = table->discarded;
    table->discarded = node;
}

static void free_discarded(struct job_table *table, unsigned max)
{
    struct heap_node *node;

    while (max-- > 0 && (node = table->discarded)) {
        table->discarded = node->parent;
        link_discarded(table, node->left);
        link_discarded(table, node->right);
        free(node);
    }
}

static void on_discard(struct loop_deferred *deferred)
{
    struct job_table *table = list_entry(deferred, struct job_table, discard);

    free_discarded(table, DISCARDED_PER_TURN);
    if (table->discarded)
        loop_defer(table->loop, deferred);
}

void job_table_discard(struct job_table *table, struct heap *heap)
{
    link_discarded(table, heap->first);
    heap->first = NULL;
    heap->n_nodes = 0;
    if (!table->loop)
        free_discarded(table, UINT_MAX);
    else if (table->discarded)
        loop_defer(table->loop, &table->discard);
}

/* ---- the table ---- */

int job_table_init(struct job_table *table)
{
    uint64_t seed[2];

    *table = (struct job_table){0};
    list_init(&table->unused);
    list_init(&table->unused_waiters);
    job_table_init_telling(table);
    loop_deferred_init(&table->discard, on_discard);
    job_ties_init(&table->ties);
    if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return -errno;
    blob_quota_init(&table->blobs);
    table->random_high = seed[0];
    table->random_state = seed[1] | 1;
    return 0;
}

static void free_unused(struct job_table *table)
{
    list_until_empty (job, &table->unused, struct job, link) {
        list_unlink(&job->link);
        free(job);
    }
    list_until_empty (waiter, &table->unused_waiters, struct job_waiter, link) {
        list_unlink(&waiter->link);
        free(waiter);
    }
    table->n_unused_waiters = 0;
}

void job_table_deinit(struct job_table *table)
{
    struct job *job;
    size_t cursor = 0;

    job_tell_rest(table);
    if (table->discarded)
        loop_undefer(&table->discard);
    free_discarded(table, UINT_MAX);
    while ((job = handle_table_next(&table->handles, &cursor))) {
        job->references = 1;
        list_unlink(&job->link);
        job_unref(table, job);
    }
    handle_table_deinit(&table->handles);
    job_ties_deinit(&table->ties);
    index_deinit(&table->durable);
    index_deinit(&table->unique);
    free_unused(table);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct job *)a)->name, ((const struct job *)b)->name);
}

/* Returns 64 bits that differ from job to job and cannot be guessed from the handle. */
static uint64_t job_table_random(struct job_table *table)
{
    return hash_mix(table->random_state += UINT64_C(0x9e3779b97f4a7c15));
}

/* The id that the table makes for a job: `high` is random, `low` is the handle xored with a value
 * that depends on `high` and a secret. So it needs no index, and handles stay private. */
static uint64_t job_table_mask(const struct job_table *table, uint64_t high)
{
    return hash_mix(high ^ table->random_high);
}

static struct job *job_by_name(const struct job_table *table, const char *name)
{
    struct job wanted;
    void *found;

    if (!table->names)
        return NULL;
    wanted.name = (char *)(uintptr_t)name;
    found = tfind(&wanted, (void *const *)&table->names, compare_names);
    return found ? *(struct job **)found : NULL;
}

/* Returns 0, JOB_E_EXISTS with `*ret_other`, or -errno. */
static int job_set_name(struct job_table *table, struct job *job, const char *name,
                        struct job **ret_other)
{
    struct protocol_id id;
    struct job *other;
    void *node;

    if (protocol_id_parse(&id, name) < 0)
        return -EINVAL;
    other = job_by_id(table, &id);
    if (!other)
        other = job_by_name(table, name);
    if (other) {
        *ret_other = other;
        return JOB_E_EXISTS;
    }
    job->name = strdup(name);
    node = job->name ? tsearch(job, &table->names, compare_names) : NULL;
    return node ? 0 : -ENOMEM;
}

static void job_make_id(struct job_table *table, struct job *job)
{
    job->id_high = job_table_random(table);
    job->id_low = job->handle ^ job_table_mask(table, job->id_high);
}

void job_set_record(struct job_table *table, struct job *job, struct job_record *record,
                    const struct protocol_id *id)
{
    record->job = job;
    job->record = record;
    if (job->name)
        return;
    job->id_high = id->high;
    job->id_low = id->low;
    index_add(&table->durable, &record->by_id, hash_mix(id->high ^ id->low));
}

void job_drop_record(struct job_table *table, struct job *job)
{
    if (!job->name)
        index_remove(&table->durable, &job->record->by_id);
    job->record = NULL;
}

static struct job *job_by_durable_id(const struct job_table *table, const struct protocol_id *id)
{
    const uint64_t hash = hash_mix(id->high ^ id->low);

    index_for_each_entry (record, &table->durable, hash, struct job_record, by_id)
        if (record->job->id_high == id->high && record->job->id_low == id->low)
            return record->job;
    return NULL;
}

/* Saves the call for what most jobs do not have. */
static inline void free_rare(void *pointer)
{
    if (pointer)
        free(pointer);
}

static void job_free_id(struct job_table *table, struct job *job)
{
    if (!job->name || job->id_is_free)
        return;
    (void)tdelete(job, &table->names, compare_names);
    job->id_is_free = true;
}

/* Gives memory back to the kernel when there are fewer jobs than there were. The C library does so
 * by itself only at the end of its heap, so all would stay allocated after a flood. Doing it in
 * pieces takes some milliseconds each. */
static void give_back(struct job_table *table, const struct job *job)
{
    table->freed += sizeof(*job) + (job->payload.fd < 0 ? job->payload.size : 0);
    if (table->freed < GIVE_BACK_BYTES || table->n_live + GIVE_BACK_JOBS > table->most_live)
        return;
    free_unused(table);
    (void)malloc_trim(0);
    table->most_live = table->n_live;
    table->freed = 0;
}

static void job_free_rare(struct job_table *table, struct job *job)
{
    (void)unique_leave(table, job);
    ties_leave(table, job);
    job_stream_free(job);
    free(job->rare->attempts);
    free(job->rare->past);
    free(job->rare->tags);
    free(job->rare->traceparent);
    (void)checkpoint_unref(job->rare->checkpoint);
    free(job->rare);
}

static void job_free(struct job_table *table, struct job *job)
{
    give_back(table, job);
    submitter_leave(job);
    if (job->record)
        table->free_record(job);
    if (job->rare)
        job_free_rare(table, job);
    job_free_id(table, job);
    free_rare(job->name);
    while (!list_empty(&job->waiters))
        (void)job_waiter_free(table, job_first_waiter(job));
    payload_deinit(&job->payload);
    free_rare(job->key);
    free_rare(job->reason);
    free_rare(job->pause);
    free_rare(job->deadline);
    list_push_front(&table->unused, &job->link);
}

static void job_init(struct job *job)
{
    memset(job, 0, offsetof(struct job, payload));
    job->references = 1;
    job->canceller = JOB_NOBODY;
    payload_init(&job->payload);
    list_init(&job->link);
    list_init(&job->waiters);
}

static struct job *job_allocate(struct job_table *table)
{
    struct list *unused = list_first(&table->unused);
    struct job *job = unused ? list_entry(unused, struct job, link) : malloc(sizeof(*job));

    if (!job)
        return NULL;
    if (unused)
        list_unlink(unused);
    if (table->n_live >= table->most_live) {
        table->most_live = table->n_live + 1;
        table->freed = 0;
    }
    job_init(job);
    return job;
}

int job_restore(struct job_table *table, uint64_t handle, const struct protocol_id *id,
                struct job **ret)
{
    struct job *job = job_allocate(table), *other;
    int r;

    if (!job)
        return -ENOMEM;
    job->id_high = id->high;
    job->id_low = id->low;
    job->handle = handle;
    job->payload_lost = true;
    r = id->name[0] != '\0' ? job_set_name(table, job, id->name, &other) : 0;
    if (r == 0)
        r = handle_table_restore(&table->handles, handle, job);
    if (r != 0) {
        job_free(table, job);
        return r;
    }
    table->n_live++;
    *ret = job;
    return 0;
}

int job_new(struct job_table *table, const char *name, struct job **ret)
{
    struct job *job = job_allocate(table);
    int r;

    if (!job)
        return -ENOMEM;
    r = name[0] != '\0' ? job_set_name(table, job, name, ret) : 0;
    if (r == 0)
        r = handle_table_add(&table->handles, job, &job->handle);
    if (r != 0) {
        job_free(table, job);
        return r;
    }
    if (name[0] == '\0')
        job_make_id(table, job);
    table->n_live++;
    *ret = job;
    return 0;
}

struct job *job_ref(struct job *job)
{
    job->references++;
    return job;
}

void job_unref(struct job_table *table, struct job *job)
{
    assert(job->references > 0);
    if (--job->references > 0)
        return;
    assert(!list_linked(&job->link));
    handle_table_remove(&table->handles, job->handle);
    table->n_live--;
    job_free(table, job);
}

void job_let_go(struct job_table *table, struct job *job)
{
    if (job->rare)
        job_stream_leave(job);
    job->group = NULL;
    job_free_id(table, job);
    job_unref(table, job);
}

struct job *job_by_id(const struct job_table *table, const struct protocol_id *id)
{
    char text[PROTOCOL_ID_TEXT];
    struct job *job;

    if (id->name[0] == '\0') {
        job = job_by_handle(table, id->low ^ job_table_mask(table, id->high));
        if (job && !job->name && job->id_high == id->high && job->id_low == id->low)
            return job;
        job = job_by_durable_id(table, id);
        if (job)
            return job;
    }
    /* A submitter may have chosen a name that looks like a made id. */
    return job_by_name(table, protocol_id_format(id, text));
}

char *job_format_id(const struct job *job, char *text)
{
    struct protocol_id id;

    job_get_id(job, &id);
    return protocol_id_format(&id, text);
}

void job_set_state(struct job *job, enum job_state state)
{
    assert(FOLLOWING[job->state] & BIT(state));
    if (job->submitter)
        submitter_note(job, state);
    job->state = state;
}

const char *job_state_to_string(enum job_state state)
{
    return STATES[state];
}

int job_set_key(struct job *job, const void *key, size_t size)
{
    if (size == 0)
        return 0;
    if (size > PROTOCOL_KEY_MAX)
        return -EMSGSIZE;
    job->key = malloc(size);
    if (!job->key)
        return -ENOMEM;
    memcpy(job->key, key, size);
    job->key_size = (uint8_t)size;
    return 0;
}

int job_set_checkpoint(struct job *job, struct checkpoint *checkpoint)
{
    if (!checkpoint && !job->rare)
        return 0;
    if (job_make_rare(job) < 0) {
        (void)checkpoint_unref(checkpoint);
        return -ENOMEM;
    }
    (void)checkpoint_unref(job->rare->checkpoint);
    job->rare->checkpoint = checkpoint;
    return 0;
}

int job_make_pause(struct job *job)
{
    if (job->pause)
        return 0;
    job->pause = calloc(1, sizeof(*job->pause));
    if (!job->pause)
        return -ENOMEM;
    job->pause->job = job;
    return 0;
}

int job_make_deadline(struct job *job)
{
    if (job->deadline)
        return 0;
    job->deadline = calloc(1, sizeof(*job->deadline));
    if (!job->deadline)
        return -ENOMEM;
    job->deadline->job = job;
    return 0;
}

int job_make_rare(struct job *job)
{
    if (job->rare)
        return 0;
    job->rare = fault_inject("job-rare") < 0 ? NULL : calloc(1, sizeof(*job->rare));
    if (!job->rare)
        return -ENOMEM;
    job->rare->job = job;
    return 0;
}

int job_set_tags(struct job *job, const char *tags, size_t size)
{
    if (size == 0 || (job->rare && job->rare->tags))
        return 0;
    if (job_make_rare(job) < 0)
        return -ENOMEM;
    job->rare->tags = strndup(tags, size);
    return job->rare->tags ? 0 : -ENOMEM;
}

int job_set_traceparent(struct job *job, const char *text, size_t size)
{
    if (job_traceparent(job) || !traceparent_valid(text, size))
        return 0;
    if (job_make_rare(job) < 0)
        return -ENOMEM;
    job->rare->traceparent = strndup(text, size);
    return job->rare->traceparent ? 0 : -ENOMEM;
}

static void write_digits(char *at, uint64_t value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[value >> shift & 0xf];
}

void job_attempt_traceparent(const struct job *job, char ret[TRACEPARENT_SIZE + 1])
{
    char id[PROTOCOL_ID_TEXT];
    uint64_t digest;

    memcpy(ret, job->rare->traceparent, TRACEPARENT_SIZE + 1);
    job_format_id(job, id);
    digest = digest_bytes(DIGEST_NONE, id, strlen(id));
    digest = digest_bytes(digest, ret, TRACEPARENT_SIZE);
    digest = digest_bytes(digest, &job->created_at, sizeof(job->created_at));
    digest = digest_bytes(digest, &job->attempt, sizeof(job->attempt));
    /* Not 0, which no span has. */
    write_digits(ret + TRACEPARENT_SPAN, hash_mix(digest) | 1);
    if (job->attempt <= 1)
        return;
    write_digits(ret + TRACEPARENT_TRACE, hash_mix(digest + 1) | 1);
    write_digits(ret + TRACEPARENT_TRACE + 16, hash_mix(digest + 2));
}

static int make_attempts(struct job *job)
{
    if (job_make_rare(job) < 0)
        return -ENOMEM;
    if (!job->rare->attempts)
        job->rare->attempts = calloc(JOB_ATTEMPTS_KEPT, sizeof(*job->rare->attempts));
    return job->rare->attempts ? 0 : -ENOMEM;
}

void job_note_attempt(struct job *job, const char *worker, const char *cause, const char *detail)
{
    struct job_attempt *attempt;

    job->failed_by = (uint8_t)attempt_cause_from_string(cause);
    if (make_attempts(job) < 0)
        return;
    if (job->n_attempts == JOB_ATTEMPTS_KEPT) {
        memmove(job->rare->attempts, job->rare->attempts + 1,
                (JOB_ATTEMPTS_KEPT - 1) * sizeof(*job->rare->attempts));
        job->n_attempts--;
    }
    attempt = &job->rare->attempts[job->n_attempts++];
    *attempt = (struct job_attempt){.number = job->attempt, .at = clock_realtime()};
    (void)snprintf(attempt->worker, sizeof(attempt->worker), "%s", worker);
    (void)snprintf(attempt->cause, sizeof(attempt->cause), "%s", cause);
    (void)snprintf(attempt->detail, sizeof(attempt->detail), "%s", detail);
}

void job_restore_attempts(struct job *job, const struct job_attempt *attempts, unsigned n)
{
    const unsigned room = JOB_ATTEMPTS_KEPT - job->n_attempts;

    if (n > room) { /* the oldest have no room */
        attempts += n - room;
        n = room;
    }
    if (n == 0)
        return;
    if (make_attempts(job) < 0)
        return;
    memmove(job->rare->attempts + n, job->rare->attempts, job->n_attempts * sizeof(*attempts));
    memcpy(job->rare->attempts, attempts, n * sizeof(*attempts));
    job->n_attempts = (uint8_t)(job->n_attempts + n);
}

const char *job_unkept_reason(const struct job *job, int error, char ret[JOB_UNKEPT_MAX])
{
    const unsigned long long size = job->result.size;

    if (error == 0)
        (void)snprintf(ret, JOB_UNKEPT_MAX,
                       "its result is not kept: %llu bytes are more than ResultsMemoryMax= allows",
                       size);
    else
        (void)snprintf(ret, JOB_UNKEPT_MAX, "its result is not kept: %llu bytes: %s", size,
                       error == -ENOSPC ? "the disk has too little space left" : strerror(-error));
    return ret;
}

void job_set_reason(struct job *job, const char *reason)
{
    free(job->reason);
    job->reason = strndup(reason, PROTOCOL_REASON_MAX);
}
