/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The supervisor's side of one worker, for tests: makes a channel, forks, hands the descriptors
 * over as trouped does, and speaks the protocol by hand. Check's own time limit ends a test that
 * waits in vain.
 */

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol.h"
#include "shared/ring/channel.h"
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define FAKE_RING_SIZE  65536u
#define FAKE_INLINE_MAX 4096u

struct fake {
    struct channel channel;
    int control;
    pid_t pid;
    uint64_t handle;
    uint64_t blobs_sent;
    bool no_key; /* of the jobs to come */
    /* The last RESULT, its payload copied. */
    enum protocol_outcome outcome;
    int code;
    uint32_t attempt;
    enum payload_form form;
    char *data;
    size_t size;
    struct protocol_crashed crash; /* before the last result; signal 0 = none */
    char command[PROTOCOL_COMMAND_MAX + 1];
};

/* Above 20, so that the numbers the worker is to find are free to be given. */
static inline int fake_move(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD, 20);
}

static inline void fake_give(int fd, int number, const char *variable)
{
    char text[16];

    if (fd < 0)
        return;
    if (dup2(fd, number) < 0)
        _exit(99);
    close(fd);
    snprintf(text, sizeof(text), "%d", number);
    setenv(variable, text, 1);
}

static inline void fake_become_worker(const struct channel_fds *fds, int control)
{
    struct channel_fds high = {fake_move(fds->inbox), fake_move(fds->outbox),
                               fake_move(fds->wait_fd), fake_move(fds->wake_fd)};
    int high_control = fake_move(control);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Check has handlers for these, which end the test. */
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    for (int fd = 3; fd < 20; fd++)
        close(fd);
    fake_give(high.inbox, 3, "TROUPE_INBOX");
    fake_give(high.outbox, 4, "TROUPE_OUTBOX");
    fake_give(high_control, 5, "TROUPE_CONTROL");
    fake_give(high.wait_fd, 6, "TROUPE_WAIT");
    fake_give(high.wake_fd, 7, "TROUPE_WAKE");
    setenv("TROUPE_WORKER", "test/0", 1);
    setenv("TROUPE_GENERATION", "7", 1);
}

/* Starts a worker: a fork that runs `program` and exits with its result. */
static inline void fake_start(struct fake *fake, enum wake_backend backend, int (*program)(void))
{
    struct channel_options options = {
        .ring_size = FAKE_RING_SIZE, .inline_max = FAKE_INLINE_MAX, .backend = backend};
    struct channel_fds fds;
    int sockets[2];

    *fake = (struct fake){.channel = CHANNEL_NULL};
    ck_assert_int_eq(channel_create(&fake->channel, &options, &fds), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    fake->control = sockets[0];
    fake->pid = fork();
    ck_assert_int_ge(fake->pid, 0);
    if (fake->pid == 0) {
        fake_become_worker(&fds, sockets[1]);
        exit(program());
    }
    close(sockets[1]);
    channel_close_fds(&fake->channel);
}

/* The next record of the worker; its space is given back with the one after it. */
static inline struct ring_record fake_next(struct fake *fake)
{
    struct ring_record record;

    channel_release(&fake->channel);
    while (channel_wait(&fake->channel, USEC_INFINITY) == -EINTR)
        ;
    ck_assert_int_eq(ring_next(&fake->channel.in, &record), 0);
    return record;
}

static inline void fake_expect(struct fake *fake, enum protocol_kind kind)
{
    struct ring_record record = fake_next(fake);

    ck_assert_int_eq(record.kind, kind);
}

static inline void fake_put(struct fake *fake, enum protocol_kind kind, const void *body, int size)
{
    void *room;

    ck_assert_int_ge(size, 0);
    ck_assert_int_eq(ring_reserve(&fake->channel.out, (uint32_t)size, &room), 0);
    memcpy(room, body, (size_t)size);
    ring_commit(&fake->channel.out, (uint16_t)kind, (uint32_t)size);
    channel_publish(&fake->channel);
}

static inline struct payload_wire fake_blob(struct fake *fake, const void *data, size_t size)
{
    void *room;
    int fd;

    ck_assert_int_eq(payload_blob_new(size, &fd, &room), 0);
    memcpy(room, data, size);
    ck_assert_int_eq(payload_blob_seal(fd, room, size), 0);
    ck_assert_int_eq(payload_send_fd(fake->control, fd, ++fake->blobs_sent), 0);
    close(fd);
    return (struct payload_wire){.form = PAYLOAD_BLOB, .size = size, .serial = fake->blobs_sent};
}

static inline void fake_send(struct fake *fake, const void *data, size_t size, uint32_t attempt)
{
    struct protocol_job job = {
        .handle = ++fake->handle,
        .attempt = attempt,
        .max_attempts = 4,
        .timeout = USEC_INFINITY,
        .id = {.name = "job-1"},
        .key = "key",
        .key_size = fake->no_key ? 0 : 3,
        .payload = {.form = PAYLOAD_INLINE, .data = data, .size = size},
    };
    char *body = malloc(FAKE_INLINE_MAX + PROTOCOL_BODY_MAX);

    if (size > FAKE_INLINE_MAX)
        job.payload = fake_blob(fake, data, size);
    fake_put(fake, PROTOCOL_JOB, body,
             protocol_put_job(body, FAKE_INLINE_MAX + PROTOCOL_BODY_MAX, &job));
    free(body);
}

static inline void fake_take_payload(struct fake *fake, const struct payload_wire *payload)
{
    const void *map;
    int fd;

    free(fake->data);
    fake->form = payload->form;
    fake->size = (size_t)payload->size;
    fake->data = calloc(1, fake->size + 1);
    if (payload->form == PAYLOAD_INLINE) {
        if (fake->size > 0)
            memcpy(fake->data, payload->data, fake->size);
        return;
    }
    ck_assert_int_eq(payload_receive_fd(fake->control, payload->serial, payload_drop_fd, &fd), 0);
    ck_assert_int_eq(payload_blob_check(fd, payload->size), 0);
    ck_assert_int_eq(payload_blob_map(fd, fake->size, &map), 0);
    memcpy(fake->data, map, fake->size);
    munmap((void *)(uintptr_t)map, fake->size);
    close(fd);
}

/* Waits for STARTED and RESULT of the last job sent. */
static inline void fake_started(struct fake *fake)
{
    struct ring_record record = fake_next(fake);
    struct protocol_started started;

    ck_assert_int_eq(record.kind, PROTOCOL_STARTED);
    ck_assert_int_eq(protocol_get_started(record.body, record.size, &started), 0);
    ck_assert_uint_eq(started.handle, fake->handle);
}

/* What came before the result, if a process of the worker's crashed. */
static inline void fake_crash(struct fake *fake, const struct ring_record *record)
{
    struct protocol_crashed *crash = &fake->crash;

    ck_assert_int_eq(protocol_get_crashed(record->body, record->size, crash), 0);
    ck_assert_uint_eq(crash->handle, fake->handle);
    memcpy(fake->command, crash->command, crash->command_size);
    fake->command[crash->command_size] = '\0';
    crash->command = fake->command;
}

static inline void fake_result(struct fake *fake)
{
    struct ring_record record = fake_next(fake);
    struct protocol_result result;

    fake->crash.signal = 0;
    if (record.kind == PROTOCOL_CRASHED) {
        fake_crash(fake, &record);
        record = fake_next(fake);
    }
    ck_assert_int_eq(record.kind, PROTOCOL_RESULT);
    ck_assert_int_eq(protocol_get_result(record.body, record.size, &result), 0);
    ck_assert_uint_eq(result.handle, fake->handle);
    fake->outcome = result.outcome;
    fake->code = result.code;
    fake->attempt = result.attempt;
    fake_take_payload(fake, &result.payload);
}

static inline void fake_do(struct fake *fake, const void *data, size_t size)
{
    fake_send(fake, data, size, 1);
    fake_started(fake);
    fake_result(fake);
}

static inline void fake_do_text(struct fake *fake, const char *text)
{
    fake_do(fake, text, strlen(text));
}

/* Of the last result. Any code if it is negative, any data if it is NULL. */
static inline void fake_ended(const struct fake *fake, enum protocol_outcome outcome, int code,
                              const char *data)
{
    ck_assert_int_eq(fake->outcome, outcome);
    if (code >= 0)
        ck_assert_int_eq(fake->code, code);
    if (data)
        ck_assert_str_eq(fake->data, data);
}

/* As the supervisor does when somebody cancels the job in hand. */
static inline void fake_cancel(struct fake *fake)
{
    atomic_store(&fake->channel.words->mark, fake->handle);
}

/* Waits for the worker's own end; returns its wait status. */
static inline int fake_wait(struct fake *fake)
{
    int status;

    ck_assert_int_eq(waitpid(fake->pid, &status, 0), fake->pid);
    free(fake->data);
    close(fake->control);
    channel_deinit(&fake->channel);
    return status;
}

/* Asks the worker to stop; it must exit with 0. */
static inline void fake_stop(struct fake *fake)
{
    fake_put(fake, PROTOCOL_STOP, "", 0);
    ck_assert_int_eq(fake_wait(fake), 0);
}
