/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/starting.h"
#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <string.h>

/* The kernel waits tens of milliseconds whenever a shared table doubles. This many entries take
 * 64 KiB of kernel memory. */
#define TABLE_SIZE 8192

void starting_init(struct starting *starting)
{
    int fds[2];
    *starting = (struct starting){.read_fd = -1, .write_fd = -1};
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    starting->read_fd = fds[0];
    starting->write_fd = fds[1];
    close_fd(fcntl(fds[0], F_DUPFD_CLOEXEC, TABLE_SIZE - 1));
}

static bool all_are_copied(const struct message *request)
{
    for (size_t i = 0; i < request->n_fds; i++)
        if (request->fds[i] >= SPAWN_COPIED)
            return false;
    return true;
}

void starting_share(const struct starting *starting, const struct message *request, size_t n_others,
                    struct spawn_options *options)
{
    uint8_t i = 0;
    while (i < STARTING_MAX && starting->processes[i].pid != 0)
        i++;
    options->share_table = n_others >= STARTING_SHARE_MIN && starting->write_fd >= 0 &&
                           i < STARTING_MAX && all_are_copied(request);
    options->copied_fd = starting->write_fd;
    options->copied_byte = i;
}

void starting_add(struct starting *starting, const struct spawn_options *options, pid_t pid,
                  struct message *request)
{
    if (!options->share_table)
        return;
    struct starting_process *process = &starting->processes[options->copied_byte];
    process->pid = pid;
    process->n_fds = request->n_fds;
    memcpy(process->fds, request->fds, request->n_fds * sizeof(int));
    request->n_fds = 0;
}

static void close_fds(struct starting_process *process)
{
    for (size_t i = 0; i < process->n_fds; i++)
        (void)close_fd(process->fds[i]);
    process->pid = 0;
    process->n_fds = 0;
}

void starting_run(struct starting *starting)
{
    uint8_t copied[STARTING_MAX];
    const ssize_t n = read(starting->read_fd, copied, sizeof(copied));
    for (ssize_t i = 0; i < n; i++)
        if (copied[i] < STARTING_MAX)
            close_fds(&starting->processes[copied[i]]);
}

/* Reads what the process has written, which would be taken for a sign of its successor. */
void starting_remove(struct starting *starting, pid_t pid)
{
    starting_run(starting);
    for (size_t i = 0; i < STARTING_MAX; i++)
        if (starting->processes[i].pid == pid)
            close_fds(&starting->processes[i]);
}

struct pollfd starting_wait(const struct starting *starting)
{
    return (struct pollfd){.fd = starting->read_fd, .events = POLLIN};
}
