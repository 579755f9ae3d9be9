/* SPDX-License-Identifier: MIT */

/*
 * Sends records between two processes, with both wake back ends, in both directions, through rings
 * of several sizes. Every record must arrive whole and in order, and both sides must have slept and
 * been woken. Arguments: [RECORDS], per run.
 */

#include "shared/base/cleanup.h"
#include "tests/stress/traffic.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct run {
    enum wake_backend backend;
    uint32_t ring_size;
    bool to_worker; /* else the worker produces */
};

static int report(const char *who, int r, const struct traffic_tally *tally)
{
    if (r < 0)
        fprintf(stderr, "%s: %s\n", who, strerror(-r));
    else if (tally->sleeps == 0)
        fprintf(stderr, "%s never had to sleep: nothing was tested\n", who);
    return r < 0 || tally->sleeps == 0 ? 1 : 0;
}

static int play(struct channel *channel, const struct traffic *traffic, bool produce)
{
    struct traffic_tally tally = {0};
    int r = produce ? traffic_produce(channel, traffic, &tally)
                    : traffic_consume(channel, traffic, &tally);

    return report(produce ? "producer" : "consumer", r, &tally);
}

static int worker(const struct channel_fds *fds, const struct traffic *traffic, bool produce)
{
    _cleanup_(channel_deinit)
    struct channel channel = CHANNEL_NULL;
    int r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    r = channel_open(&channel, fds);
    if (r < 0) {
        fprintf(stderr, "worker: %s\n", strerror(-r));
        return 1;
    }
    return play(&channel, traffic, produce);
}

static int run_once(const struct run *run, uint64_t seed, uint64_t count)
{
    _cleanup_(channel_deinit)
    struct channel channel = CHANNEL_NULL;
    struct channel_fds fds = CHANNEL_FDS_NULL;
    struct channel_options options = {
        .ring_size = run->ring_size, .inline_max = 0, .backend = run->backend};
    struct traffic traffic = {
        .seed = seed,
        .count = count,
        .body_max = run->ring_size <= 4096 ? ring_body_max(run->ring_size) : run->ring_size / 16,
        .force_every = 4000,
    };
    int r, status;
    pid_t pid;

    r = channel_create(&channel, &options, &fds);
    if (r < 0) {
        fprintf(stderr, "channel: %s\n", strerror(-r));
        return 1;
    }
    pid = fork();
    if (pid < 0)
        return 1;
    if (pid == 0)
        _exit(worker(&fds, &traffic, !run->to_worker));
    r = play(&channel, &traffic, run->to_worker);
    if (r != 0)
        (void)kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        r = 1;
    printf("%s %s %6u bytes: %s\n", run->backend == WAKE_FUTEX ? "futex  " : "eventfd",
           run->to_worker ? "inbox " : "outbox", run->ring_size, r == 0 ? "ok" : "FAILED");
    (void)fflush(stdout);
    return r;
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {4096, 16384, 65536};
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
    uint64_t seed = traffic_seed();
    int failed = 0;

    for (int backend = WAKE_FUTEX; backend <= WAKE_EVENTFD; backend++)
        for (size_t i = 0; i < ELEMENTS(sizes); i++)
            for (int to_worker = 0; to_worker < 2; to_worker++) {
                struct run run = {.backend = (enum wake_backend)backend,
                                  .ring_size = sizes[i],
                                  .to_worker = to_worker};

                failed |= run_once(&run, seed++, count);
            }
    return failed;
}
