/* SPDX-License-Identifier: MIT */

/* Reports what confines the processes of a group, and which resource limits have no effect because
 * a cgroup controller is missing. */

#include "shared/base/cleanup.h"
#include "shared/base/landlock.h"
#include "supervisor/config/keys/keys.h"
#include "supervisor/config/sandbox/profile.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group.h"
#include "supervisor/process/cgroup.h"
#include "supervisor/process/process.h"
#include <seccomp.h>
#include <stdio.h>
#include <string.h>

/* Writes the profile, and the keys that differ from the profile's values. */
static void write_keys(FILE *file, const struct config_group *config,
                       const struct config_group *defaults)
{
    const char *separator = "";

    if (config->profile != CONFIG_PROFILE_NONE) {
        fprintf(file, "Profile=%s", profile_name(config->profile));
        separator = ", ";
    }
    for (size_t i = 0; i < CONFIG_GROUP_SCHEMA.n_keys; i++) {
        const struct config_key *key = &CONFIG_GROUP_SCHEMA.keys[i];

        if (strcmp(key->section, "Sandbox") != 0 || !config_key_is_set(key, config, defaults))
            continue;
        fprintf(file, "%s%s", separator, key->name);
        separator = ", ";
    }
}

static void report_calls(struct reply *reply, const struct call_set *calls)
{
    reply_array(reply, "system_calls");
    for (int call = 0; call < SYSCALLS_MAX; call++) {
        _cleanup_free_ char *name =
            call_set_has(calls, call)
                ? seccomp_syscall_resolve_num_arch(seccomp_arch_native(), call)
                : NULL;

        if (name)
            reply_string(reply, NULL, name);
    }
    reply_end_array(reply);
}

static bool is_confined(const struct config_group *config)
{
    return config->sandbox || config->sandbox_files || config->network;
}

void report_sandbox(struct reply *reply, const struct group *group)
{
    _cleanup_free_ char *keys = NULL;
    struct config_group *defaults;
    size_t size;
    FILE *file;

    if (!is_confined(group->config) || config_defaults(&defaults, group->name) < 0)
        return;
    defaults->profile = group->config->profile;
    file = profile_apply(defaults) < 0 ? NULL : open_memstream(&keys, &size);
    if (file) {
        write_keys(file, group->config, defaults);
        if (fclose(file) == 0)
            reply_string(reply, "sandbox", keys);
    }
    config_group_free(defaults);
    if (group->config->system_call_log.n > 0)
        report_calls(reply, &group->pools.calls);
}

/* ---- what is in force ---- */

static void write_part(FILE *file, const char *text)
{
    fprintf(file, "%s%s", ftell(file) > 0 ? ", " : "", text);
}

static void write_files(FILE *file, const struct sandbox_state *state)
{
    if (state->files == SANDBOX_BY_MOUNTS)
        write_part(file, "files by mounts");
    if (state->files == SANDBOX_NOT_AT_ALL)
        write_part(file, "not the keys about files (no mounts of its own are permitted)");
    if (state->scopes & LANDLOCK_SCOPE_SIGNALS)
        write_part(file, "signals to itself only");
    if (state->scopes & LANDLOCK_SCOPE_ABSTRACT_SOCKETS)
        write_part(file, "abstract sockets of its own only");
}

static void write_state(FILE *file, const struct sandbox_state *state)
{
    if (state->no_new_privileges)
        write_part(file, "no new privileges");
    if (state->bounded)
        write_part(file, "limited capabilities");
    if (state->not_bounded)
        write_part(file, "not CapabilityBoundingSet= (CAP_SETPCAP is missing)");
    write_files(file, state);
    if (state->has_network)
        write_part(file, "a network of its own");
    if (state->namespaces & SANDBOX_OWN_PIDS)
        write_part(file, "a PID namespace of its own");
    if (state->namespaces & SANDBOX_OWN_IPC)
        write_part(file, "an IPC namespace of its own");
    if (state->namespaces & SANDBOX_SHARES_IPC)
        write_part(file, "not PrivateIPC= (namespaces are not permitted)");
    if (state->filtered)
        write_part(file, "filtered system calls");
}

void report_confinement(struct reply *reply, const struct process *process)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *file;

    if (process->pid <= 0 || !process->confined)
        return;
    file = open_memstream(&text, &size);
    if (!file)
        return;
    write_state(file, &process->state);
    if (fclose(file) == 0)
        reply_string_if(reply, "in_force", text);
}

/* ---- limits without effect ---- */

void report_unmet(struct reply *reply, const struct group *group)
{
    char keys[CGROUP_UNMET_SIZE];

    if (cgroup_unmet(cgroup_tree_controllers(group->context->pools->process->cgroups),
                     group->config, keys, sizeof(keys)) > 0)
        reply_string(reply, "no_effect", keys);
}
