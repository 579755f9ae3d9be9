/* SPDX-License-Identifier: MIT */

/* Sends the requests of a client: jobs, look-ups, cancellations. */

#include "shared/protocol/job-options.h"
#include "worker/base/sized.h"
#include "worker/client/client.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Publishes so many submissions together, which saves wake-ups. */
#define BATCH 32u

/* ---- unanswered requests ---- */

static int make_room(struct pending *pending)
{
    struct pending_request *requests;

    if (pending->n_requests == pending->table.n_allocated)
        return 0;
    requests = reallocarray(pending->requests, pending->table.n_allocated, sizeof(*requests));
    if (!requests)
        return -ENOMEM;
    pending->requests = requests;
    pending->n_requests = pending->table.n_allocated;
    return 0;
}

/* Takes over `request.id` on success. Returns 0 and a number whose highest bit is 0, or -ENOMEM. */
static int pending_take(struct pending *pending, struct pending_request request,
                        uint64_t *ret_number)
{
    int r = handle_table_add(&pending->table, pending, ret_number);

    if (r < 0)
        return r;
    r = make_room(pending);
    if (r < 0)
        handle_table_remove(&pending->table, *ret_number);
    else
        pending->requests[(uint32_t)*ret_number] = request;
    return r;
}

struct pending_request *pending_get(const struct pending *pending, uint64_t number)
{
    return handle_table_get(&pending->table, number) ? &pending->requests[(uint32_t)number] : NULL;
}

int pending_give(struct pending *pending, uint64_t number, uint64_t *ret_cookie)
{
    struct pending_request *request = pending_get(pending, number);

    if (!request)
        return -EPROTO;
    *ret_cookie = request->cookie;
    free(request->id);
    handle_table_remove(&pending->table, number);
    return 0;
}

struct pending_request *pending_lost(struct pending *pending, uint64_t read, uint64_t *ret_number)
{
    while (handle_table_next(&pending->table, &pending->cursor)) {
        const uint32_t index = (uint32_t)pending->cursor - 1;

        if (pending->requests[index].sent >= read)
            continue;
        *ret_number = handle_table_handle(&pending->table, index);
        return &pending->requests[index];
    }
    pending->cursor = 0;
    return NULL;
}

void pending_deinit(struct pending *pending)
{
    size_t cursor = 0;

    while (handle_table_next(&pending->table, &cursor))
        free(pending->requests[cursor - 1].id);
    handle_table_deinit(&pending->table);
    free(pending->requests);
}

/* ---- sending ---- */

static int take(struct troupe_client *client, uint64_t cookie, struct protocol_id *id,
                uint64_t *ret_number)
{
    const struct pending_request request = {
        .cookie = cookie, .sent = client->carrier.position, .id = id};

    return pending_take(&client->pending, request, ret_number);
}

/* Forgets the number of a request that was not sent. */
static int sent(struct troupe_client *client, int r, uint64_t number, uint64_t *ret_number)
{
    uint64_t ignored;

    if (r < 0)
        (void)pending_give(&client->pending, number, &ignored);
    else if (client->carrier.unpublished >= BATCH)
        carrier_flush(&client->carrier);
    *ret_number = number;
    return r;
}

int request_lookup(struct troupe_client *client, const char *name, uint64_t *ret_number)
{
    struct protocol_lookup lookup = {.name = name};
    size_t length = strnlen(name, PROTOCOL_KEY_MAX + 1);
    int r;

    if (length == 0 || length > PROTOCOL_KEY_MAX)
        return -ENOENT;
    lookup.name_size = (uint32_t)length;
    r = take(client, 0, NULL, &lookup.cookie);
    if (r < 0)
        return r;
    r = carrier_put(&client->carrier, PROTOCOL_LOOKUP, lookup, &lookup, NULL, 0);
    return sent(client, r, lookup.cookie, ret_number);
}

int request_cancel(struct troupe_client *client, const char *id, enum protocol_kind kind,
                   unsigned flags, uint64_t *ret_number)
{
    struct protocol_by_id by_id;
    int r = protocol_id_parse(&by_id.id, id);

    if (r == 0)
        r = take(client, 0, NULL, &by_id.cookie);
    if (r < 0)
        return r;
    r = carrier_put(&client->carrier, kind, by_id, &by_id, NULL, flags);
    return sent(client, r, by_id.cookie, ret_number);
}

static int put_wait(struct troupe_client *client, const struct protocol_id *id, uint64_t number,
                    unsigned flags)
{
    const struct protocol_by_id by_id = {.id = *id, .cookie = number};

    return carrier_put(&client->carrier, PROTOCOL_WAIT, by_id, &by_id, NULL, flags);
}

int request_wait(struct troupe_client *client, const char *id, uint64_t cookie)
{
    struct protocol_id *copy = malloc(sizeof(*copy));
    uint64_t number;
    int r = copy ? protocol_id_parse(copy, id) : -ENOMEM;

    if (r == 0)
        r = take(client, cookie, copy, &number);
    if (r < 0) {
        free(copy);
        return r;
    }
    return sent(client, put_wait(client, copy, number, CARRIER_TRY), number, &number);
}

int request_wait_again(struct troupe_client *client, struct pending_request *request,
                       uint64_t number)
{
    const struct protocol_id id = *request->id;

    request->sent = client->carrier.position;
    return put_wait(client, &id, number, 0);
}

/* The options of the first layout. */
#define OPTIONS_SIZE_MIN offsetof(struct troupe_job_options, priority)

/* Returns what is wrong, in the words of the supervisor, or NULL. The supervisor checks the rest.
 */
static const char *find_problem(const struct troupe_job_options *options)
{
    if (options->id &&
        !protocol_name_valid(options->id, strnlen(options->id, PROTOCOL_NAME_MAX + 1)))
        return "id: " PROTOCOL_NAME_ALLOWED;
    if (options->key_size > PROTOCOL_KEY_MAX)
        return "key: at most 255 bytes";
    if (options->unique_size > PROTOCOL_KEY_MAX)
        return "unique: 1 to 255 bytes";
    if ((unsigned)options->on_conflict > PROTOCOL_CONFLICT_REQUEUE)
        return "on_conflict: existing, reject, replace or requeue";
    if ((unsigned)options->condition > PROTOCOL_CONDITION_END)
        return "condition: success, failure or end";
    if (options->after && strnlen(options->after, PROTOCOL_AFTER_MAX + 1) > PROTOCOL_AFTER_MAX)
        return "after: 1 to 64 ids of jobs, separated by commas";
    if (options->batch && strnlen(options->batch, PROTOCOL_NAME_MAX + 1) > PROTOCOL_NAME_MAX)
        return "batch: the id of a batch";
    if (options->max_retries < -1 || options->max_retries >= PROTOCOL_DEFAULT_RETRIES)
        return "max_retries: 0 to 1000000";
    if (options->tags && !protocol_tags_valid(options->tags, strlen(options->tags)))
        return "tags: 1 to 8 words of A-Z a-z 0-9 . _ : @ -, with a blank between two";
    if (options->traceparent &&
        !traceparent_valid(options->traceparent,
                           strnlen(options->traceparent, TRACEPARENT_SIZE + 1)))
        return "traceparent: " TRACEPARENT_ALLOWED;
    if (options->cost > JOB_COST_MAX)
        return "cost: 1 to 255";
    if (options->priority < -1 || options->priority >= PROTOCOL_DEFAULT_PRIORITY)
        return "priority: 0 (first) to 63 (last)";
    if (options->delay_usec > 0 && options->at_usec > 0)
        return "delay_usec: not together with a date";
    return NULL;
}

static uint32_t size_of(const char *text)
{
    return text ? (uint32_t)strlen(text) : 0;
}

/* Writes what few jobs ask for into `rare`, of PROTOCOL_RARE_MAX bytes. Returns its size, 0 =
 * nothing of it, or -EMSGSIZE. */
static int put_rare(const struct troupe_job_options *options, char *rare)
{
    const struct protocol_submit_rare record = {
        .delay = options->delay_usec,
        .at = options->at_usec,
        .unique = options->unique,
        .unique_size = (uint32_t)options->unique_size,
        .on_conflict = (enum protocol_conflict)options->on_conflict,
        .debounce = options->debounce_usec,
        .debounce_max = options->debounce_max_usec,
        .after = options->after,
        .after_size = size_of(options->after),
        .condition = (enum protocol_condition)options->condition,
        .batch = options->batch,
        .batch_size = size_of(options->batch),
        .tags = options->tags,
        .tags_size = size_of(options->tags),
        .traceparent = options->traceparent,
        .traceparent_size = size_of(options->traceparent),
    };

    if ((record.delay | record.at | record.unique_size | record.on_conflict | record.debounce |
         record.debounce_max | record.after_size | record.batch_size | record.tags_size |
         record.traceparent_size) == 0)
        return 0;
    return protocol_put_submit_rare(rare, PROTOCOL_RARE_MAX, &record);
}

/* `rare` has PROTOCOL_RARE_MAX bytes, to which the record will point. */
static int apply_options(struct troupe_client *client, struct protocol_submit *submit,
                         const struct troupe_job_options *given, char *rare)
{
    struct troupe_job_options current = TROUPE_JOB_DEFAULTS;
    const void *view = given;
    const struct troupe_job_options *options;
    const char *problem;
    int r = sized_take(&view, &current, sizeof(current), OPTIONS_SIZE_MIN);

    if (r < 0)
        return r;
    options = view;
    problem = find_problem(options);
    (void)snprintf(client->refusal, sizeof(client->refusal), "%s", problem ? problem : "");
    if (problem)
        return -EINVAL;
    submit->name = options->id;
    submit->name_size = size_of(options->id);
    submit->key = options->key;
    submit->key_size = (uint32_t)options->key_size;
    if (options->max_retries >= 0)
        submit->max_retries = (uint32_t)options->max_retries;
    submit->timeout = options->timeout_usec;
    submit->backoff_min = options->backoff_min_usec;
    submit->backoff_max = options->backoff_max_usec;
    if (options->priority >= 0)
        submit->priority = (uint8_t)options->priority;
    submit->cost = (uint8_t)options->cost;
    submit->wait = options->wait_usec;
    submit->deadline = options->deadline_usec;
    if (options->keep_result && submit->flags & PROTOCOL_SUBMIT_DO)
        submit->flags |= PROTOCOL_SUBMIT_KEEP;
    r = put_rare(options, rare);
    submit->rare = rare;
    submit->rare_size = r > 0 ? (uint32_t)r : 0;
    return r < 0 ? r : 0;
}

int request_submit(struct troupe_client *client, const struct request_job *job,
                   uint64_t *ret_number)
{
    struct protocol_submit submit = {
        .group = job->group,
        .flags = job->flags,
        .max_retries = PROTOCOL_DEFAULT_RETRIES,
        .timeout = PROTOCOL_DEFAULT_USEC,
        .backoff_min = PROTOCOL_DEFAULT_USEC,
        .backoff_max = PROTOCOL_DEFAULT_USEC,
        .priority = PROTOCOL_DEFAULT_PRIORITY,
        .payload = {.form = PAYLOAD_INLINE, .data = job->data, .size = job->size},
    };
    char rare[PROTOCOL_RARE_MAX];
    int r = apply_options(client, &submit, job->options, rare);

    if (r == 0)
        r = take(client, job->cookie, NULL, &submit.cookie);
    if (r < 0)
        return r;
    r = carrier_put(&client->carrier, PROTOCOL_SUBMIT, submit, &submit, &submit.payload,
                    CARRIER_MADE | (job->wait ? 0 : CARRIER_TRY));
    return sent(client, r, submit.cookie, ret_number);
}
