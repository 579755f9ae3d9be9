/* SPDX-License-Identifier: MIT */
#pragma once

/* The supervisor as libtroupe's clients see it, for tests: a socket, one client, scripted answers.
 */

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include "shared/protocol/protocol.h"
#include "shared/ring/channel.h"
#include "worker/troupe.h"
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

/*
 * The supervisor is a thread that accepts one client and answers by what the payloads and ids say.
 * Its asserts are checks of its own: Check's are for the main thread.
 */

#define INLINE_MAX 2048u
#define RING_SIZE  32768u
#define GROUP      77u

struct supervisor {
    char path[64];
    enum wake_backend backend;
    const char *reply; /* instead of the true answer to the call; ends with its NUL */
    size_t n_fds;      /* 0 = as the back end needs */
    int listener, client, control;
    struct channel channel;
    struct channel_fds held; /* as the keeper has them */
    bool crashing;           /* crashes once it has handled the record in hand */
    unsigned crashes;
    uint32_t kept;        /* enum memory_kept, by the next crash; as an upgrade does */
    uint64_t waiting[64]; /* numbers of requests that wait for "answer" */
    unsigned n_waiting;
    uint64_t blobs_in, blobs_out;
    unsigned submitted;
    pthread_t thread;
};

static struct supervisor supervisor;

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void send_reply(const char *text, const int *fds, size_t n_fds)
{
    struct iovec data = {.iov_base = (char *)(uintptr_t)text, .iov_len = strlen(text) + 1};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

    if (n_fds > 0) {
        struct cmsghdr *header = (struct cmsghdr *)(void *)control;

        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
    }
    must(sendmsg(supervisor.client, &message, MSG_NOSIGNAL) > 0);
}

/* Keeps what the next supervisor needs, before the channel closes it. */
static void hold(const struct channel *channel)
{
    close_fd(supervisor.held.inbox);
    close_fd(supervisor.held.outbox);
    supervisor.held = (struct channel_fds){
        .inbox = dup(channel->mine.fd),
        .outbox = dup(channel->theirs.fd),
        .wait_fd = dup(channel->wake_fd),
        .wake_fd = channel->wait_fd < 0 ? -1 : dup(channel->wait_fd),
    };
}

/* Loses everything but what is held and published; the next supervisor goes on from that. */
static void crash(void)
{
    struct channel next;
    struct channel_fds fds = supervisor.held;

    const enum wake_backend backend = supervisor.channel.backend;

    supervisor.held = (struct channel_fds)CHANNEL_FDS_NULL;
    channel_deinit(&supervisor.channel);
    must(channel_adopt(&next, &fds, backend) == 0);
    channel_set_kept(&next, supervisor.kept);
    supervisor.channel = next;
    supervisor.crashing = false;
    supervisor.crashes++;
    hold(&supervisor.channel);
    must(payload_send_fd(supervisor.control, supervisor.channel.mine.fd, PAYLOAD_SERIAL_INBOX) ==
         0);
    channel_move(&supervisor.channel);
    channel_announce(&supervisor.channel);
}

static void attach(void)
{
    struct channel_options options = {
        .ring_size = RING_SIZE, .inline_max = INLINE_MAX, .backend = supervisor.backend};
    size_t n_fds = supervisor.backend == WAKE_EVENTFD ? 5 : 4;
    struct channel_fds fds;
    char call[256];
    int sockets[2];

    must(recv(supervisor.client, call, sizeof(call), 0) > 0);
    must(strcmp(call, "{\"method\":\"io.troupe.Jobs.Attach\",\"parameters\":{\"version\":" TEXT(
                          MEMORY_VERSION) "}}") == 0);
    must(channel_create(&supervisor.channel, &options, &fds) == 0);
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    supervisor.control = sockets[0];
    send_reply("{\"parameters\":{\"descriptors\":3}}",
               (int[]){fds.inbox, fds.outbox, sockets[1], fds.wait_fd, fds.wake_fd},
               supervisor.n_fds > 0 ? supervisor.n_fds : n_fds);
    close(sockets[1]);
    hold(&supervisor.channel);
    channel_close_fds(&supervisor.channel);
}

static void put(enum protocol_kind kind, const void *body, int size)
{
    void *room;
    int r;

    must(size >= 0);
    while ((r = ring_reserve(&supervisor.channel.out, (uint32_t)size, &room)) == RING_E_FULL)
        must(channel_wait_space(&supervisor.channel, (uint32_t)size, USEC_INFINITY) == 0);
    must(r == 0);
    memcpy(room, body, (size_t)size);
    ring_commit(&supervisor.channel.out, (uint16_t)kind, (uint32_t)size);
    channel_publish(&supervisor.channel);
}

static void refuse(uint64_t cookie, int error, const char *reason)
{
    struct protocol_refused refused = {.cookie = cookie,
                                       .error = (uint32_t)error,
                                       .reason = reason,
                                       .reason_size = (uint32_t)strlen(reason)};
    char body[PROTOCOL_BODY_MAX];

    put(PROTOCOL_REFUSED, body, protocol_put_refused(body, sizeof(body), &refused));
}

static void accept_job(uint64_t cookie, const struct protocol_id *id)
{
    struct protocol_accepted accepted = {.cookie = cookie, .id = *id};
    char body[PROTOCOL_BODY_MAX];

    put(PROTOCOL_ACCEPTED, body, protocol_put_accepted(body, sizeof(body), &accepted));
}

static void done(const struct protocol_done *end)
{
    char body[PROTOCOL_BODY_MAX + INLINE_MAX];

    put(PROTOCOL_DONE, body, protocol_put_done(body, sizeof(body), end));
}

/* In no particular order, as these requests. */
static void answer_waiting(void)
{
    while (supervisor.n_waiting > 0)
        done(&(struct protocol_done){.cookie = supervisor.waiting[--supervisor.n_waiting],
                                     .attempts = 1});
}

static void await_answer(uint64_t cookie)
{
    must(supervisor.n_waiting < ELEMENTS(supervisor.waiting));
    supervisor.waiting[supervisor.n_waiting++] = cookie;
}

static const void *map_in(const struct payload_wire *payload)
{
    const void *data;
    int fd;

    if (payload->form == PAYLOAD_INLINE)
        return payload->data;
    must(payload->serial == ++supervisor.blobs_in);
    must(payload_receive_fd(supervisor.control, payload->serial, payload_drop_fd, &fd) == 0);
    must(payload_blob_check(fd, payload->size) == 0);
    must(payload_blob_map(fd, (size_t)payload->size, &data) == 0);
    close(fd);
    return data;
}

/* An echo: blobs as new blobs. */
static void echo(const struct protocol_submit *submit, const struct protocol_id *id,
                 const void *data)
{
    struct protocol_done end = {
        .cookie = submit->cookie, .id = *id, .attempts = 1, .payload = submit->payload};

    if (submit->payload.form == PAYLOAD_BLOB) {
        void *copy;
        int fd, r;

        must(payload_blob_new((size_t)submit->payload.size, &fd, &copy) == 0);
        memcpy(copy, data, (size_t)submit->payload.size);
        must(payload_blob_seal(fd, copy, (size_t)submit->payload.size) == 0);
        end.payload.serial = ++supervisor.blobs_out;
        while ((r = payload_send_fd(supervisor.control, fd, end.payload.serial)) == -EAGAIN)
            poll(&(struct pollfd){.fd = supervisor.control, .events = POLLOUT}, 1, -1);
        must(r == 0);
        close(fd);
    }
    done(&end);
}

static bool is(const void *data, const struct payload_wire *payload, const char *text)
{
    return payload->size == strlen(text) && memcmp(data, text, strlen(text)) == 0;
}

static void die(const struct protocol_submit *submit, const struct protocol_id *id)
{
    done(&(struct protocol_done){.cookie = submit->cookie,
                                 .id = *id,
                                 .end = PROTOCOL_END_DEAD,
                                 .cause = PROTOCOL_CAUSE_ATTEMPTS,
                                 .code = 5,
                                 .attempts = 4,
                                 .reason = "killed by SIGSEGV",
                                 .reason_size = 17});
}

/* What was submitted, as text, for the test of options. */
static void describe(const struct protocol_submit *submit, const struct protocol_id *id)
{
    char text[512];
    int size =
        snprintf(text, sizeof(text), "%.*s %.*s %x %lx %lx %lx", (int)submit->name_size,
                 (const char *)submit->name, (int)submit->key_size, (const char *)submit->key,
                 submit->max_retries, (unsigned long)submit->timeout,
                 (unsigned long)submit->backoff_min, (unsigned long)submit->backoff_max);

    done(&(struct protocol_done){
        .cookie = submit->cookie,
        .id = *id,
        .attempts = 1,
        .payload = {.form = PAYLOAD_INLINE, .data = text, .size = (uint64_t)size}});
}

/* Returns false when the connection is to end. */
static bool on_submit(const struct ring_record *record)
{
    struct protocol_id id = {.high = 0x0123456789abcdef, .low = ++supervisor.submitted};
    struct protocol_submit submit;

    must(protocol_get_submit(record->body, record->size, &submit) == 0);
    if (submit.name_size > 0)
        memcpy(id.name, submit.name, submit.name_size);
    const void *data = map_in(&submit.payload);
    if (submit.group != GROUP)
        refuse(submit.cookie, ENOENT, "no such group");
    else if (is(data, &submit.payload, "busy"))
        refuse(submit.cookie, EBUSY, "the queue is full");
    else if (is(data, &submit.payload, "hang up"))
        return false;
    else if (is(data, &submit.payload, "die"))
        die(&submit, &id);
    else if (is(data, &submit.payload, "describe"))
        describe(&submit, &id);
    else if (is(data, &submit.payload, "nonsense"))
        put((enum protocol_kind)200, "", 0);
    else if (is(data, &submit.payload, "unasked"))
        done(&(struct protocol_done){.cookie = UINT64_MAX});
    else if (is(data, &submit.payload, "never"))
        ;
    else if (is(data, &submit.payload, "crash"))
        supervisor.crashing = true;
    else if (is(data, &submit.payload, "later"))
        await_answer(submit.cookie);
    else if (is(data, &submit.payload, "answer")) {
        await_answer(submit.cookie);
        answer_waiting();
    } else if (is(data, &submit.payload, "upgrade")) {
        await_answer(submit.cookie);
        supervisor.kept =
            MEMORY_KEPT_ASKS | MEMORY_KEPT_MONITORS | MEMORY_KEPT_REQUESTS | MEMORY_KEPT_TIES;
        supervisor.crashing = true;
    } else if (is(data, &submit.payload, "upgrade from an old version")) {
        supervisor.kept = MEMORY_KEPT_ASKS | MEMORY_KEPT_MONITORS;
        supervisor.crashing = true;
    } else if (is(data, &submit.payload, "crash unread") && supervisor.crashes == 0)
        crash();
    else if (submit.flags & PROTOCOL_SUBMIT_DO)
        echo(&submit, &id, data);
    else
        accept_job(submit.cookie, &id);
    if (submit.payload.form == PAYLOAD_BLOB)
        munmap((void *)(uintptr_t)data, (size_t)submit.payload.size);
    return true;
}

static void on_lookup(const struct ring_record *record)
{
    struct protocol_lookup lookup;
    char body[64];

    must(protocol_get_lookup(record->body, record->size, &lookup) == 0);
    if (lookup.name_size == 4 && memcmp(lookup.name, "echo", 4) == 0)
        put(PROTOCOL_FOUND, body,
            protocol_put_found(body, sizeof(body),
                               &(struct protocol_found){.cookie = lookup.cookie, .group = GROUP}));
    else if (lookup.name_size == 5 && memcmp(lookup.name, "crash", 5) == 0 &&
             supervisor.crashes == 0)
        supervisor.crashing = true;
    else
        refuse(lookup.cookie, ENOENT, "");
}

static void on_find(const struct ring_record *record)
{
    struct protocol_named named;
    char body[64];

    must(protocol_get_named(record->body, record->size, &named) == 0);
    put(PROTOCOL_FOUND, body,
        protocol_put_found(body, sizeof(body),
                           &(struct protocol_found){.cookie = named.cookie, .group = GROUP}));
}

static void on_by_id(const struct ring_record *record, bool watch)
{
    struct protocol_by_id by_id;

    must(protocol_get_by_id(record->body, record->size, &by_id) == 0);
    if (strcmp(by_id.id.name, "slow") == 0 && supervisor.crashes == 0) {
        await_answer(by_id.cookie);
        return;
    }
    if (strcmp(by_id.id.name, "gone") == 0)
        refuse(by_id.cookie, ESRCH, "no such job");
    else if (watch)
        done(&(struct protocol_done){
            .cookie = by_id.cookie, .id = by_id.id, .end = PROTOCOL_END_CANCELLED, .attempts = 2});
    else
        accept_job(by_id.cookie, &by_id.id);
    if (strcmp(by_id.id.name, "crash") == 0 && supervisor.crashes == 0)
        crash(); /* its record is read again */
}

static bool on_record(const struct ring_record *record)
{
    switch (record->kind) {
    case PROTOCOL_SUBMIT:
        return on_submit(record);
    case PROTOCOL_LOOKUP:
        on_lookup(record);
        return true;
    case PROTOCOL_CANCEL:
    case PROTOCOL_WITHDRAW:
    case PROTOCOL_WAIT:
        on_by_id(record, record->kind == PROTOCOL_WAIT);
        return true;
    case PROTOCOL_FIND:
        on_find(record);
        return true;
    case PROTOCOL_ASK:
    case PROTOCOL_MONITOR:
        return true;
    default:
        must(false);
    }
}

/* Until the client hangs up, or its own reason to. */
static void serve(void)
{
    bool going = true;

    while (going) {
        struct ring_record record;
        char ignored;
        int r = ring_next(&supervisor.channel.in, &record);

        must(r >= 0);
        if (r == 0) {
            going = on_record(&record);
            channel_release(&supervisor.channel);
            if (supervisor.crashing)
                crash();
            supervisor.kept = 0;
            continue;
        }
        r = channel_wait(&supervisor.channel, USEC_PER_SEC / 100);
        if (r == -ETIMEDOUT && recv(supervisor.client, &ignored, 1, MSG_DONTWAIT) == 0)
            return;
    }
}

static void *run(void *unused)
{
    sigset_t broken_pipe;

    /* As the supervisor ignores it. */
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    must(pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL) == 0);
    supervisor.client = accept4(supervisor.listener, NULL, NULL, SOCK_CLOEXEC);
    must(supervisor.client >= 0);
    if (supervisor.reply)
        send_reply(supervisor.reply, NULL, 0);
    else {
        attach();
        serve();
        channel_deinit(&supervisor.channel);
        close_fd(supervisor.held.inbox);
        close_fd(supervisor.held.outbox);
        close_fd(supervisor.held.wait_fd);
        close_fd(supervisor.held.wake_fd);
        close(supervisor.control);
    }
    close(supervisor.client);
    return NULL;
}

static struct troupe_client *client;

static void listen_there(enum wake_backend backend)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    supervisor =
        (struct supervisor){.backend = backend, .channel = CHANNEL_NULL, .held = CHANNEL_FDS_NULL};
    snprintf(supervisor.path, sizeof(supervisor.path), "/tmp/test-client-%d.sock", getpid());
    strcpy(address.sun_path, supervisor.path);
    unlink(supervisor.path); /* of a killed test that had the same number */
    supervisor.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(supervisor.listener, (const struct sockaddr *)&address, sizeof(address)),
                     0);
    ck_assert_int_eq(listen(supervisor.listener, 1), 0);
}

static int connect_there(void)
{
    ck_assert_int_eq(pthread_create(&supervisor.thread, NULL, run, NULL), 0);
    int r = troupe_client_connect(&client, supervisor.path);
    unlink(supervisor.path);
    return r;
}

static void start(enum wake_backend backend)
{
    listen_there(backend);
    ck_assert_int_eq(connect_there(), 0);
}

static void stop(void)
{
    troupe_client_free(client);
    pthread_join(supervisor.thread, NULL);
    close(supervisor.listener);
}
