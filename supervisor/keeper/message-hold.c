/* SPDX-License-Identifier: MIT */
/* HOLD to HELD_END: what the keeper holds from one supervisor to the next. */
#include "supervisor/keeper/message-private.h"
#include <errno.h>

static void put_hold(struct message *message, const struct message_hold *hold)
{
    PUT(message, hold->pid);
    message_put_count(message, hold->size, HOLD_BYTES_MAX);
    message_put(message, hold->bytes, hold->size);
    message_put_count(message, hold->n_fds, HOLD_FDS_MAX);
    for (size_t i = 0; i < hold->n_fds && message->error == 0; i++)
        message_put_fd(message, hold->fds[i]);
}

int message_put_hold(struct message *message, const struct message_hold *hold)
{
    message_begin(message, MESSAGE_HOLD, hold->id);
    put_hold(message, hold);
    return message->error;
}

int message_put_replace(struct message *message, const struct message_replace *replace)
{
    message_begin(message, MESSAGE_REPLACE, replace->id);
    message_put_fd(message, replace->fd);
    return message->error;
}

int message_put_release(struct message *message, uint64_t id)
{
    message_begin(message, MESSAGE_RELEASE, id);
    return message->error;
}

int message_put_ready(struct message *message)
{
    message_begin(message, MESSAGE_READY, 0);
    return message->error;
}

int message_put_forgive(struct message *message)
{
    message_begin(message, MESSAGE_FORGIVE, 0);
    return message->error;
}

int message_put_next(struct message *message)
{
    message_begin(message, MESSAGE_NEXT, 0);
    return message->error;
}

int message_put_stay(struct message *message)
{
    message_begin(message, MESSAGE_STAY, 0);
    return message->error;
}

int message_put_held(struct message *message, const struct message_held *held)
{
    const bool has_pidfd = held->pidfd >= 0;
    message_begin(message, MESSAGE_HELD, held->hold.id);
    put_hold(message, &held->hold);
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

/* The message's first descriptors are those that are held. */
static void take_hold(struct message *message, struct message_hold *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->pid);
    ret->size = message_take_count(message, HOLD_BYTES_MAX);
    ret->bytes = message_skip(message, ret->size);
    ret->n_fds = message_take_count(message, HOLD_FDS_MAX);
    ret->fds = message->fds;
}

/* Checks that there are as many descriptors. */
static int end_with_fds(struct message *message, size_t n)
{
    if (message->n_fds != n && message->error == 0)
        message->error = -EBADMSG;
    return message_end(message);
}

int message_take_hold(struct message *message, struct message_hold *ret)
{
    take_hold(message, ret);
    return end_with_fds(message, ret->n_fds);
}

int message_take_replace(struct message *message, struct message_replace *ret)
{
    size_t i = 0;
    TAKE(message, ret->id);
    ret->fd = message_take_fd(message, &i);
    return end_with_fds(message, i);
}

int message_take_release(struct message *message, uint64_t *ret_id)
{
    TAKE(message, *ret_id);
    return message_end(message);
}

int message_take_held(struct message *message, struct message_held *ret)
{
    size_t i;
    take_hold(message, &ret->hold);
    ret->ended = message_take_bool(message);
    TAKE(message, ret->how);
    i = ret->hold.n_fds;
    ret->pidfd = message_take_bool(message) ? message_take_fd(message, &i) : -1;
    return end_with_fds(message, i);
}

int message_take_held_end(struct message *message, struct message_held_end *ret)
{
    uint64_t id;
    TAKE(message, id);
    TAKE(message, ret->n_restarts);
    TAKE(message, ret->n_upgrades);
    TAKE(message, ret->n_failed_upgrades);
    ret->first = message_take_bool(message);
    ret->upgrading = message_take_bool(message);
    ret->safe_mode = message_take_bool(message);
    return message_end(message);
}
