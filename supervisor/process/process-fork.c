/* SPDX-License-Identifier: MIT */
/* Has a template fork the process, instead of the keeper (shared/protocol/template-wire.h). */
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "shared/base/scm.h"
#include "shared/protocol/template-wire.h"
#include "supervisor/loop/toll.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* How long it may take from the request until the keeper has taken the process. */
#define FORK_TIMEOUT (5 * USEC_PER_SEC)

/* Room for a pid and for nothing else. */
union credentials {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct ucred))];
};

/* Looks at the first byte behind the gate. It is never received: a descriptor that came with it
 * would be closed here, which may take as long as its sender likes. Returns the sender's pid, which
 * the kernel has written, or -errno. */
static pid_t look_for_pid(int gate)
{
    union credentials control;
    struct ucred sender;
    char byte;
    struct iovec data = {.iov_base = &byte, .iov_len = sizeof(byte)};
    struct msghdr message = SCM_MESSAGE(&data, &control);
    const ssize_t n = recvmsg(gate, &message, MSG_PEEK | MSG_DONTWAIT);
    const struct cmsghdr *first = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (n < 0)
        return -errno;
    if (!first || message.msg_flags & MSG_CTRUNC || first->cmsg_type != SCM_CREDENTIALS)
        return -ECHILD;
    memcpy(&sender, CMSG_DATA(first), sizeof(sender));
    return sender.pid;
}

void process_close_gate(struct process *process)
{
    if (!process->forking)
        return;
    process->forking = false;
    timer_disarm(loop_timers(process->context->loop), &process->report);
    loop_unwatch(process->context->loop, &process->report_watch);
    loop_close_owned(process->context->loop, TAKE_FD(process->report_fd), process->output.owner);
}

void process_fork_failed(struct process *process, int error)
{
    const struct spawn_report report = {.error = error, .step = SPAWN_TEMPLATE};

    spawner_forget(&process->context->spawner, &process->client);
    process_release(process);
    process->handler->failed(process, &report);
}

static void on_gate(void *userdata, uint32_t events)
{
    struct process *process = userdata;
    const pid_t pid = look_for_pid(process->report_fd);
    int r = pid;

    if (pid == -EAGAIN)
        return;
    loop_unwatch(process->context->loop, &process->report_watch);
    FAULT_POINT("fork.reported");
    if (r >= 0)
        r = spawner_adopt(&process->context->spawner, &process->client, pid,
                          process->cgroup.fd >= 0);
    FAULT_POINT("fork.adopted");
    if (r < 0)
        process_fork_failed(process, r);
}

bool process_is_at_gate(const struct process *process, pid_t pid)
{
    struct pollfd gate = {.fd = process->report_fd};

    return poll(&gate, 1, 0) == 0 && process_shares_cgroup(process, pid);
}

/* The filter is that of the template, and so is its listener: the worker's owner answers the calls
 * of both, until the worker ends. */
static void take_listener(struct process *process)
{
    struct process *template = process->mate;
    const int fd = template->calls.fd >= 0 ? fcntl(template->calls.fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (fd < 0)
        return;
    process_listen(process, fd);
    call_listener_pause(&template->calls, process->calls.fd >= 0);
}

void process_fork_passed(struct process *process)
{
    const struct process *template = process->mate;
    const usec_t now = loop_now(process->context->loop);
    struct toll toll;

    toll = toll_begin(now);
    (void)send(process->report_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)toll_end(toll, now, process->output.owner);
    process_close_gate(process);
    FAULT_POINT("fork.passed");
    process->forked = true;
    process->confined = template->confined;
    process->state = template->state;
    call_set_add_all(&process->logged, &template->logged);
    take_listener(process);
    process->handler->started(process);
}

/* Returns 0 or -errno. The template's end is blocking. */
static int open_gate(struct process *process, int *ret_fd)
{
    int fds[2], r = fault_inject("gate");

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    (void)scm_refuse(fds[0]);
    if (setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) < 0)
        r = -errno;
    if (r == 0)
        r = loop_watch_fd(process->context->loop, &process->report_watch, fds[0], POLLIN, on_gate,
                          process);
    if (r < 0) {
        close_fd(fds[0]);
        close_fd(fds[1]);
        return r;
    }
    process->report_fd = fds[0];
    process->forking = true;
    *ret_fd = fds[1];
    return 0;
}

static int send_request(const struct process_options *options, int gate, int output)
{
    char text[TEMPLATE_REQUEST_MAX];
    int fds[TEMPLATE_PASSED_MAX] = {gate, output};
    size_t size = 0, n_fds = 2;

    for (const char *const *variable = options->environment; *variable; variable++) {
        const size_t length = strlen(*variable) + 1;

        if (length > sizeof(text) - size)
            return -E2BIG;
        memcpy(text + size, *variable, length);
        size += length;
    }
    if (options->n_fds > TEMPLATE_FDS_MAX)
        return -E2BIG;
    for (size_t i = 0; i < options->n_fds; i++)
        fds[n_fds++] = options->fds[i].fd;
    return scm_send(options->template_fd, (struct iovec){text, size}, fds, n_fds,
                    MSG_DONTWAIT | MSG_NOSIGNAL) < 0
               ? -errno
               : 0;
}

int process_fork(struct process *process, const struct process_options *options, int output)
{
    struct loop *loop = process->context->loop;
    _cleanup_close_ int gate = -1;
    int r = spawner_register(&process->context->spawner, &process->client);

    if (r < 0)
        return r;
    r = open_gate(process, &gate);
    if (r == 0) {
        const struct toll toll = toll_begin(loop_now(loop));

        r = send_request(options, gate, output);
        (void)toll_end(toll, loop_now(loop), process->output.owner);
    }
    FAULT_POINT("fork.requested");
    if (r < 0) {
        process_close_gate(process);
        spawner_forget(&process->context->spawner, &process->client);
        return r;
    }
    timer_arm(loop_timers(loop), &process->report, usec_add(loop_now(loop), FORK_TIMEOUT));
    return 0;
}
