/* SPDX-License-Identifier: MIT */

/*
 * What the machine allows: one of Troupe's rings between two processes, one direction, as fast as
 * it goes:
 *
 *     one-way COUNT BYTES
 *
 * One JSON object.
 */

#include "shared/ring/channel.h"
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING     (UINT32_C(1) << 20)
#define KIND     1
#define BATCH    64 /* records between two publications or releases */
#define BODY_MAX (UINT32_C(1) << 18)

static char data[BODY_MAX];

static int flood(struct channel *channel, uint64_t count, uint32_t size)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < count; i++) {
        void *body;

        r = ring_reserve(&channel->out, size, &body);
        if (r == RING_E_FULL) {
            r = channel_wait_space(channel, size, USEC_INFINITY);
            if (r == 0)
                r = ring_reserve(&channel->out, size, &body);
        }
        if (r == 0) {
            memcpy(body, data, size);
            ring_commit(&channel->out, KIND, size);
        }
        if (i % BATCH == 0)
            channel_publish(channel);
    }
    channel_publish(channel);
    return r;
}

static int drain(struct channel *channel, uint64_t count)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < count; i++) {
        struct ring_record record;

        r = ring_next(&channel->in, &record);
        while (r == RING_E_EMPTY) {
            channel_release(channel);
            r = channel_wait(channel, USEC_INFINITY);
            if (r == 0)
                r = ring_next(&channel->in, &record);
        }
        if (r == 0)
            memcpy(data, record.body, record.size);
        __asm__ volatile("" : : "r"(data) : "memory"); /* the copy is part of what is measured */
        if (i % BATCH == 0)
            channel_release(channel);
    }
    channel_release(channel);
    return r;
}

static int measure(uint64_t count, uint32_t size)
{
    struct channel_options options = {
        .ring_size = RING, .inline_max = RING / 4, .backend = WAKE_FUTEX};
    struct channel channel = CHANNEL_NULL;
    struct channel_fds fds;
    int status, r = channel_create(&channel, &options, &fds);

    if (r < 0)
        return r;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        struct channel theirs = CHANNEL_NULL;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(channel_open(&theirs, &fds) != 0 || flood(&theirs, count, size) != 0);
    }
    r = channel_wait(&channel, USEC_INFINITY);
    uint64_t begin = samples_now();
    if (r == 0)
        r = drain(&channel, count);
    double seconds = (double)(samples_now() - begin) / 1e9;
    if (r != 0)
        (void)kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        r = r < 0 ? r : -EIO;
    if (r == 0)
        printf("{\"messages_per_s\": %.1f, \"bytes_per_s\": %.1f}\n", (double)count / seconds,
               (double)count * size / seconds);
    channel_deinit(&channel);
    return r;
}

int main(int argc, char **argv)
{
    uint64_t count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t size = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

    if (count == 0 || size == 0 || size > BODY_MAX) {
        fprintf(stderr, "usage: one-way COUNT BYTES (at most %u)\n", BODY_MAX);
        return 2;
    }
    int r = measure(count, (uint32_t)size);
    if (r < 0)
        fprintf(stderr, "one-way: %s\n", strerror(-r));
    return r < 0;
}
