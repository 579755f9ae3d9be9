/* SPDX-License-Identifier: MIT */
#include "supervisor/process/process.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/index.h"
#include "shared/base/log.h"
#include "supervisor/context.h"
#include "supervisor/process/journal.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

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
    const struct limited_line what = {
        .level = LOG_LEVEL_INFO,
        .subject = process->group,
        .kind = "worker.output",
        .id = index_key(line, strlen(line)),
        .text = line,
    };

    if (limited_log_admits(&process->context->log, &what))
        process_log_line(process, line);
    event_emit_line(&process->context->events, process->worker, line);
}

/* ---- its end ---- */

/*
 * It is dead when its pidfd says so, and reaped by the keeper soon after. A descendant that traces
 * it can prevent that: it is ended with everything else that is left, again and again with growing
 * pauses; after a second the process is buried all the same.
 */
#define OVERDUE_FIRST (15 * USEC_PER_MSEC)
#define OVERDUE_MAX   6

static void process_queue_reap(struct process *process)
{
    timer_disarm(loop_timers(process->context->loop), &process->overdue);
    task_queue(&process->reap);
}

static void process_on_overdue(struct timer *timer, usec_t now)
{
    struct process *process = list_entry(timer, struct process, overdue);
    usec_t delay = OVERDUE_FIRST << ++process->n_overdue;

    process_kill_all(process);
    spawner_kill(&process->context->spawner, &process->client, process->pid);
    if (process->n_overdue < OVERDUE_MAX &&
        timer_arm(loop_timers(process->context->loop), timer, usec_add(now, delay)) == 0)
        return;
    log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_WORKER", process->worker}),
              "%s: process %d is dead, but another one traces it, so nobody can say how it ended",
              process->worker, (int)process->pid);
    spawner_forget(&process->context->spawner, &process->client);
    (void)process_confirm(process);
    process->exit = (struct spawn_exit){.unknown = true};
    process_queue_reap(process);
}

static void process_end(struct process *process)
{
    loop_unwatch(process->context->loop, &process->exit_watch);
    if (process->ended)
        return;
    process->ended = true;
    process->handler->ended(process);
}

static void process_on_exit(void *userdata, uint32_t events)
{
    struct process *process = userdata;
    struct timer_queue *timers = loop_timers(process->context->loop);

    (void)events;
    process->n_overdue = 0;
    if (timer_arm(timers, &process->overdue,
                  usec_add(loop_now(process->context->loop), OVERDUE_FIRST)) < 0)
        log_error("%s: out of memory arming a timer", process->worker);
    process_end(process);
}

static void process_on_reaped(struct spawner_client *client, const struct spawn_exit *how)
{
    struct process *process = list_entry(client, struct process, client);

    process->exit = *how;
    (void)process_confirm(process);
    process_end(process);
    process_queue_reap(process);
}

static void process_on_reap(struct task *task)
{
    struct process *process = list_entry(task, struct process, reap);
    const struct spawn_report error = process->error;

    process->pidfd = close_fd(process->pidfd);
    if (error.error == 0) {
        process->handler->exited(process, &process->exit);
        return;
    }
    process_release(process);
    process->handler->failed(process, spawn_step_to_string(error.step), error.error);
}

/* ---- its beginning ---- */

static void process_close_report(struct process *process)
{
    loop_unwatch(process->context->loop, &process->report_watch);
    process->report_fd = close_fd(process->report_fd);
}

bool process_confirm(struct process *process)
{
    struct spawn_report report;
    ssize_t n;

    if (process->pid == 0)
        return false;
    if (process->report_fd < 0)
        return true;
    n = read(process->report_fd, &report, sizeof(report));
    process_close_report(process);
    if (n == (ssize_t)sizeof(report))
        process->error = report;
    else if (process->error.error == 0)
        process->handler->started(process);
    return true;
}

static void process_on_report(void *userdata, uint32_t events)
{
    (void)events;
    (void)process_confirm(userdata);
}

/* It cannot be watched, so it is not to be. Its end is still told. */
static void process_give_up(struct process *process, int error)
{
    process_close_report(process);
    process->error = (struct spawn_report){.error = error, .step = SPAWN_CLONE};
    process_kill_all(process);
    spawner_kill(&process->context->spawner, &process->client, process->pid);
}

static void process_on_spawned(struct spawner_client *client, pid_t pid, int pidfd, int error)
{
    struct process *process = list_entry(client, struct process, client);
    struct loop *loop = process->context->loop;
    int r;

    if (error < 0) {
        process_release(process);
        process->handler->failed(process, spawn_step_to_string(SPAWN_CLONE), error);
        return;
    }
    process->pid = pid;
    process->pidfd = pidfd;
    r = pidfd < 0
            ? -EMFILE
            : loop_watch_fd(loop, &process->exit_watch, pidfd, POLLIN, process_on_exit, process);
    if (r == 0)
        r = loop_watch_fd(loop, &process->report_watch, process->report_fd, POLLIN,
                          process_on_report, process);
    if (r < 0)
        process_give_up(process, r);
    else if (process->early_signal == SIGKILL)
        process_kill_all(process);
    else if (process->early_signal != 0)
        process_signal(process, process->early_signal);
}

static const struct spawner_handler PROCESS_SPAWNER = {
    .spawned = process_on_spawned,
    .exited = process_on_reaped,
};

void process_init(struct process *process, struct context *context, const char *group,
                  const char *worker)
{
    *process = (struct process){
        .context = context,
        .client = {.handler = &PROCESS_SPAWNER},
        .pidfd = -1,
        .report_fd = -1,
        .cgroup = CGROUP_NULL,
        .group = group,
        .worker = worker,
    };
    task_init(&process->reap, &context->reaps, process_on_reap);
    timer_init(&process->overdue, process_on_overdue);
    capture_init(&process->output, context->loop, process_on_line, process);
}

void process_deinit(struct process *process)
{
    task_cancel(&process->reap);
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

static int process_request(struct process *process, const struct process_options *options,
                           int output, int report, char *const *argv)
{
    const struct config_group *config = options->config;
    struct spawn_fd fds[PROCESS_FDS_MAX] = {{output, 1}, {output, 2}};
    struct spawn_rlimit limits[3];
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
        .report_fd = report,
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
    return spawner_request(&process->context->spawner, &process->client, &spawn_options);
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

/* The keeper is given the write end; when exec closes it, the program runs. */
static int process_open_report(struct process *process, int *ret_write_fd)
{
    int fds[2];
    int r = fault_inject("pipe");

    if (r < 0)
        return r;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
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
    *ret_step = "output pipe";
    r = capture_open(&process->output, &output);
    if (r == 0)
        r = process_open_report(process, &report);
    if (r < 0)
        return r;
    *ret_step = "arguments and environment";
    r = config_expand_argv(options->config, options->slot, &argv);
    if (r < 0)
        return r;
    r = process_request(process, options, output, report, argv);
    config_argv_free(argv);
    return r;
}

int process_start(struct process *process, const struct process_options *options,
                  const struct process_handler *handler, const char **ret_step)
{
    int r;

    process->ended = false;
    process->early_signal = 0;
    process->error = (struct spawn_report){0};
    process->handler = handler;
    r = process_launch(process, options, ret_step);
    if (r < 0)
        process_release(process);
    return r;
}

/* Between the request and the keeper's answer there is no pidfd. SIGKILL is never taken back. */
void process_signal(struct process *process, int signal)
{
    if (process->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
    else if (process->early_signal != SIGKILL)
        process->early_signal = signal;
}

void process_kill_all(struct process *process)
{
    if (process->cgroup.fd >= 0)
        (void)cgroup_kill(&process->cgroup);
    /* The keeper ends its group before it reaps it. */
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

void process_release(struct process *process)
{
    process_close_report(process);
    if (process->cgroup.fd >= 0)
        (void)cgroup_kill(&process->cgroup);
    process->pid = 0;
    capture_finish(&process->output);
    if (process->cgroup.fd >= 0 && cgroup_remove(&process->cgroup, process->context->cgroups) != 0)
        cgroup_deinit(&process->cgroup); /* still dying: the next start takes it over */
}
