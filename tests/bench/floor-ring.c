/* SPDX-License-Identifier: MIT */

/*
 * What the machine allows: two processes and the rings between them, nothing else.
 *
 *     floor-ring round-trip [ROUNDS] [BYTES]
 *         there and back, one at a time, both sides sleep on futexes
 *     floor-ring one-way [RECORDS] [BYTES]
 *         one direction, as fast as it goes
 *
 * One line of JSON each; times in microseconds. Without arguments: both.
 */

#include "../../shared/channel.h"
#include "../../shared/cleanup.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RING  (UINT32_C(1) << 18)
#define KIND  1
#define BATCH 64 /* records between two publications or releases */

struct measurement {
    uint64_t count;
    uint32_t size;
    double *samples;
};

static int send_record(struct channel *channel, const void *data, uint32_t size)
{
    void *body;
    int r = ring_reserve(&channel->out, size, &body);

    if (r == RING_E_FULL) {
        r = channel_wait_space(channel, size, USEC_INFINITY);
        if (r == 0)
            r = ring_reserve(&channel->out, size, &body);
    }
    if (r != 0)
        return r;
    memcpy(body, data, size);
    ring_commit(&channel->out, KIND, size);
    return 0;
}

static int receive_record(struct channel *channel, struct ring_record *ret)
{
    int r = ring_next(&channel->in, ret);

    if (r != RING_E_EMPTY)
        return r;
    channel_release(channel);
    r = channel_wait(channel, USEC_INFINITY);
    return r < 0 ? r : ring_next(&channel->in, ret);
}

static int echo(struct channel *channel, const struct measurement *measurement)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < measurement->count; i++) {
        struct ring_record record;

        r = receive_record(channel, &record);
        if (r == 0)
            r = send_record(channel, record.body, record.size);
        channel_publish(channel);
    }
    return r;
}

static int ask(struct channel *channel, const struct measurement *measurement)
{
    char data[65536] = "";
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < measurement->count; i++) {
        struct ring_record record;
        struct timespec before, after;

        (void)clock_gettime(CLOCK_MONOTONIC, &before);
        r = send_record(channel, data, measurement->size);
        channel_publish(channel);
        if (r == 0)
            r = receive_record(channel, &record);
        (void)clock_gettime(CLOCK_MONOTONIC, &after);
        measurement->samples[i] = (double)(after.tv_sec - before.tv_sec) * 1e6 +
                                  (double)(after.tv_nsec - before.tv_nsec) / 1e3;
    }
    return r;
}

static int drain(struct channel *channel, const struct measurement *measurement)
{
    char data[65536];
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < measurement->count; i++) {
        struct ring_record record;

        r = receive_record(channel, &record);
        if (r == 0)
            memcpy(data, record.body, record.size);
        __asm__ volatile("" : : "r"(data) : "memory"); /* the copy is part of what is measured */
        if (i % BATCH == 0)
            channel_release(channel);
    }
    channel_release(channel);
    return r;
}

static int flood(struct channel *channel, const struct measurement *measurement)
{
    char data[65536] = "";
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < measurement->count; i++) {
        r = send_record(channel, data, measurement->size);
        if (i % BATCH == 0)
            channel_publish(channel);
    }
    channel_publish(channel);
    return r;
}

/* Runs `peer` in another process and `here` in this one. Returns the wall time in `*ret_usec`. */
static int run(int (*here)(struct channel *, const struct measurement *),
               int (*peer)(struct channel *, const struct measurement *),
               const struct measurement *measurement, usec_t *ret_usec)
{
    _cleanup_(channel_deinit)
    struct channel channel = CHANNEL_NULL;
    struct channel_options options = {
        .ring_size = RING, .inline_max = RING / 4, .backend = WAKE_FUTEX};
    struct channel_fds fds;
    usec_t before;
    int r, status;
    pid_t pid;

    r = channel_create(&channel, &options, &fds);
    if (r < 0)
        return r;
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        struct channel theirs = CHANNEL_NULL;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(channel_open(&theirs, &fds) != 0 || peer(&theirs, measurement) != 0);
    }
    before = clock_now();
    r = here(&channel, measurement);
    if (r < 0)
        (void)kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        r = r < 0 ? r : -EIO;
    *ret_usec = clock_now() - before;
    return r;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int round_trip(uint64_t count, uint32_t size)
{
    _cleanup_free_ double *samples = calloc(count, sizeof(*samples));
    struct measurement measurement = {.count = count, .size = size, .samples = samples};
    usec_t usec;
    int r;

    if (!samples)
        return -ENOMEM;
    r = run(ask, echo, &measurement, &usec);
    if (r < 0)
        return r;
    qsort(samples, count, sizeof(*samples), compare);
    printf("{\"name\": \"floor-ring round-trip\", \"rounds\": %llu, \"bytes\": %u, "
           "\"p50_us\": %.2f, \"p99_us\": %.2f}\n",
           (unsigned long long)count, size, samples[count / 2], samples[count * 99 / 100]);
    return 0;
}

static int one_way(uint64_t count, uint32_t size)
{
    struct measurement measurement = {.count = count, .size = size};
    usec_t usec;
    int r = run(flood, drain, &measurement, &usec);

    if (r < 0)
        return r;
    printf("{\"name\": \"floor-ring one-way\", \"records\": %llu, \"bytes\": %u, "
           "\"records_per_s\": %.0f, \"mb_per_s\": %.0f}\n",
           (unsigned long long)count, size, (double)count * 1e6 / (double)usec,
           (double)count * size / (double)usec);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool both = argc <= 1, trip = strcmp(what, "round-trip") == 0;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    uint32_t size = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 64;
    int r = 0;

    if ((!both && !trip && strcmp(what, "one-way") != 0) || size > 65536) {
        fprintf(stderr, "usage: floor-ring [round-trip|one-way [COUNT [BYTES (at most 65536)]]]\n");
        return 2;
    }
    if (both || trip)
        r = round_trip(count > 0 ? count : 50000, size);
    if (r == 0 && (both || !trip))
        r = one_way(count > 0 ? count : 5000000, size);
    if (r < 0)
        fprintf(stderr, "floor-ring: %s\n", strerror(-r));
    return r < 0;
}
