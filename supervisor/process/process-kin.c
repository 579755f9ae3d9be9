/* SPDX-License-Identifier: MIT */

/* Tells whether a process belongs to a worker, and whether it is exiting. */

#include "supervisor/process/process.h"
#include "supervisor/process/procfs.h"

/* Bounds the walk from a process to its ancestors. */
#define ANCESTORS_MAX 16

static bool process_has_in_cgroup(const struct process *process, pid_t pid)
{
    char own[PROCFS_CGROUP_SIZE], path[PROCFS_CGROUP_SIZE];

    return procfs_cgroup(0, own) == 0 && procfs_cgroup(pid, path) == 0 &&
           procfs_is_within(own, process->cgroup.name, path);
}

/* Without cgroups: descendants, as long as they stay in its session or process group, or no parent
 * between has ended. */
static bool process_has_started(const struct process *process, pid_t pid)
{
    struct procfs_stat stat;

    for (unsigned i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        if (procfs_stat(pid, &stat) < 0)
            return false;
        if (stat.session == process->pid || stat.group == process->pid ||
            stat.parent == process->pid)
            return true;
        pid = stat.parent;
    }
    return false;
}

bool process_has(const struct process *process, pid_t pid)
{
    if (process->pid <= 0 || pid <= 0)
        return false;
    if (pid == process->pid)
        return true;
    return process->cgroup.fd >= 0 ? process_has_in_cgroup(process, pid)
                                   : process_has_started(process, pid);
}

bool process_is_exiting(const struct process *process)
{
    struct procfs_stat stat;

    return procfs_stat(process->pid, &stat) < 0 || stat.exiting;
}
