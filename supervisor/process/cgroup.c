/* SPDX-License-Identifier: MIT */
#include "supervisor/process/cgroup.h"
#include "shared/base/cleanup.h"
#include "supervisor/loop/closer.h"
#include "supervisor/loop/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU_PERIOD_USEC 100000

int cgroup_write(int directory, const char *name, const char *text)
{
    _cleanup_close_ int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) >= 0 ? 0 : -errno;
}

int cgroup_reclaim(const struct cgroup *cgroup)
{
    _cleanup_close_ int current = openat(cgroup->fd, "memory.current", O_RDONLY | O_CLOEXEC);
    char text[CLOSER_TEXT_SIZE];
    const ssize_t n = current >= 0 ? read(current, text, sizeof(text) - 1) : -1;
    int fd;

    if (n < 0)
        return CGROUP_E_UNAVAILABLE;
    text[n] = '\0';
    fd = openat(cgroup->fd, "memory.reclaim", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? CGROUP_E_UNAVAILABLE : -errno;
    closer_write(fd, text);
    return 0;
}

/* Writes a limit. A kernel without it is an error only if the limit is configured. */
static int write_setting(int directory, const char *name, const char *text, bool asked_for)
{
    int r = cgroup_write(directory, name, text);
    return r == -ENOENT && !asked_for ? 0 : r;
}

static int write_limit(int directory, const char *name, uint64_t value, const char *unset)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    bool asked_for = value != CONFIG_UNSET;
    return write_setting(directory, name, asked_for ? text : unset, asked_for);
}

/* systemd.resource-control(5): BFQ's weights end at 1000. */
static uint64_t bfq_weight(uint64_t weight)
{
    return weight <= 100 ? weight : 100 + (weight - 100) * (1000 - 100) / (10000 - 100);
}

/* The kernel has the first file with io.cost, and the second with the scheduler BFQ. */
static int write_io_weight(int directory, uint64_t weight)
{
    const uint64_t bfq = weight == CONFIG_UNSET ? CONFIG_UNSET : bfq_weight(weight);
    int r = write_limit(directory, "io.bfq.weight", bfq, "100");
    int s = write_limit(directory, "io.weight", weight, "100");
    if (r == -ENOENT || s == -ENOENT)
        return r == -ENOENT ? s : r;
    return r < 0 ? r : s;
}

static int write_cpus(int directory, const char *cpus)
{
    /* Only a write of something gets to the kernel. */
    return write_setting(directory, "cpuset.cpus", cpus ? cpus : "\n", cpus);
}

static int write_quota(int directory, uint64_t percent)
{
    char text[64] = "max";
    bool asked_for = percent != CONFIG_UNSET;
    if (asked_for)
        (void)snprintf(text, sizeof(text), "%" PRIu64 " %d", percent * (CPU_PERIOD_USEC / 100),
                       CPU_PERIOD_USEC);
    return write_setting(directory, "cpu.max", text, asked_for);
}

int cgroup_set_limits(struct cgroup *cgroup, const struct cgroup_tree *tree,
                      const struct config_group *group)
{
    int results[8] = {0};
    if (cgroup->fd < 0)
        return CGROUP_E_UNAVAILABLE;
    /* Also writes unset limits: the directory may have had others before. */
    if (tree->controllers & CGROUP_MEMORY) {
        results[0] = write_limit(cgroup->fd, "memory.high", group->memory_high, "max");
        results[1] = write_limit(cgroup->fd, "memory.max", group->memory_max, "max");
        results[5] = write_limit(cgroup->fd, "memory.swap.max", group->memory_swap_max, "max");
    }
    if (tree->controllers & CGROUP_PIDS)
        results[2] = write_limit(cgroup->fd, "pids.max", group->tasks_max, "max");
    if (tree->controllers & CGROUP_CPU) {
        results[3] = write_limit(cgroup->fd, "cpu.weight", group->cpu_weight, "100");
        results[4] = write_quota(cgroup->fd, group->cpu_quota_percent);
    }
    if (tree->controllers & CGROUP_CPUSET)
        results[6] = write_cpus(cgroup->fd, group->allowed_cpus);
    if (tree->controllers & CGROUP_IO)
        results[7] = write_io_weight(cgroup->fd, group->io_weight);
    for (size_t i = 0; i < ELEMENTS(results); i++) {
        if (results[i] < 0)
            return results[i];
    }
    return 0;
}

/* ---- leftovers ---- */

/* A cgroup that its slot has left while processes in it were still dying. */
struct leftover {
    struct list link;
    struct cgroup_tree *tree;
    int fd; /* its cgroup.events */
    struct loop_watch watch;
    char name[];
};

static void forget(struct leftover *leftover)
{
    loop_unwatch(leftover->tree->loop, &leftover->watch);
    list_unlink(&leftover->link);
    close_fd(leftover->fd);
    free(leftover);
}

static bool is_busy(const struct cgroup_tree *tree, const char *name)
{
    return unlinkat(tree->fd, name, AT_REMOVEDIR) < 0 && errno == EBUSY;
}

/* The kernel reports a change until the file is read. */
static void on_change(void *userdata, uint32_t events)
{
    struct leftover *leftover = userdata;
    char text[64];

    if (pread(leftover->fd, text, sizeof(text), 0) < 0 || !is_busy(leftover->tree, leftover->name))
        forget(leftover);
}

void cgroup_leave_directory(struct cgroup_tree *tree, const char *name)
{
    const size_t size = strlen(name) + 1;
    struct leftover *leftover;
    _cleanup_free_ char *path = NULL;

    if (!is_busy(tree, name) || !tree->loop || asprintf(&path, "%s/cgroup.events", name) < 0)
        return;
    leftover = calloc(1, sizeof(*leftover) + size);
    if (!leftover)
        return;
    leftover->tree = tree;
    memcpy(leftover->name, name, size);
    list_push_back(&tree->leftovers, &leftover->link);
    leftover->fd = openat(tree->fd, path, O_RDONLY | O_CLOEXEC);
    if (leftover->fd < 0 ||
        loop_watch_fd(tree->loop, &leftover->watch, leftover->fd, POLLPRI, on_change, leftover) < 0)
        forget(leftover);
}

/* The slot with this name uses the directory again. */
static void keep_directory(struct cgroup_tree *tree, const char *name)
{
    list_for_each_entry_safe (leftover, &tree->leftovers, struct leftover, link)
        if (strcmp(leftover->name, name) == 0)
            forget(leftover);
}

void cgroup_forget_leftovers(struct cgroup_tree *tree)
{
    list_for_each_entry_safe (leftover, &tree->leftovers, struct leftover, link)
        forget(leftover);
}

void cgroup_leave(struct cgroup *cgroup, struct cgroup_tree *tree)
{
    if (cgroup->fd >= 0)
        cgroup_leave_directory(tree, cgroup->name);
    cgroup_deinit(cgroup);
}

/* ---- a slot's cgroup ---- */

/*
 * Makes a new directory for the slot: since Linux 6.14 every process cloned into a cgroup dies
 * immediately if its cgroup.kill was ever written. Kills the processes of an earlier life. -EBUSY
 * while these still die.
 */
static int make_directory(struct cgroup_tree *tree, struct cgroup *cgroup)
{
    bool existed = mkdirat(tree->fd, cgroup->name, 0755) < 0, dying = false;
    if (existed && errno != EEXIST)
        return -errno;
    if (existed)
        keep_directory(tree, cgroup->name);
    if (existed && unlinkat(tree->fd, cgroup->name, AT_REMOVEDIR) == 0)
        existed = mkdirat(tree->fd, cgroup->name, 0755) < 0;
    else if (existed)
        dying = errno == EBUSY;
    cgroup->fd = openat(tree->fd, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->fd < 0)
        return -errno;
    int r = existed ? cgroup_kill(cgroup) : 0;
    return r == 0 && dying ? -EBUSY : r;
}

/* Sets the directory's name. */
static int begin(struct cgroup *cgroup, const struct cgroup_tree *tree, const char *slot)
{
    *cgroup = (struct cgroup)CGROUP_NULL;
    if (tree->fd < 0)
        return CGROUP_E_UNAVAILABLE;
    cgroup->name = strdup(slot);
    if (!cgroup->name)
        return -ENOMEM;
    /* Unique: a group's name has no colon, and the number follows the last one. */
    for (char *c = cgroup->name; *c != '\0'; c++)
        *c = *c == '/' ? ':' : *c;
    return 0;
}

int cgroup_init(struct cgroup *cgroup, struct cgroup_tree *tree, const struct config_group *group,
                const char *slot)
{
    int r = begin(cgroup, tree, slot);
    if (r != 0)
        return r;
    r = make_directory(tree, cgroup);
    if (r == 0)
        r = cgroup_set_limits(cgroup, tree, group);
    if (r < 0) {
        cgroup_leave(cgroup, tree);
        return r;
    }
    oom_begin(cgroup);
    return 0;
}

static int spare(struct cgroup_tree *tree, const struct cgroup *cgroup)
{
    struct stat stat;
    if (fstat(cgroup->fd, &stat) < 0)
        return -errno;
    uint64_t *inodes = reallocarray(tree->adopted, tree->n_adopted + 1, sizeof(*inodes));
    if (!inodes)
        return -ENOMEM;
    tree->adopted = inodes;
    inodes[tree->n_adopted++] = stat.st_ino;
    return 0;
}

int cgroup_adopt(struct cgroup *cgroup, struct cgroup_tree *tree, const char *slot)
{
    int r = begin(cgroup, tree, slot);
    if (r != 0)
        return r;
    cgroup->fd = openat(tree->fd, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->fd < 0)
        r = errno == ENOENT ? CGROUP_E_UNAVAILABLE : -errno;
    else
        r = spare(tree, cgroup);
    if (r != 0)
        cgroup_deinit(cgroup);
    return r;
}

int cgroup_share(struct cgroup *cgroup, const struct cgroup *other)
{
    *cgroup = (struct cgroup)CGROUP_NULL;
    if (other->fd < 0)
        return CGROUP_E_UNAVAILABLE;
    cgroup->name = strdup(other->name);
    cgroup->fd = cgroup->name ? fcntl(other->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (cgroup->fd < 0) {
        const int r = cgroup->name ? -errno : -ENOMEM;
        cgroup_deinit(cgroup);
        return r;
    }
    oom_begin(cgroup);
    return 0;
}

void cgroup_deinit(struct cgroup *cgroup)
{
    cgroup->fd = close_fd(cgroup->fd);
    free(TAKE_PTR(cgroup->name));
}

int cgroup_kill(const struct cgroup *cgroup)
{
    if (cgroup->fd < 0)
        return CGROUP_E_UNAVAILABLE;
    return cgroup_write(cgroup->fd, "cgroup.kill", "1");
}
