/* SPDX-License-Identifier: MIT */

/*
 * What the machine allows of keeping processes alive, without anything that a supervisor is good
 * for:
 *
 *     keeper exec PROGRAM       one process; pidfd, vfork and exec
 *     keeper fork PROGRAM       one process, which is a fork of the keeper
 *     keeper spare PROGRAM      one process, and a forked one that waits to take its place
 *     keeper many PROGRAM N     starts N by vfork and exec; ends them when asked to end
 */

#include "tests/bench/load/stamp.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct keeper {
    const char *program;
    pid_t (*start)(struct keeper *keeper);
    pid_t spare;
    int go; /* a byte here, and the spare process takes over */
};

static pid_t start_exec(struct keeper *keeper)
{
    char *arguments[] = {(char *)keeper->program, NULL};
    pid_t pid = vfork();

    if (pid == 0) {
        (void)execv(keeper->program, arguments);
        _exit(127);
    }
    return pid;
}

static pid_t start_fork(struct keeper *keeper)
{
    pid_t pid = fork();

    (void)keeper;
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    stamp_write(STAMP_MAIN);
    for (;;)
        (void)pause();
}

static int make_spare(struct keeper *keeper)
{
    int fds[2];
    char byte;

    if (pipe(fds) < 0)
        return -errno;
    keeper->spare = fork();
    if (keeper->spare < 0)
        return -errno;
    if (keeper->spare == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(fds[1]);
        if (read(fds[0], &byte, 1) == 1)
            stamp_write(STAMP_MAIN);
        for (;;)
            (void)pause();
    }
    (void)close(fds[0]);
    keeper->go = fds[1];
    return 0;
}

/* The one that waits takes over; the next one is made afterwards. */
static pid_t start_spare(struct keeper *keeper)
{
    pid_t pid;

    if (keeper->spare == 0 && make_spare(keeper) < 0)
        return -1;
    pid = keeper->spare;
    if (write(keeper->go, "", 1) != 1)
        return -1;
    (void)close(keeper->go);
    return make_spare(keeper) < 0 ? -1 : pid;
}

static int keep(struct keeper *keeper)
{
    for (;;) {
        pid_t pid = keeper->start(keeper);
        struct pollfd pidfd = {.fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0),
                               .events = POLLIN};

        if (pidfd.fd < 0 || poll(&pidfd, 1, -1) < 0 || waitpid(pid, NULL, 0) < 0)
            return -errno;
        (void)close(pidfd.fd);
    }
}

static int keep_many(struct keeper *keeper, unsigned n)
{
    pid_t *pids = calloc(n, sizeof(*pids));
    sigset_t set;
    int number;

    if (!pids)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        pids[i] = start_exec(keeper);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigwait(&set, &number);
    for (unsigned i = 0; i < n; i++)
        if (pids[i] > 0)
            (void)kill(pids[i], SIGKILL);
    for (unsigned i = 0; i < n; i++)
        (void)waitpid(pids[i], NULL, 0);
    free(pids);
    return 0;
}

int main(int argc, char **argv)
{
    struct keeper keeper = {.program = argc > 2 ? argv[2] : NULL};
    sigset_t set;
    int r;

    if (argc == 4 && strcmp(argv[1], "many") == 0) {
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        r = keep_many(&keeper, (unsigned)strtoul(argv[3], NULL, 10));
    } else if (argc == 3) {
        keeper.start = strcmp(argv[1], "fork") == 0    ? start_fork
                       : strcmp(argv[1], "spare") == 0 ? start_spare
                                                       : start_exec;
        r = keep(&keeper);
    } else {
        fprintf(stderr, "usage: keeper exec|fork|spare PROGRAM | keeper many PROGRAM N\n");
        return 2;
    }
    if (r < 0)
        fprintf(stderr, "keeper: %s\n", strerror(-r));
    return r < 0;
}
