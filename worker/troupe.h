/* SPDX-License-Identifier: MIT */
#ifndef TROUPE_H
#define TROUPE_H

/*
 * libtroupe: workers and clients of Troupe.
 *
 * trouped starts a worker, which handles one job at a time:
 *
 *     static int handle(struct troupe_job *job, void *userdata)
 *     {
 *         size_t size;
 *         const char *data = troupe_job_payload(job, &size);
 *         …
 *         return troupe_job_succeed(job, result, result_size);
 *     }
 *
 *     int main(void)
 *     {
 *         struct troupe_worker *worker;
 *         int r = troupe_worker_new(&worker);
 *         if (r < 0)
 *             return troupe_worker_start_error(r);
 *         troupe_worker_on_job(worker, handle, NULL);
 *         r = troupe_worker_run(worker);
 *         troupe_worker_free(worker);
 *         return r < 0;
 *     }
 *
 * A client connects to the supervisor's socket and creates jobs:
 *
 *     struct troupe_client *client;
 *     uint64_t group;
 *     struct troupe_result result = TROUPE_RESULT_INIT;
 *     troupe_client_connect(&client, NULL);
 *     troupe_client_group(client, "digest", &group);
 *     troupe_client_do(client, group, NULL, data, size, &result);
 *
 * General rules:
 *
 * - Functions return 0 or a count, or -errno. Those that allocate may return -ENOMEM; those that
 *   send may return -EPIPE if the supervisor is gone, and -ECONNRESET if it ended before its
 * answer.
 * - Sizes are in bytes, times in microseconds. Text is UTF-8 and ends with a NUL byte, unless its
 *   size is passed with it. Data given to a function is copied.
 * - Payloads and results are read-only, never NULL, 8-aligned and followed by a NUL byte. Those
 *   above InlineMax= are blobs, mapped instead of copied: no NUL byte follows them.
 * - The library owns all pointers that it returns; each function says how long they are valid.
 *   Arguments are not NULL, except where NULL is explained and in *_free().
 * - An object belongs to one thread at a time. Any thread may call troupe_worker_wake(),
 *   troupe_worker_heartbeat(), troupe_client_wake() and troupe_job_is_cancelled(). Nothing is
 *   async-signal-safe, objects share no globals, and the library starts no threads, installs no
 *   signal handlers but those for crashes of workers, and prints nothing, unless a function says
 *   so.
 * - Structs that begin with struct_size may grow. Initialize them with the macro beside them:
 *   -EINVAL for a size that is too small, -E2BIG for a field that this library does not know.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest id of a job, without and with its NUL byte. */
#define TROUPE_ID_MAX  64
#define TROUPE_ID_SIZE (TROUPE_ID_MAX + 1)
/* Largest published state, bytes. */
#define TROUPE_STATE_MAX 4096
/* Largest item that a job emits, bytes. */
#define TROUPE_ITEM_MAX 4096
/* Largest checkpoint, bytes. */
#define TROUPE_CHECKPOINT_MAX 65536
#define TROUPE_USEC_INFINITY  UINT64_MAX

/* Such as "2.0.0". Static. */
const char *troupe_version(void);

/* ---- template ---- */

/* What the runtime of a language does around fork(2). Each member may be NULL. */
struct troupe_fork_hooks {
    void (*before)(void *userdata); /* in the template, before each fork */
    void (*parent)(void *userdata); /* in the template, after it, whether it succeeded or not */
    void (*child)(void *userdata);  /* in the new worker, which has its descriptors and variables */
    void *userdata;
};

/*
 * With Template=slot, forks the workers of a slot from this process. Call it once, after loading
 * what all workers need, and before troupe_worker_new():
 *
 *     load();
 *     r = troupe_template_run(NULL);
 *     if (r < 0)
 *         return r != -ESHUTDOWN;
 *     r = troupe_worker_new(&worker);
 *
 * In a process that is to be a template, it returns 0 once in each worker forked from it, and
 * -ESHUTDOWN or another -errno in the template itself when no more workers are wanted; the template
 * then exits. In any other process it returns 0 immediately.
 *
 * A template has one thread, no child processes, and no open sockets, epoll instances, io_urings or
 * devices of GPUs. Otherwise it is not used: its workers start by exec, and "troupectl status" says
 * why. Other descriptors, and their positions in files, are shared by the template and its workers.
 * Handlers of pthread_atfork(3) run. `hooks` may be NULL, and is valid during the call. Not
 * thread-safe.
 */
int troupe_template_run(const struct troupe_fork_hooks *hooks);

/* ---- worker ---- */

struct troupe_worker;
struct troupe_job;

/*
 * Attaches to the supervisor that started this process. Consumes and unsets the TROUPE_* variables
 * of the environment. At most one worker per process. The caller frees it with
 * troupe_worker_free(). -ENOTCONN: trouped did not start this process; -EPROTO: trouped has a
 * different version; or -errno of mmap(2).
 */
int troupe_worker_new(struct troupe_worker **ret);

/* Calls `tear_down` if the scope is set up, and unmaps the rings. Does not end a job. */
void troupe_worker_free(struct troupe_worker *worker);

/* Prints why troupe_worker_new() failed with `error` to standard error. Returns the exit status 1.
 */
int troupe_worker_start_error(int error);

/* "group/cell/slot" or "group/slot". Valid as long as the worker. Async-signal-safe. */
const char *troupe_worker_name(const struct troupe_worker *worker);

/* Increases with each process in the slot: name and generation identify this process.
 * Async-signal-safe. */
uint64_t troupe_worker_generation(const struct troupe_worker *worker);

/*
 * Handles a job, and ends it by one of troupe_job_succeed(), _succeed_blob(), _reject(), _retry()
 * and _cancelled(). If no such call succeeded, the job is retried with the errno of the failed call
 * or of the return value -errno; without a call, 0 means success with an empty result.
 */
typedef int (*troupe_job_fn)(struct troupe_job *job, void *userdata);

/* Sets the handler of all further jobs. */
void troupe_worker_on_job(struct troupe_worker *worker, troupe_job_fn fn, void *userdata);

/*
 * `set_up` runs before the first job. If it fails, troupe_worker_run() returns its error, and
 * `tear_down` is not called. `tear_down` runs once: when troupe_worker_run() returns,
 * troupe_worker_turn() fails, or in troupe_worker_free(). Either may be NULL. Call this before the
 * first turn.
 */
typedef int (*troupe_scope_fn)(struct troupe_worker *worker, void *userdata);
typedef void (*troupe_scope_end_fn)(struct troupe_worker *worker, void *userdata);
/* Sets both. `userdata` must outlive the worker. */
void troupe_worker_on_scope(struct troupe_worker *worker, troupe_scope_fn set_up,
                            troupe_scope_end_fn tear_down, void *userdata);

/*
 * Installs a handler of the signal that calls `tear_down` and then lets the signal end the process.
 * SIGTERM (KillSignal=) follows a job's time-out, a cancellation that is not honoured, or a stop
 * that takes too long; SIGABRT comes from the watchdog. `tear_down` then interrupts the running
 * code: it may call only async-signal-safe functions, and has TimeoutStopSec=. It does not run
 * after SIGKILL or an OOM kill. -EINVAL: the signal cannot be caught.
 */
int troupe_worker_tear_down_on(struct troupe_worker *worker, int signo);

/*
 * Sets up the scope, reports readiness, and handles jobs and messages until the supervisor stops
 * the worker or is gone; then returns 0. -EINVAL: the worker has neither a job handler nor an
 * actor; -EPROTO: the inbox is corrupt; or the error of `set_up`.
 */
int troupe_worker_run(struct troupe_worker *worker);

/*
 * Handles at most one job or message, and waits for it up to `timeout_usec`. Returns 1, 0 if
 * nothing arrived or a signal handler ran, -ESHUTDOWN if the worker must stop or the supervisor is
 * gone, or an error of troupe_worker_run().
 */
int troupe_worker_turn(struct troupe_worker *worker, uint64_t timeout_usec);

/*
 * For event loops, as in sd-bus: returns a level-triggered descriptor to wait on, which the library
 * keeps, or -errno. When it is readable, and at the time of troupe_worker_timeout()
 * (CLOCK_MONOTONIC; TROUPE_USEC_INFINITY = none), call troupe_worker_process() until it returns 0.
 */
int troupe_worker_fd(struct troupe_worker *worker);
/* Returns the time, in microseconds, to process even if the descriptor is not readable. */
uint64_t troupe_worker_timeout(const struct troupe_worker *worker);
/* Handles at most one job or message, without waiting. Returns 1 if it handled one, 0, or an error
 * of troupe_worker_turn(). */
int troupe_worker_process(struct troupe_worker *worker);

/* Ends the current or else the next wait of troupe_worker_turn(), which returns 0, and makes the
 * descriptor readable. Any thread. */
void troupe_worker_wake(struct troupe_worker *worker);

/*
 * Publishes up to TROUPE_STATE_MAX bytes, usually text or JSON, which the supervisor can read at
 * any time, even after this process has died. Counts as a heartbeat. Makes no system call.
 * -EMSGSIZE.
 */
int troupe_worker_publish_state(struct troupe_worker *worker, const void *data, size_t size);

/* Restarts WatchdogSec=. Any thread. */
void troupe_worker_heartbeat(struct troupe_worker *worker);

/* ---- the current job ---- */

/* Pointers that these functions return belong to the job, and are valid until its handler returns.
 */
struct troupe_worker *troupe_job_worker(const struct troupe_job *job);
/* The id as text. */
const char *troupe_job_id(const struct troupe_job *job);

/* The routing key; size 0 = none. */
const void *troupe_job_key(const struct troupe_job *job, size_t *ret_size);

/* Counts from 1. */
unsigned troupe_job_attempt(const struct troupe_job *job);
/* 1 + the number of retries. */
unsigned troupe_job_max_attempts(const struct troupe_job *job);

/* The payload in bytes; size 0 = none. */
const void *troupe_job_payload(struct troupe_job *job, size_t *ret_size);

/* Returns whether cancellation was requested. Costs one load from memory. Any thread. */
bool troupe_job_is_cancelled(const struct troupe_job *job);

/*
 * Keeps up to TROUPE_CHECKPOINT_MAX bytes (less with a small MailboxSize=), from which the next
 * attempt is to continue. Those of a durable job are on disk after the next group commit; those of
 * others outlive an upgrade, not a crash of the supervisor. The supervisor discards one that
 * exceeds QueueMemoryMax=, and keeps the former one. Waits while the ring is full. -EALREADY: the
 * job has ended; -EMSGSIZE.
 */
int troupe_job_checkpoint(struct troupe_job *job, const void *data, size_t size);

/* Returns the ids of the jobs that this one has waited for (`after` of struct troupe_job_options),
 * separated by commas, without a NUL; size 0 = none, or they have no room in MailboxSize=. Results
 * of these jobs are kept until this one has ended: troupe_client_wait() gets them if the group has
 * MaySubmit=. */
const char *troupe_job_parents(const struct troupe_job *job, size_t *ret_size);

/* Returns the span of this attempt, to which spans of the handler belong, as a header traceparent
 * of W3C Trace Context; NULL = the job has none (`traceparent` of struct troupe_job_options). The
 * first attempt's is a child of the submitter's span, a later one's begins a trace of its own. */
const char *troupe_job_traceparent(const struct troupe_job *job);

/* Returns the last checkpoint of an earlier attempt; size 0 = there is none. */
const void *troupe_job_last_checkpoint(const struct troupe_job *job, size_t *ret_size);

/*
 * Emits an item of up to TROUPE_ITEM_MAX bytes, and at most InlineMax=, for clients that watch the
 * job ('troupectl watch'). The supervisor keeps the last 64 KiB of a job. Waits while the ring is
 * full. -EALREADY: the job has ended; -EMSGSIZE.
 */
int troupe_job_emit(struct troupe_job *job, const void *data, size_t size);

/*
 * These functions end the job: the supervisor may send the next one before the handler returns.
 * They wait while the ring is full. -EALREADY: the job has ended; -EMSGSIZE; -ENOMEM or another
 * -errno if a blob cannot be created. After an error other than -EALREADY the job has not ended.
 */
int troupe_job_succeed(struct troupe_job *job, const void *data, size_t size);
/* Final; `code` is for the submitter. */
int troupe_job_reject(struct troupe_job *job, int code, const void *data, size_t size);
/* Asks for another attempt under the job's policy; `text` is the reason (NULL = "", cut after
 * 1024).
 */
int troupe_job_retry(struct troupe_job *job, int code, const char *text);
/* Like troupe_job_retry(), but the next attempt follows after this pause (0 = immediately) instead
 * of that of the job's policy. -EINVAL: above 366 days. */
int troupe_job_retry_after(struct troupe_job *job, uint64_t pause_usec, int code, const char *text);
/* Ends the job after its cancellation was requested. */
int troupe_job_cancelled(struct troupe_job *job);

/*
 * Allocates a result of `size` > 0 bytes for the handler to fill; troupe_job_succeed_blob() ends
 * the job with all of it, without a copy. The memory is valid until then, or until the handler
 * returns. -EALREADY: the job has one.
 */
int troupe_job_blob(struct troupe_job *job, size_t size, void **ret_data);
/* Like troupe_job_succeed(). -EINVAL: the job has no such result. */
int troupe_job_succeed_blob(struct troupe_job *job);

/* The death of a process that a worker ran for its job. */
struct troupe_crash {
    size_t struct_size; /* sizeof(struct troupe_crash) */
    int pid;
    int signal;
    bool core_dumped;
    uint64_t uptime_usec, user_usec, system_usec, max_rss_bytes; /* 0 = unknown */
    const char *command; /* for people; NULL = unknown; cut after 255 bytes */
};

/*
 * Reports the death of that process like a worker's, with the lines that this worker has written to
 * standard error since the job began. At most once per job, before its end (usually
 * troupe_job_retry()): -EALREADY. -EINVAL: impossible pid or signal.
 */
int troupe_job_crashed(struct troupe_job *job, const struct troupe_crash *crash);

/* ---- client ---- */

struct troupe_client;

/* How a job ended. */
enum troupe_end {
    TROUPE_SUCCEEDED = 0,
    TROUPE_REJECTED = 1, /* final, by the worker */
    TROUPE_CANCELLED = 2,
    TROUPE_DEAD = 3, /* no other attempt is made */
};

/* "succeeded", "rejected", "cancelled", "dead", else "unknown". Static. */
const char *troupe_end_name(enum troupe_end end);

/* Why a job was cancelled, or is dead. */
enum troupe_cause {
    TROUPE_CAUSE_NONE = 0, /* TROUPE_SUCCEEDED and TROUPE_REJECTED */
    /* TROUPE_CANCELLED: */
    TROUPE_CAUSE_REQUESTED = 1, /* on request */
    TROUPE_CAUSE_WITHDRAWN = 2, /* by troupe_client_withdraw(): no worker had it */
    TROUPE_CAUSE_DEADLINE = 3,  /* its deadline_usec is over */
    TROUPE_CAUSE_GROUP = 4,     /* its group is removed, or the supervisor stops */
    /* TROUPE_DEAD: */
    TROUPE_CAUSE_ATTEMPTS = 5,     /* they are used up */
    TROUPE_CAUSE_PAYLOAD_LOST = 6, /* the supervisor crashed, so it cannot be tried again */
    /* TROUPE_CANCELLED: */
    TROUPE_CAUSE_DEPENDENCY = 7, /* a job that it waited for did not end as it had to */
};

/* "none", "requested", "withdrawn", "deadline", "group", "attempts", "payload_lost", "dependency",
 * else "unknown". Static. */
const char *troupe_cause_name(enum troupe_cause cause);

/* What happens to a job whose unique key another live job holds. */
enum troupe_conflict {
    TROUPE_CONFLICT_DEFAULT = 0,  /* as the group's OnConflict= says */
    TROUPE_CONFLICT_EXISTING = 1, /* the other job takes its place */
    TROUPE_CONFLICT_REJECT = 2,   /* it is refused: -ENOTUNIQ */
    TROUPE_CONFLICT_REPLACE = 3,  /* it replaces a job of the same user that waits */
    TROUPE_CONFLICT_REQUEUE = 4,  /* it runs once more after the running one */
};

/* With TROUPE_JOB_DEFAULTS, the group's configuration decides. */
/* For which end of other jobs a job waits. */
enum troupe_condition {
    TROUPE_CONDITION_SUCCESS = 0,
    TROUPE_CONDITION_FAILURE = 1, /* any other end */
    TROUPE_CONDITION_END = 2,
};

struct troupe_job_options {
    size_t struct_size;    /* sizeof(struct troupe_job_options) */
    const char *id;        /* NULL = made by the supervisor */
    const void *key;       /* routing key; chooses the cell in a group with Cells=by-key */
    size_t key_size;       /* 0 = none; at most 255; with Cells=by-key 1 to 64, as in an id */
    int64_t max_retries;   /* -1 = the group's; at most 1000000 */
    uint64_t timeout_usec; /* per attempt; 0 = the group's; TROUPE_USEC_INFINITY = none */
    uint64_t backoff_min_usec, backoff_max_usec; /* 0 = the group's; min <= max */
    int priority; /* 0 (first) to 63 (last) within its queue; -1 = 32 */
    /* The earliest start: after a delay, or at a time since 1970 by the wall clock, at most 366
     * days ahead. 0 = now. Set at most one. */
    uint64_t delay_usec;
    uint64_t at_usec;
    /*
     * How long to wait for room in a full queue: 0 = not at all (-EBUSY), or TROUPE_USEC_INFINITY.
     * The client's later requests also wait; results still arrive.
     */
    uint64_t wait_usec;
    /* The job is cancelled if it has not ended after this time, including all waits and attempts.
     * 0 = none. */
    uint64_t deadline_usec;
    /* With troupe_client_do() and _submit(): the result is also kept for ResultTTLSec=, as with
     * _create(), so that troupe_client_wait() gets it if this program ends first. */
    bool keep_result;
    /* No two live jobs of the group have the same unique key (but see on_conflict); NULL = the
     * group's Unique= decides. At most 255 bytes. */
    const void *unique;
    size_t unique_size;
    enum troupe_conflict on_conflict;
    /* With a unique key: replaces a job that waits, and begins so long after its arrival, but at
     * most so long after the first of those. 0 = not debounced; no limit. */
    uint64_t debounce_usec, debounce_max_usec;
    unsigned cost; /* units that it takes of each limit of its group, 1 to 255; 0 = 1 */
    /* Ids of 1 to 64 jobs, separated by commas: the job waits until all have ended so, and is
     * cancelled when that can no longer be. NULL = none. */
    const char *after;
    enum troupe_condition condition;
    /* The id of a batch of which it becomes a member; NULL = of none. */
    const char *batch;
    /* Up to 8 words with blanks between, by which the history finds it; NULL = none. */
    const char *tags;
    /* The submitter's span, "00-TRACE-SPAN-FLAGS" as in a header traceparent of W3C Trace Context,
     * version 00: 32, 16 and 2 digits of 0-9 a-f. NULL = none. */
    const char *traceparent;
};

/* In the order of the members: C++ has designated initializers only since 2020. */
#define TROUPE_JOB_DEFAULTS                                                                        \
    {                                                                                              \
        sizeof(struct troupe_job_options), NULL, NULL, 0, -1, 0, 0, 0, -1, 0, 0, 0, 0, false,      \
            NULL, 0, TROUPE_CONFLICT_DEFAULT, 0, 0, 0, NULL, TROUPE_CONDITION_SUCCESS, NULL, NULL, \
            NULL                                                                                   \
    }

struct troupe_result {
    size_t struct_size; /* from TROUPE_RESULT_INIT */
    uint64_t cookie;    /* as given to troupe_client_submit() or _wait() */
    int error; /* 0, or -errno of the refusal, or -ECONNRESET; then only `reason` is valid */
    enum troupe_end end;
    int code; /* the handler's */
    unsigned attempts;
    char id[TROUPE_ID_SIZE];
    const char *reason; /* why it was retried, rejected, cancelled or refused, or "" */
    const void *data;   /* the result */
    size_t size;
    void *internal;
    enum troupe_cause cause;
};

#define TROUPE_RESULT_INIT                                                                         \
    {                                                                                              \
        sizeof(struct troupe_result), 0, 0, TROUPE_SUCCEEDED, 0, 0, "", "", "", 0, NULL,           \
            TROUPE_CAUSE_NONE                                                                      \
    }

/*
 * Connects to the supervisor's socket (NULL: $TROUPE_SOCKET, else /run/troupe/troupe.sock). The
 * caller frees the client with troupe_client_free(). -ENOENT, -ECONNREFUSED: no supervisor there;
 * -EACCES: the socket may not be opened; -EPERM: this user may not create jobs in any group;
 * -EUSERS: too many clients; -EAGAIN: the supervisor lacks memory or descriptors now; -ESHUTDOWN:
 * it is stopping; -ERESTART: it is restarting, try again; -ECONNRESET: it ended before it answered;
 * -EPROTO: another program or version answers; -ETIMEDOUT: nothing answers within 90 s;
 * -ENAMETOOLONG.
 */
int troupe_client_connect(struct troupe_client **ret, const char *socket_path);

/* Writes the sentence that troupectl prints for this -errno of troupe_client_connect() into `text`
 * of `size` bytes, cut if it is longer. Returns `text`. */
const char *troupe_explain_connect(int error, const char *socket_path, char *text, size_t size);

/* Like troupe_explain_connect(), but for the -errno of troupe_client_group(), _create() or _do(),
 * or in a result, with its `reason` (NULL = none). */
const char *troupe_explain_refused(int error, const char *group, const char *reason, char *text,
                                   size_t size);

/* Disconnects. Jobs continue, but this client loses their results. Does nothing with NULL. */
void troupe_client_free(struct troupe_client *client);

/* Finds a group. The reference is valid until the group is removed, even for later connections.
 * -ENOENT;
 * -EOPNOTSUPP: a service, which takes no jobs. */
int troupe_client_group(struct troupe_client *client, const char *name, uint64_t *ret_group);

/*
 * Allocates a payload of `size` > 0 bytes for the program to fill. Passed as `data` with the same
 * size to troupe_client_create(), _do() or _submit(), it is sent without a copy. The memory is
 * valid until such a call returns, unless it returns -EAGAIN: then nothing was sent. Only one at a
 * time: -EALREADY; call troupe_client_blob_drop() after an error. -EMSGSIZE; -EMFILE.
 */
int troupe_client_blob(struct troupe_client *client, size_t size, void **ret_data);

/* Frees the memory of troupe_client_blob(), if there is any. */
void troupe_client_blob_drop(struct troupe_client *client);

/*
 * Creates a job and returns when it is accepted. Its result is kept for ResultTTLSec=. `options`
 * NULL = defaults; `id` gets TROUPE_ID_SIZE bytes, NULL = not wanted. -EBUSY: the queue is full;
 * -EEXIST: a live job or a kept result has that id; -ENOTUNIQ: a live job, whose id `id` gets, has
 * the unique key; 1, with TROUPE_CONFLICT_EXISTING: likewise, and it takes the place of this one;
 * -EINVAL: malformed options, or
 * no valid key for a group with Cells=by-key; -ENOSPC: no more cells under CellsMax=; -ENOENT: the
 * group is gone; -EMSGSIZE: the payload exceeds QueueMemoryMax=; -EPERM: this user may not create
 * jobs in the group, or not before the default priority; -EHOSTDOWN: the group is drained for
 * maintenance; -EBADMSG: the group's file has a mistake; -ESHUTDOWN: the supervisor is stopping;
 * -EPIPE: the connection is over, and nothing was sent; -ECONNRESET: the connection ended before
 * the answer, or the disk failed, so it is not known whether the job was accepted.
 */
int troupe_client_create(struct troupe_client *client, uint64_t group,
                         const struct troupe_job_options *options, const void *data, size_t size,
                         char *id);

/* Returns why the last call of troupe_client_create(), _do() or _submit() was refused, for
 * troupe_explain_refused(): "delay_usec: at most 366 days"; "" if there is no more to say than the
 * -errno does. Valid until the next call. */
const char *troupe_client_refusal(const struct troupe_client *client);

/*
 * Does a job and waits for its end. Returns 0 whatever the outcome (see `end`), or the errors of
 * troupe_client_create(). The result is valid until troupe_result_release() or
 * troupe_client_free().
 */
int troupe_client_do(struct troupe_client *client, uint64_t group,
                     const struct troupe_job_options *options, const void *data, size_t size,
                     struct troupe_result *ret);

/*
 * Submits a job without waiting. Its end comes from troupe_client_next() with the same cookie,
 * exactly once; so does a refusal by the supervisor, as the result's `error`. `error` is
 * -ECONNRESET if the supervisor ended first, or leaves a durable job on disk for the next one, or
 * if the disk failed: then wait for the job by its id. -EAGAIN: the ring is full: take results
 * first, with a time-out, since there may be none. -EINVAL and -EMSGSIZE: it cannot be sent at all.
 */
int troupe_client_submit(struct troupe_client *client, uint64_t group,
                         const struct troupe_job_options *options, const void *data, size_t size,
                         uint64_t cookie);

/* Makes submissions visible to the supervisor now. Every call that waits does this first. */
void troupe_client_flush(struct troupe_client *client);

/*
 * Returns the next job end, in the order in which jobs end. Waits up to `timeout_usec`. Release
 * each result with troupe_result_release(). -EAGAIN: none within that time; -EINTR: a signal
 * handler ran, or troupe_client_wake(); -EPIPE: the connection is over, and all requests have
 * ended.
 */
int troupe_client_next(struct troupe_client *client, struct troupe_result *ret,
                       uint64_t timeout_usec);

/*
 * For event loops, like troupe_worker_fd(), _timeout() and _process(). Processing handles messages
 * of the client's actor. When it returns 1, also call troupe_client_next() with a time-out of 0
 * until -EAGAIN.
 */
int troupe_client_fd(struct troupe_client *client);
/* Like troupe_worker_timeout(). */
uint64_t troupe_client_timeout(const struct troupe_client *client);
/* Returns 1 if it handled something, 0, or -errno if the connection is lost. */
int troupe_client_process(struct troupe_client *client);

/* Ends the current or else the next wait of troupe_client_next() or troupe_actor_turn(), and makes
 * the descriptor readable. Calls that wait for an answer continue. Any thread. */
void troupe_client_wake(struct troupe_client *client);

/* Frees the memory of a result. Idempotent. */
void troupe_result_release(struct troupe_result *result);

/* Requests the cancellation of a job. -ESRCH: no such job, or it has ended; -EALREADY: requested
 * before; -EPERM: this user may not cancel it; -EINVAL: malformed id. */
int troupe_client_cancel(struct troupe_client *client, const char *id);

/* Like troupe_client_cancel(), but does not wait for the answer, which may take long: a job that
 * waits for room is cancelled when it is accepted. The client may be freed immediately. -EAGAIN:
 * the ring is full; -EINVAL. */
int troupe_client_abandon(struct troupe_client *client, const char *id);

/* Like troupe_client_abandon(), but cancels the job only if no worker has it: it is in the queue,
 * or waits for its start time or its next attempt. It then ends with TROUPE_CAUSE_WITHDRAWN. A job
 * that a worker has is not affected. */
int troupe_client_withdraw(struct troupe_client *client, const char *id);

/* Makes troupe_client_next() return the end of any job with `cookie`, immediately if its result is
 * kept. The result's `error` is -ESRCH if there is no such job. Returns 0, -EAGAIN or -EINVAL. */
int troupe_client_wait(struct troupe_client *client, const char *id, uint64_t cookie);

#ifdef __cplusplus
}
#endif

/* Messages between workers, clients and exchanges. */
#include "troupe-actor.h"

#endif
