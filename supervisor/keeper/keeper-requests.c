/* SPDX-License-Identifier: MIT */
/* The channel to the supervisor: replies, what is handed over, requests. */
#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper-private.h"
#include "supervisor/keeper/pump.h"
#include "supervisor/keeper/spawn.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- replies ---- */

void keeper_flush_reply(void)
{
    int r = keeper.channel >= 0 ? message_send(keeper.channel, &keeper.reply) : -EPIPE;
    keeper.reply_later = r == -ENOBUFS;
    keeper.reply_waits = r == -EAGAIN || r == -ENOBUFS;
    if (!keeper.reply_waits)
        keeper.reply_fd = close_fd(keeper.reply_fd);
}

void keeper_reply_exited(uint64_t id, const struct spawn_exit *how)
{
    message_begin(&keeper.reply, MESSAGE_EXITED, id)->how = *how;
    keeper_flush_reply();
}

/* Owns the pidfd. */
static void put_pidfd(int pidfd)
{
    keeper.reply_fd = pidfd;
    if (pidfd >= 0)
        message_put_fd(&keeper.reply, pidfd);
}

static void reply_spawned(uint64_t id, int error, const struct spawn_result *result)
{
    struct message_record *record = message_begin(&keeper.reply, MESSAGE_SPAWNED, id);
    record->pid = result->pid;
    record->error = error;
    put_pidfd(result->pidfd);
    keeper_flush_reply();
}

/* ---- handing over ---- */

/* It is not reaped yet, so it has a pidfd even if it has ended since. Without one, the supervisor
 * does not take it over. */
static int open_pidfd(pid_t pid)
{
    static struct rate rate;
    const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0 && rate_take(&rate, clock_now(), 1, NULL))
        log_error("keeper: no descriptor of process %d for the next supervisor, which will replace "
                  "it: %s",
                  (int)pid, strerror(errno));
    return pidfd;
}

static void reply_held(void)
{
    const struct message_record *record = &keeper.reply.record;
    put_pidfd(record->pid > 0 && !record->ended ? open_pidfd(record->pid) : -1);
    keeper_flush_reply();
}

static void reply_held_end(void)
{
    message_begin(&keeper.reply, MESSAGE_HELD_END, 0)->end = (struct message_held_end){
        .n_restarts = keeper.crashes.n,
        .n_upgrades = keeper.n_upgrades,
        .n_failed_upgrades = keeper.n_failed_upgrades,
        .first = !keeper.ready,
        .upgrading = keeper.upgrading,
        .safe_mode = keeper.crashes.safe_mode && !keeper.upgrading,
    };
    FAULT_POINT("hand-over");
    keeper.handing_over = false;
    keeper_flush_reply();
    FAULT_POINT("handed-over");
}

void keeper_hand_over(void)
{
    while (keeper.handing_over && !keeper.reply_waits)
        if (holdings_next(keeper.holdings, &keeper.next_held, &keeper.reply))
            reply_held();
        else
            reply_held_end();
}

/* ---- requests ---- */

/* Clients can cause it at will, and so can services. */
static bool may_log(void)
{
    static struct rate rate;
    return rate_take(&rate, clock_now(), 1, NULL);
}

static void set_pump(pid_t pid, pid_t pump, uint32_t owner)
{
    struct child *child = children_find(keeper.children, pid);
    if (!child)
        return;
    child->pump = pump;
    child->owner = owner;
}

/* Puts a pump between the new process and its output, instead of which the process gets a socket.
 * Returns its pid, 0 without a pump, or -errno. */
static pid_t add_pump(struct message *request)
{
    int *output = &request->fds[request->record.output], socket;
    const uint32_t owner = keeper.spawn.options.output_owner;
    if (!keeper.spawn.options.pipe_output)
        return 0;
    if (!left_pumps_permit(&keeper.left, owner, clock_now())) {
        if (may_log())
            log_warning("no service is started while the output of its last processes cannot be "
                        "closed: another process holds the lock of the pipe");
        return -EUSERS;
    }
    const pid_t pid = pump_start(*output, &socket);
    if (pid < 0)
        return pid;
    children_add(keeper.children, pid, 0, true);
    set_pump(pid, 0, owner);
    close_fd(*output);
    *output = socket;
    return pid;
}

/* Runs in the new process. */
static int complete(void)
{
    return message_take_spawn(&keeper.request, &keeper.spawn);
}

static void on_spawn(int lost)
{
    struct spawn_result result = {.pidfd = -1};
    pid_t pump = 0;
    int r = message_take_spawn_head(&keeper.request, &keeper.spawn);
    if (lost < 0)
        r = lost;
    if (r == 0 && !children_have_room(keeper.children))
        r = -EAGAIN;
    if (r == 0) {
        pump = add_pump(&keeper.request);
        r = pump < 0 ? pump : 0;
    }
    keeper.spawn.options.complete = complete;
    if (r == 0)
        r = spawn(&keeper.spawn.options, &result);
    if (r == 0)
        children_add(keeper.children, result.pid, keeper.request.record.id,
                     spawn_is_contained(&keeper.spawn.options));
    if (r == 0 && pump > 0)
        set_pump(result.pid, pump, keeper.spawn.options.output_owner);
    message_close_fds(&keeper.request);
    reply_spawned(keeper.request.record.id, r, &result);
}

/* A template has forked the process, which waits until it is known. Until it is reaped, no other
 * process has its pid. Returns 0 or -errno. */
static int adopt(const struct message_record *request, struct spawn_result *ret)
{
    if (request->pid == keeper.supervisor || children_find(keeper.children, request->pid) ||
        !spawn_is_child(request->pid))
        return -ECHILD;
    if (!children_have_room(keeper.children))
        return -EAGAIN;
    const int pidfd = (int)syscall(SYS_pidfd_open, request->pid, 0);
    if (pidfd < 0)
        return -errno;
    *ret = (struct spawn_result){.pid = request->pid, .pidfd = pidfd};
    children_add(keeper.children, ret->pid, request->id, request->contained != 0);
    return 0;
}

static void on_adopt(const struct message_record *request)
{
    struct spawn_result result = {.pidfd = -1};
    const int r = keeper.supervisor > 0 ? adopt(request, &result) : -ECHILD;
    reply_spawned(request->id, r, &result);
}

/* Returns the child that the request names, or NULL. */
static struct child *child_of(const struct message_record *request)
{
    struct child *child = children_find(keeper.children, request->pid);
    return child && child->id == request->id ? child : NULL;
}

/* A child that is not reaped keeps its pid and process group id, so the signals hit no other
 * process. */
static void on_kill(const struct message_record *request)
{
    struct child *child = child_of(request);
    if (!child)
        return;
    if (!child->ended) {
        (void)kill(child->pid, SIGKILL);
        (void)kill(-child->pid, SIGKILL);
    }
    if (!child->contained)
        keeper_expect_orphans();
    keeper_spare(child, false);
}

static void on_spare(const struct message_record *request)
{
    struct child *child = child_of(request);
    if (child)
        keeper_spare(child, request->spared != 0);
}

static void log_refusal(const char *what, int error)
{
    if (may_log())
        log_warning("keeper: cannot hold the descriptors of a %s for the next supervisor: %s", what,
                    strerror(-error));
}

static void on_hold(int lost)
{
    const struct message_record *request = &keeper.request.record;
    const int r = lost < 0 ? lost : holdings_put(keeper.holdings, &keeper.request);
    if (r < 0) {
        log_refusal(request->pid == 0 ? "client" : "worker", r);
        holdings_remove(keeper.holdings, request->id);
        return;
    }
    keeper.request.n_fds = 0; /* held now */
    if (request->pid != 0 && !child_of(request)) {
        const struct spawn_exit how = keeper_end_of(request->id);
        holdings_end(keeper.holdings, request->id, &how);
    }
}

bool keeper_take_request(void)
{
    int r = message_receive(keeper.channel, &keeper.request);
    if (r == -EPIPE)
        keeper.channel = close_fd(keeper.channel);
    if (r < 0 && r != -EMFILE)
        return false;
    switch (message_kind_of(&keeper.request)) {
    case MESSAGE_SPAWN:
        if (keeper.supervisor > 0)
            on_spawn(r);
        break;
    case MESSAGE_KILL:
        on_kill(&keeper.request.record);
        break;
    case MESSAGE_ADOPT:
        on_adopt(&keeper.request.record);
        break;
    case MESSAGE_SPARE:
        on_spare(&keeper.request.record);
        break;
    case MESSAGE_HOLD:
        on_hold(r);
        break;
    case MESSAGE_RELEASE:
        holdings_remove(keeper.holdings, keeper.request.record.id);
        break;
    case MESSAGE_FORGIVE:
        crashes_forgive(&keeper.crashes);
        break;
    case MESSAGE_READY:
        keeper_supervisor_ready();
        break;
    default:
        log_error("keeper: the supervisor sent an unknown request");
    }
    message_close_fds(&keeper.request);
    return true;
}

void keeper_take_requests(void)
{
    while (keeper.channel >= 0 && !keeper.reply_waits && keeper_take_request())
        ;
}
