/* SPDX-License-Identifier: MIT */

/*
 * Kills the worker of a group `victim` again and again:
 *
 *     deaths SOCKET FIFO PID COUNT PAUSE_MS idle|BYTES
 *
 * PID 0: the process whose stamp comes first. idle: it has nothing to do; BYTES: it has a job in
 * hand, and so much memory touched. From the kill to: the end of the lost job at its submitter
 * (known; not when idle), the replacement's main(), the result of the next job (served). Prints one
 * JSON object.
 */

#include "../../../worker/troupe.h"
#include "../load/samples.h"
#include "../load/stamp.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_USEC UINT64_C(30000000)

enum job {
    LOST,
    NEXT,
};

struct deaths {
    struct troupe_client *client;
    uint64_t group;
    int fd;
    pid_t pid;
    bool busy;
    uint64_t n_bytes;
    struct samples known, main, served;
};

/* The next one may be handed to the worker that is just dying: then it is tried again. */
static int submit(struct deaths *deaths, enum job job)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    const void *data = job == LOST ? (const void *)&deaths->n_bytes : "next";
    int r;

    options.max_retries = job == LOST ? 0 : 3;
    r = troupe_client_submit(deaths->client, deaths->group, &options, data,
                             job == LOST ? sizeof(deaths->n_bytes) : 4, job);
    troupe_client_flush(deaths->client);
    return r;
}

/* The end of a job, which must be the one that is due. */
static int expect(struct deaths *deaths, enum job job)
{
    struct troupe_result result;
    int r = troupe_client_next(deaths->client, &result, LIMIT_USEC);

    if (r < 0)
        return r;
    r = result.error;
    if (r == 0 &&
        (result.cookie != job || result.end != (job == LOST ? TROUPE_DEAD : TROUPE_SUCCEEDED)))
        r = -EBADMSG;
    troupe_result_release(&result);
    return r;
}

/* A worker that has just been started does a job, as proof of its health, or takes the one it dies
 * with. */
static int make_ready(struct deaths *deaths)
{
    struct stamp stamp;
    int r = submit(deaths, NEXT);

    if (r == 0)
        r = expect(deaths, NEXT);
    if (r < 0 || !deaths->busy)
        return r;
    r = submit(deaths, LOST);
    return r == 0 ? stamp_read(deaths->fd, STAMP_BUSY, &stamp) : r;
}

static int kill_once(struct deaths *deaths, unsigned pause_ms)
{
    struct stamp stamp;
    uint64_t begin;
    int r = make_ready(deaths);

    if (r < 0)
        return r;
    (void)usleep(pause_ms * 1000);
    begin = samples_now();
    if (kill(deaths->pid, SIGKILL) < 0)
        return -errno;
    r = submit(deaths, NEXT);
    if (r == 0 && deaths->busy) {
        r = expect(deaths, LOST);
        samples_add(&deaths->known, begin, samples_now());
    }
    if (r == 0) {
        r = expect(deaths, NEXT);
        samples_add(&deaths->served, begin, samples_now());
    }
    if (r == 0)
        r = stamp_read(deaths->fd, STAMP_MAIN, &stamp);
    samples_add(&deaths->main, begin, stamp.ns);
    deaths->pid = (pid_t)stamp.pid;
    return r;
}

static int run(struct deaths *deaths, const char *socket, const char *fifo, unsigned count,
               unsigned pause_ms)
{
    struct stamp stamp;
    int r = troupe_client_connect(&deaths->client, socket);

    if (r == 0)
        r = troupe_client_group(deaths->client, "victim", &deaths->group);
    if (r == 0)
        r = deaths->fd = stamp_open(fifo);
    /* Whoever was killed last by another run has a successor whose stamp is still there. */
    if (r >= 0 && deaths->pid == 0) {
        r = stamp_read(deaths->fd, STAMP_MAIN, &stamp);
        deaths->pid = (pid_t)stamp.pid;
    }
    for (unsigned i = 0; r >= 0 && i < count; i++)
        r = kill_once(deaths, pause_ms);
    return r < 0 ? r : 0;
}

static void print(struct deaths *deaths)
{
    printf("{\"pid\": %d, ", deaths->pid);
    if (deaths->busy) {
        samples_print(&deaths->known, "known_");
        printf(", ");
    }
    samples_print(&deaths->main, "main_");
    printf(", ");
    samples_print(&deaths->served, "served_");
    printf("}\n");
}

int main(int argc, char **argv)
{
    struct deaths deaths = {.fd = -1};
    unsigned count = argc == 7 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
    int r;

    if (count == 0) {
        fprintf(stderr, "usage: deaths SOCKET FIFO PID COUNT PAUSE_MS idle|BYTES\n");
        return 2;
    }
    deaths.pid = (pid_t)strtol(argv[3], NULL, 10);
    deaths.busy = strcmp(argv[6], "idle") != 0;
    deaths.n_bytes = strtoull(argv[6], NULL, 10);
    r = samples_init(&deaths.known, count) | samples_init(&deaths.main, count) |
        samples_init(&deaths.served, count);
    if (r == 0)
        r = run(&deaths, argv[1], argv[2], count, (unsigned)strtoul(argv[5], NULL, 10));
    if (r == 0)
        print(&deaths);
    else
        fprintf(stderr, "deaths: %s\n", strerror(-r));
    return r < 0;
}
