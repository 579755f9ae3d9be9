/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records that travel through inboxes and outboxes, and nothing else. Every kind has a struct,
 * a put (returns the record's body size or -EMSGSIZE) and a get (0 or -EBADMSG: missing, surplus or
 * impossible fields). Byte pointers in a struct that get filled are borrowed from the record; those
 * of a peer that is not trusted may change under the reader: copy, then look.
 *
 *   worker → supervisor    READY, STARTED, CRASHED, RESULT
 *   supervisor → worker    JOB, STOP
 *   client → supervisor    LOOKUP, SUBMIT, CANCEL, WAIT
 *   supervisor → client    FOUND, ACCEPTED, REFUSED, DONE
 *
 * Steps for changing a record: raise MEMORY_VERSION (shared/ring/memory.h); change struct, put and
 * get here together; extend tests/unit/test-protocol.c.
 */

#include "shared/base/clock.h"
#include "shared/protocol/payload.h"
#include <stdbool.h>
#include <stdint.h>

enum protocol_kind {
    PROTOCOL_READY = 1,
    PROTOCOL_STARTED,
    PROTOCOL_RESULT,
    PROTOCOL_CRASHED,
    PROTOCOL_JOB = 16,
    PROTOCOL_STOP,
    PROTOCOL_LOOKUP = 32,
    PROTOCOL_SUBMIT,
    PROTOCOL_CANCEL,
    PROTOCOL_WAIT,
    PROTOCOL_FOUND = 48,
    PROTOCOL_ACCEPTED,
    PROTOCOL_REFUSED,
    PROTOCOL_DONE,
};

/* What a handler made of one attempt. */
enum protocol_outcome {
    PROTOCOL_SUCCESS = 0,
    PROTOCOL_REJECT = 1,    /* final */
    PROTOCOL_RETRY = 2,     /* retried under the job's policy */
    PROTOCOL_CANCELLED = 3, /* the handler honoured the cancel flag */
};

/* How a job ended: what its asker is told. */
enum protocol_end {
    PROTOCOL_END_SUCCEEDED = 0,
    PROTOCOL_END_REJECTED = 1, /* by the worker: final */
    PROTOCOL_END_CANCELLED = 2,
    PROTOCOL_END_DEAD = 3,      /* retries exhausted */
    PROTOCOL_END_TIMED_OUT = 4, /* cancelled, since its deadline was over */
};

/*
 * A job's id. Either made by the supervisor (name empty: 128 bits, written as 32 lower-case
 * hexadecimal digits, high first), or chosen by the submitter: 1 … PROTOCOL_NAME_MAX characters of
 * [A-Za-z0-9._:@-], the first one not '-' or '.'.
 */
#define PROTOCOL_NAME_MAX   64
#define PROTOCOL_ID_TEXT    (PROTOCOL_NAME_MAX + 1)
#define PROTOCOL_KEY_MAX    255
#define PROTOCOL_REASON_MAX 1024
/* What is told of a program and its arguments. */
#define PROTOCOL_COMMAND_MAX 255
#define PROTOCOL_SIGNAL_MAX  64

struct protocol_id {
    uint64_t high, low;
    char name[PROTOCOL_ID_TEXT]; /* NUL-terminated; empty if made by the supervisor */
};

bool protocol_name_valid(const char *name, size_t size);
#define PROTOCOL_NAME_ALLOWED                                                                      \
    "1 to 64 characters of A-Z a-z 0-9 . _ : @ -, not beginning with . or -"

/* Writes the text form, NUL-terminated, into `text` of PROTOCOL_ID_TEXT bytes. Returns `text`. */
char *protocol_id_format(const struct protocol_id *id, char *text);

/*
 * Reads a text form: 32 lower-case hexadecimal digits give high and low and an empty name, any
 * other valid name is copied. -EINVAL for what is neither.
 */
int protocol_id_parse(struct protocol_id *ret, const char *text);

struct protocol_job {
    uint64_t handle; /* names the job on this channel; comes back in STARTED and RESULT */
    uint32_t attempt;
    uint32_t max_attempts; /* 1 + retries */
    usec_t timeout;        /* for this attempt; USEC_INFINITY = none */
    struct protocol_id id;
    const void *key;
    uint32_t key_size;
    struct payload_wire
        payload; /* inline data: 8-aligned in an 8-aligned body, followed by a zero byte */
};

struct protocol_started {
    uint64_t handle;
    uint32_t attempt;
    uint32_t state_sequence; /* of the state page then: what is there belongs to earlier work */
};

struct protocol_result {
    uint64_t handle;
    uint32_t attempt;
    enum protocol_outcome outcome;
    int32_t code;                /* the handler's own; meaning is between it and the asker */
    struct payload_wire payload; /* result, or for an error its text */
};

/* A process that the worker ran for the job in hand was killed by a signal; RESULT follows. */
struct protocol_crashed {
    uint64_t handle;
    uint32_t attempt;
    int32_t pid;
    uint8_t signal; /* 1 … PROTOCOL_SIGNAL_MAX */
    bool core_dumped;
    usec_t uptime, user, system;
    uint64_t max_rss; /* bytes */
    const void *command;
    uint32_t command_size;
};

struct protocol_lookup {
    uint64_t cookie; /* the client's own number; comes back in the answer */
    const void *name;
    uint32_t name_size;
};

struct protocol_found {
    uint64_t cookie;
    uint64_t group; /* reference for SUBMIT; dies with the group, never names another */
};

/* Options left to the group's configuration. USEC_INFINITY as a time-out: none. */
#define PROTOCOL_DEFAULT_RETRIES  UINT32_MAX
#define PROTOCOL_DEFAULT_USEC     0
#define PROTOCOL_DEFAULT_PRIORITY UINT8_MAX

enum protocol_submit_flags {
    PROTOCOL_SUBMIT_DO = 1u << 0, /* answer with DONE, not with ACCEPTED; the result is not kept */
    PROTOCOL_SUBMIT_KNOWN = ((1u << 1) - 1),
};

struct protocol_submit {
    uint64_t cookie;
    uint64_t group;
    uint32_t flags;
    uint32_t max_retries;
    usec_t timeout;
    usec_t backoff_min, backoff_max;
    uint8_t priority; /* 0 first … 63, or PROTOCOL_DEFAULT_PRIORITY */
    usec_t delay;     /* not to be begun before so long; 0 = none */
    usec_t at;        /* not to be begun before this date, realtime; 0 = none */
    usec_t wait;      /* how long to wait for room in the queue; USEC_INFINITY = for ever */
    usec_t deadline;  /* for all of it; 0 = none */
    const void *name; /* the submitter's id; size 0 = have one made */
    uint32_t name_size;
    const void *key;
    uint32_t key_size;
    struct payload_wire payload;
};

/* CANCEL is answered with ACCEPTED or REFUSED, WAIT with DONE or REFUSED. */
struct protocol_by_id {
    uint64_t cookie;
    struct protocol_id id;
};

struct protocol_accepted {
    uint64_t cookie;
    struct protocol_id id;
};

struct protocol_refused {
    uint64_t cookie;
    uint32_t error; /* errno: EBUSY queue full, ENOENT no group, ESRCH no job, ENOSPC no cell … */
    const void *reason;
    uint32_t reason_size;
};

struct protocol_done {
    uint64_t cookie;
    struct protocol_id id;
    enum protocol_end end;
    int32_t code;
    uint32_t attempts;
    const void *reason; /* why it failed, was cancelled or died; text */
    uint32_t reason_size;
    struct payload_wire payload; /* the result */
};

/* READY and STOP have no fields. Bodies without payload never exceed this. */
#define PROTOCOL_BODY_MAX 2048u

/* As said at the top: bytes written or -EMSGSIZE; 0 or -EBADMSG, and what is got is borrowed. */
int protocol_put_job(void *body, uint32_t size, const struct protocol_job *job);
int protocol_get_job(const void *body, uint32_t size, struct protocol_job *ret);
int protocol_put_started(void *body, uint32_t size, const struct protocol_started *started);
int protocol_get_started(const void *body, uint32_t size, struct protocol_started *ret);
int protocol_put_result(void *body, uint32_t size, const struct protocol_result *result);
int protocol_get_result(const void *body, uint32_t size, struct protocol_result *ret);
int protocol_put_crashed(void *body, uint32_t size, const struct protocol_crashed *crashed);
int protocol_get_crashed(const void *body, uint32_t size, struct protocol_crashed *ret);
int protocol_put_lookup(void *body, uint32_t size, const struct protocol_lookup *lookup);
int protocol_get_lookup(const void *body, uint32_t size, struct protocol_lookup *ret);
int protocol_put_submit(void *body, uint32_t size, const struct protocol_submit *submit);
int protocol_get_submit(const void *body, uint32_t size, struct protocol_submit *ret);
int protocol_put_by_id(void *body, uint32_t size, const struct protocol_by_id *by_id);
int protocol_get_by_id(const void *body, uint32_t size, struct protocol_by_id *ret);
int protocol_put_found(void *body, uint32_t size, const struct protocol_found *found);
int protocol_get_found(const void *body, uint32_t size, struct protocol_found *ret);
int protocol_put_accepted(void *body, uint32_t size, const struct protocol_accepted *accepted);
int protocol_get_accepted(const void *body, uint32_t size, struct protocol_accepted *ret);
int protocol_put_refused(void *body, uint32_t size, const struct protocol_refused *refused);
int protocol_get_refused(const void *body, uint32_t size, struct protocol_refused *ret);
int protocol_put_done(void *body, uint32_t size, const struct protocol_done *done);
int protocol_get_done(const void *body, uint32_t size, struct protocol_done *ret);
