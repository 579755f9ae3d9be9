/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * hostile HOW: a worker that gets ready like any other and then misuses the shared memory. At its
 * first job:
 *
 *   scribble        fills the whole outbox with 0xff, cursors and state page included
 *   wild-tail       publishes more than the ring can hold
 *   crooked-tail    publishes up to where no record can begin
 *   wild-head       answers, but claims to have consumed what was never written
 *   long-record     a record that ends beyond what is published
 *   huge-record     a record of nearly 4 GiB
 *   unknown-kind    a record of a kind that does not exist
 *   short-record    a RESULT that lacks its fields
 *   ready-twice     another READY
 *   crash-twice     two crashes in one attempt
 *   odd-signal      a crash by a signal that does not exist
 *   stray-blob      a RESULT whose blob was never sent
 *   odd-descriptor  a pipe instead of a sealed memfd
 *   soft-blob       a memfd that is not sealed, behind a RESULT
 *   two-descriptors two descriptors in one message
 *   stale           answers earlier attempts, then the current one: allowed, dropped, counted
 *   torn-state      leaves the state page in the middle of a write, then answers
 *   flood           useless records for ever
 *   mute            reads nothing any more, and does not report that it has begun the job
 *   faint           dies at each job before it reports that it has begun it
 *   hoard           answers, but never releases the space of what it has read
 *   play-dead       marks its lifeline as the kernel does at a death, and continues to run
 *   haunt           publishes without a wake-up and plays dead; the wake-up comes after its death
 *   nervous         wakes the waiters on its lifeline without a mark, then answers: allowed
 *   hang-up         closes its control socket, then answers
 *   swallow         answers while a thread reads what wakes it into memory that never arrives
 *   linger-result   sends a socket as its result that waits for its peer ($PORT) when closed
 *   linger-unread   leaves such a socket unread in its control socket when it dies
 *   brief           its second process gets ready after a byte from the FIFO BRIEF_BELL, and exits
 *   slow            the same, but it continues to run
 *
 * At its first message it breaks the protocol of messages: it sends
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
#include "shared/protocol/protocol.h"
#include "shared/ring/channel.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct channel channel = CHANNEL_NULL;
static int control = -1;

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

static void send_ready(void)
{
    reserve(0);
    send_record(PROTOCOL_READY, 0);
}

static void send_result(uint64_t handle, uint32_t attempt, struct payload_wire payload)
{
    struct protocol_result result = {
        .handle = handle, .attempt = attempt, .outcome = PROTOCOL_SUCCESS, .payload = payload};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_RESULT, protocol_put_result(body, PROTOCOL_BODY_MAX, &result));
}

static void send_started(const struct protocol_job *job)
{
    const struct protocol_started started = {.handle = job->handle, .attempt = job->attempt};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_STARTED, protocol_put_started(body, PROTOCOL_BODY_MAX, &started));
}

static struct payload_wire text(const char *string)
{
    return (struct payload_wire){.form = PAYLOAD_INLINE, .data = string, .size = strlen(string)};
}

static struct payload_wire blob(uint64_t size, uint64_t serial)
{
    return (struct payload_wire){.form = PAYLOAD_BLOB, .size = size, .serial = serial};
}

/* Changes the bell as channel_publish() does: a wake-up alone is lost on a supervisor that is about
 * to sleep. */
static void publish_tail(uint32_t tail)
{
    atomic_store(&channel.mine.header->tail, tail);
    atomic_fetch_add(&channel.words->bell, 1);
    channel.wake(&channel, &channel.words->bell);
}

static void scribble(void)
{
    memset(channel.mine.header, 0xff, channel.mine.size);
    channel.wake(&channel, &channel.words->bell);
    channel.wake(&channel, &channel.words->head);
}

/* Writes a record that ring_commit() would not write. */
static void send_odd(struct ring_header header, uint32_t published)
{
    memcpy(channel.mine.ring + (channel.out.tail & (channel.out.size - 1)), &header,
           sizeof(header));
    publish_tail(channel.out.tail + published);
}

/* Sends two descriptors in one message, with one serial. */
static void send_two(int a, int b)
{
    uint64_t serial = 1;
    struct iovec vector = {.iov_base = &serial, .iov_len = sizeof(serial)};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } buffer = {0};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = &buffer,
                             .msg_controllen = sizeof(buffer)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fds[2] = {a, b};

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(header), fds, sizeof(fds));
    if (sendmsg(control, &message, MSG_NOSIGNAL) < 0)
        perror("sendmsg");
}

static int soft_memfd(void)
{
    int fd = memfd_create("soft", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, 1 << 20) < 0)
        exit(98);
    return fd;
}

static void odd_descriptors(const char *how, const struct protocol_job *job)
{
    int fds[2];

    if (pipe(fds) < 0)
        exit(98);
    if (strcmp(how, "stray-blob") == 0)
        ;
    else if (strcmp(how, "odd-descriptor") == 0)
        payload_send_fd(control, fds[0], 1);
    else if (strcmp(how, "soft-blob") == 0)
        payload_send_fd(control, soft_memfd(), 1);
    else
        send_two(fds[0], fds[1]);
    send_result(job->handle, job->attempt, blob(1 << 20, 1));
}

/* A TCP socket with more to send than its peer takes, and SO_LINGER. */
static int lingering_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)atoi(getenv("PORT")))};
    struct linger linger = {.l_onoff = 1, .l_linger = 40};
    static const char data[65536];
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0)
        exit(98);
    while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        ;
    return fd;
}

static void linger(const char *how, const struct protocol_job *job)
{
    int fd = lingering_socket();

    payload_send_fd(control, fd, 1);
    close(fd);
    if (strcmp(how, "linger-unread") == 0)
        exit(0);
    send_result(job->handle, job->attempt, blob(1 << 20, 1));
}

static void flood(void)
{
    for (uint64_t i = 0;; i++)
        send_result(UINT64_MAX - i, 1, text("useless"));
}

static void send_crash(const struct protocol_job *job, uint8_t signal)
{
    const struct protocol_crashed crashed = {
        .handle = job->handle, .attempt = job->attempt, .pid = 1, .signal = signal};
    void *body = reserve(PROTOCOL_BODY_MAX);

    send_record(PROTOCOL_CRASHED, protocol_put_crashed(body, PROTOCOL_BODY_MAX, &crashed));
}

static void stale(const struct protocol_job *job)
{
    for (uint32_t i = 0; i < 100; i++)
        send_result(job->handle + 1000 + i, job->attempt, text("wrong job"));
    send_result(job->handle, job->attempt + 1, text("wrong attempt"));
    send_result(job->handle, job->attempt, text("right"));
    send_result(job->handle, job->attempt, text("again"));
}

static _Noreturn void hang(void)
{
    for (;;)
        pause();
}

static void pull_lifeline(uint32_t word)
{
    atomic_store(&channel.mine.header->owner, word);
    wake_futex_wake(&channel.mine.header->owner);
}

/* A child with the same memory outlives the worker, and wakes the reader of what it published. */
static void haunt(const struct protocol_job *job)
{
    if (fork() == 0) {
        setsid();
        for (int i = 0; i < 200; i++) {
            usleep(5000);
            wake_futex_wake(&channel.words->bell);
        }
        _exit(0);
    }
    struct protocol_result result = {
        .handle = job->handle + 1, .attempt = 1, .payload = text("for nobody")};
    void *body = reserve(PROTOCOL_BODY_MAX);
    ring_commit(&channel.out, PROTOCOL_RESULT,
                (uint32_t)protocol_put_result(body, PROTOCOL_BODY_MAX, &result));
    ring_publish(&channel.out);
    if (getenv("TROUPE_WAIT"))
        _exit(3); /* with eventfds the supervisor does not watch the lifeline */
    pull_lifeline(FUTEX_OWNER_DIED);
}

/* A page that the kernel asks `*ret_fd` for when it is first touched; NULL if that is not allowed.
 */
static void *missing_page(int *ret_fd)
{
    struct uffdio_api api = {.api = UFFD_API};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {.start = (uintptr_t)page, .len = 4096},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};

    *ret_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (*ret_fd < 0 || ioctl(*ret_fd, UFFDIO_API, &api) < 0 ||
        ioctl(*ret_fd, UFFDIO_REGISTER, &range) < 0)
        return NULL;
    return page;
}

static void *read_into(void *page)
{
    (void)fcntl(channel.wait_fd, F_SETFL, O_RDWR);
    (void)!read(channel.wait_fd, page, sizeof(uint64_t));
    return NULL;
}

/* As if it slept when it answers: the next wake-up is read into memory that never arrives. */
static void swallow(const struct protocol_job *job)
{
    pthread_t thread;
    int fd;
    void *page = missing_page(&fd);

    if (page && pthread_create(&thread, NULL, read_into, page) != 0)
        exit(98);
    atomic_store(&channel.words->sleeping, MEMORY_SLEEPS_EVENTFD);
    send_result(job->handle, job->attempt, text(page ? "swallows" : "not allowed"));
}

/* Returns when the job has been answered. */
static void misbehave(const char *how, const struct protocol_job *job)
{
    struct memory_header *mine = channel.mine.header;

    if (strcmp(how, "mute") == 0)
        hang();
    if (strcmp(how, "faint") == 0)
        _exit(3);
    send_started(job);
    if (strcmp(how, "scribble") == 0)
        scribble();
    else if (strcmp(how, "wild-tail") == 0)
        publish_tail(channel.out.tail + channel.out.size + 8);
    else if (strcmp(how, "crooked-tail") == 0)
        publish_tail(channel.out.tail + 3);
    else if (strcmp(how, "long-record") == 0)
        send_odd((struct ring_header){.size = 512, .kind = PROTOCOL_RESULT}, 64);
    else if (strcmp(how, "huge-record") == 0)
        send_odd((struct ring_header){.size = UINT32_MAX - 7, .kind = PROTOCOL_RESULT}, 64);
    else if (strcmp(how, "unknown-kind") == 0)
        reserve(16), send_record(4711, 16);
    else if (strcmp(how, "short-record") == 0)
        memset(reserve(3), 1, 3), send_record(PROTOCOL_RESULT, 3);
    else if (strcmp(how, "ready-twice") == 0)
        send_ready();
    else if (strcmp(how, "crash-twice") == 0)
        send_crash(job, 11), send_crash(job, 11);
    else if (strcmp(how, "odd-signal") == 0)
        send_crash(job, 65);
    else if (strcmp(how, "flood") == 0)
        flood();
    else if (strncmp(how, "linger-", 7) == 0)
        linger(how, job);
    else if (strcmp(how, "play-dead") == 0)
        pull_lifeline(FUTEX_OWNER_DIED);
    else if (strcmp(how, "haunt") == 0)
        haunt(job);
    else if (strcmp(how, "swallow") == 0)
        swallow(job);
    else if (strstr(how, "blob") || strstr(how, "descriptor"))
        odd_descriptors(how, job);
    else if (strcmp(how, "stale") == 0) {
        stale(job);
        return;
    } else if (strcmp(how, "torn-state") == 0) {
        memory_state_write(&channel.mine, "before", 6);
        atomic_fetch_add(&mine->state_sequence, 1);
        send_result(job->handle, job->attempt, text("torn"));
        return;
    } else if (strcmp(how, "wild-head") == 0 || strcmp(how, "hoard") == 0) {
        send_result(job->handle, job->attempt, text("answered"));
        return;
    } else if (strcmp(how, "nervous") == 0) {
        pull_lifeline(4711);
        send_result(job->handle, job->attempt, text("alive"));
        return;
    } else if (strcmp(how, "hang-up") == 0) {
        close(control);
        send_result(job->handle, job->attempt, text("hung up"));
        return;
    } else {
        exit(97);
    }
    hang();
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
        channel_wait(&channel, USEC_INFINITY);
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
    struct pollfd poller = {.fd = control, .events = POLLOUT};

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
static void misbehave_when_told(const char *how, const struct protocol_message *message)
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

static int number(const char *name)
{
    const char *value = getenv(name);

    return value ? atoi(value) : -1;
}

static bool is_brief(const char *how)
{
    const char *name = getenv("TROUPE_WORKER");

    return (strcmp(how, "brief") == 0 || strcmp(how, "slow") == 0) &&
           number("TROUPE_GENERATION") == 2 && name && strstr(name, "/0");
}

static void be_brief(const char *how)
{
    char byte;
    int fd = open(getenv("BRIEF_BELL"), O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, &byte, 1) != 1)
        exit(98);
    if (strcmp(how, "slow") == 0)
        return;
    send_ready();
    exit(3);
}

int main(int argc, char **argv)
{
    struct channel_fds fds = {.inbox = number("TROUPE_INBOX"),
                              .outbox = number("TROUPE_OUTBOX"),
                              .wait_fd = number("TROUPE_WAIT"),
                              .wake_fd = number("TROUPE_WAKE")};
    struct protocol_message message;
    struct ring_record record;
    struct protocol_job job;

    control = number("TROUPE_CONTROL");
    if (argc != 2 || channel_open(&channel, &fds) < 0)
        return 96;
    if (is_brief(argv[1]))
        be_brief(argv[1]);
    atomic_store(&channel.mine.header->owner, (uint32_t)getpid() | FUTEX_WAITERS);
    send_ready();
    for (;;) {
        channel_wait(&channel, USEC_INFINITY);
        while (ring_next(&channel.in, &record) == 0) {
            if (record.kind == PROTOCOL_STOP)
                return 0;
            if (record.kind == PROTOCOL_JOB &&
                protocol_get_job(record.body, record.size, &job) == 0)
                misbehave(argv[1], &job);
            if (record.kind != PROTOCOL_MESSAGE ||
                protocol_get_message(record.body, record.size, &message) < 0)
                continue;
            misbehave_when_told(argv[1], &message);
            if (message.ask != 0)
                reply(message.ask);
        }
        if (strcmp(argv[1], "wild-head") == 0)
            /* So far ahead that the supervisor does not write as much meanwhile. */
            atomic_store(&channel.words->head, channel.in.head + (UINT32_C(1) << 24));
        else if (strcmp(argv[1], "hoard") != 0)
            channel_release(&channel);
    }
}
