/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * hostile-actor HOW: a worker that breaks the protocol of messages. At its first message it sends
 *
 *   wrong-letter      a verdict about a message that it never got
 *   wrong-unstash     an unstash of a message that it never got
 *   settled-letter    two verdicts about the same message
 *   odd-type          a type with a line break in it
 *   short-tell        a TELL that lacks its content
 *   cookie-less       a FIND of three bytes
 *   head-in-record    claims to have consumed half a record
 *   head-ahead        claims to have consumed more than there is
 *   stray-blob        tells a blob that was never sent
 *
 * These are violations. The following is allowed, since it harms only the worker itself:
 *
 *   forged-reply      replies to the asks of others, then continues
 *   forged-reference  tells, monitors and cancels what does not exist, then continues
 *   taken-anywhere    marks arbitrary places of its ring as in hand, and dies
 *   log-flood         causes many log lines, then continues
 *   ask-flood         asks for ever and reads no answer
 *   tell-flood        tells itself for ever, and handles nothing
 *   blob-flood        tells a thousand blobs of one byte to each of eight actors, then continues
 */
/* clang-format on */
#include "shared/protocol/protocol-requests.h"
#include "shared/ring/channel.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct channel channel = CHANNEL_NULL;

static int number(const char *name)
{
    const char *value = getenv(name);

    return value ? atoi(value) : -1;
}

static void *reserve(uint32_t size)
{
    void *body;

    while (ring_reserve(&channel.out, size, &body) == RING_E_FULL)
        channel_wait_space(&channel, size, USEC_INFINITY);
    return body;
}

static void send_record(uint16_t kind, int size)
{
    ring_commit(&channel.out, kind, (uint32_t)size);
    channel_publish(&channel);
}

static void send_verdict(uint64_t message)
{
    const struct protocol_verdict verdict = {.message = message, .text = "so", .text_size = 2};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_UNHANDLED, protocol_put_verdict(body, PROTOCOL_BODY_MAX, &verdict));
}

static void send_unstash(uint64_t message)
{
    const struct protocol_stash stash = {.message = message};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_UNSTASHED, protocol_put_stash(body, PROTOCOL_BODY_MAX, &stash));
}

static void tell(uint64_t to, const char *type, struct payload_wire payload)
{
    const struct protocol_tell record = {
        .to = to,
        .content = {.topic = {.type = type, .type_size = (uint32_t)strlen(type)},
                    .payload = payload}};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_TELL, protocol_put_tell(body, PROTOCOL_BODY_MAX, &record));
}

static void reply(uint64_t ask)
{
    const struct protocol_reply record = {.ask = ask, .content.topic.type = ""};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_REPLY, protocol_put_reply(body, PROTOCOL_BODY_MAX, &record));
}

static void ask(uint64_t to, uint64_t cookie)
{
    const struct protocol_ask record = {.to = to,
                                        .cookie = cookie,
                                        .timeout = USEC_INFINITY,
                                        .wanted = "",
                                        .content.topic.type = ""};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_ASK, protocol_put_ask(body, PROTOCOL_BODY_MAX, &record));
}

static void by_reference(uint16_t kind, uint64_t reference)
{
    const struct protocol_by_reference record = {.cookie = 1, .reference = reference};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(kind, protocol_put_by_reference(body, PROTOCOL_BODY_MAX, &record));
}

static void publish_head(uint32_t head)
{
    atomic_store(&channel.words->head, head);
    channel.wake(&channel, &channel.words->head);
    /* Makes the supervisor read the ring. */
    tell(1, "wake", (struct payload_wire){.form = PAYLOAD_INLINE});
}

/* Returns the reference that was asked for; drops everything else. */
static uint64_t take_found(void)
{
    struct protocol_found answer = {.group = 0};
    struct ring_record record;
    bool found = false;

    while (!found) {
        channel_wait(&channel, 0, USEC_INFINITY);
        while (!found && ring_next(&channel.in, &record) == 0)
            found = record.kind == PROTOCOL_FOUND &&
                    protocol_get_found(record.body, record.size, &answer) == 0;
        channel_release(&channel);
    }
    return answer.group;
}

static uint64_t find(const char *name)
{
    const struct protocol_named named = {
        .cookie = 1, .name = name, .name_size = (uint32_t)strlen(name)};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_FIND, protocol_put_named(body, PROTOCOL_BODY_MAX, &named));
    return take_found();
}

static void send_blob(int fd, uint64_t serial)
{
    struct pollfd poller = {.fd = number("TROUPE_CONTROL"), .events = POLLOUT};

    while (payload_send_fd(poller.fd, fd, serial) < 0)
        (void)poll(&poller, 1, -1);
}

static void flood_with_blobs(void)
{
    uint64_t victims[8];
    char name[16];
    int fd;

    for (unsigned i = 0; i < 8; i++) {
        (void)snprintf(name, sizeof(name), "victim/%u", i);
        victims[i] = find(name);
    }
    if (payload_blob_copy("x", 1, &fd) < 0)
        abort();
    for (uint64_t serial = 1; serial <= 8000; serial++) {
        send_blob(fd, serial);
        tell(victims[serial % 8], "x", (struct payload_wire){PAYLOAD_BLOB, NULL, 1, serial});
    }
}

static _Noreturn void hang(void)
{
    for (;;)
        pause();
}

/* Guesses the handles of asks, as if they were counted from the first one that it was asked. */
static void forge(uint64_t self, uint64_t ask)
{
    static uint64_t first;

    first = first ? first : ask;
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t wild = i * UINT64_C(0x9e3779b97f4a7c15);
        tell(wild, "forged", (struct payload_wire){.form = PAYLOAD_INLINE});
        reply(wild);
        reply(first + i + 1);
        by_reference(PROTOCOL_UNMONITOR, wild);
        by_reference(PROTOCOL_EXCHANGE_DELETE, self);
        by_reference(PROTOCOL_ASK_DROP, wild);
        channel_release(&channel);
        for (struct ring_record record; ring_next(&channel.in, &record) == 0;)
            ;
    }
}

static void actor_log(void)
{
    const struct protocol_named named = {
        .cookie = 1, .name = "never-registered", .name_size = sizeof("never-registered") - 1};

    for (int i = 0; i < 3000; i++) {
        void *body = reserve(PROTOCOL_BODY_MAX);
        const struct protocol_verdict failure = {.text = "oh", .text_size = 2};

        send_record(PROTOCOL_ERRED, protocol_put_verdict(body, PROTOCOL_BODY_MAX, &failure));
        body = reserve(PROTOCOL_BODY_MAX);
        send_record(PROTOCOL_DEREGISTER, protocol_put_named(body, PROTOCOL_BODY_MAX, &named));
        by_reference(PROTOCOL_UNMONITOR, 0);
        channel_release(&channel);
        for (struct ring_record record; ring_next(&channel.in, &record) == 0;)
            ;
    }
}

/* Returns if the worker continues. */
static void misbehave(const char *how, const struct protocol_message *message)
{
    const struct payload_wire none = {.form = PAYLOAD_INLINE};
    const uint32_t head = channel.in.head;

    if (strcmp(how, "wrong-letter") == 0)
        send_verdict(message->id + 4711);
    else if (strcmp(how, "wrong-unstash") == 0)
        send_unstash(message->id);
    else if (strcmp(how, "settled-letter") == 0)
        send_verdict(message->id), send_verdict(message->id);
    else if (strcmp(how, "odd-type") == 0)
        tell(message->sender, "a\nb", none);
    else if (strcmp(how, "short-tell") == 0)
        memset(reserve(12), 0, 12), send_record(PROTOCOL_TELL, 12);
    else if (strcmp(how, "cookie-less") == 0)
        memset(reserve(3), 0, 3), send_record(PROTOCOL_FIND, 3);
    else if (strcmp(how, "stray-blob") == 0)
        tell(message->sender, "", (struct payload_wire){PAYLOAD_BLOB, NULL, 5000, 1});
    else if (strcmp(how, "head-in-record") == 0)
        publish_head(head - 8);
    else if (strcmp(how, "head-ahead") == 0)
        publish_head(head + (UINT32_C(1) << 24));
    else if (strcmp(how, "forged-reply") == 0 || strcmp(how, "forged-reference") == 0) {
        forge(message->sender, message->ask);
        return;
    } else if (strcmp(how, "log-flood") == 0) {
        actor_log();
        return;
    } else if (strcmp(how, "blob-flood") == 0) {
        flood_with_blobs();
        return;
    } else if (strcmp(how, "taken-anywhere") == 0) {
        atomic_store(&channel.mine.header->taken, (uint32_t)getpid() * 2654435761u);
        raise(SIGKILL);
    } else if (strcmp(how, "ask-flood") == 0)
        for (uint64_t i = 0;; i++)
            ask(message->sender, i);
    else if (strcmp(how, "tell-flood") == 0)
        for (;;)
            tell(message->sender, "flood", none);
    hang();
}

int main(int argc, char **argv)
{
    struct channel_fds fds = {.inbox = number("TROUPE_INBOX"),
                              .outbox = number("TROUPE_OUTBOX"),
                              .wait_fd = number("TROUPE_WAIT"),
                              .wake_fd = number("TROUPE_WAKE")};
    struct protocol_message message;
    struct ring_record record;

    if (argc != 2 || channel_open(&channel, &fds) < 0)
        return 96;
    reserve(0);
    send_record(PROTOCOL_READY, 0);
    for (;;) {
        channel_wait(&channel, 0, USEC_INFINITY);
        while (ring_next(&channel.in, &record) == 0) {
            if (record.kind == PROTOCOL_STOP)
                return 0;
            if (record.kind == PROTOCOL_MESSAGE &&
                protocol_get_message(record.body, record.size, &message) == 0)
                misbehave(argv[1], &message);
            if (record.kind == PROTOCOL_MESSAGE && message.ask != 0)
                reply(message.ask);
        }
        channel_release(&channel);
    }
}
