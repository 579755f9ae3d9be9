/* SPDX-License-Identifier: MIT */
/* The channel to the supervisor: replies, what is handed over, requests. */
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "shared/base/rate.h"
#include "supervisor/keeper/keeper-private.h"
#include "supervisor/keeper/pump.h"
#include "supervisor/keeper/spawn.h"
#include <errno.h>
#include <fcntl.h>
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
    (void)message_put_exited(&keeper.reply, &(struct message_exited){.id = id, .how = *how});
    keeper_flush_reply();
}

static void reply_spawned(uint64_t id, int error, const struct spawn_result *result)
{
    const struct message_spawned spawned = {.id = id, .pid = result->pid, .error = error};
    keeper.reply_fd = result->pidfd;
    (void)message_put_spawned(&keeper.reply, &spawned, result->pidfd);
    keeper_flush_reply();
}

/* ---- handing over ---- */

/* It is not reaped yet, so it has a pidfd even if it has ended since. Without one, the supervisor
 * does not take it over. */
static void open_pidfd(struct message_held *held)
{
    static struct rate rate;
    held->pidfd = (int)syscall(SYS_pidfd_open, held->hold.pid, 0);
    if (held->pidfd < 0 && rate_take(&rate, clock_now(), 1, NULL))
        log_error("keeper: no descriptor of process %d for the next supervisor, which will replace "
                  "it: %s",
                  (int)held->hold.pid, strerror(errno));
}

static void reply_held(struct message_held *held)
{
    if (held->hold.pid > 0 && !held->ended)
        open_pidfd(held);
    keeper.reply_fd = held->pidfd;
    (void)message_put_held(&keeper.reply, held);
    keeper_flush_reply();
}

static void reply_held_end(void)
{
    const struct message_held_end end = {
        .n_restarts = keeper.crashes.n,
        .n_upgrades = keeper.n_upgrades,
        .n_failed_upgrades = keeper.n_failed_upgrades,
        .first = !keeper.ready,
        .upgrading = keeper.upgrading,
        .safe_mode = keeper.crashes.safe_mode && !keeper.upgrading,
    };
    FAULT_POINT("hand-over");
    keeper.handing_over = false;
    (void)message_put_held_end(&keeper.reply, &end);
    keeper_flush_reply();
    FAULT_POINT("handed-over");
}

void keeper_hand_over(void)
{
    struct holdings_content content;
    struct message_held held;
    while (keeper.handing_over && !keeper.reply_waits)
        if (holdings_next(keeper.holdings, &keeper.next_held, &content, &held))
            reply_held(&held);
        else
            reply_held_end();
}

/* ---- requests ---- */

/* Puts a pump between the new process and its output, instead of which the process gets a socket.
 */
static int add_pump(struct message *request, const struct message_spawn *spawn)
{
    int socket;
    if (!spawn->options.pipe_output)
        return 0;
    const pid_t pid = pump_start(request->fds[spawn->output], &socket);
    if (pid < 0)
        return pid;
    children_remove(keeper.children, pid); /* a spared child of this pid has ended */
    children_add(keeper.children, pid, 0, true);
    close_fd(request->fds[spawn->output]);
    request->fds[spawn->output] = socket;
    return 0;
}

/* Runs in the new process. */
static int complete(void)
{
    (void)message_take_kind(&keeper.request);
    return message_take_spawn(&keeper.request, &keeper.spawn);
}

static void on_spawn(int lost)
{
    struct spawn_result result = {.pidfd = -1};
    int r = message_take_spawn_head(&keeper.request, &keeper.spawn);
    if (lost < 0)
        r = lost;
    if (r == 0 && children_full(keeper.children))
        r = -EAGAIN;
    if (r == 0)
        r = add_pump(&keeper.request, &keeper.spawn);
    if (r == 0 && children_full(keeper.children))
        r = -EAGAIN;
    keeper.spawn.options.complete = complete;
    starting_share(&keeper.starting, &keeper.request, keeper.holdings->n_fds,
                   &keeper.spawn.options);
    if (r == 0)
        r = spawn(&keeper.spawn.options, &result);
    if (r == 0) {
        children_remove(keeper.children, result.pid); /* a spared child of this pid has ended */
        children_add(keeper.children, result.pid, keeper.spawn.id,
                     spawn_is_contained(&keeper.spawn.options));
        starting_add(&keeper.starting, &keeper.spawn.options, result.pid, &keeper.request);
    }
    message_close_fds(&keeper.request);
    reply_spawned(keeper.spawn.id, r, &result);
}

/* A child that is not reaped keeps its pid and process group id, so the signals hit no other
 * process. */
static void on_kill(void)
{
    struct message_kill request;
    if (message_take_kill(&keeper.request, &request) < 0)
        return;
    struct child *child = children_find(keeper.children, request.pid);
    if (!child || child->id != request.id)
        return;
    if (child->ended) {
        keeper_spare(child, false);
        return;
    }
    child->spared = false;
    (void)kill(request.pid, SIGKILL);
    (void)kill(-request.pid, SIGKILL);
    if (!child->contained)
        keeper_expect_orphans();
}

static void on_spare(void)
{
    struct message_spare request;
    if (message_take_spare(&keeper.request, &request) < 0)
        return;
    struct child *child = children_find(keeper.children, request.pid);
    if (child && child->id == request.id)
        keeper_spare(child, request.spared);
}

/* New processes do not copy descriptors from SPAWN_COPIED on. */
static void move_up(struct message *message)
{
    for (size_t i = 0; i < message->n_fds; i++) {
        const int fd = fcntl(message->fds[i], F_DUPFD_CLOEXEC, SPAWN_COPIED);
        if (fd < 0)
            continue; /* the limit is low */
        close_fd(message->fds[i]);
        message->fds[i] = fd;
    }
}

/* Clients can cause it at will. */
static void log_refusal(const char *what, int error)
{
    static struct rate rate;
    if (rate_take(&rate, clock_now(), 1, NULL))
        log_warning("keeper: cannot hold the descriptors of a %s for the next supervisor: %s", what,
                    strerror(-error));
}

static void on_hold(int lost)
{
    struct message_hold hold;
    move_up(&keeper.request);
    int r = message_take_hold(&keeper.request, &hold);
    if (lost < 0)
        r = lost;
    if (r == 0)
        r = hold.id != 0 ? holdings_put(keeper.holdings, &hold) : -EINVAL;
    if (r < 0) {
        log_refusal(hold.pid == 0 ? "client" : "worker", r);
        holdings_remove(keeper.holdings, hold.id);
        return;
    }
    keeper.request.n_fds = 0; /* held now */
    const struct child *child = children_find(keeper.children, hold.pid);
    if (hold.pid != 0 && (!child || child->id != hold.id)) {
        const struct spawn_exit how = keeper_end_of(hold.id);
        holdings_end(keeper.holdings, hold.id, &how);
    }
}

static void on_replace(int lost)
{
    struct message_replace replace;
    move_up(&keeper.request);
    int r = message_take_replace(&keeper.request, &replace);
    if (lost < 0)
        r = lost;
    if (r == 0)
        r = holdings_replace_fd(keeper.holdings, replace.id, replace.fd);
    if (r == 0) {
        keeper.request.n_fds = 0; /* held now */
        return;
    }
    /* Without its present descriptors it is of no use. */
    if (holdings_has(keeper.holdings, replace.id))
        log_refusal("worker", r);
    holdings_remove(keeper.holdings, replace.id);
}

static void on_release(void)
{
    uint64_t id;
    if (message_take_release(&keeper.request, &id) == 0)
        holdings_remove(keeper.holdings, id);
}

bool keeper_take_request(void)
{
    int r = message_receive(keeper.channel, &keeper.request);
    if (r == -EPIPE)
        keeper.channel = close_fd(keeper.channel);
    if (r < 0 && r != -EMFILE)
        return false;
    switch (message_take_kind(&keeper.request)) {
    case MESSAGE_SPAWN:
        if (keeper.supervisor > 0)
            on_spawn(r);
        break;
    case MESSAGE_KILL:
        on_kill();
        break;
    case MESSAGE_SPARE:
        on_spare();
        break;
    case MESSAGE_HOLD:
        on_hold(r);
        break;
    case MESSAGE_REPLACE:
        on_replace(r);
        break;
    case MESSAGE_RELEASE:
        on_release();
        break;
    case MESSAGE_FORGIVE:
        crashes_forgive(&keeper.crashes);
        break;
    case MESSAGE_NEXT:
        if (keeper.supervisor > 0)
            keeper_start_next();
        break;
    case MESSAGE_STAY:
        keeper_drop_next();
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
