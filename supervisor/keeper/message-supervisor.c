/* SPDX-License-Identifier: MIT */
/* The supervisor's side of SPAWN: puts the request, and names the steps of a report. */
#include "shared/base/cleanup.h"
#include "supervisor/keeper/message.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static void put(struct message *message, const void *data, size_t size)
{
    if (message->error == 0 && size > sizeof(message->data) - message->size)
        message->error = -E2BIG;
    if (message->error < 0)
        return;
    if (size > 0)
        memcpy(message->data + message->size, data, size);
    message->size += size;
}

#define PUT(message, value) put(message, &(value), sizeof(value))

/* Fails with -E2BIG above `max`. */
static void put_count(struct message *message, size_t n, size_t max)
{
    const uint32_t count = (uint32_t)n;
    if (n > max && message->error == 0)
        message->error = -E2BIG;
    PUT(message, count);
}

static void put_string(struct message *message, const char *string)
{
    put(message, string, strlen(string) + 1);
}

static size_t put_strings(struct message *message, char *const *strings, size_t max)
{
    size_t n = 0;
    while (strings[n])
        n++;
    put_count(message, n, max);
    for (size_t i = 0; i < n && message->error == 0; i++)
        put_string(message, strings[i]);
    return n;
}

/* The descriptor that becomes standard output; 0 = none. */
static uint8_t output_of(const struct spawn_options *options)
{
    for (size_t i = 0; i < options->n_fds; i++)
        if (options->fds[i].number == STDOUT_FILENO)
            return (uint8_t)(i + (options->cgroup_fd >= 0 ? 2 : 1));
    return 0;
}

static void put_head(struct message *message, uint64_t id, const struct spawn_options *options)
{
    struct message_record *record = message_begin(message, MESSAGE_SPAWN, id);
    record->private_pids = options->private_pids;
    record->output = output_of(options);
    record->pipe_output = options->pipe_output && record->output > 0;
    record->pid = (pid_t)options->output_owner;
    record->has_cgroup = options->cgroup_fd >= 0;
    message_put_fd(message, options->report_fd);
    if (record->has_cgroup)
        message_put_fd(message, options->cgroup_fd);
}

static void put_descriptors(struct message *message, const struct spawn_options *options)
{
    const bool has_network = options->network, has_gate = options->gate_fd > 0;
    put_count(message, options->n_fds, SPAWN_FDS_MAX);
    for (size_t i = 0; i < options->n_fds && message->error == 0; i++) {
        message_put_fd(message, options->fds[i].fd);
        PUT(message, options->fds[i].number);
    }
    PUT(message, has_network);
    for (size_t i = 0; has_network && i < ELEMENTS(options->network->storage); i++)
        message_put_fd(message, options->network->storage[i]);
    PUT(message, has_gate);
    if (has_gate)
        message_put_fd(message, options->gate_fd);
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
    put_count(message, sandbox->filter.size, SANDBOX_FILTER_SIZE_MAX);
    put(message, sandbox->filter.code, sandbox->filter.size);
}

static void put_files(struct message *message, const struct sandbox_files *files)
{
    const bool has_files = files;
    PUT(message, has_files);
    if (!files)
        return;
    put_count(message, files->hidepid, _SANDBOX_N_HIDEPIDS - 1);
    PUT(message, files->only_processes);
    PUT(message, files->private_root);
    put_count(message, files->n_paths, SANDBOX_PATHS_MAX);
    for (size_t i = 0; i < files->n_paths && message->error == 0; i++) {
        put_count(message, files->paths[i].kind, _SANDBOX_N_PATH_KINDS - 1);
        PUT(message, files->paths[i].optional);
        put_string(message, files->paths[i].path);
    }
}

int message_put_spawn(struct message *message, uint64_t id, const struct spawn_options *options)
{
    put_head(message, id, options);
    size_t n = put_strings(message, options->argv, MESSAGE_STRINGS_MAX);
    if (message->error == 0)
        (void)put_strings(message, options->environment, MESSAGE_STRINGS_MAX - n);
    put_string(message, options->working_directory ? options->working_directory : "/");
    put_descriptors(message, options);
    put_count(message, options->n_rlimits, SPAWN_RLIMITS_MAX);
    put(message, options->rlimits, options->n_rlimits * sizeof(options->rlimits[0]));
    PUT(message, options->set_user);
    PUT(message, options->uid);
    PUT(message, options->gid);
    put_count(message, options->n_groups, SPAWN_GROUPS_MAX);
    put(message, options->groups, options->n_groups * sizeof(options->groups[0]));
    put_sandbox(message, options->sandbox);
    put_files(message, options->files);
    PUT(message, options->private_ipc);
    PUT(message, options->set_nice);
    PUT(message, options->nice);
    PUT(message, options->set_oom_score_adjust);
    PUT(message, options->oom_score_adjust);
    return message->error;
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
        [SPAWN_GROUPS] = "User=, which takes a supervisor that runs as root: setgroups",
        [SPAWN_GID] = "setgid",
        [SPAWN_UID] = "setuid",
        [SPAWN_PARENT_DEATH] = "parent-death signal",
        [SPAWN_CHDIR] = "chdir",
        [SPAWN_LANDLOCK] = "Landlock",
        [SPAWN_SANDBOX] = "sandbox",
        [SPAWN_EXEC] = "exec",
        [SPAWN_TEMPLATE] = "template",
        [SPAWN_STRICT_FILES] = "Strict=yes: mounts of its own, for the keys about files",
        [SPAWN_STRICT_CAPABILITIES] = "Strict=yes: capabilities",
        [SPAWN_STRICT_SCOPES] = "Strict=yes: Landlock of Linux 6.12, for signals and sockets",
        [SPAWN_STRICT_IPC] = "Strict=yes: IPC namespace",
        [SPAWN_STRICT_PIDS] = "Strict=yes: PID namespace",
        [SPAWN_STRICT_NETWORK] = "Strict=yes: network namespace",
    };
    return (size_t)step < _SPAWN_N_STEPS ? names[step] : "unknown";
}
