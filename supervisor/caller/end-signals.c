/* SPDX-License-Identifier: MIT */
#include "supervisor/caller/end-signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

int end_signals_open(void)
{
    sigset_t signals;
    int fd;

    (void)signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}
