/* SPDX-License-Identifier: MIT */
#include "worker/exec/leftovers.h"

#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* How often to check whether a command is still traced, which no descriptor reports. */
#define RETRY USEC_PER_MSEC

/* The result of one look at the children. */
struct look {
    bool known;  /* the kernel lists them */
    pid_t alive; /* one that has not ended yet; 0 = none */
};

int leftovers_begin(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

/* Peeks first, so that the command keeps its status. The command may hide others until the next
 * call.
 */
void leftovers_reap(pid_t command)
{
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0 ||
            info.si_pid == command)
            return;
        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
    }
}

/* Reaps all that can be reaped. Returns their number, or -ECHILD if no child is left. */
static int reap_ended(void)
{
    for (int n = 0;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0) {
            if (errno != EINTR)
                return -errno;
        } else if (info.si_pid == 0) {
            return n;
        } else {
            n++;
        }
    }
}

/* Returns whether it has not ended. The state follows the name, which may contain any character. */
static bool is_alive(pid_t pid)
{
    char path[32], text[128];
    _cleanup_close_ int fd = -1;
    const char *name_end;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    name_end = strrchr(text, ')');
    return !name_end || !name_end[1] || !strchr("ZX", name_end[2]);
}

static void kill_one(struct look *look, pid_t pid)
{
    const bool forbidden = kill(pid, SIGKILL) < 0 && errno == EPERM;

    /* Otherwise it is a zombie that its tracer has not reaped. */
    if (forbidden || is_alive(pid))
        look->alive = pid;
}

/* The list of children has their numbers, each followed by a space. All children belong to the one
 * thread that forks and inherits. */
static struct look kill_all(pid_t spare)
{
    char path[64], text[4096];
    struct look look = {0};
    _cleanup_close_ int fd = -1;
    pid_t pid = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    look.known = fd >= 0;
    for (ssize_t n; fd >= 0 && (n = read(fd, text, sizeof(text))) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid > 0 && pid != spare)
                kill_one(&look, pid);
            pid = 0;
        }
    }
    return look;
}

/* Waits for the end of a child, which may not be reapable yet. */
static void await(pid_t pid, usec_t limit)
{
    const struct timespec timeout = usec_to_timespec(limit);
    _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd poller = {.fd = pidfd, .events = POLLIN};

    if (pidfd >= 0) /* else it has ended */
        (void)ppoll(&poller, 1, &timeout, NULL);
}

static bool is_reapable(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

bool leftovers_untrace(pid_t command, pid_t spare, usec_t limit)
{
    const usec_t until = usec_add(clock_now(), limit);
    const struct timespec pause = usec_to_timespec(RETRY);

    while (!is_reapable(command)) {
        if (clock_now() >= until)
            return false;
        (void)kill_all(spare);
        leftovers_reap(command);
        if (!is_reapable(command))
            (void)nanosleep(&pause, NULL);
    }
    return true;
}

bool leftovers_end(pid_t spare, usec_t limit)
{
    const usec_t until = usec_add(clock_now(), limit);
    bool any_alive = true;

    for (int n; (n = reap_ended()) >= 0;) {
        const usec_t now = clock_now();
        struct look look;

        /* A process that was reaped may have left children since the last look. */
        if (n == 0 && !any_alive)
            return true;
        look = kill_all(spare);
        any_alive = look.alive != 0;
        if (!look.known || now >= until)
            return false;
        if (any_alive)
            await(look.alive, usec_sub(until, now));
    }
    return true;
}
