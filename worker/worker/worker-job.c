/* SPDX-License-Identifier: MIT */

/* Handles one job: its record, its payload, its end. */

#include "shared/base/cleanup.h"
#include "shared/protocol/job-options.h"
#include "worker/base/content.h"
#include "worker/base/sized.h"
#include "worker/public.h"
#include "worker/worker/worker.h"
#include <string.h>
#include <sys/mman.h>

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
    const struct memory_words *words = job->worker->carrier.channel.their_words;

    /* Partner: the supervisor's store at a request to cancel. No other data depends on it. */
    return atomic_load_explicit(&words->mark, memory_order_relaxed) == job->wire.handle;
}

static int job_end_with(struct troupe_job *job, enum protocol_outcome outcome, int code,
                        uint64_t pause, const void *data, size_t size, unsigned flags)
{
    struct carrier *carrier = &job->worker->carrier;
    struct protocol_result result = {
        .handle = job->wire.handle,
        .attempt = job->wire.attempt,
        .outcome = outcome,
        .code = code,
        .pause = pause,
        .payload = {.form = PAYLOAD_INLINE, .data = data, .size = size},
    };
    int r;

    if (job->ended)
        return -EALREADY;
    r = carrier_put(carrier, PROTOCOL_RESULT, result, &result, &result.payload, flags);
    if (r == 0)
        carrier_flush(carrier);
    job->ended = r == 0;
    job->end_error = r;
    return r;
}

static int job_end(struct troupe_job *job, enum protocol_outcome outcome, int code,
                   const void *data, size_t size, unsigned flags)
{
    return job_end_with(job, outcome, code, 0, data, size, flags);
}

_public_ int troupe_job_succeed(struct troupe_job *job, const void *data, size_t size)
{
    return job_end(job, PROTOCOL_SUCCESS, 0, data, size, 0);
}

_public_ int troupe_job_reject(struct troupe_job *job, int code, const void *data, size_t size)
{
    return job_end(job, PROTOCOL_REJECT, code, data, size, 0);
}

/* `pause` 0 = the job's policy decides. */
static int job_retry(struct troupe_job *job, uint64_t pause, int code, const char *text)
{
    size_t max = PROTOCOL_REASON_MAX, size;

    /* Always inline: a report of a lack of memory must not need memory. */
    if (max > job->worker->carrier.inline_max)
        max = job->worker->carrier.inline_max;
    size = text ? strnlen(text, max + 1) : 0;
    if (size > max) {
        /* Cut between characters, not in the middle of a UTF-8 sequence. */
        size = max;
        while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
            size--;
    }
    return job_end_with(job, PROTOCOL_RETRY, code, pause, text, size, 0);
}

_public_ int troupe_job_retry(struct troupe_job *job, int code, const char *text)
{
    return job_retry(job, 0, code, text);
}

_public_ int troupe_job_retry_after(struct troupe_job *job, uint64_t pause_usec, int code,
                                    const char *text)
{
    if (pause_usec > JOB_DELAY_MAX)
        return -EINVAL;
    return job_retry(job, pause_usec > 0 ? pause_usec : 1, code, text);
}

_public_ int troupe_job_cancelled(struct troupe_job *job)
{
    return job_end(job, PROTOCOL_CANCELLED, 0, NULL, 0, 0);
}

_public_ int troupe_job_blob(struct troupe_job *job, size_t size, void **ret_data)
{
    struct blob *blob = &job->worker->carrier.made;
    int r;

    if (job->ended || blob->fd >= 0)
        return -EALREADY;
    r = blob_new(blob, size);
    if (r == 0)
        *ret_data = blob->data;
    return r;
}

_public_ int troupe_job_succeed_blob(struct troupe_job *job)
{
    const struct blob *blob = &job->worker->carrier.made;

    if (!job->ended && blob->fd < 0)
        return -EINVAL;
    return job_end(job, PROTOCOL_SUCCESS, 0, blob->data, blob->size, CARRIER_MADE);
}

/* The size of a CHECKPOINT record without its bytes. */
#define CHECKPOINT_FIXED 16u

static int send_checkpoint(struct troupe_job *job, const void *data, uint32_t size)
{
    struct carrier *carrier = &job->worker->carrier;
    const struct protocol_checkpoint checkpoint = {
        .handle = job->wire.handle,
        .attempt = job->wire.attempt,
        .data = data,
        .data_size = size,
    };
    uint32_t room = CHECKPOINT_FIXED + size;
    void *body;
    int r = carrier_begin(carrier, 0, NULL, &room, &body);

    if (r == 0)
        r = carrier_commit(carrier, PROTOCOL_CHECKPOINT,
                           protocol_put_checkpoint(body, room, &checkpoint));
    if (r == 0)
        carrier_flush(carrier);
    return r;
}

_public_ int troupe_job_checkpoint(struct troupe_job *job, const void *data, size_t size)
{
    const struct memory_header *header = job->worker->carrier.channel.mine.header;

    if (job->ended)
        return -EALREADY;
    if (size > protocol_checkpoint_max(header->ring_size, header->inline_max))
        return -EMSGSIZE;
    return send_checkpoint(job, data, (uint32_t)size);
}

/* All zero, if there is nothing. */
static struct protocol_job_rare read_rare(const struct troupe_job *job)
{
    struct protocol_job_rare rare = {0};

    if (job->wire.rare_size > 0)
        (void)protocol_get_job_rare(job->wire.rare, job->wire.rare_size, &rare);
    return rare;
}

_public_ const char *troupe_job_parents(const struct troupe_job *job, size_t *ret_size)
{
    const struct protocol_job_rare rare = read_rare(job);

    *ret_size = rare.parents_size;
    return rare.parents_size > 0 ? rare.parents : "";
}

_public_ const char *troupe_job_traceparent(const struct troupe_job *job)
{
    const struct protocol_job_rare rare = read_rare(job);

    return rare.traceparent_size == TRACEPARENT_SIZE + 1 ? rare.traceparent : NULL;
}

_public_ const void *troupe_job_last_checkpoint(const struct troupe_job *job, size_t *ret_size)
{
    *ret_size = job->wire.checkpoint_size;
    return job->wire.checkpoint_size > 0 ? job->wire.checkpoint : "";
}

_public_ int troupe_job_emit(struct troupe_job *job, const void *data, size_t size)
{
    struct carrier *carrier = &job->worker->carrier;
    struct protocol_emitted emitted = {
        .handle = job->wire.handle,
        .attempt = job->wire.attempt,
        .payload = {.form = PAYLOAD_INLINE, .data = data, .size = size},
    };

    if (job->ended)
        return -EALREADY;
    if (size > TROUPE_ITEM_MAX || size > carrier->inline_max)
        return -EMSGSIZE;
    return carrier_send(carrier, PROTOCOL_EMITTED, emitted, &emitted, &emitted.payload);
}

_Static_assert(TROUPE_ITEM_MAX == PROTOCOL_ITEM_MAX, "the same limit");

/* The members in the first layout. */
#define CRASH_SIZE_MIN (offsetof(struct troupe_crash, command) + sizeof(const char *))

static int send_crashed(struct troupe_job *job, const struct troupe_crash *crash)
{
    const char *command = crash->command ? crash->command : "";
    const struct protocol_crashed crashed = {
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
    int r;

    if (crash->pid <= 0 || crash->signal <= 0 || crash->signal > PROTOCOL_SIGNAL_MAX)
        return -EINVAL;
    r = carrier_send(&job->worker->carrier, PROTOCOL_CRASHED, crashed, &crashed, NULL);
    job->crashed = r == 0;
    return r;
}

_public_ int troupe_job_crashed(struct troupe_job *job, const struct troupe_crash *crash)
{
    struct troupe_crash current = {.struct_size = sizeof(current)};
    const void *view = crash;
    int r;

    if (job->ended || job->crashed)
        return -EALREADY;
    r = sized_take(&view, &current, sizeof(current), CRASH_SIZE_MIN);
    return r < 0 ? r : send_crashed(job, view);
}

static int send_started(struct troupe_job *job)
{
    struct carrier *carrier = &job->worker->carrier;
    const struct memory_header *header = carrier->channel.mine.header;
    const struct protocol_started started = {
        .handle = job->wire.handle,
        .attempt = job->wire.attempt,
        /* Only this process writes it. */
        .state_sequence = atomic_load_explicit(&header->state_sequence, memory_order_relaxed),
    };

    return carrier_send(carrier, PROTOCOL_STARTED, started, &started, NULL);
}

static int map_payload(struct troupe_job *job)
{
    const struct payload_wire *wire = &job->wire.payload;
    _cleanup_close_ int fd = TAKE_FD(job->payload_fd);
    int r = 0;

    if (wire->form == PAYLOAD_INLINE) {
        job->payload = wire->data; /* aligned by the record's layout */
        return 0;
    }
    if (fd < -1)
        return fd;
    if (fd < 0)
        r = payload_receive_fd(job->worker->carrier.control, wire->serial, payload_drop_fd, &fd);
    if (r == 0)
        r = payload_blob_check(fd, wire->size);
    if (r == 0)
        r = payload_blob_map(fd, (size_t)wire->size, &job->payload);
    if (r == 0)
        job->mapped_size = (size_t)wire->size;
    return r;
}

static void job_deinit(struct troupe_job *job)
{
    if (job->mapped_size > 0)
        (void)munmap((void *)(uintptr_t)job->payload, job->mapped_size);
    close_fd(job->payload_fd);
    blob_deinit(&job->worker->carrier.made);
    job->worker->carrier.made = job->outer;
}

static const char *describe_error(int error)
{
    if (error == EFBIG)
        return "file too large: above the worker's limit on the size of files (RLIMIT_FSIZE)";
    return strerrordesc_np(error);
}

/* Ends the job if the handler, which returned `result`, has not. */
static int job_settle(struct troupe_job *job, int result)
{
    if (job->ended)
        return 0;
    if (result >= 0 && job->end_error < 0)
        result = job->end_error;
    if (result >= 0)
        result = troupe_job_succeed(job, NULL, 0);
    if (!job->ended)
        result = troupe_job_retry(job, -result, describe_error(-result));
    return job->ended ? 0 : result;
}

/* Rejects the job, since another attempt would fail in the same way. */
static int no_handler(struct troupe_job *job)
{
    static const char text[] = "this worker handles messages, not jobs";

    return troupe_job_reject(job, EOPNOTSUPP, text, strlen(text));
}

static int handle(struct troupe_worker *worker, const struct ring_record *record, int blob)
{
    _cleanup_(job_deinit)
    struct troupe_job job = {.worker = worker, .payload_fd = blob, .outer = worker->carrier.made};
    int r;

    worker->carrier.made = (struct blob)BLOB_NULL;
    r = protocol_get_job(record->body, record->size, &job.wire);
    if (r < 0)
        return -EPROTO;
    protocol_id_format(&job.wire.id, job.id);
    troupe_worker_heartbeat(worker);
    r = send_started(&job);
    if (r < 0)
        return r;
    r = map_payload(&job);
    /* A broken record ends the worker; a lack of memory or descriptors ends this attempt. */
    if (r == -EPROTO)
        return r;
    if (r < 0)
        r = troupe_job_retry(&job, -r, content_problem(r));
    else
        r = worker->on_job ? worker->on_job(&job, worker->on_job_userdata) : no_handler(&job);
    return job_settle(&job, r);
}

/* A job within another one shares the directories with it. */
int job_handle(struct troupe_worker *worker, const struct ring_record *record, int blob)
{
    int r = worker->n_handled == 0 ? private_tmp_empty(&worker->tmp) : 0;

    if (r < 0) {
        close_fd(blob);
        return r;
    }
    worker->tmp.used = true;
    worker->n_handled++;
    r = handle(worker, record, blob);
    worker->n_handled--;
    return r;
}

/* ---- jobs that arrive while a handler waits for a future ---- */

struct backlog_job {
    struct list link;
    struct ring_record record;
    int blob; /* the argument of job_handle() */
    _Alignas(8) char body[];
};

static void free_job(struct backlog_job *job)
{
    list_unlink(&job->link);
    close_fd(job->blob);
    free(job);
}

int backlog_keep(struct troupe_worker *worker, const struct ring_record *record)
{
    struct protocol_job wire;
    struct backlog_job *job;
    int r = 0;

    if (protocol_get_job(record->body, record->size, &wire) < 0)
        return -EPROTO;
    job = malloc(sizeof(*job) + record->size);
    if (!job)
        return -ENOMEM;
    memcpy(job->body, record->body, record->size);
    job->record = (struct ring_record){.body = job->body, .size = record->size};
    job->blob = -1;
    list_init(&job->link);
    if (wire.payload.form == PAYLOAD_BLOB)
        r = payload_receive_fd(worker->carrier.control, wire.payload.serial, payload_drop_fd,
                               &job->blob);
    if (r == -EMFILE) /* the descriptor is lost: the job fails when it begins */
        job->blob = r;
    else if (r < 0) {
        free_job(job);
        return r;
    }
    list_push_back(&worker->backlog, &job->link);
    return 0;
}

int backlog_run(struct troupe_worker *worker)
{
    struct backlog_job *job;
    int r;

    if (list_empty(&worker->backlog))
        return 0;
    job = list_first_entry(&worker->backlog, struct backlog_job, link);
    list_unlink(&job->link);
    r = job_handle(worker, &job->record, TAKE_FD(job->blob));
    free_job(job);
    return r < 0 ? r : 1;
}

void backlog_deinit(struct troupe_worker *worker)
{
    list_for_each_entry_safe (job, &worker->backlog, struct backlog_job, link)
        free_job(job);
}
