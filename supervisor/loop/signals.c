/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/signals.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>

static void signals_on_ready(void *userdata, uint32_t events)
{
    struct signals *signals = userdata;
    struct signalfd_siginfo info;
    /* One per turn, since `fn` may call signals_deinit(). The watch is level-triggered. */
    if (read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    pid_t sender = info.ssi_code == SI_USER || info.ssi_code == SI_QUEUE ? (pid_t)info.ssi_pid : 0;
    /* The keeper forwards signals to the main process, with their sender. */
    if (info.ssi_code == SI_QUEUE && sender == getppid())
        sender = (pid_t)info.ssi_int;
    signals->fn(signals->userdata, (int)info.ssi_signo, sender);
}

static int set_disposition(int signo, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    return sigaction(signo, &action, NULL) < 0 ? -errno : 0;
}

int signals_init(struct signals *signals, struct loop *loop, signals_fn fn, void *userdata)
{
    sigset_t set;
    *signals = (struct signals){.loop = loop, .fd = -1, .fn = fn, .userdata = userdata};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);

    /* If it is inherited as ignored, it is never sent, and the kernel reaps children. */
    int r = set_disposition(SIGCHLD, SIG_DFL);
    if (r == 0)
        r = set_disposition(SIGPIPE, SIG_IGN);
    if (r < 0)
        return r;
    _cleanup_close_ int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (sigprocmask(SIG_BLOCK, &set, &signals->saved_mask) < 0)
        return -errno;
    r = loop_watch_fd(loop, &signals->watch, fd, POLLIN, signals_on_ready, signals);
    if (r < 0) {
        (void)sigprocmask(SIG_SETMASK, &signals->saved_mask, NULL);
        return r;
    }
    signals->fd = TAKE_FD(fd);
    return 0;
}

void signals_deinit(struct signals *signals)
{
    if (signals->fd < 0)
        return;
    loop_unwatch(signals->loop, &signals->watch);
    signals->fd = close_fd(signals->fd);
    (void)sigprocmask(SIG_SETMASK, &signals->saved_mask, NULL);
}
