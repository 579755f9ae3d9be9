/* SPDX-License-Identifier: MIT */
#include "shared/base/spawn-self.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

int spawn_self(char *const *argv, const struct spawn_self_fd *fds, size_t n_fds, pid_t *ret)
{
    /* The descriptor also names the program under valgrind, where executing /proc/self/exe would
     * start valgrind. */
    _cleanup_close_ int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char program[32];
    sigset_t none;
    int r = 0;

    if (self < 0)
        return -errno;
    (void)snprintf(program, sizeof(program), "/proc/self/fd/%d", self);
    sigemptyset(&none);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_init(&actions);
    for (size_t i = 0; r == 0 && i < n_fds; i++)
        r = posix_spawn_file_actions_adddup2(&actions, fds[i].from, fds[i].to);
    if (r == 0)
        r = posix_spawn(ret, program, &actions, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}
