/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/supervisor-process.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/keeper/spawn.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rlimit descriptors; /* as inherited */

/* What is held takes many descriptors. The supervisor, and through it the workers, start with the
 * inherited limit. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) < 0)
        return;
    limit = descriptors;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void supervisor_process_init(sigset_t *ret)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU};
    raise_descriptor_limit();
    spawn_reset_ignored_signals(); /* with SIGCHLD ignored, the kernel would reap */
    (void)sigfillset(ret);
    for (size_t i = 0; i < ELEMENTS(own); i++)
        (void)sigdelset(ret, own[i]);
    (void)sigprocmask(SIG_SETMASK, ret, NULL);
}

int supervisor_process_cannot_start(const char *call)
{
    const int error = errno;
    const bool forbidden = error == EPERM || error == ENOSYS;
    log_error("cannot start the supervisor: %s: %s%s", call, strerror(error),
              forbidden ? "; allowed: a seccomp filter (SystemCallFilter=) that permits it" : "");
    return -error;
}

/* The service manager names its main process in these variables; the supervisor uses them. */
static void take_over_variable(const char *name, pid_t keeper)
{
    const char *value = getenv(name);
    char text[16];
    if (!value || strtol(value, NULL, 10) != keeper)
        return;
    (void)snprintf(text, sizeof(text), "%d", (int)getpid());
    (void)setenv(name, text, 1);
}

/* SIGTERM, SIGINT and SIGHUP stay blocked until the supervisor can handle them. */
static void unblock_signals(void)
{
    sigset_t asking;
    (void)sigemptyset(&asking);
    (void)sigaddset(&asking, SIGTERM);
    (void)sigaddset(&asking, SIGINT);
    (void)sigaddset(&asking, SIGHUP);
    (void)sigprocmask(SIG_SETMASK, &asking, NULL);
}

/* Runs in the new process, in a session of its own: signals of a terminal would reach it twice
 * otherwise. */
static _Noreturn void run(const struct supervisor_process *process, int channel, pid_t keeper)
{
    const struct keeper_ends ends = {.channel = channel, .notify_fd = process->notify_fd};
    (void)setsid();
    if (prctl(PR_SET_PDEATHSIG, KEEPER_DEATH_SIGNAL, 0, 0, 0) < 0 || getppid() != keeper)
        _exit(EXIT_FAILURE);
    unblock_signals();
    if (descriptors.rlim_max > 0)
        (void)setrlimit(RLIMIT_NOFILE, &descriptors);
    take_over_variable("LISTEN_PID", keeper);
    (void)unsetenv("LISTEN_PIDFDID"); /* names the keeper as well */
    take_over_variable("WATCHDOG_PID", keeper);
    exit(process->program->run(process->program, &ends));
}

pid_t supervisor_process_start(const struct supervisor_process *process, void (*on_fork)(void),
                               int *ret_channel)
{
    const pid_t keeper = getpid();
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return supervisor_process_cannot_start("socketpair");
    const pid_t pid = fork();
    if (pid == 0) {
        on_fork();
        close_fd(fds[0]);
        run(process, fds[1], keeper);
    }
    const int r = pid < 0 ? supervisor_process_cannot_start("fork") : 0;
    close_fd(fds[1]);
    if (r < 0) {
        close_fd(fds[0]);
        return r;
    }
    *ret_channel = fds[0];
    return pid;
}
