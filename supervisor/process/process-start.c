/* SPDX-License-Identifier: MIT */
/* Starts a process: from its configuration to the request to the keeper. */
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/event/death.h"
#include "supervisor/process/process.h"
#include "supervisor/process/watch.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROCESS_FDS_MAX 8

/* Like systemd's default. */
static const char PATH_VARIABLE[] =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static size_t count(const char *const *strings)
{
    size_t n = 0;

    while (strings && strings[n])
        n++;
    return n;
}

static bool names_same(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strncmp(a, b, n + 1) == 0;
}

static bool is_set(const char *const *environment, const char *variable)
{
    for (size_t i = 0; environment && environment[i]; i++)
        if (names_same(environment[i], variable))
            return true;
    return false;
}

/* Makes a vector, owned by the caller, of borrowed strings: the supervisor's variables, then the
 * configured ones, then the user's, then defaults. The first of a name counts. */
static int process_environment(const struct process_context *context,
                               const struct process_options *options, const char ***ret)
{
    const struct config_strings *configured = &options->config->environment;
    const char *const *own = options->environment;
    const char *const *user = (const char *const *)options->config->user_environment;
    const char *socket = options->config->type == CONFIG_ACTOR ? NULL : context->socket_variable;
    const size_t n_own = count(own);
    const char **environment =
        calloc(n_own + configured->n + count(user) + 4, sizeof(*environment));
    size_t n = n_own;

    if (!environment)
        return -ENOMEM;
    for (size_t i = 0; i < n_own; i++)
        environment[i] = own[i];
    if (context->main_variable[0] != '\0')
        environment[n++] = context->main_variable;
    for (size_t i = 0; i < configured->n; i++)
        if (!is_set(environment, configured->strings[i]))
            environment[n++] = configured->strings[i];
    for (size_t i = 0; user && user[i]; i++)
        if (!is_set(own, user[i]) && !strings_has(configured, user[i]))
            environment[n++] = user[i];
    if (!is_set(environment, PATH_VARIABLE))
        environment[n++] = PATH_VARIABLE;
    if (socket && !is_set(environment, socket))
        environment[n++] = socket;
    *ret = environment;
    return 0;
}

static size_t process_limits(const struct process *process, const struct config_group *config,
                             struct spawn_rlimit *limits)
{
    const struct {
        bool set;
        int resource;
        uint64_t value;
    } configured[] = {
        {config->limit_nofile_set, RLIMIT_NOFILE, config->limit_nofile},
        {config->limit_core_set, RLIMIT_CORE, config->limit_core},
        {config->limit_as_set, RLIMIT_AS, config->limit_as},
    };
    size_t n = 0;

    /* The supervisor's own limit is higher; many programs loop over all possible descriptors. */
    if (!config->limit_nofile_set && process->context->nofile.rlim_max > 0)
        limits[n++] = (struct spawn_rlimit){RLIMIT_NOFILE, process->context->nofile};
    for (size_t i = 0; i < ELEMENTS(configured); i++)
        if (configured[i].set)
            limits[n++] = (struct spawn_rlimit){
                .resource = configured[i].resource,
                .limit = {configured[i].value, configured[i].value},
            };
    return n;
}

static int process_request(struct process *process, const struct process_options *options,
                           int output, int report, char *const *argv)
{
    const struct config_group *config = options->config;
    struct spawn_fd fds[PROCESS_FDS_MAX] = {{output, 1}, {output, 2}};
    struct spawn_rlimit limits[3];
    _cleanup_free_ const char **environment = NULL;
    size_t n_fds = 2;
    int r = process_environment(process->context, options, &environment);

    if (r < 0)
        return r;
    for (size_t i = 0; i < options->n_fds && n_fds < ELEMENTS(fds); i++)
        fds[n_fds++] = options->fds[i];
    const struct spawn_options spawn_options = {
        .argv = argv,
        .environment = (char *const *)environment,
        .working_directory = config->working_directory,
        .fds = fds,
        .n_fds = n_fds,
        .pipe_output = config->type != CONFIG_ACTOR,
        .output_owner = (uint32_t)digest_bytes(DIGEST_NONE, config->name, strlen(config->name)),
        .rlimits = limits,
        .n_rlimits = process_limits(process, config, limits),
        .report_fd = report,
        .cgroup_fd = process->cgroup.fd,
        .gate_fd = watch_gate(process),
        .set_user = config->user || config->group_name,
        .uid = config->uid,
        .gid = config->gid,
        .groups = config->groups,
        .n_groups = config->n_groups,
        .sandbox = config->sandbox,
        .files = config->sandbox_files,
        .network = config->network,
        .private_pids = config->private_pids,
        .private_ipc = config->private_ipc,
        .set_nice = config->nice_set,
        .nice = config->nice,
        .set_oom_score_adjust = config->oom_score_adjust_set,
        .oom_score_adjust = config->oom_score_adjust,
    };
    return spawner_request(&process->context->spawner, &process->client, &spawn_options);
}

static int process_prepare_cgroup(struct process *process, const struct process_options *options)
{
    char name[DEATH_WORKER_MAX + 1];
    int r;

    if (!process->context->cgroups)
        return 0;
    if (process_has_mate(process)) {
        r = process_share_cgroup(process);
        return r < 0 ? r : 0;
    }
    if (snprintf(name, sizeof(name), "%s%s", process->subject.worker, options->twin ? "~" : "") >=
        (int)sizeof(name))
        return -ENAMETOOLONG;
    r = cgroup_init(&process->cgroup, process->context->cgroups, options->config, name);
    return r < 0 ? r : 0;
}

/* Opens the pipe on which the new process reports a failed start; the keeper gets the write end.
 * exec closes that end, which shows that the program runs. If the process also sends descriptors
 * (its mount namespace, the listener of its filters), a socket takes the place of the pipe. */
static int process_open_report(struct process *process, const struct config_group *config,
                               int *ret_write_fd)
{
    const struct sandbox *sandbox = config->sandbox;
    int fds[2];
    int r = fault_inject("pipe");

    if (r < 0)
        return r;
    process->report_is_socket = config->sandbox_files || (sandbox && sandbox->filter.size > 0);
    if (process->report_is_socket)
        r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds);
    else
        r = pipe2(fds, O_CLOEXEC | O_NONBLOCK);
    if (r < 0)
        return -errno;
    process->report_fd = fds[0];
    *ret_write_fd = fds[1];
    return 0;
}

static int process_launch(struct process *process, const struct process_options *options,
                          const char **ret_step)
{
    _cleanup_close_ int output = -1, report = -1;
    char **argv = NULL;
    int r;

    *ret_step = "cgroup";
    r = process_prepare_cgroup(process, options);
    if (r < 0)
        return r;
    *ret_step = "output socket";
    r = capture_open(&process->output, &output);
    if (r == 0 && options->template_fd > 0 && process_fork(process, options, output) == 0)
        return 0;
    if (r == 0)
        r = process_open_report(process, options->config, &report);
    if (r < 0)
        return r;
    *ret_step = "arguments and environment";
    r = config_expand_argv(options->config, options->slot, &argv);
    if (r < 0)
        return r;
    r = process_request(process, options, output, report, argv);
    strv_free(argv);
    return r;
}

void process_begin(struct process *process, const struct process_handler *handler)
{
    process->ended = false;
    process->awaits_output = false;
    process->early_signal = 0;
    process->error = (struct spawn_report){0};
    process->confined = false;
    process->forking = process->forked = process->cgroup_killed = false;
    free(TAKE_PTR(process->kill));
    process->handler = handler;
}

int process_start(struct process *process, const struct process_options *options,
                  const struct process_handler *handler, const char **ret_step)
{
    int r;

    process_begin(process, handler);
    process->logged = (struct call_set){0};
    process_log_calls(process, options->config);
    r = process_launch(process, options, ret_step);
    if (r < 0)
        process_release(process);
    return r;
}
