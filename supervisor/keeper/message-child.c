/* SPDX-License-Identifier: MIT */
/* SPAWN, as the new process takes it. */
#include "shared/base/cleanup.h"
#include "supervisor/keeper/message.h"
#include <errno.h>
#include <string.h>

/* An error is kept in the message, and turns all that follows into no-ops. Returns the next `size`
 * bytes in place, or NULL, with -EBADMSG, if the message is shorter. */
static void *skip(struct message *message, size_t size)
{
    void *data = message->data + message->taken;
    if (message->error == 0 && size > message->size - message->taken)
        message->error = -EBADMSG;
    if (message->error < 0)
        return NULL;
    message->taken += size;
    return data;
}

/* Zeroes `*ret` if the message is shorter. */
static void take(struct message *message, void *ret, size_t size)
{
    const void *data = skip(message, size);
    if (data)
        memcpy(ret, data, size);
    else
        memset(ret, 0, size);
}

#define TAKE(message, variable) take(message, &(variable), sizeof(variable))

/* Fails, and returns 0, above `max`. */
static size_t take_count(struct message *message, size_t max)
{
    uint32_t count;
    TAKE(message, count);
    if (count > max && message->error == 0)
        message->error = -EBADMSG;
    return message->error == 0 ? count : 0;
}

/* A bool must not hold anything but 0 or 1. */
static bool take_bool(struct message *message)
{
    uint8_t byte;
    TAKE(message, byte);
    return byte != 0;
}

/* Returns descriptor number `*i`, and increments it. */
static int take_fd(struct message *message, size_t *i)
{
    if (*i < message->n_fds)
        return message->fds[(*i)++];
    message->error = -EBADMSG;
    return -1;
}

static char *take_string(struct message *message)
{
    char *string = (char *)message->data + message->taken;
    const char *end =
        message->error == 0 ? memchr(string, '\0', message->size - message->taken) : NULL;
    if (!end) {
        message->error = -EBADMSG;
        return NULL;
    }
    message->taken += (size_t)(end - string) + 1;
    return string;
}

static size_t take_strings(struct message *message, char **strings, size_t max)
{
    size_t n = take_count(message, max);
    for (size_t i = 0; i < n; i++)
        strings[i] = take_string(message);
    strings[n] = NULL;
    return n;
}

static const struct sandbox_network *take_network(struct message *message, size_t *i,
                                                  struct sandbox_network *ret)
{
    if (!take_bool(message))
        return NULL;
    for (size_t end = 0; end < ELEMENTS(ret->storage); end++)
        ret->storage[end] = take_fd(message, i);
    return ret;
}

static void take_descriptors(struct message *message, struct message_spawn *ret)
{
    size_t i = ret->options.cgroup_fd >= 0 ? 2 : 1;
    ret->options.fds = ret->fds;
    ret->options.n_fds = take_count(message, SPAWN_FDS_MAX);
    for (size_t at = 0; at < ret->options.n_fds; at++) {
        ret->fds[at].fd = take_fd(message, &i);
        TAKE(message, ret->fds[at].number);
    }
    ret->options.network = take_network(message, &i, &ret->network);
    ret->options.gate_fd = take_bool(message) ? take_fd(message, &i) : 0;
    if (i != message->n_fds)
        message->error = -EBADMSG;
}

static const struct sandbox *take_sandbox(struct message *message, struct sandbox *ret)
{
    if (!take_bool(message))
        return NULL;
    TAKE(message, ret->bounding);
    TAKE(message, ret->ambient);
    ret->no_new_privileges = take_bool(message);
    ret->strict = take_bool(message);
    TAKE(message, ret->scopes);
    ret->set_umask = take_bool(message);
    TAKE(message, ret->umask);
    ret->filter.size = take_count(message, SANDBOX_FILTER_SIZE_MAX);
    ret->filter.code = skip(message, ret->filter.size);
    return ret;
}

static const struct sandbox_files *take_files(struct message *message, struct sandbox_files *ret)
{
    if (!take_bool(message))
        return NULL;
    ret->hidepid = (enum sandbox_hidepid)take_count(message, _SANDBOX_N_HIDEPIDS - 1);
    ret->only_processes = take_bool(message);
    ret->private_root = take_bool(message);
    ret->n_paths = take_count(message, SANDBOX_PATHS_MAX);
    for (size_t i = 0; i < ret->n_paths; i++) {
        struct sandbox_path *path = &ret->paths[i];
        path->kind = (enum sandbox_path_kind)take_count(message, _SANDBOX_N_PATH_KINDS - 1);
        path->optional = take_bool(message);
        path->path = take_string(message);
    }
    return ret;
}

int message_take_spawn(struct message *message, struct message_spawn *ret)
{
    struct spawn_options *options = &ret->options;
    message->taken = offsetof(struct message_record, bytes);
    message->error = message_take_spawn_head(message, ret);
    size_t n = take_strings(message, ret->strings, MESSAGE_STRINGS_MAX);
    options->argv = ret->strings;
    options->environment = ret->strings + n + 1;
    (void)take_strings(message, ret->strings + n + 1, MESSAGE_STRINGS_MAX - n);
    options->working_directory = take_string(message);
    take_descriptors(message, ret);
    options->rlimits = ret->rlimits;
    options->n_rlimits = take_count(message, SPAWN_RLIMITS_MAX);
    take(message, ret->rlimits, options->n_rlimits * sizeof(ret->rlimits[0]));
    options->set_user = take_bool(message);
    TAKE(message, options->uid);
    TAKE(message, options->gid);
    options->groups = ret->groups;
    options->n_groups = take_count(message, SPAWN_GROUPS_MAX);
    take(message, ret->groups, options->n_groups * sizeof(ret->groups[0]));
    options->sandbox = take_sandbox(message, &ret->sandbox);
    options->files = take_files(message, &ret->files);
    options->private_ipc = take_bool(message);
    options->set_nice = take_bool(message);
    TAKE(message, options->nice);
    options->set_oom_score_adjust = take_bool(message);
    TAKE(message, options->oom_score_adjust);
    if (!ret->strings[0] || message->taken != message->size)
        return -EBADMSG;
    return message->error;
}
