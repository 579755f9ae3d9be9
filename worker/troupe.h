/* SPDX-License-Identifier: MIT */
#ifndef TROUPE_H
#define TROUPE_H

/*
 * libtroupe: programs that work for Troupe, and programs that give it work.
 *
 * A worker is started by trouped and handles one job at a time:
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
 * Rules that hold everywhere: functions return 0 (or a count) on success and -errno on failure;
 * objects are opaque, belong to one thread at a time, and independent of each other (any thread may
 * call troupe_worker_wake(), _heartbeat(), troupe_client_wake() and troupe_job_is_cancelled() while
 * the object is there); nothing is global; no thread is started, no signal handler installed,
 * nothing is printed. Not async-signal-safe. Structs that may grow begin with their size:
 * initialize them with the macro beside them (else -EINVAL); -E2BIG says that a field is set which
 * the library is too old to know. Sizes are bytes, times microseconds. Text is UTF-8,
 * NUL-terminated unless a size stands beside it. Pointers handed out stay the library's; how long
 * they last is said at each function. NULL is allowed where it says so and in the *_free()
 * functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest job id chosen by a submitter, without NUL; buffers for ids hold TROUPE_ID_SIZE bytes. */
#define TROUPE_ID_MAX  64
#define TROUPE_ID_SIZE (TROUPE_ID_MAX + 1)
/* Largest state page, bytes. */
#define TROUPE_STATE_MAX     4096
#define TROUPE_USEC_INFINITY UINT64_MAX

/* ---- worker ---- */

struct troupe_worker;
struct troupe_job;

/*
 * Attaches to the supervisor that started this process, through the descriptors named in the
 * environment (TROUPE_INBOX, TROUPE_OUTBOX, TROUPE_CONTROL …; they are consumed and unset).
 * -ENOTCONN when the process was not started by trouped; -EPROTO when what is there is not what
 * this library understands (built for another version); -ENOMEM; other -errno of mmap(2). On
 * success the object is the caller's, to be ended with troupe_worker_free(). One per process.
 */
int troupe_worker_new(struct troupe_worker **ret);

/* Calls `tear_down` if it is due, and lets go of the rings. Ends no job: a handler does. */
void troupe_worker_free(struct troupe_worker *worker);

/*
 * Says on standard error, in one line, why troupe_worker_new() failed with `error`, and returns the
 * exit status that fits (1). The only function here that prints.
 */
int troupe_worker_start_error(int error);

/* "group/cell/slot" or "group/slot". Valid as long as the worker. */
const char *troupe_worker_name(const struct troupe_worker *worker);

/* Grows with each process that fills the slot: name and generation name this one for good. */
uint64_t troupe_worker_generation(const struct troupe_worker *worker);

/*
 * Handles one job. It must end the job with exactly one of troupe_job_succeed(), _reject(),
 * _retry() or _cancelled() (or _succeed_blob()). One that returns 0 without having tried has
 * succeeded with an empty result. One that returns a negative errno without having ended the job
 * asks for another attempt, with that errno as code and its text; so does one whose only try to end
 * the job was refused.
 */
typedef int (*troupe_job_fn)(struct troupe_job *job, void *userdata);

/* `fn` handles all jobs to come; `userdata` is passed to it, nothing else is done with it. */
void troupe_worker_on_job(struct troupe_worker *worker, troupe_job_fn fn, void *userdata);

/*
 * Scope: `set_up` runs once before the first job (a negative result ends troupe_worker_run() with
 * it before readiness is told; `tear_down` is not called then), `tear_down` once when
 * troupe_worker_run() returns for whatever reason (with troupe_worker_turn(): when it returns an
 * error, at the latest in troupe_worker_free()). After a crash the kernel has torn the process
 * down; the next incarnation's `set_up` begins anew. Either may be NULL.
 */
typedef int (*troupe_scope_fn)(struct troupe_worker *worker, void *userdata);
typedef void (*troupe_scope_end_fn)(struct troupe_worker *worker, void *userdata);

/* To be said before the first turn. */
void troupe_worker_on_scope(struct troupe_worker *worker, troupe_scope_fn set_up,
                            troupe_scope_end_fn tear_down, void *userdata);

/*
 * Has `tear_down` run also when this signal comes, and the process die of the signal then, as it
 * would have. SIGTERM (KillSignal=) comes when a job has run out of its time or does not end after
 * it was cancelled, and to a worker that does not stop in time; SIGABRT is the watchdog's. Replaces
 * the signal's handler. `tear_down` runs in the handler, in the middle of whatever hangs: it may
 * call only what is async-signal-safe, of this library troupe_worker_name() and
 * troupe_worker_generation(), and has TimeoutStopSec= for it. After SIGKILL, an OOM kill, or while
 * the process is stuck in the kernel nothing runs. -EINVAL: a signal that cannot be caught.
 */
int troupe_worker_tear_down_on(struct troupe_worker *worker, int signo);

/*
 * Tells readiness and handles jobs until the supervisor asks to stop (returns 0) or is gone
 * (returns 0 as well; mostly the kernel ends the process first, with the supervisor's death).
 * -EINVAL with neither a job handler nor an actor; -EPROTO when the inbox cannot be understood;
 * what `set_up` returned. Signals that the program handles do not end it: see troupe_worker_turn().
 */
int troupe_worker_run(struct troupe_worker *worker);

/*
 * The same loop, a turn at a time, for programs with a loop of their own: handles at most one job.
 * Waits at most `timeout_usec`. 1 when something was handled, 0 when nothing was there or a signal
 * handler ran, -ESHUTDOWN when the supervisor asked to stop or is gone, else as
 * troupe_worker_run(). The first call sets up the scope and tells readiness.
 */
int troupe_worker_turn(struct troupe_worker *worker, uint64_t timeout_usec);

/*
 * For a program with an event loop of its own (poll, epoll, io_uring, libuv, sd-event, asyncio …),
 * in the manner of sd_bus_get_fd(): call troupe_worker_process() until it returns 0, whenever the
 * descriptor is readable and when the time of troupe_worker_timeout() has come.
 *
 * Returns a level-triggered descriptor that belongs to the library, for waiting only; or -errno.
 */
int troupe_worker_fd(struct troupe_worker *worker);
/* When to call troupe_worker_process() at the latest: microseconds of CLOCK_MONOTONIC;
 * TROUPE_USEC_INFINITY = no such time. */
uint64_t troupe_worker_timeout(const struct troupe_worker *worker);
/* Handles at most one thing and never waits. Returns 1 to be called again, 0 to wait, or a negative
 * value as troupe_worker_turn(). */
int troupe_worker_process(struct troupe_worker *worker);

/*
 * Any thread: ends the wait of troupe_worker_turn(), which returns 0 (or else of its next call), or
 * makes the descriptor readable.
 */
void troupe_worker_wake(struct troupe_worker *worker);

/*
 * Publishes up to TROUPE_STATE_MAX bytes (text or JSON by custom) that the supervisor can read at
 * any time, also while this process hangs or after it has died. A few hundred nanoseconds, no
 * system call. Also counts as a sign of life for WatchdogSec=. -EMSGSIZE.
 */
int troupe_worker_publish_state(struct troupe_worker *worker, const void *data, size_t size);

/* A sign of life for WatchdogSec= without a state. */
void troupe_worker_heartbeat(struct troupe_worker *worker);

/* ---- the job in hand: valid until the handler returns ---- */

/* The worker that handles it. */
struct troupe_worker *troupe_job_worker(const struct troupe_job *job);

/* As it was given or made. */
const char *troupe_job_id(const struct troupe_job *job);

/* The routing key; size 0 = none. */
const void *troupe_job_key(const struct troupe_job *job, size_t *ret_size);

/* 1 for the first attempt. */
unsigned troupe_job_attempt(const struct troupe_job *job);
/* 1 + the retries allowed. */
unsigned troupe_job_max_attempts(const struct troupe_job *job);

/*
 * The payload, read-only, at least 8-aligned and followed by at least one NUL byte unless it is a
 * blob (above InlineMax: then it is the submitter's sealed memfd, mapped, not copied). Never NULL.
 */
const void *troupe_job_payload(struct troupe_job *job, size_t *ret_size);

/* Whether somebody asked to cancel it: look now and then. One load from shared memory. */
bool troupe_job_is_cancelled(const struct troupe_job *job);

/*
 * Ends the job, at once: the supervisor may have the next one waiting before the handler returns.
 * `data` is copied (above InlineMax: into a blob). Waits while the ring is full. -EALREADY when the
 * job has been ended before; -EMSGSIZE; -ENOMEM or another -errno for a blob that could not be made
 * (the job is not ended then). All that holds for the next three as well. This one: done, with a
 * result.
 */
int troupe_job_succeed(struct troupe_job *job, const void *data, size_t size);
/* Rejected: final, never retried; `code` is for the asker. */
int troupe_job_reject(struct troupe_job *job, int code, const void *data, size_t size);
/* To be tried again under the job's policy; `text` says why (NULL = ""; cut after 1024 bytes). */
int troupe_job_retry(struct troupe_job *job, int code, const char *text);
/* The cancel flag was honoured. */
int troupe_job_cancelled(struct troupe_job *job);

/* The end of a process that a worker ran for its job. */
struct troupe_crash {
    size_t struct_size; /* sizeof(struct troupe_crash): lets the struct grow */
    int pid;
    int signal; /* that killed it */
    bool core_dumped;
    uint64_t uptime_usec, user_usec, system_usec, max_rss_bytes; /* 0 = unknown */
    const char *command; /* as a person knows it; NULL = unknown; cut after 255 bytes */
};

/*
 * Reports that a process which this worker ran for the job was killed by a signal: it is told as a
 * death, like that of a worker, with what this worker has passed on to standard error since the job
 * began. At most once per job, before its end, which is still to be told: as a rule with
 * troupe_job_retry(). -EALREADY; -EINVAL for a pid or signal that cannot be.
 */
int troupe_job_crashed(struct troupe_job *job, const struct troupe_crash *crash);

/*
 * A result of any size without a copy: memory to write into, then troupe_job_succeed_blob() seals
 * and sends it. The memory is the library's and gone after that, or when the handler returns. One
 * per job; -EALREADY for a second. `size` > 0.
 */
int troupe_job_blob(struct troupe_job *job, size_t size, void **ret_data);

/* Ends the job with that memory, all of it, as the result. -EINVAL when there is none; else as
 * above. */
int troupe_job_succeed_blob(struct troupe_job *job);

/* ---- client ---- */

struct troupe_client;

/* How a job ended. */
enum troupe_end {
    TROUPE_SUCCEEDED = 0,
    TROUPE_REJECTED = 1, /* final, by the worker's own word */
    TROUPE_CANCELLED = 2,
    TROUPE_DEAD = 3, /* no attempt is left */
};

/* "succeeded", "rejected", "cancelled", "dead"; "unknown" for anything else. Static. */
const char *troupe_end_name(enum troupe_end end);

/* Options of a job. TROUPE_JOB_DEFAULTS leaves everything to the group's configuration. */
struct troupe_job_options {
    size_t struct_size;    /* sizeof(struct troupe_job_options): lets the struct grow */
    const char *id;        /* NULL = a random one is made */
    const void *key;       /* routing key; in a group with Cells=by-key it picks the cell */
    size_t key_size;       /* 0 = none; at most 255; with Cells=by-key 1 to 64, as of an id */
    int64_t max_retries;   /* -1 = the group's */
    uint64_t timeout_usec; /* per attempt; 0 = the group's; TROUPE_USEC_INFINITY = none */
    uint64_t backoff_min_usec, backoff_max_usec; /* 0 = the group's */
    /* 0 (first) to 63 (last) within its queue, equals in the order they came; -1 = 32. */
    int priority;
    /* Not to be begun before so long, whatever is done to the clock; 0 = at once. */
    uint64_t delay_usec;
    /* Not to be begun before this date, since 1970 and as the clock says then; 0 = at once. One of
     * both; at most 366 days ahead. */
    uint64_t at_usec;
    /*
     * A full queue: how long to wait for room; 0 = not at all (-EBUSY at once);
     * TROUPE_USEC_INFINITY. While one job of a client waits, what the client asked after it does,
     * too (its results arrive all the same), and its own time begins when it is its turn.
     */
    uint64_t wait_usec;
    /*
     * For all of it: waiting for room, delay, queue, retries and work; 0 = none. A job that has not
     * ended by then is cancelled, and its result says timed_out.
     */
    uint64_t deadline_usec;
};

/* In the order of the members: C++ has designated initializers only since 2020. */
#define TROUPE_JOB_DEFAULTS                                                                        \
    {                                                                                              \
        sizeof(struct troupe_job_options), NULL, NULL, 0, -1, 0, 0, 0, -1, 0, 0, 0, 0              \
    }

struct troupe_result {
    size_t struct_size; /* as in TROUPE_RESULT_INIT: lets the struct grow */
    uint64_t cookie;    /* as given to troupe_client_submit() */
    int error; /* 0, or why the job was refused: -EBUSY, -EEXIST …; nothing below is valid then */
    enum troupe_end end;
    int code; /* the handler's own */
    unsigned attempts;
    char id[TROUPE_ID_SIZE];
    /* Why it was retried, rejected, cancelled or refused; "" if there is nothing to say. */
    const char *reason;
    /* The result; never NULL, 8-aligned, ends with a NUL byte unless above InlineMax (a blob). */
    const void *data;
    size_t size;
    void *internal; /* the library's */
    bool timed_out; /* with TROUPE_CANCELLED: its deadline_usec was over */
};

/* What a result must be before it is filled in. */
#define TROUPE_RESULT_INIT                                                                         \
    {                                                                                              \
        sizeof(struct troupe_result), 0, 0, TROUPE_SUCCEEDED, 0, 0, "", "", "", 0, NULL, false     \
    }

/*
 * Connects to the supervisor's socket (NULL: $TROUPE_SOCKET, else /run/troupe/troupe.sock) and
 * obtains a pair of rings. -ENOENT or -ECONNREFUSED: no supervisor there; -EACCES: not allowed to
 * open it, or (-EPERM) to create jobs; -EUSERS: too many clients; -EAGAIN: it is short of memory or
 * descriptors, try again; -ESHUTDOWN: it is stopping; -EPROTO: something else or another version
 * answers there; -ETIMEDOUT: nothing answered within 90 s; -ENAMETOOLONG.
 */
int troupe_client_connect(struct troupe_client **ret, const char *socket_path);

/* Ends the connection: its jobs go on, and nobody is told how they end. */
void troupe_client_free(struct troupe_client *client);

/*
 * Finds a group by its name; the reference is good for this connection, until the group is removed.
 * -ENOENT when there is none; -EOPNOTSUPP for a service, which takes no jobs.
 */
int troupe_client_group(struct troupe_client *client, const char *name, uint64_t *ret_group);

/*
 * A payload of any size without a copy: memory to write into. Handed as `data`, with this very
 * `size`, to the next troupe_client_create(), _do() or _submit(), it is sealed and passed along as
 * it is. The memory is the library's: gone when that call has succeeded or the connection is over,
 * as it was after any other failure. One at a time: -EALREADY for a second; -EINVAL for size 0;
 * -EMSGSIZE; -ENOMEM, -EMFILE.
 */
int troupe_client_blob(struct troupe_client *client, size_t size, void **ret_data);

/* Gives that memory back unused. Nothing happens when there is none. */
void troupe_client_blob_drop(struct troupe_client *client);

/*
 * Creates a background job: returns when it is accepted. Writes its id into `id` (TROUPE_ID_SIZE
 * bytes; NULL allowed). The result is kept by the supervisor for ResultTTLSec=. `options` NULL =
 * defaults. `data` is copied before return. -EBUSY the group's queue is full; -EEXIST a job has
 * that id: it is live, or its result is still kept; -EINVAL malformed id, more than 1000000
 * retries, a back-off whose minimum is above its maximum, or in a group with Cells=by-key no key or
 * one that cannot name a cell; -ENOSPC it would take a new cell, and there are CellsMax=; -ENOENT
 * the group is gone; -EMSGSIZE the payload is above QueueMemoryMax= of the group and never fits;
 * -ESHUTDOWN the supervisor is stopping; -EPIPE the connection is over (all further calls say the
 * same).
 */
int troupe_client_create(struct troupe_client *client, uint64_t group,
                         const struct troupe_job_options *options, const void *data, size_t size,
                         char *id);

/*
 * Does a job and waits for its end. The result is valid until troupe_result_release() (or the
 * client is freed). Errors as troupe_client_create(); 0 also for a job that was rejected or is
 * dead: look at `end`.
 */
int troupe_client_do(struct troupe_client *client, uint64_t group,
                     const struct troupe_job_options *options, const void *data, size_t size,
                     struct troupe_result *ret);

/*
 * Pipelined: submits without waiting for anything; the end comes out of troupe_client_next() with
 * the same cookie, exactly once per submit that returned 0. -EAGAIN when the ring is full: take
 * some results, with a time-out, since there need not be any (the supervisor may be waiting for
 * room in a queue for what was submitted before). A refusal by the supervisor comes out there as
 * well, as the result's `error`; -EINVAL and -EMSGSIZE for what cannot be sent at all.
 */
int troupe_client_submit(struct troupe_client *client, uint64_t group,
                         const struct troupe_job_options *options, const void *data, size_t size,
                         uint64_t cookie);

/*
 * Submissions are shown to the supervisor at the latest by the next call that waits; this shows
 * them now.
 */
void troupe_client_flush(struct troupe_client *client);

/*
 * The next end, in the order in which jobs end. Waits at most `timeout_usec` (0 = not at all). What
 * the result points to is valid until troupe_result_release() (or the client is freed): release
 * every result. 0; -EAGAIN nothing within that time; -EINTR a signal handler ran while it waited;
 * -EPIPE the connection is over and everything that had arrived has been taken; -ENOMEM.
 */
int troupe_client_next(struct troupe_client *client, struct troupe_result *ret,
                       uint64_t timeout_usec);

/*
 * The descriptor of a client for an event loop, as troupe_worker_fd(). Belongs to the library; or
 * -errno.
 */
int troupe_client_fd(struct troupe_client *client);
/* As troupe_worker_timeout(): microseconds of CLOCK_MONOTONIC; TROUPE_USEC_INFINITY = none. */
uint64_t troupe_client_timeout(const struct troupe_client *client);
/*
 * Handles the messages of the client's actor and never waits. Returns 1 to be called again: take
 * results with troupe_client_next() and a time-out of 0 until that returns -EAGAIN. Returns 0 to
 * wait; -EPIPE or -ENOMEM.
 */
int troupe_client_process(struct troupe_client *client);

/*
 * Any thread: ends the wait of troupe_client_next() (-EINTR) or troupe_actor_turn() (0), or else of
 * the next one, or makes the descriptor readable. Calls that wait for an answer go on.
 */
void troupe_client_wake(struct troupe_client *client);

/* Lets go of what a result points to. Allowed twice. */
void troupe_result_release(struct troupe_result *result);

/*
 * Asks to cancel a job by id. 0 = asked; -ESRCH no such job, or it has ended; -EALREADY asked
 * before; -EPERM; -EINVAL malformed id.
 */
int troupe_client_cancel(struct troupe_client *client, const char *id);

/*
 * Waits for the end of a job created by anybody: comes out of troupe_client_next() with `cookie`;
 * at once if it has ended and its result is still kept. `error` is -ESRCH there when no such job is
 * known.
 */
int troupe_client_wait(struct troupe_client *client, const char *id, uint64_t cookie);

/* "1.0.0". Static. */
const char *troupe_version(void);

#ifdef __cplusplus
}
#endif

/* Messages between workers, clients and others. */
#include "troupe-actor.h"

#endif
