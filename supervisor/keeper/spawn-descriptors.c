/* SPDX-License-Identifier: MIT */

/* Sets up the descriptors of a new process. */

#include "shared/base/close-from.h"
#include "supervisor/keeper/spawn-child.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Descriptors 0, 1 and 2 come first; the child always has them. */
static void list_descriptors(struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    if (options->n_fds > SPAWN_FDS_MAX)
        spawn_fail(child, SPAWN_DESCRIPTORS, E2BIG);
    child->n_fds = 3;
    for (int i = 0; i < 3; i++)
        child->fds[i] = (struct spawn_fd){.fd = child->null_fd, .number = i};
    for (size_t i = 0; i < options->n_fds; i++) {
        struct spawn_fd fd = options->fds[i];
        if (fd.fd < 0 || fd.number < 0)
            spawn_fail(child, SPAWN_DESCRIPTORS, EBADF);
        child->fds[fd.number < 3 ? (size_t)fd.number : child->n_fds++] = fd;
    }
}

static int move_up(const struct spawn_child *child, int fd, int lowest)
{
    if (fd >= lowest)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0)
        spawn_fail(child, SPAWN_DESCRIPTORS, errno);
    return moved;
}

/* Descriptors that are needed until the exec; -1 = not this one. */
#define SPAWN_NEEDED 2

static int *needed(struct spawn_child *child, size_t i)
{
    return i == 0 ? &child->report_fd : &child->parent_fd;
}

static bool is_target(const struct spawn_child *child, int number)
{
    for (size_t i = 0; i < child->n_fds; i++)
        if (child->fds[i].number == number)
            return true;
    return false;
}

/* Moves what is needed until the exec to `lowest` and behind, where nothing else is needed, and
 * closes all other descriptors that are not targets. */
static int close_others(struct spawn_child *child, int lowest)
{
    int end = lowest;
    for (size_t i = 0; i < SPAWN_NEEDED; i++) {
        int *fd = needed(child, i);
        if (*fd < 0)
            continue;
        if (*fd != end && dup3(*fd, end, O_CLOEXEC) < 0)
            return -errno;
        *fd = end++;
    }
    for (int number = 3; number < lowest; number++)
        if (!is_target(child, number))
            (void)close(number);
    close_from((unsigned)end);
    return 0;
}

/*
 * Sources are first moved above all targets, so that no dup2() overwrites one. Other descriptors
 * are closed here and not by exec: exec may take long, and processes of the same user can reach
 * into this one once it is dumpable.
 */
void spawn_set_up_descriptors(struct spawn_child *child)
{
    int lowest = 3;
    list_descriptors(child);
    for (size_t i = 0; i < child->n_fds; i++) {
        if (child->fds[i].number >= lowest)
            lowest = child->fds[i].number + 1;
    }
    for (size_t i = 0; i < SPAWN_NEEDED; i++)
        if (*needed(child, i) >= 0)
            *needed(child, i) = move_up(child, *needed(child, i), lowest + SPAWN_NEEDED);
    for (size_t i = 0; i < child->n_fds; i++) {
        if (child->fds[i].fd < 0)
            spawn_fail(child, SPAWN_DEV_NULL, -child->fds[i].fd);
        child->fds[i].fd = move_up(child, child->fds[i].fd, lowest);
    }
    for (size_t i = 0; i < child->n_fds; i++) {
        if (dup2(child->fds[i].fd, child->fds[i].number) < 0)
            spawn_fail(child, SPAWN_DESCRIPTORS, errno);
    }
    int r = close_others(child, lowest);
    if (r < 0)
        spawn_fail(child, SPAWN_DESCRIPTORS, -r);
}
