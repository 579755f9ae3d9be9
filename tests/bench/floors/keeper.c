/* SPDX-License-Identifier: MIT */

/*
 * What the machine allows of keeping processes alive, without anything that a supervisor is good
 * for:
 *
 *     keeper exec PROGRAM       one process; pidfd, vfork and exec
 *     keeper fork PROGRAM       one process, which is a fork of the keeper
 *     keeper confined PROGRAM   likewise, in namespaces of its own, with a /proc, a private
 *                               directory and a filter
 *     keeper spare PROGRAM      one process, and a forked one that waits to take its place
 *     keeper many PROGRAM N     starts N by vfork and exec; ends them when asked to end
 */

#include "tests/bench/load/stamp.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
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

/* The kernel's work for a worker that is confined, and no more: what all workers have in common is
 * mounted already. */
#define FILTER_SIZE 180

static int load_filter(void)
{
    struct sock_filter code[FILTER_SIZE];
    const struct sock_fprog program = {.len = FILTER_SIZE, .filter = code};

    for (size_t i = 0; i < FILTER_SIZE; i++)
        code[i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0);
    code[0] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, FILTER_SIZE - 2);
    code[FILTER_SIZE - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Otherwise the kernel takes the mounts down before it reports the death. */
static void hold_mounts(pid_t pid)
{
    static int held = -1;
    char path[64];

    if (held >= 0)
        (void)close(held);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    held = open(path, O_RDONLY | O_CLOEXEC);
}

static pid_t start_confined(struct keeper *keeper)
{
    char *arguments[] = {(char *)keeper->program, NULL};
    struct clone_args args = {.flags = CLONE_NEWPID | CLONE_NEWNS, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

    if (pid > 0)
        hold_mounts(pid);
    if (pid != 0)
        return pid;
    if (mount("proc", "/proc", "proc", 0, NULL) == 0 &&
        mount("tmpfs", "/var/tmp", "tmpfs", 0, NULL) == 0 && load_filter() == 0)
        (void)execv(keeper->program, arguments);
    _exit(127);
}

static pid_t start_fork(struct keeper *keeper)
{
    pid_t pid = fork();

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
    if (keeper->spare == 0 && make_spare(keeper) < 0)
        return -1;
    pid_t pid = keeper->spare;
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
    } else if (argc == 3 && strcmp(argv[1], "confined") == 0) {
        keeper.start = start_confined;
        r = unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                ? -errno
                : keep(&keeper);
    } else if (argc == 3) {
        keeper.start = strcmp(argv[1], "fork") == 0    ? start_fork
                       : strcmp(argv[1], "spare") == 0 ? start_spare
                                                       : start_exec;
        r = keep(&keeper);
    } else {
        fprintf(stderr, "usage: keeper exec|confined|fork|spare PROGRAM | keeper many PROGRAM N\n");
        return 2;
    }
    if (r < 0)
        fprintf(stderr, "keeper: %s\n", strerror(-r));
    return r < 0;
}
