/* SPDX-License-Identifier: MIT */

/* The system calls that the filters of a process forbid, and the listener that reports them. */

#include "shared/base/cleanup.h"
#include "shared/base/list.h"
#include "shared/base/log.h"
#include "shared/base/scm.h"
#include "supervisor/config/sandbox/sandbox-compile.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/loop/closer.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Logs a call of a process that the worker runs. Only a call of the worker itself gets a report. */
static void log_call(const struct process *process, const struct forbidden_call *call)
{
    if (call->pid > 0 && call->pid != process->pid)
        limited_log_write(process->context->log, process->subject.group, LOG_LEVEL_WARNING,
                          "%s: killed process %d: %s", process->subject.worker, (int)call->pid,
                          call->text);
}

/* Returns the process that has made the call, or whose descendant has. A template and the worker
 * that it has forked share a filter. */
static struct process *caller_of(struct call_listener *listener, const struct forbidden_call *call)
{
    struct process *process = list_entry(listener, struct process, calls);
    struct process *mate = process->mate;

    return mate && mate->pid != 0 && mate->pid == call->pid ? mate : process;
}

static void on_forbidden(struct call_listener *listener, const struct forbidden_call *call,
                         bool all)
{
    struct process *process = caller_of(listener, call);
    struct process_kill *kill = process_note_kill(process);

    if (kill && (kill->forbidden.pid == 0 || kill->forbidden.pid != process->pid))
        kill->forbidden = *call;
    if (kill && all)
        kill->forbidden.pid = process->pid;
    if (all)
        process_kill_all(process);
    log_call(process, call);
}

/* Permits a process that could not execute its program to write the reason, which its filters may
 * forbid. While the call waits, the socket shows reliably whether the program was executed. */
static bool permits(struct call_listener *listener, const struct seccomp_data *data)
{
    const struct process *process = list_entry(listener, struct process, calls);
    struct pollfd report = {.fd = process->report_fd, .events = POLLIN};

    if (data->arch == seccomp_arch_native() && call_set_has(&process->logged, data->nr)) {
        if (process->subject.calls)
            call_set_add(process->subject.calls, data->nr);
        return true;
    }
    return data->nr == SYS_write && process->report_fd >= 0 && poll(&report, 1, 0) == 0;
}

void process_log_calls(struct process *process, const struct config_group *config)
{
    const struct call_set *logged = config->sandbox ? sandbox_logged_calls(config->sandbox) : NULL;

    /* A process keeps the filter with which it was started. */
    if (logged)
        call_set_add_all(&process->logged, logged);
}

void process_listen(struct process *process, int fd)
{
    int r;

    call_listener_deinit(&process->calls);
    process->calls.forbidden = on_forbidden;
    process->calls.permits = permits;
    r = call_listener_init(&process->calls, process->context->loop, fd);
    if (r < 0)
        log_error("%s: forbidden system calls fail instead of killing: %s", process->subject.worker,
                  strerror(-r));
}

const char *process_forbidden_call(const struct process *process, pid_t pid)
{
    const struct forbidden_call *call = process->kill ? &process->kill->forbidden : NULL;

    /* A worker with a PID namespace of its own reports numbers of that. */
    return call && pid > 0 && (call->pid == pid || call->inner == pid) ? call->text : NULL;
}

/* Returns the number of bytes, -EMFILE if a listener was lost, or -errno. `*ret_fd` is -1 without a
 * descriptor. */
static ssize_t receive(struct process *process, struct spawn_report *ret, int *ret_fd)
{
    union scm_control control;
    struct iovec iovec = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr message = SCM_MESSAGE(&iovec, &control);
    const ssize_t n = recvmsg(process->report_fd, &message, MSG_CMSG_CLOEXEC);

    *ret_fd = -1;
    if (n < 0)
        return -errno;
    (void)scm_take(&message, ret_fd, 1, closer_close);
    /* If only the mounts were lost, the process just takes longer to die. */
    return n == 1 && *ret_fd < 0 && message.msg_flags & MSG_CTRUNC ? -EMFILE : n;
}

/* Returns the size of a report, 1 for a listener, 0 at the end of file, or -errno. */
static ssize_t read_report(struct process *process, struct spawn_report *ret)
{
    ssize_t n;
    int fd;

    if (!process->report_is_socket) {
        n = read(process->report_fd, ret, sizeof(*ret));
        return n < 0 ? -errno : n;
    }
    n = receive(process, ret, &fd);
    if (fd < 0)
        return n;
    if (n == 1) {
        process_listen(process, fd);
        return n;
    }
    closer_close(process->mounts_fd);
    process->mounts_fd = fd;
    return n;
}

/* Keys that Strict=yes would insist on. */
static void log_unmet(const struct process *process)
{
    if (process->state.files == SANDBOX_NOT_AT_ALL)
        limited_log_write(process->context->log, process->subject.group, LOG_LEVEL_WARNING,
                          "%s runs without the keys of [Sandbox] about files: no mounts of its own "
                          "are permitted (with Strict=yes it would not start)",
                          process->subject.worker);
    if (process->state.not_bounded)
        limited_log_write(process->context->log, process->subject.group, LOG_LEVEL_WARNING,
                          "%s runs without CapabilityBoundingSet=: CAP_SETPCAP is missing (with "
                          "Strict=yes it would not start)",
                          process->subject.worker);
    if (process->state.namespaces & SANDBOX_SHARES_IPC)
        limited_log_write(process->context->log, process->subject.group, LOG_LEVEL_WARNING,
                          "%s runs without PrivateIPC=: namespaces are not permitted (with "
                          "Strict=yes it would not start)",
                          process->subject.worker);
}

/* The report has up to three messages, each at most once: what confines the process, the listener,
 * and why the start has failed. */
int process_read_report(struct process *process, struct spawn_report *ret)
{
    ssize_t n;

    while ((n = read_report(process, ret)) > 0) {
        if (n != (ssize_t)sizeof(*ret))
            continue;
        if (ret->error != 0)
            return 1;
        process->confined = true;
        process->state = ret->state;
        log_unmet(process);
    }
    return (int)n;
}
