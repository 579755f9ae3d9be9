/* SPDX-License-Identifier: MIT */

/* A job in the hand of a worker: its payload, its state, its result. */

#include "shared/base/cleanup.h"
#include "worker/base/sized.h"
#include "worker/public.h"
#include "worker/worker/worker.h"
#include <string.h>
#include <sys/mman.h>

/* More than the fields of STARTED, and of RESULT without its payload, take. */
#define FIXED_FIELDS 64u
/* The socket that is full of descriptors is looked at so often even if nothing tells of room. */
#define BLOB_SLICE_MS 100

_public_ struct troupe_worker *troupe_job_worker(const struct troupe_job *job)
{
    return job->worker;
}

_public_ const char *troupe_job_id(const struct troupe_job *job)
{
    return job->id;
}

_public_ const void *troupe_job_key(const struct troupe_job *job, size_t *ret_size)
{
    *ret_size = job->wire.key_size;
    return job->wire.key_size > 0 ? job->wire.key : "";
}

_public_ unsigned troupe_job_attempt(const struct troupe_job *job)
{
    return job->wire.attempt;
}

_public_ unsigned troupe_job_max_attempts(const struct troupe_job *job)
{
    return job->wire.max_attempts;
}

_public_ const void *troupe_job_payload(struct troupe_job *job, size_t *ret_size)
{
    *ret_size = (size_t)job->wire.payload.size;
    return job->payload;
}

_public_ bool troupe_job_is_cancelled(const struct troupe_job *job)
{
    /* Partner: the supervisor's store when somebody asks. Nothing else hangs on it, hence
     * relaxed. */
    return atomic_load_explicit(&job->worker->channel.theirs.header->mark, memory_order_relaxed) ==
           job->wire.handle;
}

/* ---- ending it ---- */

static int put_result(struct troupe_job *job, const struct protocol_result *result)
{
    struct troupe_worker *worker = job->worker;
    uint32_t size = FIXED_FIELDS + PAYLOAD_FIXED;
    void *body;
    int r;

    if (result->payload.form == PAYLOAD_INLINE)
        size += (uint32_t)result->payload.size;
    r = worker_reserve(worker, size, &body);
    if (r < 0)
        return r;
    return worker_commit(worker, PROTOCOL_RESULT, protocol_put_result(body, size, result));
}

static int put_blob(struct troupe_job *job, struct protocol_result *result, const struct blob *blob)
{
    struct troupe_worker *worker = job->worker;
    int r;

    while ((r = blob_send(blob, worker->control, worker->blobs_sent + 1)) == -EAGAIN)
        (void)blob_sendable(worker->control, BLOB_SLICE_MS);
    if (r < 0)
        return r;
    worker->blobs_sent++;
    result->payload = (struct payload_wire){
        .form = PAYLOAD_BLOB, .size = blob->size, .serial = worker->blobs_sent};
    return put_result(job, result);
}

static int copy_blob(struct troupe_job *job, struct protocol_result *result, const void *data,
                     size_t size)
{
    _cleanup_(blob_deinit)
    struct blob blob = BLOB_NULL;
    int r;

    r = blob_copy(&blob, data, size);
    return r < 0 ? r : put_blob(job, result, &blob);
}

static int job_ended(struct troupe_job *job, int result)
{
    job->ended = result >= 0;
    job->end_error = result;
    return result;
}

static int job_end(struct troupe_job *job, enum protocol_outcome outcome, int code,
                   const void *data, size_t size)
{
    struct protocol_result result = {
        .handle = job->wire.handle,
        .attempt = job->wire.attempt,
        .outcome = outcome,
        .code = code,
        .payload = {.form = PAYLOAD_INLINE, .data = data, .size = size},
    };

    if (job->ended)
        return -EALREADY;
    if (size > job->worker->inline_max)
        return job_ended(job, copy_blob(job, &result, data, size));
    return job_ended(job, put_result(job, &result));
}

_public_ int troupe_job_succeed(struct troupe_job *job, const void *data, size_t size)
{
    return job_end(job, PROTOCOL_SUCCESS, 0, data, size);
}

_public_ int troupe_job_reject(struct troupe_job *job, int code, const void *data, size_t size)
{
    return job_end(job, PROTOCOL_REJECT, code, data, size);
}

_public_ int troupe_job_retry(struct troupe_job *job, int code, const char *text)
{
    size_t max = PROTOCOL_REASON_MAX, size;

    /* Always inside the record: saying that there is no memory must not take any. */
    if (max > job->worker->inline_max)
        max = job->worker->inline_max;
    size = text ? strnlen(text, max + 1) : 0;
    if (size > max) {
        /* Cut between characters, not in the middle of a UTF-8 sequence. */
        size = max;
        while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
            size--;
    }
    return job_end(job, PROTOCOL_RETRY, code, text, size);
}

_public_ int troupe_job_cancelled(struct troupe_job *job)
{
    return job_end(job, PROTOCOL_CANCELLED, 0, NULL, 0);
}

/* What the first layout had. */
#define CRASH_SIZE_MIN (offsetof(struct troupe_crash, command) + sizeof(const char *))

static int put_crashed(struct troupe_job *job, const struct troupe_crash *crash)
{
    const uint32_t size = FIXED_FIELDS + PROTOCOL_COMMAND_MAX + sizeof(uint32_t);
    const char *command = crash->command ? crash->command : "";
    struct protocol_crashed crashed = {
        .handle = job->wire.handle,
        .attempt = job->wire.attempt,
        .pid = crash->pid,
        .signal = (uint8_t)crash->signal,
        .core_dumped = crash->core_dumped,
        .uptime = crash->uptime_usec,
        .user = crash->user_usec,
        .system = crash->system_usec,
        .max_rss = crash->max_rss_bytes,
        .command = command,
        .command_size = (uint32_t)strnlen(command, PROTOCOL_COMMAND_MAX),
    };
    void *body;
    int r;

    if (crash->pid <= 0 || crash->signal <= 0 || crash->signal > PROTOCOL_SIGNAL_MAX)
        return -EINVAL;
    r = worker_reserve(job->worker, size, &body);
    if (r < 0)
        return r;
    job->crashed = true;
    return worker_commit(job->worker, PROTOCOL_CRASHED, protocol_put_crashed(body, size, &crashed));
}

_public_ int troupe_job_crashed(struct troupe_job *job, const struct troupe_crash *crash)
{
    struct troupe_crash current = {.struct_size = sizeof(current)};
    const void *view = crash;
    int r;

    if (job->ended || job->crashed)
        return -EALREADY;
    r = sized_take(&view, &current, sizeof(current), CRASH_SIZE_MIN);
    return r < 0 ? r : put_crashed(job, view);
}

_public_ int troupe_job_blob(struct troupe_job *job, size_t size, void **ret_data)
{
    int r;

    if (job->ended || job->blob_made)
        return -EALREADY;
    r = blob_new(&job->blob, size);
    if (r < 0)
        return r;
    job->blob_made = true;
    *ret_data = job->blob.data;
    return 0;
}

_public_ int troupe_job_succeed_blob(struct troupe_job *job)
{
    struct protocol_result result = {
        .handle = job->wire.handle, .attempt = job->wire.attempt, .outcome = PROTOCOL_SUCCESS};
    int r;

    if (job->ended)
        return -EALREADY;
    if (!job->blob_made)
        return -EINVAL;
    r = blob_seal(&job->blob);
    return job_ended(job, r < 0 ? r : put_blob(job, &result, &job->blob));
}

/* ---- from the record to the handler and back ---- */

static int put_started(struct troupe_job *job)
{
    const struct memory_header *header = job->worker->channel.mine.header;
    struct protocol_started started = {
        .handle = job->wire.handle,
        .attempt = job->wire.attempt,
        /* Our own: nobody else writes it. */
        .state_sequence = atomic_load_explicit(&header->state_sequence, memory_order_relaxed),
    };
    void *body;
    int r;

    r = worker_reserve(job->worker, FIXED_FIELDS, &body);
    if (r < 0)
        return r;
    return worker_commit(job->worker, PROTOCOL_STARTED,
                         protocol_put_started(body, FIXED_FIELDS, &started));
}

static int map_payload(struct troupe_job *job)
{
    const struct payload_wire *wire = &job->wire.payload;
    _cleanup_close_ int fd = TAKE_FD(job->payload_fd);
    int r = 0;

    if (fd < 0)
        r = payload_receive_fd(job->worker->control, wire->serial, payload_drop_fd, &fd);
    if (r == 0)
        r = payload_blob_check(fd, wire->size);
    if (r == 0)
        r = payload_blob_map(fd, (size_t)wire->size, &job->payload);
    if (r == 0)
        job->mapped_size = (size_t)wire->size;
    return r;
}

/* Where the record has it; a copy is made only for a supervisor that does not align. */
static int place_payload(struct troupe_job *job)
{
    static _Alignas(8) const char nothing[8];
    const struct payload_wire *wire = &job->wire.payload;

    if (wire->form == PAYLOAD_BLOB)
        return map_payload(job);
    job->payload = wire->data;
    if (wire->size == 0)
        job->payload = nothing;
    else if ((uintptr_t)wire->data % 8 != 0) {
        job->copy = malloc((size_t)wire->size + 1);
        if (!job->copy)
            return -ENOMEM;
        memcpy(job->copy, wire->data, (size_t)wire->size);
        ((char *)job->copy)[wire->size] = '\0';
        job->payload = job->copy;
    }
    return 0;
}

static void job_deinit(struct troupe_job *job)
{
    if (job->mapped_size > 0)
        (void)munmap((void *)(uintptr_t)job->payload, job->mapped_size);
    free(job->copy);
    close_fd(job->payload_fd);
    blob_deinit(&job->blob);
}

/* The handler has returned `result`: sees to it that the job has an end. */
static int job_settle(struct troupe_job *job, int result)
{
    if (job->ended)
        return 0;
    if (result >= 0 && job->end_error < 0)
        result = job->end_error;
    if (result >= 0)
        result = troupe_job_succeed(job, NULL, 0);
    if (!job->ended)
        result = troupe_job_retry(job, -result, strerrordesc_np(-result));
    return job->ended ? 0 : result;
}

/* Another attempt would meet the same. */
static int no_handler(struct troupe_job *job)
{
    static const char text[] = "this worker handles messages, not jobs";

    return troupe_job_reject(job, EOPNOTSUPP, text, strlen(text));
}

int job_handle(struct troupe_worker *worker, const struct ring_record *record, int blob)
{
    _cleanup_(job_deinit)
    struct troupe_job job = {.worker = worker, .blob = BLOB_NULL, .payload_fd = blob};
    int r;

    r = protocol_get_job(record->body, record->size, &job.wire);
    if (r < 0)
        return -EPROTO;
    protocol_id_format(&job.wire.id, job.id);
    troupe_worker_heartbeat(worker);
    r = put_started(&job);
    if (r < 0)
        return r;
    r = place_payload(&job);
    /* What cannot be understood ends the worker; what there is no room for only this attempt. */
    if (r == -EPROTO)
        return r;
    if (r == 0)
        r = worker->on_job ? worker->on_job(&job, worker->on_job_userdata) : no_handler(&job);
    return job_settle(&job, r);
}
