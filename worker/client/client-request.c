/* SPDX-License-Identifier: MIT */

/* Writes the requests of a client: jobs, look-ups, cancellations. */

#include "shared/base/cleanup.h"
#include "worker/base/sized.h"
#include "worker/client/client.h"
#include <string.h>

/* More than the fields of any request without key, id and payload take. */
#define FIXED_FIELDS 112u
/* So many are shown together while nobody waits: the supervisor works beside us, with few wake-
 * ups. */
#define BATCH 32u
/* How long room is waited for before looking whether we are what holds the supervisor up. */
#define FULL_SLICE_MS 100

/* The supervisor may have stopped reading because it cannot get rid of its answers. */
static int make_way(struct troupe_client *client)
{
    int r;

    r = answers_queue(client);
    if (r < 0)
        return r;
    channel_release(&client->channel);
    return 0;
}

static int wait_space(struct troupe_client *client, uint32_t size)
{
    int r;

    r = make_way(client);
    if (r < 0)
        return r;
    r = channel_wait_space(&client->channel, size, FULL_SLICE_MS * USEC_PER_MSEC);
    if (r == -ETIMEDOUT) {
        r = client_sleep(client, 0);
        if (client->over)
            return -EPIPE;
    }
    return r == -EINTR || r == -ETIMEDOUT ? 0 : r;
}

int request_reserve(struct troupe_client *client, uint32_t size, bool wait, void **ret)
{
    for (;;) {
        int r = ring_reserve(&client->channel.out, size, ret);

        if (r != RING_E_FULL)
            return r;
        troupe_client_flush(client);
        if (!wait)
            return -EAGAIN;
        r = wait_space(client, size);
        if (r < 0)
            return r;
    }
}

/* Seals the reserved record; `size` is what a put function returned. */
static int commit(struct troupe_client *client, enum protocol_kind kind, uint64_t number, int size)
{
    uint64_t cookie;

    if (size < 0) {
        (void)pending_give(&client->pending, number, &cookie);
        return size;
    }
    ring_commit(&client->channel.out, (uint16_t)kind, (uint32_t)size);
    if (++client->unpublished >= BATCH)
        troupe_client_flush(client);
    return 0;
}

int request_lookup(struct troupe_client *client, const char *name, uint64_t *ret_number)
{
    struct protocol_lookup lookup = {.name = name};
    size_t length = strnlen(name, PROTOCOL_KEY_MAX + 1);
    uint32_t size;
    void *body;
    int r;

    if (length == 0 || length > PROTOCOL_KEY_MAX)
        return -ENOENT;
    lookup.name_size = (uint32_t)length;
    size = FIXED_FIELDS + lookup.name_size;
    r = request_reserve(client, size, true, &body);
    if (r == 0)
        r = pending_take(&client->pending, 0, &lookup.cookie);
    if (r < 0)
        return r;
    *ret_number = lookup.cookie;
    return commit(client, PROTOCOL_LOOKUP, lookup.cookie, protocol_put_lookup(body, size, &lookup));
}

int request_by_id(struct troupe_client *client, enum protocol_kind kind, const char *id,
                  uint64_t cookie, bool wait, uint64_t *ret_number)
{
    uint32_t size = FIXED_FIELDS + PROTOCOL_NAME_MAX;
    struct protocol_by_id by_id;
    void *body;
    int r;

    r = protocol_id_parse(&by_id.id, id);
    if (r == 0)
        r = request_reserve(client, size, wait, &body);
    if (r == 0)
        r = pending_take(&client->pending, cookie, &by_id.cookie);
    if (r < 0)
        return r;
    *ret_number = by_id.cookie;
    return commit(client, kind, by_id.cookie, protocol_put_by_id(body, size, &by_id));
}

/* ---- SUBMIT ---- */

/* The options of the first layout. */
#define OPTIONS_SIZE_MIN offsetof(struct troupe_job_options, priority)

static int apply_schedule(struct protocol_submit *submit, const struct troupe_job_options *options)
{
    if (options->priority < -1 || options->priority >= PROTOCOL_DEFAULT_PRIORITY ||
        (options->delay_usec > 0 && options->at_usec > 0))
        return -EINVAL;
    if (options->priority >= 0)
        submit->priority = (uint8_t)options->priority;
    submit->delay = options->delay_usec;
    submit->at = options->at_usec;
    submit->wait = options->wait_usec;
    submit->deadline = options->deadline_usec;
    return 0;
}

static int apply_options(struct protocol_submit *submit, const struct troupe_job_options *given)
{
    struct troupe_job_options current = TROUPE_JOB_DEFAULTS;
    const void *view = given;
    const struct troupe_job_options *options;
    int r;

    r = sized_take(&view, &current, sizeof(current), OPTIONS_SIZE_MIN);
    if (r < 0)
        return r;
    options = view;
    if (options->key_size > PROTOCOL_KEY_MAX || options->max_retries < -1 ||
        options->max_retries >= PROTOCOL_DEFAULT_RETRIES)
        return -EINVAL;
    if (options->id) {
        size_t length = strnlen(options->id, PROTOCOL_NAME_MAX + 1);

        if (!protocol_name_valid(options->id, length))
            return -EINVAL;
        submit->name = options->id;
        submit->name_size = (uint32_t)length;
    }
    submit->key = options->key;
    submit->key_size = (uint32_t)options->key_size;
    if (options->max_retries >= 0)
        submit->max_retries = (uint32_t)options->max_retries;
    submit->timeout = options->timeout_usec;
    submit->backoff_min = options->backoff_min_usec;
    submit->backoff_max = options->backoff_max_usec;
    return apply_schedule(submit, options);
}

/*
 * The descriptor goes first, its record after it. Once a blob is sealed there is no way back, so
 * this waits also for those who do not want to; they have looked for room before.
 */
static int send_descriptor(struct troupe_client *client, const struct blob *blob)
{
    for (;;) {
        int r = blob_send(blob, client->control, client->blobs_sent + 1);

        if (r != -EAGAIN)
            return r;
        r = make_way(client);
        if (r < 0)
            return r;
        (void)blob_sendable(client->control, FULL_SLICE_MS);
    }
}

/* The payload as a blob: the caller's own, filled in place, or a copy. */
static int send_blob(struct troupe_client *client, const struct request_job *job,
                     struct payload_wire *ret)
{
    _cleanup_(blob_deinit)
    struct blob blob = BLOB_NULL;
    int r;

    /* The supervisor takes descriptors as it reads the records that name them. */
    troupe_client_flush(client);
    if (!job->wait && !blob_sendable(client->control, 0))
        return -EAGAIN;
    if (client->blob.fd >= 0 && job->data == client->blob.data) {
        if (job->size != client->blob.size)
            return -EINVAL;
        blob = client->blob;
        client->blob = (struct blob)BLOB_NULL;
        r = blob_seal(&blob);
    } else
        r = blob_copy(&blob, job->data, job->size);
    if (r == 0)
        r = send_descriptor(client, &blob);
    if (r < 0)
        return r;
    client->blobs_sent++;
    *ret = (struct payload_wire){
        .form = PAYLOAD_BLOB, .size = blob.size, .serial = client->blobs_sent};
    return 0;
}

static bool is_blob(const struct troupe_client *client, const struct request_job *job)
{
    return job->size > client->inline_max ||
           (client->blob.fd >= 0 && job->data == client->blob.data);
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
    bool blob = is_blob(client, job);
    uint64_t cookie;
    uint32_t size;
    void *body;
    int r = 0;

    r = apply_options(&submit, job->options);
    if (r < 0)
        return r;
    size = FIXED_FIELDS + submit.name_size + submit.key_size + PAYLOAD_FIXED +
           (blob ? 0 : (uint32_t)job->size);
    r = request_reserve(client, size, job->wait, &body);
    if (r == 0)
        r = pending_take(&client->pending, job->cookie, &submit.cookie);
    if (r < 0)
        return r;
    if (blob)
        r = send_blob(client, job, &submit.payload);
    if (r < 0) {
        (void)pending_give(&client->pending, submit.cookie, &cookie);
        return r;
    }
    *ret_number = submit.cookie;
    return commit(client, PROTOCOL_SUBMIT, submit.cookie, protocol_put_submit(body, size, &submit));
}
