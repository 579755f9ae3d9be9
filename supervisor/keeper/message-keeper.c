/* SPDX-License-Identifier: MIT */
/* The keeper's side of the protocol: takes requests, puts replies. */
#include "supervisor/keeper/message-private.h"
#include <errno.h>

/* ---- requests ---- */

int message_take_spawn_head(struct message *message, struct message_spawn *ret)
{
    size_t i = 0;
    TAKE(message, ret->id);
    ret->options.private_pids = message_take_bool(message);
    ret->options.pipe_output = message_take_bool(message);
    TAKE(message, ret->output);
    ret->options.report_fd = message_take_fd(message, &i);
    ret->options.cgroup_fd = message_take_bool(message) ? message_take_fd(message, &i) : -1;
    if (ret->id == 0 || ret->output >= message->n_fds)
        message->error = -EBADMSG;
    return message->error;
}

int message_take_kill(struct message *message, struct message_kill *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->pid);
    return message_end(message);
}

int message_take_spare(struct message *message, struct message_spare *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->pid);
    ret->spared = message_take_bool(message);
    return message_end(message);
}

int message_take_hold(struct message *message, struct message_hold *ret)
{
    message_take_holding(message, ret);
    return message_end_with_fds(message, ret->n_fds);
}

int message_take_replace(struct message *message, struct message_replace *ret)
{
    size_t i = 0;
    TAKE(message, ret->id);
    ret->fd = message_take_fd(message, &i);
    return message_end_with_fds(message, i);
}

int message_take_release(struct message *message, uint64_t *ret_id)
{
    TAKE(message, *ret_id);
    return message_end(message);
}

/* ---- replies ---- */

int message_put_spawned(struct message *message, const struct message_spawned *spawned, int pidfd)
{
    message_begin(message, MESSAGE_SPAWNED, spawned->id);
    PUT(message, spawned->pid);
    PUT(message, spawned->error);
    if (pidfd >= 0)
        message_put_fd(message, pidfd);
    return message->error;
}

int message_put_exited(struct message *message, const struct message_exited *exited)
{
    message_begin(message, MESSAGE_EXITED, exited->id);
    PUT(message, exited->how);
    return message->error;
}

int message_put_held(struct message *message, const struct message_held *held)
{
    const bool has_pidfd = held->pidfd >= 0;
    message_begin(message, MESSAGE_HELD, held->hold.id);
    message_put_holding(message, &held->hold);
    PUT(message, held->ended);
    PUT(message, held->how);
    PUT(message, has_pidfd);
    if (has_pidfd)
        message_put_fd(message, held->pidfd);
    return message->error;
}

int message_put_held_end(struct message *message, const struct message_held_end *end)
{
    message_begin(message, MESSAGE_HELD_END, 0);
    PUT(message, end->n_restarts);
    PUT(message, end->n_upgrades);
    PUT(message, end->n_failed_upgrades);
    PUT(message, end->first);
    PUT(message, end->upgrading);
    PUT(message, end->safe_mode);
    return message->error;
}
