/* SPDX-License-Identifier: MIT */

/*
 * Runs ring, channel, wake and state page between two threads, for ThreadSanitizer. Both threads
 * use the supervisor's mapping, because ThreadSanitizer sees no race between two mappings of the
 * same memory. Arguments: [RECORDS], per run.
 */

#include "shared/base/cleanup.h"
#include "tests/stress/traffic.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define RING 4096u

struct side {
    struct channel *channel;
    const struct traffic *traffic;
    int result;
};

/* Makes the worker's end of the channel from the supervisor's mappings. */
static int mirror(struct channel *ret, const struct channel *supervisor)
{
    *ret = *supervisor;
    ret->mine = supervisor->theirs;
    ret->theirs = supervisor->mine;
    ret->words = supervisor->their_words;
    ret->their_words = supervisor->words;
    ret->wake_fd = supervisor->wait_fd;
    ret->wait_fd = supervisor->peer_fd;
    ret->self_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ret->self_fd < 0)
        return -errno;
    int r = ring_producer_init(&ret->out, ret->mine.ring, RING, &ret->mine.header->tail,
                               &ret->their_words->head);
    if (r < 0)
        return r;
    return ring_consumer_init(&ret->in, ret->theirs.ring, RING, &ret->words->head,
                              &ret->theirs.header->tail);
}

static void *produce(void *argument)
{
    struct side *side = argument;
    struct traffic_tally tally = {0};

    side->result = traffic_produce(side->channel, side->traffic, &tally);
    if (side->result == 0 && tally.sleeps == 0)
        side->result = -ENODATA; /* it never had to wait: nothing was tested */
    return NULL;
}

static void *consume(void *argument)
{
    struct side *side = argument;
    struct traffic_tally tally = {0};

    side->result = traffic_consume(side->channel, side->traffic, &tally);
    if (side->result == 0 && tally.sleeps == 0)
        side->result = -ENODATA; /* it never had to wait: nothing was tested */
    return NULL;
}

/* Sends every record back. The other side keeps half a ring in flight at most: no deadlock. */
static void *echo(void *argument)
{
    struct side *side = argument;
    struct channel *channel = side->channel;

    for (uint64_t n = 0; n < side->traffic->count; n++) {
        struct ring_record record;
        void *body;
        int r;

        while ((r = ring_next(&channel->in, &record)) == RING_E_EMPTY && r >= 0) {
            channel_publish(channel);
            r = channel_wait(channel, USEC_INFINITY);
        }
        if (r == 0)
            r = channel_wait_space(channel, record.size, USEC_INFINITY);
        if (r == 0)
            r = ring_reserve(&channel->out, record.size, &body);
        if (r != 0) {
            side->result = r < 0 ? r : -EIO;
            return NULL;
        }
        memcpy(body, record.body, record.size);
        ring_commit(&channel->out, record.kind, record.size);
        channel_release(channel);
    }
    channel_publish(channel);
    return NULL;
}

static void *ask(void *argument)
{
    struct side *side = argument;
    struct channel *channel = side->channel;
    const struct traffic *traffic = side->traffic;
    uint64_t sent = 0;

    for (uint64_t n = 0; n < traffic->count; n++) {
        struct ring_record record;
        int r;

        for (; sent < traffic->count && sent < n + 8; sent++) {
            uint32_t size = traffic_size(traffic->seed, sent, traffic->body_max);
            void *body;

            if (ring_reserve(&channel->out, size, &body) != 0)
                break;
            traffic_fill(traffic->seed, sent, body, size);
            ring_commit(&channel->out, traffic_kind(sent), size);
        }
        channel_publish(channel);
        while ((r = ring_next(&channel->in, &record)) == RING_E_EMPTY && r >= 0)
            r = channel_wait(channel, USEC_INFINITY);
        if (r != 0 || !traffic_check(traffic->seed, n, traffic->body_max, &record)) {
            side->result = r < 0 ? r : -EILSEQ;
            return NULL;
        }
        channel_release(channel);
    }
    return NULL;
}

/* Each state consists of one byte value, as many times as the value says. */
static void *write_states(void *argument)
{
    struct side *side = argument;
    uint8_t data[256];

    for (uint64_t n = 0; n < side->traffic->count; n++) {
        uint8_t value = (uint8_t)(1 + n % 255);

        memset(data, value, sizeof(data));
        (void)memory_state_write(&side->channel->mine, data, value);
    }
    return NULL;
}

static void *read_states(void *argument)
{
    struct side *side = argument;
    uint8_t data[MEMORY_STATE_MAX];

    for (uint64_t n = 0; n < side->traffic->count; n++) {
        size_t size;
        int r = memory_state_read(&side->channel->theirs, data, &size);

        for (int i = 0; i < r; i++)
            if (data[i] != (uint8_t)r) {
                fprintf(stderr, "a torn state was taken for a whole one\n");
                side->result = -EILSEQ;
                return NULL;
            }
    }
    return NULL;
}

/* The waits that one thread ended for another. They take turns, so a lost wake-up hangs the test.
 */
static _Atomic uint64_t woken;

static void *wake(void *argument)
{
    struct side *side = argument;

    for (uint64_t n = 0; n < side->traffic->count; n++) {
        channel_wake_self(side->channel);
        while (atomic_load(&woken) == n)
            (void)sched_yield();
    }
    return NULL;
}

static void *be_woken(void *argument)
{
    struct side *side = argument;
    struct channel *channel = side->channel;

    channel->wakeable = true;
    for (uint64_t n = 0; n < side->traffic->count; n++) {
        struct pollfd pollers[] = {{.fd = channel->wait_fd, .events = POLLIN},
                                   {.fd = channel->self_fd, .events = POLLIN}};
        bool now = false;

        while (n % 2 == 0 && channel_wait(channel, USEC_INFINITY) != -EINTR)
            continue;
        while (n % 2 == 1 && !now)
            if (channel_arm(channel, &now))
                (void)poll(pollers, 2, -1);
        channel_end_sleep(channel);
        (void)atomic_fetch_add(&woken, 1);
    }
    return NULL;
}

/* As run(), with both threads at the worker's end. */
static int run_wakes(enum wake_backend backend, const struct traffic *traffic)
{
    _cleanup_(channel_deinit)
    struct channel supervisor = CHANNEL_NULL;
    struct channel worker = CHANNEL_NULL; /* owns nothing */
    struct channel_options options = {.ring_size = RING, .inline_max = 0, .backend = backend};
    struct side side = {.channel = &worker, .traffic = traffic};
    struct channel_fds fds;
    pthread_t thread;

    atomic_store(&woken, 0);
    if (channel_create(&supervisor, &options, &fds) < 0 || mirror(&worker, &supervisor) < 0 ||
        pthread_create(&thread, NULL, wake, &side) != 0)
        return 1;
    (void)be_woken(&side);
    (void)pthread_join(thread, NULL);
    printf("%s woken by a thread: %s\n", backend == WAKE_FUTEX ? "futex  " : "eventfd",
           side.result == 0 ? "ok" : "FAILED");
    return side.result != 0;
}

static int run(const char *name, enum wake_backend backend, const struct traffic *traffic,
               void *(*supervise)(void *), void *(*work)(void *))
{
    _cleanup_(channel_deinit)
    struct channel supervisor = CHANNEL_NULL;
    struct channel worker = CHANNEL_NULL; /* owns nothing */
    struct channel_options options = {.ring_size = RING, .inline_max = 0, .backend = backend};
    struct channel_fds fds;
    struct side sides[] = {{.channel = &supervisor, .traffic = traffic},
                           {.channel = &worker, .traffic = traffic}};
    pthread_t threads[2];
    int r;

    r = channel_create(&supervisor, &options, &fds);
    if (r == 0)
        r = mirror(&worker, &supervisor);
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", name, strerror(-r));
        return 1;
    }
    if (pthread_create(&threads[0], NULL, supervise, &sides[0]) != 0 ||
        pthread_create(&threads[1], NULL, work, &sides[1]) != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    r = sides[0].result != 0 || sides[1].result != 0;
    printf("%s %s: %s\n", backend == WAKE_FUTEX ? "futex  " : "eventfd", name,
           r == 0 ? "ok" : "FAILED");
    return r;
}

int main(int argc, char **argv)
{
    struct traffic traffic = {
        .count = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000,
        .body_max = 200,
        .force_every = 1000,
    };
    int failed = 0;

    traffic.seed = traffic_seed();
    for (int backend = WAKE_FUTEX; backend <= WAKE_EVENTFD; backend++) {
        enum wake_backend type = (enum wake_backend)backend;

        failed |= run("supervisor to worker", type, &traffic, produce, consume);
        failed |= run("worker to supervisor", type, &traffic, consume, produce);
        failed |= run("there and back", type, &traffic, ask, echo);
        failed |= run("state page", type, &traffic, read_states, write_states);
        failed |= run_wakes(type, &traffic);
    }
    return failed;
}
