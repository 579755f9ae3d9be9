/* SPDX-License-Identifier: MIT */
/* What happens to a job whose unique key another live job holds. */

#include "supervisor/channel/payload.h"
#include "supervisor/group/group-private.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/store/job-number.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- the key ---- */

/* Larger payloads are not compared: that would take too long. */
#define PAYLOAD_COMPARED_MAX (UINT64_C(1) << 20)
#define CHUNK                4096

/* A blob is sealed. Returns 0 or -errno. */
static int add_blob(struct unique_digest *digest, const struct payload *blob)
{
    char chunk[CHUNK];

    for (uint64_t at = 0; at < blob->size;) {
        const ssize_t n = pread(blob->fd, chunk, sizeof(chunk), (off_t)at);

        if (n <= 0)
            return n < 0 ? -errno : -EBADMSG;
        unique_digest_add(digest, chunk, (size_t)n);
        at += (uint64_t)n;
    }
    return 0;
}

static int digest_payload(const struct group *group, const struct cell_request *request)
{
    const uint64_t size = request->blob ? request->blob->size : request->size;
    struct unique_digest digest;
    int r = 0;

    if (size > PAYLOAD_COMPARED_MAX)
        return CELL_E_TOO_LARGE;
    unique_digest_begin(&digest, group->name);
    if (!request->blob)
        unique_digest_add(&digest, request->data, (size_t)size);
    else
        r = add_blob(&digest, request->blob);
    request->rare->unique = unique_digest_end(&digest);
    return r;
}

/* The submitter's key comes first, or that of the job that is tried again; without any, the job is
 * not unique. All batches of a group have the same payload, which is empty. */
static int make_id(const struct group *group, const struct cell_request *request)
{
    const enum config_unique unique = group->config->unique;
    struct cell_request_rare *rare = request->rare;

    if (!unique_id_is_none(&rare->unique))
        return 0;
    if (rare->unique_size > 0)
        rare->unique = unique_id_make(group->name, rare->unique_key, rare->unique_size);
    else if (unique == CONFIG_UNIQUE_PAYLOAD && !rare->opens_batch)
        return digest_payload(group, request);
    else if (unique == CONFIG_UNIQUE_KEY && request->key_size > 0)
        rare->unique = unique_id_make(group->name, request->key, request->key_size);
    return 0;
}

/* Looks for the job on disk that has the key; without one, only waits until the jobs on disk are
 * known. Returns 0 = there is none, CELL_E_WAIT while that is looked for, CELL_E_*, or -ENOMEM. */
static int look_on_disk(const struct group *group, const struct cell_request *request)
{
    struct durable_jobs *durable = group->context->durable;
    const struct unique_id *key = &request->rare->unique;
    const int64_t number = names_on_disk_find(&durable->unique, key, sizeof(*key));
    struct protocol_id id;
    int r;

    if (!group->config->durable || (number == 0 && group->rows == GROUP_READ))
        return 0;
    if (number != 0 && !request->waiter)
        return CELL_E_TAKEN;
    id = job_number_to_id(store_id_key(durable->store), number);
    r = group_search(group, request, &id);
    if (r == 0)
        names_on_disk_remove(&durable->unique, key, sizeof(*key), number);
    return r;
}

/* ---- the conflict ---- */

static enum protocol_conflict conflict_of(const struct group *group,
                                          const struct cell_request *request)
{
    const struct cell_request_rare *rare = request->rare;

    if (rare->debounce > 0)
        return PROTOCOL_CONFLICT_REPLACE;
    return rare->on_conflict != PROTOCOL_CONFLICT_DEFAULT
               ? rare->on_conflict
               : (enum protocol_conflict)(group->config->on_conflict + 1);
}

static bool has_id(const struct job *job, const char *name)
{
    return *name != '\0' && job->name && strcmp(job->name, name) == 0;
}

/* `other` takes the place of the job, once it is accepted itself. */
static int take_existing(const struct cell_request *request, struct job *other)
{
    return other->record && !durable_job_is_known(other) ? cell_await_row(request, other)
                                                         : CELL_E_EXISTING;
}

/* Decides about a job while `holder` has its key. `waiting`: the one of those with the key that has
 * not begun; NULL = none. Returns as find_conflict(). */
static int decide(enum protocol_conflict conflict, const struct cell_request *request,
                  struct job *holder, struct job *waiting, struct job **ret)
{
    const struct job *affected = waiting ? waiting : holder;

    *ret = holder;
    if (conflict == PROTOCOL_CONFLICT_EXISTING)
        return take_existing(request, holder);
    if (conflict == PROTOCOL_CONFLICT_REJECT || affected->submitter_uid != request->submitter_uid)
        return CELL_E_TAKEN;
    if (conflict == PROTOCOL_CONFLICT_REQUEUE && waiting) {
        *ret = waiting;
        return take_existing(request, waiting);
    }
    request->rare->supersedes = waiting;
    return 0;
}

/* Sets when a debounced job begins. `before`: the job that it replaces; NULL = none. */
static void debounce(struct cell_request_rare *rare, const struct job *before)
{
    const usec_t now = clock_steady();
    const usec_t first = before && before->rare->debounced > 0 ? before->rare->debounced : now;
    const usec_t left = usec_sub(usec_add(first, rare->debounce_max), now);

    rare->debounced = first;
    rare->delay = rare->debounce;
    if (rare->debounce_max > 0 && left < rare->delay)
        rare->delay = left;
}

/* Sets the unique key of the request, and the job that it replaces. Returns 0 = the job may be
 * submitted, CELL_E_TAKEN or CELL_E_EXISTING with `*ret`, CELL_E_WAIT, CELL_E_*, or -ENOMEM. */
static int find_conflict(const struct group *group, const struct cell_request *request,
                         struct job **ret)
{
    const struct job_table *jobs = group->context->jobs;
    struct cell_request_rare *rare = request->rare;
    struct job *holder, *next;
    int r = make_id(group, request);

    if (r != 0 || unique_id_is_none(&rare->unique))
        return r;
    holder = unique_holder(jobs, &rare->unique);
    if (!holder)
        r = look_on_disk(group, request);
    if (r != 0)
        return r;
    if (holder && !has_id(holder, request->name)) { /* else the id is refused */
        next = unique_successor(jobs, &rare->unique);
        if (next && unique_is_going(next))
            next = NULL; /* the holder counts */
        r = decide(conflict_of(group, request), request, holder,
                   next                       ? next
                   : job_waits(holder->state) ? holder
                                              : NULL,
                   ret);
    }
    if (r == 0 && rare->debounce > 0)
        debounce(rare, rare->supersedes);
    if (r != CELL_E_WAIT && request->waiter && request->waiter->search)
        group_end_search(request->waiter);
    return r;
}

int group_submit_unique(struct group *group, const struct cell_request *request, struct job **ret)
{
    struct cell_request_rare none = {0};
    struct cell_request unique = *request;
    int r;

    if (!unique.rare)
        unique.rare = &none;
    r = find_conflict(group, &unique, ret);
    return r != 0 ? r : group_submit_to_cell(group, &unique, ret);
}
