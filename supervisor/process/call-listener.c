/* SPDX-License-Identifier: MIT */
#include "supervisor/process/call-listener.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "supervisor/process/procfs.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How many forbidden calls of a worker in a second are handled one by one. */
#define CALLS_MAX 32

/* Room for what newer kernels tell. */
#define NOTIFICATION_SIZE_MAX 512

union notification {
    struct seccomp_notif known;
    char room[NOTIFICATION_SIZE_MAX];
};

/* ---- text ---- */

/* Small numbers, also negative ones, in decimal; addresses and flags in hexadecimal. */
static void put_argument(FILE *file, uint64_t argument)
{
    if (argument + 0x10000 < 0x20000)
        fprintf(file, "%" PRId64, (int64_t)argument);
    else
        fprintf(file, "0x%" PRIx64, argument);
}

static void put_name(FILE *file, const struct seccomp_data *data)
{
    _cleanup_free_ char *name = seccomp_syscall_resolve_num_arch(data->arch, data->nr);

    if (name)
        fprintf(file, "%s", name);
    else
        fprintf(file, "number %d", data->nr);
}

void call_describe(const struct seccomp_data *data, char text[CALL_TEXT_MAX])
{
    const bool native = data->arch == seccomp_arch_native();
    FILE *file = fmemopen(text, CALL_TEXT_MAX, "w");

    text[0] = '\0';
    if (!file)
        return;
    fprintf(file, "system call ");
    put_name(file, data);
    for (size_t i = 0; i < ELEMENTS(data->args); i++) {
        fprintf(file, i == 0 ? "(" : ", ");
        put_argument(file, data->args[i]);
    }
    fprintf(file, ") is not allowed (%s=)",
            native ? "SystemCallFilter" : "SystemCallArchitectures");
    (void)fclose(file);
    text[CALL_TEXT_MAX - 1] = '\0';
}

/* ---- the end of the caller ---- */

/* Returns whether the process is there and the call still waits, so `pidfd` is the caller's. */
static bool waits(const struct call_listener *listener, uint64_t id)
{
    return ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Fills in the caller's process; 0 = it is not killed. `tid` may be one of its other threads. */
static void kill_caller(const struct call_listener *listener, uint64_t id, pid_t tid,
                        struct forbidden_call *call)
{
    struct procfs_signals signals;
    _cleanup_close_ int pidfd = -1;

    if (procfs_signals(tid, SIGSYS, &signals) < 0)
        return;
    pidfd = (int)syscall(SYS_pidfd_open, signals.process, 0);
    if (pidfd < 0 || !waits(listener, id))
        return;
    if (syscall(SYS_pidfd_send_signal, pidfd, signals.ends ? SIGSYS : SIGKILL, NULL, 0) < 0)
        return;
    call->pid = signals.process;
    call->inner = signals.inner;
}

/* 0 = the call is made. */
static void answer(const struct call_listener *listener, uint64_t id, int error)
{
    union {
        struct seccomp_notif_resp known;
        char room[NOTIFICATION_SIZE_MAX];
    } response = {.known = {.id = id, .error = -error}};

    if (error == 0)
        response.known.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    (void)ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static void handle(struct call_listener *listener, const struct seccomp_notif *notification)
{
    struct forbidden_call call = {0};
    bool few;

    if (listener->permits(listener, &notification->data)) {
        answer(listener, notification->id, 0);
        return;
    }
    few = rate_take(&listener->rate, loop_now(listener->loop), CALLS_MAX, NULL);
    call_describe(&notification->data, call.text);
    kill_caller(listener, notification->id, (pid_t)notification->pid, &call);
    if (call.pid == 0 && !waits(listener, notification->id))
        return; /* it has ended */
    listener->forbidden(listener, &call, call.pid == 0 || !few);
    /* While it waits, only SIGKILL would end it. */
    answer(listener, notification->id, EPERM);
}

/* Receives into `room`, which outlives the supervisor: it is not empty until the call is answered.
 */
static void receive(struct call_listener *listener, struct seccomp_notif *room)
{
    if (ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_RECV, room) < 0)
        return;
    FAULT_POINT("call.received");
    handle(listener, room);
    FAULT_POINT("call.answered");
    room->id = 0;
}

/* One call a turn. Reading would wait if there was none. */
static void on_ready(void *userdata, uint32_t events)
{
    struct call_listener *listener = userdata;
    struct pollfd ready = {.fd = listener->fd, .events = POLLIN};
    union notification notification;

    if (poll(&ready, 1, 0) <= 0)
        return;
    if (!(ready.revents & POLLIN)) {
        call_listener_deinit(listener); /* no process is left */
        return;
    }
    if (listener->received) {
        *listener->received = (struct seccomp_notif){0};
        receive(listener, listener->received);
    } else {
        memset(&notification, 0, sizeof(notification));
        receive(listener, &notification.known);
    }
}

void call_listener_resume(struct call_listener *listener)
{
    struct seccomp_notif *received = listener->received;

    if (listener->fd < 0 || !received || received->id == 0)
        return;
    if (waits(listener, received->id))
        handle(listener, received);
    received->id = 0;
}

/* ---- listening ---- */

static int check_size(struct call_listener *listener)
{
    struct seccomp_notif_sizes sizes;

    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
        return -errno;
    if (sizes.seccomp_notif > sizeof(*listener->received))
        listener->received = NULL;
    return sizes.seccomp_notif > NOTIFICATION_SIZE_MAX ||
                   sizes.seccomp_notif_resp > NOTIFICATION_SIZE_MAX
               ? -E2BIG
               : 0;
}

int call_listener_init(struct call_listener *listener, struct loop *loop, int fd)
{
    int r = check_size(listener);

    listener->loop = loop;
    listener->fd = fd;
    listener->rate = (struct rate)RATE_NULL;
    if (r == 0)
        r = loop_watch_fd(loop, &listener->watch, fd, POLLIN, on_ready, listener);
    if (r < 0)
        listener->fd = close_fd(listener->fd);
    return r;
}

void call_listener_pause(struct call_listener *listener, bool paused)
{
    if (listener->fd >= 0)
        (void)loop_watch_events(listener->loop, &listener->watch, paused ? 0 : POLLIN);
}

void call_listener_deinit(struct call_listener *listener)
{
    if (listener->fd < 0)
        return;
    loop_unwatch(listener->loop, &listener->watch);
    listener->fd = close_fd(listener->fd);
}
