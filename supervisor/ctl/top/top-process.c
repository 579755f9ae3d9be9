/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/top/top-process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void top_processes_deinit(struct top_processes *processes)
{
    free(processes->items);
    *processes = (struct top_processes){0};
}

static int compare(const void *a, const void *b)
{
    const struct top_process *one = a, *other = b;

    return (one->pid > other->pid) - (one->pid < other->pid);
}

/* The items of a round follow those of the round before. */
void top_processes_begin(struct top_processes *processes)
{
    const size_t n = processes->n - processes->n_old;

    if (processes->items)
        memmove(processes->items, processes->items + processes->n_old,
                n * sizeof(*processes->items));
    processes->n = processes->n_old = n;
    if (n > 0)
        qsort(processes->items, n, sizeof(*processes->items), compare);
}

/* Reads utime, stime and rss, fields 14, 15 and 24, behind the name in parentheses. Returns whether
 * they are there. */
static bool read_stat(pid_t pid, struct top_process *ret)
{
    unsigned long long user, system;
    char path[64], text[1024], *name_end;
    long long pages;
    ssize_t size;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[size > 0 ? size : 0] = '\0';
    name_end = strrchr(text, ')');
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's text */
    if (!name_end || sscanf(name_end + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d "
                            "%*d %*d %*d %*u %*u %lld",
                            &user, &system, &pages) != 3)
        return false;
    ret->ticks = user + system;
    ret->memory = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    return true;
}

static double percent(const struct top_process *now, const struct top_process *before)
{
    const usec_t elapsed = before ? usec_sub(now->at, before->at) : 0;

    if (elapsed == 0 || now->ticks < before->ticks)
        return -1;
    return (double)(now->ticks - before->ticks) / (double)sysconf(_SC_CLK_TCK) * 100.0 *
           (double)USEC_PER_SEC / (double)elapsed;
}

static void keep(struct top_processes *processes, const struct top_process *process)
{
    const size_t room = processes->allocated > 0 ? processes->allocated * 2 : 64;
    struct top_process *items;

    if (processes->n == processes->allocated) {
        items = reallocarray(processes->items, room, sizeof(*items));
        if (!items)
            return;
        processes->items = items;
        processes->allocated = room;
    }
    processes->items[processes->n++] = *process;
}

struct top_process top_processes_read(struct top_processes *processes, pid_t pid)
{
    struct top_process process = {.pid = pid, .at = clock_now(), .cpu = -1};
    const struct top_process *before = NULL;

    for (size_t i = processes->n_old; i < processes->n; i++)
        if (processes->items[i].pid == pid)
            return processes->items[i];
    if (!read_stat(pid, &process))
        return process;
    if (processes->n_old > 0)
        before = bsearch(&process, processes->items, processes->n_old, sizeof(process), compare);
    process.cpu = percent(&process, before);
    keep(processes, &process);
    return process;
}
