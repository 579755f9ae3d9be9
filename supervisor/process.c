/* SPDX-License-Identifier: MIT */
#include "process.h"

#include "../shared/cleanup.h"
#include "../shared/log.h"
#include "context.h"
#include "index.h"
#include "journal.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROCESS_FDS_MAX 8

/* As systemd gives it to its services. */
static const char PATH_VARIABLE[] =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static void process_log_line(const struct process *process, const char *line)
{
    char pid[16] = "";

    if (process->pid > 0)
        (void)snprintf(pid, sizeof(pid), "%d", (int)process->pid);
    /*
     * The journal's own _PID= is the sender's, ours. SYSLOG_PID= says whose words these are; from
     * OBJECT_PID=, which it takes from root alone, it looks up the rest.
     */
    const struct log_fields fields = LOG_FIELDS(
        {"TROUPE_GROUP", process->group}, {"TROUPE_WORKER", process->worker},
        {"SYSLOG_PID", *pid != '\0' ? pid : NULL}, {"OBJECT_PID", *pid != '\0' ? pid : NULL});

    if (process->context->journal)
        (void)journal_send(process->context->journal, LOG_LEVEL_INFO, process->group, fields, line);
    else
        log_write(LOG_LEVEL_INFO, fields, "[%s] %s", process->worker, line);
}

static void process_on_line(void *userdata, const char *line)
{
    struct process *process = userdata;
    /* A program says what it likes, but not the same line for ever. */
    const struct log_line what = {
        .level = LOG_LEVEL_INFO,
        .subject = process->group,
        .kind = "worker.output",
        .id = index_key(line, strlen(line)),
        .text = line,
    };

    if (log_limit_admits(&process->context->log_limits, &what))
        process_log_line(process, line);
    event_emit_line(&process->context->events, process->worker, line);
}

static void process_on_exit(void *userdata, uint32_t events)
{
    struct process *process = userdata;

    (void)events;
    loop_unwatch(process->context->loop, &process->exit_watch);
    process->ended = true;
    process->handler->ended(process);
    pacer_add(&process->context->burials, &process->burial);
}

static void process_bury(struct pacer_wish *wish)
{
    struct process *process = list_entry(wish, struct process, burial);
    struct spawn_exit how;

    /*
     * What it left behind goes with it. While it is not reaped its number, and so that of its
     * group, belongs to it: nobody else can be hit.
     */
    (void)kill(-process->pid, SIGKILL);
    if (spawn_reap(process->pidfd, &how) < 0) {
        pacer_add(&process->context->burials, &process->burial);
        return;
    }
    process->pidfd = close_fd(process->pidfd);
    process->handler->exited(process, &how);
}

void process_init(struct process *process, struct context *context, const char *group,
                  const char *worker)
{
    *process = (struct process){
        .context = context,
        .pidfd = -1,
        .cgroup = CGROUP_NULL,
        .group = group,
        .worker = worker,
    };
    pacer_wish_init(&process->burial, process_bury);
    capture_init(&process->output, context->loop, process_on_line, process);
}

void process_deinit(struct process *process)
{
    capture_deinit(&process->output);
}

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
    for (size_t i = 0; environment[i]; i++)
        if (names_same(environment[i], variable))
            return true;
    return false;
}

/* What is there is not set again. Returns how many there are then. */
static size_t add_unset(const char **environment, size_t n, const char *const *more)
{
    for (size_t i = 0; more && more[i]; i++)
        if (!is_set(environment, more[i]))
            environment[n++] = more[i];
    return n;
}

/* Borrowed strings in an owned vector: ours before the configured ones, those before the user's. */
static int process_environment(const struct process_options *options, const char ***ret)
{
    const char *const *configured = (const char *const *)options->config->environment;
    size_t room =
        count(options->environment) + count(configured) + count(options->user_environment) + 2;
    const char **environment = calloc(room, sizeof(char *));
    size_t n = 0;

    if (!environment)
        return -ENOMEM;
    n = add_unset(environment, n, options->environment);
    n = add_unset(environment, n, configured);
    n = add_unset(environment, n, options->user_environment);
    if (!is_set(environment, PATH_VARIABLE))
        environment[n++] = PATH_VARIABLE;
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

    /* Ours is higher: many programs close or allocate as many as they may have. */
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

static int process_spawn(struct process *process, const struct process_options *options, int output,
                         char *const *argv, const char **ret_step)
{
    const struct config_group *config = options->config;
    struct spawn_fd fds[PROCESS_FDS_MAX] = {{output, 1}, {output, 2}};
    struct spawn_rlimit limits[3];
    struct spawn_result result;
    _cleanup_free_ const char **environment = NULL;
    size_t n_fds = 2;
    int r;

    r = process_environment(options, &environment);
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
        .rlimits = limits,
        .n_rlimits = process_limits(process, config, limits),
        .cgroup_fd = process->cgroup.fd,
        .set_user = config->user || config->group_name,
        .uid = config->uid,
        .gid = config->gid,
        .groups = options->groups,
        .n_groups = options->n_groups,
        .set_nice = config->nice_set,
        .nice = config->nice,
        .set_oom_score_adjust = config->oom_score_adjust_set,
        .oom_score_adjust = config->oom_score_adjust,
    };
    r = spawn(&spawn_options, &result, ret_step);
    if (r < 0)
        return r;
    process->pid = result.pid;
    process->pidfd = result.pidfd;
    return 0;
}

static int process_prepare_cgroup(struct process *process, const struct process_options *options)
{
    char name[DEATH_WORKER_MAX + 1];
    int r;

    if (!process->context->cgroups)
        return 0;
    if (snprintf(name, sizeof(name), "%s%s", process->worker, options->twin ? "~" : "") >=
        (int)sizeof(name))
        return -ENAMETOOLONG;
    r = cgroup_init(&process->cgroup, process->context->cgroups, options->config, name);
    return r < 0 ? r : 0;
}

static int process_launch(struct process *process, const struct process_options *options,
                          const char **ret_step)
{
    _cleanup_close_ int output = -1;
    char **argv = NULL;
    int r;

    *ret_step = "cgroup";
    r = process_prepare_cgroup(process, options);
    if (r < 0)
        return r;
    *ret_step = "output pipe";
    r = capture_open(&process->output, &output);
    if (r < 0)
        return r;
    *ret_step = "arguments";
    r = config_expand_argv(options->config, options->slot, &argv);
    if (r < 0)
        return r;
    r = process_spawn(process, options, output, argv, ret_step);
    config_argv_free(argv);
    return r;
}

int process_start(struct process *process, const struct process_options *options,
                  const struct process_handler *handler, const char **ret_step)
{
    int r;

    process->ended = false;
    r = process_launch(process, options, ret_step);
    if (r == 0) {
        process->handler = handler;
        r = loop_watch_fd(process->context->loop, &process->exit_watch, process->pidfd, POLLIN,
                          process_on_exit, process);
        *ret_step = "pidfd";
    }
    if (r < 0)
        process_release(process);
    return r;
}

void process_signal(struct process *process, int signal)
{
    if (process->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
}

void process_kill_all(struct process *process)
{
    if (process->cgroup.fd >= 0)
        (void)cgroup_kill(&process->cgroup);
    if (process->pid > 0)
        (void)kill(-process->pid, SIGKILL);
    process_signal(process, SIGKILL);
}

bool process_take_oom_kill(struct process *process)
{
    return process->cgroup.fd >= 0 && cgroup_take_oom_kill(&process->cgroup);
}

size_t process_last_output(const struct process *process, size_t since, char *buffer, size_t size)
{
    return capture_tail(&process->output, since, buffer, size);
}

/* Watching it failed: it is taken down again before anybody has heard of it. */
static void process_abandon(struct process *process)
{
    siginfo_t info;

    process_kill_all(process);
    while (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED) < 0 && errno == EINTR)
        ;
    process->pidfd = close_fd(process->pidfd);
}

void process_release(struct process *process)
{
    if (process->pidfd >= 0)
        process_abandon(process);
    if (process->cgroup.fd >= 0)
        (void)cgroup_kill(&process->cgroup);
    process->pid = 0;
    capture_finish(&process->output);
    if (process->cgroup.fd >= 0 && cgroup_remove(&process->cgroup, process->context->cgroups) != 0)
        cgroup_deinit(&process->cgroup); /* still dying: the next start takes it over */
}
