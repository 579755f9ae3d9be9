/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/children.h"
#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static uint32_t *bucket_of(struct children *children, pid_t pid)
{
    return &children->buckets[(uint32_t)pid % CHILDREN_BUCKETS];
}

/* Returns the link to the child with this pid, or the last link of its bucket. */
static uint32_t *link_to(struct children *children, pid_t pid)
{
    uint32_t *link = bucket_of(children, pid);
    while (*link != 0 && children->table[*link - 1].pid != pid)
        link = &children->table[*link - 1].next;
    return link;
}

bool children_full(const struct children *children)
{
    return children->n == CHILDREN_MAX;
}

static uint32_t take_free(struct children *children)
{
    uint32_t number = children->free;
    if (number == 0)
        return ++children->n_touched;
    children->free = children->table[number - 1].next;
    return number;
}

void children_add(struct children *children, pid_t pid, uint64_t id, bool contained)
{
    uint32_t *bucket = bucket_of(children, pid);
    uint32_t number = take_free(children);
    children->table[number - 1] =
        (struct child){.pid = pid, .next = *bucket, .id = id, .contained = contained};
    *bucket = number;
    children->n++;
}

struct child *children_find(struct children *children, pid_t pid)
{
    uint32_t number = *link_to(children, pid);
    return number != 0 ? &children->table[number - 1] : NULL;
}

void children_remove(struct children *children, pid_t pid)
{
    uint32_t *link = link_to(children, pid);
    uint32_t number = *link;
    if (number == 0)
        return;
    *link = children->table[number - 1].next;
    children->table[number - 1] = (struct child){.next = children->free};
    children->free = number;
    children->n--;
}

void children_each(struct children *children, void (*fn)(struct child *child))
{
    for (uint32_t i = 0; i < children->n_touched; i++)
        if (children->table[i].pid != 0)
            fn(&children->table[i]);
}

/* ---- processes that start ---- */

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
