/* SPDX-License-Identifier: MIT */

/*
 * Kills the worker of a group `victim` again and again:
 *
 *     deaths SOCKET FIFO PID COUNT PAUSE_MS idle|spare|BYTES
 *
 * PID 0: the process whose stamp comes first. idle: it has nothing to do; BYTES: it has a job in
 * hand, and so much memory touched. From the kill to: the event that names the lost job, on a Watch
 * of its own (known), its end at its submitter, which the proof of the death precedes (ended; both
 * not when idle), the replacement's main(), the result of the next job (served), which is submitted
 * once the loss is known. spare: as idle, but main() is long past in the process that takes over,
 * so "main" is the first that it does: the beginning of the next job. Prints one JSON object.
 */

#include "tests/bench/load/pause.h"
#include "tests/bench/load/samples.h"
#include "tests/bench/load/stamp.h"
#include "worker/troupe.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LIMIT_USEC UINT64_C(30000000)

enum job {
    LOST,
    NEXT,
};

struct deaths {
    struct troupe_client *client;
    uint64_t group;
    int fd, watch;
    pid_t pid;
    bool busy, spare;
    uint64_t n_bytes;
    struct stamp begun; /* of the job that ended last */
    struct samples known, ended, main, served;
};

/* The next one may be handed to the worker that is just dying: then it is tried again. */
static int submit(struct deaths *deaths, enum job job)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    const void *data = job == LOST ? (const void *)&deaths->n_bytes : "next";

    options.max_retries = job == LOST ? 0 : 3;
    int r = troupe_client_submit(deaths->client, deaths->group, &options, data,
                                 job == LOST ? sizeof(deaths->n_bytes) : 4, job);
    troupe_client_flush(deaths->client);
    return r;
}

/* The end of a job, which must be the one that is due. */
static int expect(struct deaths *deaths, enum job job)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_next(deaths->client, &result, LIMIT_USEC);

    if (r < 0)
        return r;
    r = result.error;
    if (r == 0 &&
        (result.cookie != job || result.end != (job == LOST ? TROUPE_DEAD : TROUPE_SUCCEEDED)))
        r = -EBADMSG;
    if (r == 0 && job == NEXT && result.size == sizeof(deaths->begun))
        memcpy(&deaths->begun, result.data, sizeof(deaths->begun));
    troupe_result_release(&result);
    return r;
}

/* ---- the events ---- */

static int watch_open(const char *path)
{
    static const char call[] = "{\"method\": \"io.troupe.Supervisor.Watch\", \"more\": true, "
                               "\"parameters\": {\"target\": \"victim\"}}";
    const struct timeval limit = {.tv_sec = LIMIT_USEC / 1000000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        write(fd, call, sizeof(call)) != sizeof(call))
        return -errno;
    return fd;
}

/* Those of before are not of interest. */
static void watch_drain(int fd)
{
    char text[65536];

    while (recv(fd, text, sizeof(text), MSG_DONTWAIT) > 0)
        ;
}

/* Until it is said that the worker is dying, or, where no hint comes first, that it is dead. */
static int watch_loss(int fd)
{
    char text[65536];
    size_t size = 0;
    ssize_t n;

    while (size < sizeof(text) && (n = recv(fd, text + size, sizeof(text) - size, 0)) > 0) {
        size += (size_t)n;
        if (memmem(text, size, "worker.lost", 11) || memmem(text, size, "worker.died", 11))
            return 0;
    }
    return -EIO;
}

/* A worker that has just been started does a job, as proof of its health, or takes the one it dies
 * with. */
static int make_ready(struct deaths *deaths)
{
    struct stamp stamp;
    int r = submit(deaths, NEXT);

    if (r == 0)
        r = expect(deaths, NEXT);
    if (deaths->spare)
        deaths->pid = (pid_t)deaths->begun.pid;
    if (r < 0 || !deaths->busy)
        return r;
    r = submit(deaths, LOST);
    return r == 0 ? stamp_read(deaths->fd, STAMP_BUSY, &stamp) : r;
}

static int kill_once(struct deaths *deaths, unsigned pause_ms)
{
    struct stamp stamp;
    int r = make_ready(deaths);

    if (r < 0)
        return r;
    pause_usec((uint64_t)pause_ms * 1000);
    watch_drain(deaths->watch);
    uint64_t begin = samples_now();
    if (kill(deaths->pid, SIGKILL) < 0)
        return -errno;
    if (deaths->busy || deaths->spare) {
        r = watch_loss(deaths->watch);
        samples_add(&deaths->known, begin, samples_now());
    }
    if (r == 0)
        r = submit(deaths, NEXT);
    if (r == 0 && deaths->busy) {
        r = expect(deaths, LOST);
        samples_add(&deaths->ended, begin, samples_now());
    }
    if (r == 0) {
        r = expect(deaths, NEXT);
        samples_add(&deaths->served, begin, samples_now());
    }
    if (deaths->spare)
        stamp = deaths->begun;
    else if (r == 0)
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
        r = deaths->watch = watch_open(socket);
    if (r >= 0)
        r = deaths->fd = stamp_open(fifo);
    /* Whoever was killed last by another run has a successor whose stamp is still there. */
    if (r >= 0 && deaths->pid == 0 && !deaths->spare) {
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
        samples_print(&deaths->ended, "ended_");
        printf(", ");
    }
    samples_print(&deaths->main, "main_");
    printf(", ");
    samples_print(&deaths->served, "served_");
    printf("}\n");
}

int main(int argc, char **argv)
{
    struct deaths deaths = {.fd = -1, .watch = -1};
    unsigned count = argc == 7 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;

    if (count == 0) {
        fprintf(stderr, "usage: deaths SOCKET FIFO PID COUNT PAUSE_MS idle|spare|BYTES\n");
        return 2;
    }
    deaths.pid = (pid_t)strtol(argv[3], NULL, 10);
    deaths.spare = strcmp(argv[6], "spare") == 0;
    deaths.busy = !deaths.spare && strcmp(argv[6], "idle") != 0;
    deaths.n_bytes = strtoull(argv[6], NULL, 10);
    int r = samples_init(&deaths.known, count) | samples_init(&deaths.ended, count) |
            samples_init(&deaths.main, count) | samples_init(&deaths.served, count);
    if (r == 0)
        r = run(&deaths, argv[1], argv[2], count, (unsigned)strtoul(argv[5], NULL, 10));
    if (r == 0)
        print(&deaths);
    else
        fprintf(stderr, "deaths: %s\n", strerror(-r));
    return r < 0;
}
