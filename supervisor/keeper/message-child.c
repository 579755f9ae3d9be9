/* SPDX-License-Identifier: MIT */
/* SPAWN, as the new process takes it. */
#include "shared/base/cleanup.h"
#include "supervisor/keeper/message-private.h"
#include <errno.h>
#include <string.h>

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
    size_t n = message_take_count(message, max);
    for (size_t i = 0; i < n; i++)
        strings[i] = take_string(message);
    strings[n] = NULL;
    return n;
}

static const struct sandbox_network *take_network(struct message *message, size_t *i,
                                                  struct sandbox_network *ret)
{
    if (!message_take_bool(message))
        return NULL;
    for (size_t end = 0; end < ELEMENTS(ret->storage); end++)
        ret->storage[end] = message_take_fd(message, i);
    return ret;
}

static void take_descriptors(struct message *message, struct message_spawn *ret)
{
    size_t i = ret->options.cgroup_fd >= 0 ? 2 : 1;
    ret->options.fds = ret->fds;
    ret->options.n_fds = message_take_count(message, SPAWN_FDS_MAX);
    for (size_t at = 0; at < ret->options.n_fds; at++) {
        ret->fds[at].fd = message_take_fd(message, &i);
        TAKE(message, ret->fds[at].number);
    }
    ret->options.network = take_network(message, &i, &ret->network);
    if (i != message->n_fds)
        message->error = -EBADMSG;
}

static const struct sandbox *take_sandbox(struct message *message, struct sandbox *ret)
{
    if (!message_take_bool(message))
        return NULL;
    TAKE(message, ret->bounding);
    TAKE(message, ret->ambient);
    ret->no_new_privileges = message_take_bool(message);
    ret->strict = message_take_bool(message);
    TAKE(message, ret->scopes);
    ret->set_umask = message_take_bool(message);
    TAKE(message, ret->umask);
    ret->filter.size = message_take_count(message, SANDBOX_FILTER_SIZE_MAX);
    ret->filter.code = message->data + message->taken;
    (void)message_skip(message, ret->filter.size);
    return ret;
}

static const struct sandbox_files *take_files(struct message *message, struct sandbox_files *ret)
{
    if (!message_take_bool(message))
        return NULL;
    ret->hidepid = (enum sandbox_hidepid)message_take_count(message, _SANDBOX_N_HIDEPIDS - 1);
    ret->only_processes = message_take_bool(message);
    ret->private_root = message_take_bool(message);
    ret->n_paths = message_take_count(message, SANDBOX_PATHS_MAX);
    for (size_t i = 0; i < ret->n_paths; i++) {
        struct sandbox_path *path = &ret->paths[i];
        path->kind = (enum sandbox_path_kind)message_take_count(message, _SANDBOX_N_PATH_KINDS - 1);
        path->optional = message_take_bool(message);
        path->path = take_string(message);
    }
    return ret;
}

int message_take_spawn(struct message *message, struct message_spawn *ret)
{
    struct spawn_options *options = &ret->options;
    (void)message_take_spawn_head(message, ret);
    size_t n = take_strings(message, ret->strings, MESSAGE_STRINGS_MAX);
    options->argv = ret->strings;
    options->environment = ret->strings + n + 1;
    (void)take_strings(message, ret->strings + n + 1, MESSAGE_STRINGS_MAX - n);
    options->working_directory = take_string(message);
    take_descriptors(message, ret);
    options->rlimits = ret->rlimits;
    options->n_rlimits = message_take_count(message, SPAWN_RLIMITS_MAX);
    message_take(message, ret->rlimits, options->n_rlimits * sizeof(ret->rlimits[0]));
    options->set_user = message_take_bool(message);
    TAKE(message, options->uid);
    TAKE(message, options->gid);
    options->groups = ret->groups;
    options->n_groups = message_take_count(message, SPAWN_GROUPS_MAX);
    message_take(message, ret->groups, options->n_groups * sizeof(ret->groups[0]));
    options->sandbox = take_sandbox(message, &ret->sandbox);
    options->files = take_files(message, &ret->files);
    options->private_ipc = message_take_bool(message);
    options->set_nice = message_take_bool(message);
    TAKE(message, options->nice);
    options->set_oom_score_adjust = message_take_bool(message);
    TAKE(message, options->oom_score_adjust);
    if (!ret->strings[0])
        message->error = -EBADMSG;
    return message_end(message);
}
