/* SPDX-License-Identifier: MIT */

/* Finds the processes of a worker, and signals them. When a service with KillMode=control-group is
 * stopped, all its processes get the signals, and have the same time limit to end. */

#include "shared/base/cleanup.h"
#include "supervisor/process/process.h"
#include "supervisor/process/procfs.h"
#include "supervisor/process/watch.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bound the work of one turn: processes, and files that are read to find them, as a process may
 * have thousands of threads. Further processes get only SIGKILL when the service has ended. */
#define REST_MAX  256
#define FILES_MAX 1024
/* How often to look whether they have ended: a pidfd for each would be too many descriptors, and
 * one look reads one file. */
#define REST_LOOK (20 * USEC_PER_MSEC)
/* How long the next worker waits until those that it finds beside its template have ended. */
#define OTHERS_WAIT USEC_PER_SEC

struct member {
    pid_t pid;
    unsigned long long started;
};

struct process_rest {
    struct process *process;
    struct timer timer;
    uint64_t id;      /* of the spawner's client, which is forgotten once the process is reaped */
    bool is_waited;   /* the process itself is reaped, and only waits for the rest */
    unsigned n_files; /* that were read */
    size_t n;
    struct member members[REST_MAX];
};

/* ---- finding them ---- */

static bool is_full(const struct process_rest *rest)
{
    return rest->n == REST_MAX || rest->n_files >= FILES_MAX;
}

static bool is_mate(const struct process *process, pid_t pid)
{
    return process->mate && process->mate->pid == pid;
}

static void add(struct process_rest *rest, const struct process *process, pid_t pid)
{
    struct procfs_stat stat;

    if (is_full(rest) || pid <= 1 || pid == process->pid || is_mate(process, pid))
        return;
    rest->n_files++;
    if (procfs_stat(pid, &stat) == 0 && !stat.exiting)
        rest->members[rest->n++] = (struct member){pid, stat.started};
}

/* Adds the numbers in a file. Takes over the descriptor. */
static void add_list(struct process_rest *rest, const struct process *process, int fd)
{
    FILE *file = fd >= 0 ? fdopen(fd, "re") : NULL;
    int pid;

    if (!file) {
        close_fd(fd);
        return;
    }
    while (!is_full(rest) && fscanf(file, "%d", &pid) == 1)
        add(rest, process, pid);
    (void)fclose(file);
}

static void add_children(struct process_rest *rest, const struct process *process, pid_t parent)
{
    char path[64];
    DIR *threads;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
    threads = opendir(path);
    if (!threads)
        return;
    for (const struct dirent *entry; !is_full(rest) && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.')
            continue;
        rest->n_files++;
        (void)snprintf(path, sizeof(path), "%.16s/children", entry->d_name);
        add_list(rest, process, openat(dirfd(threads), path, O_RDONLY | O_CLOEXEC));
    }
    (void)closedir(threads);
}

/* Finds all processes of the cgroup; without one, the descendants whose parents are alive. */
static void find(struct process_rest *rest, const struct process *process)
{
    if (process->cgroup.fd >= 0) {
        add_list(rest, process, openat(process->cgroup.fd, "cgroup.procs", O_RDONLY | O_CLOEXEC));
        return;
    }
    add_children(rest, process, process->pid);
    for (size_t i = 0; i < rest->n && !is_full(rest); i++)
        add_children(rest, process, rest->members[i].pid);
}

/* ---- ending them ---- */

static bool is_alive(const struct member *member)
{
    struct procfs_stat stat;

    return procfs_stat(member->pid, &stat) == 0 && !stat.exiting && stat.started == member->started;
}

/* Returns whether the process got the signal: another user's process may not get it. The pidfd is
 * opened before the check, so the signal reaches the process that was checked. */
static bool signal_member(const struct member *member, int signal)
{
    _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, member->pid, 0);

    if (pidfd < 0 || !is_alive(member) ||
        syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0)
        return false;
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
    return true;
}

/* Signals the members, and keeps those that got the signal. */
static void signal_members(struct process_rest *rest, int signal)
{
    size_t n = 0;

    for (size_t i = 0; i < rest->n; i++)
        if (signal_member(&rest->members[i], signal))
            rest->members[n++] = rest->members[i];
    rest->n = n;
}

static void look_later(struct process *process)
{
    struct loop *loop = process->context->loop;

    timer_arm(loop_timers(loop), &process->rest->timer, usec_add(loop_now(loop), REST_LOOK));
}

static void on_look(struct timer *timer, usec_t now)
{
    struct process_rest *rest = list_entry(timer, struct process_rest, timer);
    struct process *process = rest->process;

    while (rest->n > 0 && !is_alive(&rest->members[rest->n - 1]))
        rest->n--;
    if (rest->n == 0)
        process_rest_end(process);
    else
        look_later(process);
}

void process_signal_all(struct process *process, int signal)
{
    struct process_rest *rest =
        process->pidfd >= 0 && !process->rest ? calloc(1, sizeof(*rest)) : NULL;

    if (rest)
        find(rest, process);
    /* Before the signal: the process may end immediately. */
    if (rest && rest->n > 0 && process->client.id != 0)
        spawner_spare(&process->context->spawner, process->client.id, process->pid, true);
    process_signal(process, signal);
    process_signal(process, SIGCONT);
    if (rest)
        signal_members(rest, signal);
    if (!rest || rest->n == 0 || process->client.id == 0) {
        if (rest && process->client.id != 0)
            spawner_spare(&process->context->spawner, process->client.id, process->pid, false);
        free(rest);
        return;
    }
    rest->process = process;
    timer_init(&rest->timer, on_look);
    rest->id = process->client.id;
    process->rest = rest;
    look_later(process);
}

bool process_rest_await(struct process *process)
{
    if (!process->rest)
        return false;
    process->rest->is_waited = true;
    return true;
}

void process_rest_end(struct process *process)
{
    struct process_rest *rest = process->rest;

    if (!rest)
        return;
    process->rest = NULL;
    timer_disarm(loop_timers(process->context->loop), &rest->timer);
    if (rest->is_waited)
        process_kill_cgroup(process);
    spawner_spare(&process->context->spawner, rest->id, process->pid, false);
    if (rest->is_waited)
        task_queue(&process->reap);
    free(rest);
}

/* ---- beside a mate ---- */

/* Kills the cgroup and the mate. The mate is also killed if the cgroup cannot be, for lack of
 * descriptors, or if the mate is cloned only afterwards. Until it is gone, no process is started in
 * the cgroup. */
static void kill_with_mate(struct process *process)
{
    process->mate->cgroup_killed = true;
    (void)cgroup_kill(&process->cgroup);
    process_signal(process->mate, SIGKILL);
}

/* Kills what a worker has left beside its template. If that is much, the template also dies. */
static void kill_others(struct process *process)
{
    struct process_rest *rest = calloc(1, sizeof(*rest));

    if (rest)
        find(rest, process);
    if (!rest || is_full(rest))
        kill_with_mate(process);
    else
        signal_members(rest, SIGKILL);
    free(rest);
}

void process_kill_cgroup(struct process *process)
{
    if (process->cgroup.fd < 0)
        return;
    if (!process_has_mate(process))
        (void)cgroup_kill(&process->cgroup);
    else if (!process->is_template)
        kill_others(process);
}

static bool has_others(const struct process *process)
{
    struct process_rest *rest = calloc(1, sizeof(*rest));
    bool others = true;

    if (rest) {
        find(rest, process);
        others = rest->n > 0;
    }
    free(rest);
    return others;
}

int process_share_cgroup(struct process *process)
{
    const usec_t now = loop_now(process->context->loop);
    int r = process->mate->cgroup_killed ? -EBUSY
                                         : cgroup_share(&process->cgroup, &process->mate->cgroup);

    if (r != 0 || process->is_template || process->mate->pid == 0 || !has_others(process)) {
        process->busy_since = 0;
        return r;
    }
    if (process->busy_since == 0)
        process->busy_since = now;
    if (usec_sub(now, process->busy_since) >= OTHERS_WAIT)
        kill_with_mate(process);
    else
        kill_others(process);
    return -EBUSY;
}

/* ---- all at once ---- */

/* There is no pidfd until the keeper answers. An early SIGKILL is never replaced by another signal.
 */
void process_signal(struct process *process, int signal)
{
    if (process->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
    else if (process->early_signal != SIGKILL && signal != SIGCONT)
        process->early_signal = signal;
}

void process_kill_all(struct process *process)
{
    process_rest_end(process);
    if (!process->is_template)
        process_kill_cgroup(process);
    /* The keeper kills the process group before it reaps the process. */
    process_signal(process, SIGKILL);
    watch_limit(process);
}

/* ---- which they are ---- */

/* Bounds the walk from a process to its ancestors. */
#define ANCESTORS_MAX 16

static bool process_has_in_cgroup(const struct process *process, pid_t pid)
{
    char own[PROCFS_CGROUP_SIZE], path[PROCFS_CGROUP_SIZE];

    return procfs_cgroup(0, own) == 0 && procfs_cgroup(pid, path) == 0 &&
           procfs_is_within(own, process->cgroup.name, path);
}

bool process_shares_cgroup(const struct process *process, pid_t pid)
{
    return process->cgroup.fd < 0 || process_has_in_cgroup(process, pid);
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
