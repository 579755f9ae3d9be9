/* SPDX-License-Identifier: MIT */
#include "supervisor/process/cgroup-oom.h"
#include "shared/base/cleanup.h"
#include "supervisor/process/cgroup.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* One event of a cgroup above may kill several workers, whose ends are seen one after another. */
#define SAME_EVENT (2 * USEC_PER_SEC)

/* ---- files ---- */

/* Reads a small file, NUL-terminated; "" without it. */
static void read_file(int directory, const char *name, char *text, size_t size)
{
    _cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
}

/* Returns the number behind "KEY " at the beginning of a line; 0 without it. */
static uint64_t number_of(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoull(line + length, NULL, 10);
    }
    return 0;
}

/* "max" is 0. */
static uint64_t read_number(int directory, const char *name)
{
    char text[32];
    read_file(directory, name, text, sizeof(text));
    return strtoull(text, NULL, 10);
}

static uint64_t read_mark(int directory, const char *name)
{
    char text[32];
    const ssize_t n = fgetxattr(directory, name, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return strtoull(text, NULL, 10);
}

/* "full avg10=12.34 …" in memory.pressure. */
static unsigned read_stalled(int directory)
{
    char text[256];
    const char *full;
    unsigned percent = 0;
    read_file(directory, "memory.pressure", text, sizeof(text));
    full = strstr(text, "full avg10=");
    return full && sscanf(full, "full avg10=%u", &percent) == 1 ? percent : 0;
}

/* ---- the worker's cgroup ---- */

static struct oom_counts read_counts(int directory)
{
    char events[512];
    read_file(directory, "memory.events", events, sizeof(events));
    return (struct oom_counts){
        .kills = number_of(events, "oom_kill"),
        .own = number_of(events, "oom"),
        .by_oomd = read_mark(directory, "user.oomd_kill"),
    };
}

void oom_begin(struct cgroup *cgroup)
{
    cgroup->oom = read_counts(cgroup->fd);
}

/* ---- those above ---- */

/* The path from the delegated directory to a file of the cgroup that many levels above it. */
static void path_above(unsigned level, const char *file, char path[64])
{
    size_t n = 0;
    while (level-- > 0)
        n += (size_t)snprintf(path + n, 64 - n, "../");
    (void)snprintf(path + n, 64 - n, "%s", file);
}

/* Returns false beyond the last one: the root has no such file. */
static bool read_above(const struct cgroup_tree *tree, unsigned level, uint64_t *ret)
{
    char path[64], events[512];
    path_above(level, "memory.events.local", path);
    read_file(tree->fd, path, events, sizeof(events));
    *ret = number_of(events, "oom");
    return events[0] != '\0';
}

void oom_begin_above(struct cgroup_tree *tree)
{
    tree->oom = (struct oom_above){0};
    for (unsigned level = 0; level < OOM_LEVELS; level++)
        if (!read_above(tree, level, &tree->oom.n[level]))
            break;
}

/* Copies the last name of the tree's path without `level` names. */
static void name_above(const struct cgroup_tree *tree, unsigned level, char *name, size_t size)
{
    size_t length = tree->path ? strlen(tree->path) : 0, begin;
    for (;;) {
        for (begin = length; begin > 0 && tree->path[begin - 1] != '/'; begin--)
            ;
        if (level-- == 0 || begin == 0)
            break;
        length = begin - 1;
    }
    (void)snprintf(name, size, "%.*s", (int)(length - begin), tree->path ? tree->path + begin : "");
}

/* Returns the lowest cgroup above that was over its limit now, or -1. */
static int find_above(struct cgroup_tree *tree, usec_t now)
{
    int found = -1;
    for (unsigned level = 0; level < OOM_LEVELS; level++) {
        uint64_t n;
        if (!read_above(tree, level, &n))
            break;
        if (n > tree->oom.n[level])
            tree->oom.changed_at[level] = now;
        tree->oom.n[level] = n;
        if (found < 0 && tree->oom.changed_at[level] != 0 &&
            usec_sub(now, tree->oom.changed_at[level]) < SAME_EVENT)
            found = (int)level;
    }
    return found;
}

/* ---- whose it was ---- */

static void attribute_above(struct cgroup_tree *tree, usec_t now, struct oom *oom)
{
    const int level = find_above(tree, now);
    char path[64];
    oom->limit = level >= 0 ? OOM_OF_ABOVE : OOM_OF_MACHINE;
    if (level < 0)
        return;
    name_above(tree, (unsigned)level, oom->above, sizeof(oom->above));
    path_above((unsigned)level, "memory.max", path);
    oom->max = read_number(tree->fd, path);
}

bool oom_take(struct cgroup *cgroup, struct cgroup_tree *tree, usec_t now, struct oom *ret)
{
    const struct oom_counts before = cgroup->oom;
    *ret = (struct oom){0};
    if (cgroup->fd < 0)
        return false;
    cgroup->oom = read_counts(cgroup->fd);
    if (cgroup->oom.kills <= before.kills && cgroup->oom.by_oomd <= before.by_oomd)
        return false;
    ret->peak = read_number(cgroup->fd, "memory.peak");
    ret->stalled = read_stalled(cgroup->fd);
    if (cgroup->oom.kills <= before.kills)
        ret->limit = OOM_OF_OOMD;
    else if (cgroup->oom.own > before.own)
        ret->max = read_number(cgroup->fd, "memory.max");
    else
        attribute_above(tree, now, ret);
    return true;
}

/* ---- text ---- */

static void put_size(FILE *file, const char *before, uint64_t bytes, const char *after)
{
    const bool large = bytes >= (uint64_t)10 << 20;
    if (bytes > 0)
        fprintf(file, "%s%" PRIu64 "%c%s", before, bytes >> (large ? 20 : 10), large ? 'M' : 'K',
                after);
}

void oom_describe(const struct oom *oom, char *text, size_t size)
{
    static const char *const limits[_OOM_N_LIMITS] = {
        [OOM_OF_WORKER] = "its own limit",
        [OOM_OF_ABOVE] = "the limit of ",
        [OOM_OF_MACHINE] = "the machine has no more",
        [OOM_OF_OOMD] = "systemd-oomd chose it",
    };
    FILE *file = fmemopen(text, size, "w");
    text[0] = '\0';
    if (!file)
        return;
    fprintf(file, "%s%s", limits[oom->limit], oom->above);
    put_size(file, " (MemoryMax=", oom->max, ")");
    put_size(file, ", peak ", oom->peak, "");
    if (oom->stalled > 0)
        fprintf(file, ", waiting for memory %u %% of the time", oom->stalled);
    (void)fclose(file);
    text[size - 1] = '\0';
}
