/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/spawn-child.h"
#include "shared/base/cleanup.h"
#include "shared/base/landlock.h"
#include "shared/base/scm.h"
#include "supervisor/keeper/sandbox-mount.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GATE_MSEC 500

static _Noreturn void fail_at(const struct spawn_child *child, enum spawn_step step, int error,
                              uint32_t path)
{
    struct spawn_report report = {.error = -error, .step = step};
    report.path = path;
    /* On failure the exit status alone has to do. */
    ssize_t n = write(child->report_fd, &report, sizeof(report));
    (void)n;
    _exit(127);
}

_Noreturn void spawn_fail(const struct spawn_child *child, enum spawn_step step, int error)
{
    fail_at(child, step, error, 0);
}

/*
 * Leaves the terminal without setsid(): with autogroups each session is a scheduling group of
 * its own, and a start would take longer.
 */
static int leave_terminal(void)
{
    _cleanup_close_ int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (terminal < 0 && errno != ENXIO) /* cannot tell whether there is one */
        return setsid();
    return terminal >= 0 ? ioctl(terminal, TIOCNOTTY) : 0;
}

static bool leads_session(const struct spawn_child *child)
{
    return !spawn_is_contained(child->options);
}

/* Leaves the terminal, and leads a process group by which the keeper can kill it. A process that is
 * not contained leads a session: setpgid(2) does not move a process into a group of another
 * session, so an orphan's session shows which worker started it. */
static void leave_terminal_and_group(const struct spawn_child *child)
{
    int r;
    if (leads_session(child))
        r = setsid();
    else
        r = leave_terminal();
    if (r < 0 || (setpgid(0, 0) < 0 && getpgrp() != getpid()))
        spawn_fail(child, SPAWN_TERMINAL, errno);
}

static int write_file(int directory, const char *name, const char *text)
{
    _cleanup_close_ int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) >= 0 ? 0 : errno;
}

/* The /proc files of a process that is not dumpable belong to root. Without privileges the child
 * is therefore dumpable during the write. By now it has none of the keeper's descriptors. */
static int write_own(const char *path, int value)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%d", value);
    int error = write_file(AT_FDCWD, path, text);
    if (error != EACCES || prctl(PR_GET_DUMPABLE) == 1 || prctl(PR_SET_DUMPABLE, 1) < 0)
        return error;
    error = write_file(AT_FDCWD, path, text);
    (void)prctl(PR_SET_DUMPABLE, 0);
    return error;
}

static void join_cgroup(const struct spawn_child *child)
{
    int error = child->join_cgroup ? write_file(child->options->cgroup_fd, "cgroup.procs", "0") : 0;
    if (error != 0)
        spawn_fail(child, SPAWN_CGROUP, error);
}

static bool is_strict(const struct spawn_child *child)
{
    return child->options->sandbox && child->options->sandbox->strict;
}

/* Also in containers that permit some of it, or say that the call does not exist. */
static bool is_not_permitted(int r)
{
    return r == -EPERM || r == -EACCES || r == -ENOSYS || r == -ENOSPC;
}

/* A restriction that the kernel refuses now will also be refused later: with Strict=yes, the start
 * is not tried again. */
static _Noreturn void fail_enforcing(struct spawn_child *child, enum spawn_step step,
                                     enum spawn_step strict, int error)
{
    spawn_fail(child, is_strict(child) && is_not_permitted(-error) ? strict : step, error);
}

static void set_up_network(struct spawn_child *child)
{
    int r = child->options->network ? sandbox_network_join(child->options->network) : 0;
    if (r < 0)
        fail_enforcing(child, SPAWN_NETWORK, SPAWN_STRICT_NETWORK, -r);
    child->state.has_network = child->options->network;
}

static void set_up_ipc(struct spawn_child *child)
{
    if (!child->options->private_ipc)
        return;
    const int r = unshare(CLONE_NEWIPC) < 0 ? -errno : 0;
    if (r < 0 && (!is_not_permitted(r) || is_strict(child)))
        fail_enforcing(child, SPAWN_IPC, SPAWN_STRICT_IPC, -r);
    child->state.namespaces |= r < 0 ? SANDBOX_SHARES_IPC : SANDBOX_OWN_IPC;
}

static void set_up_scheduling(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    int error = options->set_oom_score_adjust
                    ? write_own("/proc/self/oom_score_adj", options->oom_score_adjust)
                    : 0;
    if (error != 0)
        spawn_fail(child, SPAWN_OOM_SCORE, error);
    if (options->set_nice && setpriority(PRIO_PROCESS, 0, options->nice) < 0)
        spawn_fail(child, SPAWN_NICE, errno);
    /* With autogroups, a process's nice value counts only within its session, and each session has
     * a nice value of its own. Best effort: the file may be missing, or the kernel may refuse. */
    if (options->set_nice && leads_session(child))
        (void)write_own("/proc/self/autogroup", options->nice);
}

/* As with systemd, a process that may have no mounts of its own starts without them, but it never
 * gets the supervisor's /proc instead of its own. */
static int confine_files(struct spawn_child *child, const struct sandbox_path **ret_path)
{
    const struct sandbox_files *files = child->options->files;
    int r = files ? sandbox_files_separate(files, ret_path) : 0;
    if (is_not_permitted(r) && !*ret_path) {
        if (is_strict(child))
            spawn_fail(child, SPAWN_STRICT_FILES, -r);
        child->state.files = SANDBOX_NOT_AT_ALL;
        return sandbox_files_has_proc(files) ? r : 0;
    }
    child->state.files = files ? SANDBOX_BY_MOUNTS : SANDBOX_BY_NOTHING;
    return r == 0 && files ? sandbox_files_apply(ret_path) : r;
}

/* Returns as spawn_report.path. A path of /proc's own mounts is not listed. */
static uint32_t number_of(const struct sandbox_files *files, const struct sandbox_path *path)
{
    for (size_t i = 0; path && i < files->n_paths; i++)
        if (&files->paths[i] == path)
            return (uint32_t)i + 1;
    return 0;
}

static void set_up_files(struct spawn_child *child)
{
    const struct sandbox_path *path = NULL;
    int r = confine_files(child, &path);
    if (r < 0)
        fail_at(child, SPAWN_FILES, -r, number_of(child->options->files, path));
}

static void set_up_limits(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    for (size_t i = 0; i < options->n_rlimits; i++) {
        const struct spawn_rlimit *rlimit = &options->rlimits[i];
        if (prlimit(0, (enum __rlimit_resource)rlimit->resource, &rlimit->limit, NULL) < 0)
            spawn_fail(child, SPAWN_RLIMIT, errno);
    }
}

static void set_up_ids(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    /* An unprivileged supervisor may name its own user. */
    if (geteuid() != 0 && geteuid() == options->uid && getegid() == options->gid)
        return;
    if (setgroups(options->n_groups, options->groups) < 0)
        spawn_fail(child, SPAWN_GROUPS, errno);
    if (setresgid(options->gid, options->gid, options->gid) < 0)
        spawn_fail(child, SPAWN_GID, errno);
    if (setresuid(options->uid, options->uid, options->uid) < 0)
        spawn_fail(child, SPAWN_UID, errno);
}

/*
 * With User=root capabilities stay; any other user keeps only those of the sandbox, and cannot
 * regain privileges. What leaves the inheritable set also leaves the ambient set: workers do not
 * get the capabilities given to trouped (AmbientCapabilities=).
 */
static void set_up_user(struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    const bool ordinary = options->set_user && options->uid != 0;
    const struct sandbox standard = {
        .bounding = ordinary ? 0 : UINT64_MAX,
        .no_new_privileges = options->set_user,
    };
    const struct sandbox *sandbox = options->sandbox ? options->sandbox : &standard;
    const bool bounding = sandbox->bounding != UINT64_MAX;
    int r = bounding ? sandbox_limit_capabilities(sandbox->bounding) : 0;
    child->state.not_bounded = r == -EPERM;
    child->state.bounded = bounding && r == 0;
    if (r == -EPERM && sandbox->strict)
        spawn_fail(child, SPAWN_STRICT_CAPABILITIES, -r);
    if (r == -EPERM && sandbox->no_new_privileges && (ordinary || geteuid() != 0))
        r = 0; /* without CAP_SETPCAP, no_new_privs alone protects, unless the user is root */
    if (r == 0 && sandbox->ambient && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0 && options->set_user)
        set_up_ids(child);
    if (r == 0)
        r = sandbox_set_capabilities(sandbox->ambient, ordinary);
    if (r == 0 && sandbox->no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r < 0)
        fail_enforcing(child, SPAWN_CAPABILITIES, SPAWN_STRICT_CAPABILITIES, -r);
}

/* Makes the pipe as the process's own user, so that the process can open it by name. Output remains
 * a socket if the pipe cannot be sent: other processes of that user can use up its limit of
 * descriptors in flight. */
static void pipe_output(const struct spawn_child *child)
{
    const struct iovec data = {.iov_base = (char[]){0}, .iov_len = 1};
    int fds[2];
    if (!child->options->pipe_output || pipe2(fds, O_CLOEXEC) < 0)
        return;
    if (scm_send(STDOUT_FILENO, data, fds, 1, MSG_NOSIGNAL) >= 0 &&
        (dup2(fds[1], STDOUT_FILENO) < 0 || dup2(fds[1], STDERR_FILENO) < 0))
        spawn_fail(child, SPAWN_DESCRIPTORS, errno);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* Without CAP_SYS_ADMIN only a process that cannot gain privileges may confine itself; as with
 * filters, it then is one. */
static void apply_scopes(struct spawn_child *child)
{
    const struct sandbox *sandbox = child->options->sandbox;
    int r;
    if (!sandbox || sandbox->scopes == 0)
        return;
    r = landlock_confine(sandbox->scopes);
    if (r == -EPERM && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        r = landlock_confine(sandbox->scopes);
    if (r == LANDLOCK_E_UNKNOWN && sandbox->strict)
        spawn_fail(child, SPAWN_STRICT_SCOPES, EOPNOTSUPP);
    if (r < 0)
        spawn_fail(child, SPAWN_LANDLOCK, -r);
    child->state.scopes = r == 0 ? sandbox->scopes : 0;
}

/* Returns where descriptors for the supervisor go, or -1. */
static int report_socket(const struct spawn_child *child)
{
    struct stat status;
    return fstat(child->report_fd, &status) == 0 && S_ISSOCK(status.st_mode) ? child->report_fd
                                                                             : -1;
}

/* The mount namespace goes along if the report is a socket. Returns that, or -1 if no descriptor
 * can be sent now. */
static int send_state(const struct spawn_child *child, struct spawn_report *report)
{
    const int socket = report_socket(child);
    _cleanup_close_ int mounts = socket >= 0 ? mount_namespace() : -1;
    const struct iovec data = {.iov_base = report, .iov_len = sizeof(*report)};
    if (mounts >= 0 && scm_send(socket, data, &mounts, 1, MSG_NOSIGNAL) >= 0)
        return socket;
    const bool refused = mounts >= 0 && errno == ETOOMANYREFS;
    (void)!write(child->report_fd, report, sizeof(*report));
    return refused ? -1 : socket;
}

/* Reports what is in force before the filter, which may forbid that; a failure is also reported.
 * Returns as send_state(). */
static int report_state(struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    struct spawn_report report = {.step = SPAWN_EXEC};
    if (!options->set_user && !options->sandbox && !options->files && !options->network)
        return -1;
    child->state.filtered = options->sandbox && options->sandbox->filter.size > 0;
    child->state.no_new_privileges =
        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
        (options->sandbox && sandbox_gives_up_privileges(options->sandbox));
    report.state = child->state;
    return send_state(child, &report);
}

/* In a PID namespace of its own, this process does not see who its parent is. */
static bool parent_has_ended(struct spawn_child *child)
{
    struct pollfd parent = {.fd = child->parent_fd, .events = POLLIN};
    if (child->parent_fd < 0)
        return getppid() != child->parent;
    const bool ended = poll(&parent, 1, 0) != 0;
    child->parent_fd = close_fd(child->parent_fd);
    return ended;
}

/* By then, or when the time is over, a watcher traces this process. */
static void wait_at_gate(const struct spawn_child *child)
{
    struct pollfd gate = {.fd = child->options->gate_fd, .events = POLLIN};
    if (gate.fd > 0)
        (void)poll(&gate, 1, GATE_MSEC);
}

_Noreturn void spawn_child_main(struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    const uint64_t none = 0;
    child->report_fd = options->report_fd;
    const int error = options->complete ? -options->complete() : 0;
    if (error != 0)
        spawn_fail(child, SPAWN_CLONE, error);
    wait_at_gate(child);
    child->state.namespaces = options->private_pids ? SANDBOX_OWN_PIDS : 0;
    if (child->pids_error != 0)
        fail_enforcing(child, SPAWN_PIDS, SPAWN_STRICT_PIDS, child->pids_error);
    leave_terminal_and_group(child);
    join_cgroup(child);
    set_up_network(child);
    set_up_ipc(child);
    spawn_set_up_descriptors(child);
    set_up_scheduling(child);
    set_up_files(child);
    set_up_limits(child);
    set_up_user(child);
    pipe_output(child);
    /* The change of user clears this. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        spawn_fail(child, SPAWN_PARENT_DEATH, errno);
    if (parent_has_ended(child))
        spawn_fail(child, SPAWN_PARENT_DEATH, ESRCH); /* the parent died before the prctl() */
    if (chdir(options->working_directory ? options->working_directory : "/") < 0)
        spawn_fail(child, SPAWN_CHDIR, errno);
    /* Without sigprocmask(), whose page would have to be mapped first. */
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
    apply_scopes(child);
    /* The kernel limits how many descriptors all processes of a user have in flight. Any of them
     * can use that up; the filter then kills without telling. */
    const int socket = report_state(child);
    int r = options->sandbox ? sandbox_apply(options->sandbox, socket) : 0;
    if (r < 0)
        spawn_fail(child, SPAWN_SANDBOX, -r);
    (void)execve(options->argv[0], options->argv, options->environment);
    spawn_fail(child, SPAWN_EXEC, errno);
}
