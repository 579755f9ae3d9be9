/* SPDX-License-Identifier: MIT */
#include "worker/exec/spawn-command.h"

#include "shared/base/cleanup.h"
#include "shared/ring/memory.h"
#include "worker/exec/reader.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct child {
    const struct spawn_command *command;
    int input, last;
    int report; /* carries -errno of a failed exec; a successful one closes it */
    pid_t parent;
};

static void close_child_ends(struct child *child)
{
    child->input = close_fd(child->input);
    child->last = close_fd(child->last);
    child->report = close_fd(child->report);
}

/* Runs in the child: system calls only. */
static int prepare(const struct child *child)
{
    int r;

    /* First, because the child must not outlive the worker. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    if (getppid() != child->parent)
        return -ECHILD;
    if (setpgid(0, 0) < 0 || dup2(child->input, STDIN_FILENO) < 0)
        return -errno;
    r = reader_attach(child->command->reader, child->command->channels);
    if (r < 0)
        return r;
    if (child->command->channels && dup2(child->last, COMMAND_LAST_FD) < 0)
        return -errno;
    /* exec preserves ignored signals. */
    if (signal(SIGPIPE, SIG_DFL) == SIG_ERR ||
        sigprocmask(SIG_SETMASK, child->command->mask, NULL) < 0)
        return -errno;
    return 0;
}

static _Noreturn void become(const struct child *child)
{
    int r = prepare(child);

    if (r == 0) {
        execve(child->command->path, child->command->argv, environ);
        r = -errno;
    }
    if (write(child->report, &r, sizeof(r)) < 0)
        _exit(126);
    _exit(127);
}

static int write_all(int fd, const char *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = pwrite(fd, data + at, size - at, (off_t)at);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            at += (size_t)n;
    }
    return 0;
}

/* Makes a descriptor outside the range of those of the command, since dup2() replaces these. */
static int lift(int fd)
{
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, COMMAND_FDS_END);

    close_fd(fd);
    return lifted < 0 ? -errno : lifted;
}

/* Makes a sealed file in memory, which a command can open as /dev/stdin and cannot change. It is
 * not a pipe: a command can lock a pipe, and block the process that writes to it. */
static int make_file(const void *data, size_t size, int *ret)
{
    _cleanup_close_ int fd = memory_new_fd("input", size);
    char path[32];
    int r = fd < 0 ? fd : write_all(fd, data, size);

    if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
        r = -errno;
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    *ret = open(path, O_RDONLY | O_CLOEXEC);
    /* Without /proc, the descriptor stays open for writing, but the seals forbid that. */
    if (*ret < 0)
        *ret = TAKE_FD(fd);
    return 0;
}

/* Opens what the command reads the data from. */
static int open_data(const void *data, size_t size, int *ret)
{
    int fd = -1, r = 0;

    if (size > 0)
        r = make_file(data, size, &fd);
    else
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (r < 0 || fd < 0)
        return r < 0 ? r : -errno;
    *ret = lift(fd);
    return *ret < 0 ? *ret : 0;
}

/* Returns the child's -errno; 0 when exec closed the pipe. */
static int read_report(int fd)
{
    int report = 0;
    ssize_t n;

    do
        n = read(fd, &report, sizeof(report));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return n == sizeof(report) ? report : 0;
}

static int start(struct spawned *spawned, struct child *child, int report)
{
    int r;

    child->parent = getpid();
    spawned->pid = fork();
    if (spawned->pid < 0)
        return -errno;
    if (spawned->pid == 0)
        become(child);
    close_child_ends(child);
    r = read_report(report);
    if (r == 0) {
        spawned->pidfd = (int)syscall(SYS_pidfd_open, spawned->pid, 0);
        r = spawned->pidfd < 0 ? -errno : 0;
    }
    if (r < 0) {
        (void)kill(spawned->pid, SIGKILL);
        while (waitpid(spawned->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return r;
}

int spawn_command(struct spawned *ret, const struct spawn_command *command)
{
    _cleanup_(close_child_ends)
    struct child child = {.command = command, .input = -1, .last = -1, .report = -1};
    struct spawned spawned = SPAWNED_NULL;
    _cleanup_close_ int report = -1;
    int ends[2], r;

    r = open_data(command->input, command->input_size, &child.input);
    if (r == 0 && command->channels)
        r = open_data(command->last, command->last_size, &child.last);
    if (r < 0)
        return r;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    report = ends[0];
    child.report = lift(ends[1]);
    if (child.report < 0)
        return child.report;
    r = start(&spawned, &child, report);
    if (r < 0) {
        spawned_deinit(&spawned);
        return r;
    }
    *ret = spawned;
    return 0;
}

void spawned_deinit(struct spawned *spawned)
{
    close_fd(spawned->pidfd);
    *spawned = (struct spawned)SPAWNED_NULL;
}
