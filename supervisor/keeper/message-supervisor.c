/* SPDX-License-Identifier: MIT */
/* The supervisor's side of the protocol: puts requests, takes replies. The keeper runs none of it.
 */
#include "shared/base/cleanup.h"
#include "supervisor/keeper/message-private.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- requests ---- */

static void put_string(struct message *message, const char *string)
{
    message_put(message, string, strlen(string) + 1);
}

static size_t put_strings(struct message *message, char *const *strings, size_t max)
{
    size_t n = 0;
    while (strings[n])
        n++;
    message_put_count(message, n, max);
    for (size_t i = 0; i < n && message->error == 0; i++)
        put_string(message, strings[i]);
    return n;
}

/* The descriptor that becomes standard output; 0 = none. */
static uint32_t output_of(const struct spawn_options *options)
{
    for (size_t i = 0; i < options->n_fds; i++)
        if (options->fds[i].number == STDOUT_FILENO)
            return (uint32_t)i + (options->cgroup_fd >= 0 ? 2 : 1);
    return 0;
}

static void put_head(struct message *message, const struct spawn_options *options)
{
    const bool has_cgroup = options->cgroup_fd >= 0;
    const uint32_t output = output_of(options);
    const bool pipe_output = options->pipe_output && output > 0;
    PUT(message, options->private_pids);
    PUT(message, pipe_output);
    PUT(message, output);
    message_put_fd(message, options->report_fd);
    PUT(message, has_cgroup);
    if (has_cgroup)
        message_put_fd(message, options->cgroup_fd);
}

static void put_descriptors(struct message *message, const struct spawn_options *options)
{
    const bool has_network = options->network;
    message_put_count(message, options->n_fds, SPAWN_FDS_MAX);
    for (size_t i = 0; i < options->n_fds && message->error == 0; i++) {
        message_put_fd(message, options->fds[i].fd);
        PUT(message, options->fds[i].number);
    }
    PUT(message, has_network);
    for (size_t i = 0; has_network && i < ELEMENTS(options->network->storage); i++)
        message_put_fd(message, options->network->storage[i]);
}

static void put_sandbox(struct message *message, const struct sandbox *sandbox)
{
    const bool has_sandbox = sandbox;
    PUT(message, has_sandbox);
    if (!sandbox)
        return;
    PUT(message, sandbox->bounding);
    PUT(message, sandbox->ambient);
    PUT(message, sandbox->no_new_privileges);
    PUT(message, sandbox->strict);
    PUT(message, sandbox->scopes);
    PUT(message, sandbox->set_umask);
    PUT(message, sandbox->umask);
    message_put_count(message, sandbox->filter.size, SANDBOX_FILTER_SIZE_MAX);
    message_put(message, sandbox->filter.code, sandbox->filter.size);
}

static void put_files(struct message *message, const struct sandbox_files *files)
{
    const bool has_files = files;
    PUT(message, has_files);
    if (!files)
        return;
    message_put_count(message, files->hidepid, _SANDBOX_N_HIDEPIDS - 1);
    PUT(message, files->only_processes);
    PUT(message, files->private_root);
    message_put_count(message, files->n_paths, SANDBOX_PATHS_MAX);
    for (size_t i = 0; i < files->n_paths && message->error == 0; i++) {
        message_put_count(message, files->paths[i].kind, _SANDBOX_N_PATH_KINDS - 1);
        PUT(message, files->paths[i].optional);
        put_string(message, files->paths[i].path);
    }
}

int message_put_spawn(struct message *message, uint64_t id, const struct spawn_options *options)
{
    message_begin(message, MESSAGE_SPAWN, id);
    put_head(message, options);
    size_t n = put_strings(message, options->argv, MESSAGE_STRINGS_MAX);
    if (message->error == 0)
        (void)put_strings(message, options->environment, MESSAGE_STRINGS_MAX - n);
    put_string(message, options->working_directory ? options->working_directory : "/");
    put_descriptors(message, options);
    message_put_count(message, options->n_rlimits, SPAWN_RLIMITS_MAX);
    message_put(message, options->rlimits, options->n_rlimits * sizeof(options->rlimits[0]));
    PUT(message, options->set_user);
    PUT(message, options->uid);
    PUT(message, options->gid);
    message_put_count(message, options->n_groups, SPAWN_GROUPS_MAX);
    message_put(message, options->groups, options->n_groups * sizeof(options->groups[0]));
    put_sandbox(message, options->sandbox);
    put_files(message, options->files);
    PUT(message, options->private_ipc);
    PUT(message, options->set_nice);
    PUT(message, options->nice);
    PUT(message, options->set_oom_score_adjust);
    PUT(message, options->oom_score_adjust);
    return message->error;
}

int message_put_kill(struct message *message, const struct message_kill *kill)
{
    message_begin(message, MESSAGE_KILL, kill->id);
    PUT(message, kill->pid);
    return message->error;
}

int message_put_spare(struct message *message, const struct message_spare *spare)
{
    message_begin(message, MESSAGE_SPARE, spare->id);
    PUT(message, spare->pid);
    PUT(message, spare->spared);
    return message->error;
}

int message_put_hold(struct message *message, const struct message_hold *hold)
{
    message_begin(message, MESSAGE_HOLD, hold->id);
    message_put_holding(message, hold);
    return message->error;
}

int message_put_replace(struct message *message, const struct message_replace *replace)
{
    message_begin(message, MESSAGE_REPLACE, replace->id);
    message_put_fd(message, replace->fd);
    return message->error;
}

int message_put_simple(struct message *message, enum message_kind kind, uint64_t id)
{
    message_begin(message, kind, id);
    return message->error;
}

/* ---- replies ---- */

int message_take_spawned(struct message *message, struct message_spawned *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->pid);
    TAKE(message, ret->error);
    return message_end(message);
}

int message_take_exited(struct message *message, struct message_exited *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->how);
    return message_end(message);
}

int message_take_held(struct message *message, struct message_held *ret)
{
    size_t i;
    message_take_holding(message, &ret->hold);
    ret->ended = message_take_bool(message);
    TAKE(message, ret->how);
    i = ret->hold.n_fds;
    ret->pidfd = message_take_bool(message) ? message_take_fd(message, &i) : -1;
    return message_end_with_fds(message, i);
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

/* ---- reports of new processes ---- */

const char *spawn_step_to_string(enum spawn_step step)
{
    static const char *const names[_SPAWN_N_STEPS] = {
        [SPAWN_CLONE] = "clone",
        [SPAWN_PIDS] = "PID namespace",
        [SPAWN_TERMINAL] = "leaving the terminal",
        [SPAWN_CGROUP] = "cgroup",
        [SPAWN_OOM_SCORE] = "oom-score-adjust",
        [SPAWN_NICE] = "nice",
        [SPAWN_DEV_NULL] = "open /dev/null",
        [SPAWN_NETWORK] = "network namespace",
        [SPAWN_IPC] = "IPC namespace",
        [SPAWN_DESCRIPTORS] = "descriptors",
        [SPAWN_FILES] = "mount namespace",
        [SPAWN_RLIMIT] = "rlimit",
        [SPAWN_CAPABILITIES] = "capabilities",
        [SPAWN_GROUPS] = "setgroups",
        [SPAWN_GID] = "setgid",
        [SPAWN_UID] = "setuid",
        [SPAWN_PARENT_DEATH] = "parent-death signal",
        [SPAWN_CHDIR] = "chdir",
        [SPAWN_LANDLOCK] = "Landlock",
        [SPAWN_SANDBOX] = "sandbox",
        [SPAWN_EXEC] = "exec",
        [SPAWN_STRICT_FILES] = "Strict=yes: mounts of its own, for the keys about files",
        [SPAWN_STRICT_CAPABILITIES] = "Strict=yes: capabilities",
        [SPAWN_STRICT_SCOPES] = "Strict=yes: Landlock of Linux 6.12, for signals and sockets",
        [SPAWN_STRICT_IPC] = "Strict=yes: IPC namespace",
        [SPAWN_STRICT_PIDS] = "Strict=yes: PID namespace",
        [SPAWN_STRICT_NETWORK] = "Strict=yes: network namespace",
    };
    return (size_t)step < _SPAWN_N_STEPS ? names[step] : "unknown";
}
