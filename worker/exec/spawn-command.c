/* SPDX-License-Identifier: MIT */
#include "worker/exec/spawn-command.h"

#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct child {
    const char *path;
    char *const *argv;
    const sigset_t *mask;
    int input, output, error; /* the child's ends */
    int report;               /* carries -errno of a failed exec; a successful one closes it */
    pid_t parent;
};

static void close_child_ends(struct child *child)
{
    child->input = close_fd(child->input);
    child->output = close_fd(child->output);
    child->error = close_fd(child->error);
    child->report = close_fd(child->report);
}

/* Runs in the child: system calls only. */
static int prepare(const struct child *child)
{
    /* First, because the child must not outlive the worker. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    if (getppid() != child->parent)
        return -ECHILD;
    if (setpgid(0, 0) < 0 || dup2(child->input, STDIN_FILENO) < 0 ||
        dup2(child->output, STDOUT_FILENO) < 0 || dup2(child->error, STDERR_FILENO) < 0)
        return -errno;
    /* exec preserves ignored signals. */
    if (signal(SIGPIPE, SIG_DFL) == SIG_ERR || sigprocmask(SIG_SETMASK, child->mask, NULL) < 0)
        return -errno;
    return 0;
}

static _Noreturn void become(const struct child *child)
{
    int r = prepare(child);

    if (r == 0) {
        execve(child->path, child->argv, environ);
        r = -errno;
    }
    if (write(child->report, &r, sizeof(r)) < 0)
        _exit(126);
    _exit(127);
}

/* Opens a close-on-exec pipe; this process's end does not block. */
static int open_pipe(int *ret_read, int *ret_write, bool ours_is_read)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_read = ends[0];
    *ret_write = ends[1];
    return fcntl(ends[ours_is_read ? 0 : 1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_all(struct spawned *spawned, struct child *child, int *report, bool feed)
{
    int r = open_pipe(report, &child->report, false);

    if (r == 0)
        r = open_pipe(&spawned->output, &child->output, true);
    if (r == 0)
        r = open_pipe(&spawned->error, &child->error, true);
    if (r < 0)
        return r;
    if (feed)
        return open_pipe(&child->input, &spawned->input, false);
    child->input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return child->input < 0 ? -errno : 0;
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

int spawn_command(struct spawned *ret, const char *path, char *const *argv, const sigset_t *mask,
                  bool feed)
{
    _cleanup_(close_child_ends)
    struct child child = {.path = path,
                          .argv = argv,
                          .mask = mask,
                          .input = -1,
                          .output = -1,
                          .error = -1,
                          .report = -1};
    struct spawned spawned = SPAWNED_NULL;
    _cleanup_close_ int report = -1;
    int r;

    r = open_all(&spawned, &child, &report, feed);
    if (r == 0)
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
    close_fd(spawned->input);
    close_fd(spawned->output);
    close_fd(spawned->error);
    *spawned = (struct spawned)SPAWNED_NULL;
}
