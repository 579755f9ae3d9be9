/* SPDX-License-Identifier: MIT */

/* Upgrades the supervisor: the new program checks whether it could start, then this one ends, and
 * the keeper starts the new one. */

#include "shared/base/cleanup.h"
#include "supervisor/control/service-change.h"
#include "supervisor/keeper/keeper.h"
#include "supervisor/loop/taker.h"
#include "supervisor/store/database.h"
#include "supervisor/supervisor-private.h"
#include "supervisor/upgrade/kinds.h"
#include "supervisor/upgrade/save.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Looking up users and files takes up to 20 s. */
#define CHECK_TIMEOUT (30 * USEC_PER_SEC)
/* The keeper may be busy. */
#define HAND_OVER_TIMEOUT (10 * USEC_PER_SEC)
#define REASON_MAX        2048
/* Takers answer immediately unless they are stopped. */
#define SETTLE_TIMEOUT (100 * USEC_PER_MSEC)
/* How long to wait for the disk of the store, and of the history. */
#define REST_TIMEOUT (10 * USEC_PER_SEC)

/* ---- the check ---- */

static void end_check(struct upgrade *upgrade, struct loop *loop)
{
    timer_disarm(loop_timers(loop), &upgrade->timeout);
    upgrade->output_fd = close_fd(upgrade->output_fd);
    upgrade->report_fd = close_fd(upgrade->report_fd);
    upgrade->pid = 0;
    upgrade->checking = upgrade->late = false;
}

static void fail(struct supervisor *supervisor, const char *reason)
{
    log_error("no upgrade: %s", reason);
    list_for_each_entry_safe (call, &supervisor->upgrade.calls, struct upgrade_call, link) {
        list_unlink(&call->link);
        call->failed(call, reason);
    }
}

/* Nothing has changed: the check could not be started. */
static void fail_with(struct supervisor *supervisor, const char *step, int error)
{
    char reason[REASON_MAX];

    end_check(&supervisor->upgrade, loop_of(supervisor));
    (void)snprintf(reason, sizeof(reason), "%s: %s: %s", supervisor->options->program, step,
                   strerror(-error));
    fail(supervisor, reason);
}

/* Reads the output of the check into one line. */
static void read_output(int fd, char *buffer, size_t size)
{
    ssize_t n = read(fd, buffer, size - 1);

    if (n < 0)
        n = 0;
    while (n > 0 && buffer[n - 1] == '\n')
        n--;
    buffer[n] = '\0';
    for (char *line = buffer; (line = strchr(line, '\n'));)
        *line = ' ';
}

/* Nothing has changed: the new program may not take over. */
static void give_up(struct supervisor *supervisor, const char *reason)
{
    supervisor->upgrade.approved = false;
    timer_disarm(loop_timers(loop_of(supervisor)), &supervisor->upgrade.timeout);
    supervisor_resume_stores(supervisor);
    fail(supervisor, reason);
}

/* Whether something cannot be written for lack of space: the next supervisor would not know of it.
 */
static bool is_stuck(const struct supervisor *supervisor, char problem[REASON_MAX])
{
    const char *text = supervisor_stuck_store(supervisor);

    if (text)
        (void)snprintf(problem, REASON_MAX, "what has ended is not written yet: %s", text);
    return text;
}

/* Ends the loop once the stores rest and no taker is at work, for which it waits SETTLE_TIMEOUT: a
 * blob that a taker has received is lost if its record is not read. */
static void stop(struct loop_deferred *deferred)
{
    struct supervisor *supervisor = supervisor_of(deferred, upgrade.stop);
    struct upgrade *upgrade = &supervisor->upgrade;
    struct loop *loop = loop_of(supervisor);
    char problem[REASON_MAX];

    if (!supervisor_rest_stores(supervisor)) {
        if (is_stuck(supervisor, problem))
            give_up(supervisor, problem);
        return;
    }
    if (upgrade->stop_by == 0)
        upgrade->stop_by = usec_add(loop_now(loop), SETTLE_TIMEOUT);
    if (taker_is_asked() && loop_now(loop) < upgrade->stop_by) {
        loop_defer(loop, deferred);
        return;
    }
    timer_disarm(loop_timers(loop), &upgrade->timeout);
    loop_stop(loop);
}

static void approve(struct supervisor *supervisor)
{
    struct upgrade *upgrade = &supervisor->upgrade;
    struct loop *loop = loop_of(supervisor);

    log_notice("upgrading to %s", supervisor->options->program);
    upgrade->approved = true;
    upgrade->stop_by = 0;
    timer_arm(loop_timers(loop), &upgrade->timeout, usec_add(loop_now(loop), REST_TIMEOUT));
    loop_defer(loop, &upgrade->stop);
}

static void on_checked(struct spawner_client *client, const struct spawn_exit *how)
{
    struct supervisor *supervisor = supervisor_of(client, upgrade.client);
    struct upgrade *upgrade = &supervisor->upgrade;
    char output[REASON_MAX], reason[2 * REASON_MAX];
    struct spawn_report report;
    bool late;

    if (read(upgrade->report_fd, &report, sizeof(report)) == (ssize_t)sizeof(report)) {
        fail_with(supervisor, spawn_step_to_string(report.step), report.error);
        return;
    }
    read_output(upgrade->output_fd, output, sizeof(output));
    late = upgrade->late;
    end_check(upgrade, loop_of(supervisor));
    if (!late && !how->unknown && !how->signalled && how->code == EXIT_SUCCESS) {
        approve(supervisor);
        return;
    }
    (void)snprintf(reason, sizeof(reason), "%s --check %s %d%s%s", supervisor->options->program,
                   how->signalled ? "was killed by signal" : "exited with status", how->code,
                   *output ? ": " : "", output);
    fail(supervisor, reason);
}

static void on_spawned(struct spawner_client *client, pid_t pid, int pidfd, int error)
{
    struct supervisor *supervisor = supervisor_of(client, upgrade.client);

    close_fd(pidfd);
    supervisor->upgrade.pid = pid;
    if (error < 0)
        fail_with(supervisor, spawn_step_to_string(SPAWN_CLONE), error);
    else if (supervisor->upgrade.late)
        spawner_kill(&supervisor->parts.process.spawner, client, pid);
}

static const struct spawner_handler CHECK = {.spawned = on_spawned, .exited = on_checked};

static void on_timeout(struct timer *timer, usec_t now)
{
    struct supervisor *supervisor = supervisor_of(timer, upgrade.timeout);
    struct upgrade *upgrade = &supervisor->upgrade;

    if (upgrade->approved) {
        give_up(supervisor, STORE_SLOW_TEXT);
        return;
    }
    if (upgrade->pid != 0) {
        spawner_kill(&supervisor->parts.process.spawner, &upgrade->client, upgrade->pid);
        return;
    }
    /* The keeper is stopped or busy: the check ends as soon as it begins. */
    upgrade->late = true;
    timer_arm(loop_timers(loop_of(supervisor)), timer, usec_add(now, CHECK_TIMEOUT));
    fail(supervisor, "the main process does not answer");
}

/* The environment of this process and KEEPER_VARIABLE: a vector, owned by the caller, of borrowed
 * strings. */
static char **check_environment(char *variable)
{
    size_t n = 0;
    char **strings;

    while (environ[n])
        n++;
    strings = calloc(n + 2, sizeof(*strings));
    if (!strings)
        return NULL;
    memcpy(strings, environ, n * sizeof(*strings));
    strings[n] = variable;
    return strings;
}

static int request_check(struct supervisor *supervisor, int output, int report)
{
    const struct supervisor_options *options = supervisor->options;
    char variable[PATH_MAX + 64], layout[17];
    _cleanup_free_ char **environment = check_environment(variable);
    const char *const argv[] = {
        options->program, "--check", "--config", options->config_directory,
        "--layout",       layout,    NULL,
    };

    if (!environment)
        return -ENOMEM;
    (void)snprintf(layout, sizeof(layout), "%" PRIx64, upgrade_layout());
    (void)snprintf(variable, sizeof(variable), "%s=-1 -1 %d %s", KEEPER_VARIABLE, MESSAGE_VERSION,
                   options->program);
    return spawner_request(
        &supervisor->parts.process.spawner, &supervisor->upgrade.client,
        &(struct spawn_options){
            .argv = (char *const *)argv,
            .environment = environment,
            .fds = (const struct spawn_fd[]){{output, STDOUT_FILENO}, {output, STDERR_FILENO}},
            .n_fds = 2,
            .report_fd = report,
            .cgroup_fd = -1,
        });
}

static int open_pipe(int *ret_read_fd, int *ret_write_fd)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    *ret_read_fd = fds[0];
    *ret_write_fd = fds[1];
    return 0;
}

static int begin_check(struct supervisor *supervisor)
{
    struct upgrade *upgrade = &supervisor->upgrade;
    struct loop *loop = loop_of(supervisor);
    _cleanup_close_ int output = -1, report = -1;
    int r = open_pipe(&upgrade->output_fd, &output);

    if (r == 0)
        r = open_pipe(&upgrade->report_fd, &report);
    if (r < 0)
        return r;
    timer_arm(loop_timers(loop), &upgrade->timeout, usec_add(loop_now(loop), CHECK_TIMEOUT));
    return request_check(supervisor, output, report);
}

/* ---- the upgrade ---- */

static void begin(struct loop_deferred *deferred)
{
    struct supervisor *supervisor = supervisor_of(deferred, upgrade.begin);
    struct upgrade *upgrade = &supervisor->upgrade;
    int r;

    if (upgrade->checking || upgrade->approved || list_empty(&upgrade->calls) ||
        supervisor->parts.control.state != CONTROL_RUNNING || !list_empty(&supervisor->reloads) ||
        supervisor_store_is_restoring(supervisor))
        return;
    upgrade->checking = true;
    r = begin_check(supervisor);
    if (r < 0)
        fail_with(supervisor, "cannot start the check", r);
}

/* Waits while the supervisor starts, reloads or reads durable jobs, and joins an upgrade that is
 * under way. */
static void supervisor_upgrade(void *userdata, struct upgrade_call *call)
{
    struct supervisor *supervisor = userdata;

    list_init(&call->link);
    list_push_back(&supervisor->upgrade.calls, &call->link);
    if (supervisor->parts.control.state == CONTROL_STOPPING)
        fail(supervisor, "the supervisor is stopping");
    else
        supervisor_resume_upgrade(supervisor);
}

void supervisor_resume_upgrade(struct supervisor *supervisor)
{
    if (!list_empty(&supervisor->upgrade.calls))
        loop_defer(loop_of(supervisor), &supervisor->upgrade.begin);
}

void supervisor_init_upgrade(struct supervisor *supervisor)
{
    struct upgrade *upgrade = &supervisor->upgrade;

    *upgrade = (struct upgrade){.client.handler = &CHECK, .output_fd = -1, .report_fd = -1};
    list_init(&upgrade->calls);
    loop_deferred_init(&upgrade->begin, begin);
    loop_deferred_init(&upgrade->stop, stop);
    timer_init(&upgrade->timeout, on_timeout);
    supervisor->parts.control.upgrade = supervisor_upgrade;
}

void supervisor_end_upgrade(struct supervisor *supervisor)
{
    struct upgrade *upgrade = &supervisor->upgrade;

    spawner_kill(&supervisor->parts.process.spawner, &upgrade->client, upgrade->pid);
    spawner_forget(&supervisor->parts.process.spawner, &upgrade->client);
    end_check(upgrade, loop_of(supervisor));
    loop_undefer(&upgrade->begin);
    loop_undefer(&upgrade->stop);
    if (upgrade->approved || !list_empty(&upgrade->calls))
        give_up(supervisor, "the supervisor is stopping");
}

/* ---- what only the process knows ---- */

/* Returns `buffer`. */
static const char *saved_path(const struct supervisor *supervisor, char buffer[PATH_MAX])
{
    (void)snprintf(buffer, PATH_MAX, "%s.upgrade", supervisor->options->socket_path);
    return buffer;
}

/* Returns whether it was saved. */
static bool save_all(struct supervisor *supervisor, char problem[REASON_MAX])
{
    char path[PATH_MAX];
    int r;

    /* This supervisor answers calls that wait for the disk. */
    if (!supervisor_settle_store(supervisor)) {
        if (!is_stuck(supervisor, problem))
            (void)snprintf(problem, REASON_MAX, "%s", STORE_SLOW_TEXT);
        return false;
    }
    r = save(saved_path(supervisor, path), &supervisor->parts.groups);
    if (r < 0)
        (void)snprintf(problem, REASON_MAX, "%.1024s.new: %s", path, strerror(-r));
    return r == 0;
}

bool supervisor_save(struct supervisor *supervisor)
{
    char problem[REASON_MAX];

    notify_alive(&supervisor->notify, clock_now());
    if (save_all(supervisor, problem))
        return true;
    give_up(supervisor, problem);
    return false;
}

/* Opens what the predecessor has saved, if there is anything. Returns 0 or -errno. */
static int open_saved(struct supervisor *supervisor)
{
    const struct message_held_end *predecessors = &supervisor->parts.control.predecessors;
    char path[PATH_MAX];
    int r;

    if (predecessors->first)
        return 0;
    r = saved_file_open(&supervisor->upgrade.saved, saved_path(supervisor, path), upgrade_layout());
    /* After a crash, the file is used only once: it may be the cause. */
    if (!predecessors->upgrading)
        (void)unlink(path);
    return r == -ENOENT ? 0 : r;
}

void supervisor_restore_saved(struct supervisor *supervisor, enum upgrade_stage stage)
{
    char path[PATH_MAX];
    int r = stage == UPGRADE_REFERENCES ? open_saved(supervisor) : 0;

    if (r < 0) {
        log_error("cannot bring back what was saved for the upgrade: %s: %s",
                  saved_path(supervisor, path),
                  r == -EUCLEAN ? "another program wrote it, or it is cut off" : strerror(-r));
        if (supervisor->parts.control.predecessors.upgrading)
            _exit(EXIT_FAILURE); /* the keeper still holds all for the old program */
        supervisor_forget_saved(supervisor);
    }
    if (supervisor->upgrade.saved)
        upgrade_restore(stage, &supervisor->parts.groups, supervisor->upgrade.saved);
}

void supervisor_forget_saved(struct supervisor *supervisor)
{
    char path[PATH_MAX];

    supervisor->upgrade.saved = saved_file_close(supervisor->upgrade.saved);
    (void)unlink(saved_path(supervisor, path));
}

/* State that is neither held by the keeper, nor saved, nor in the store of durable jobs is lost
 * here, as in a crash. */
void supervisor_hand_over(struct supervisor *supervisor)
{
    notify_alive(&supervisor->notify, clock_now());
    (void)spawner_drain(&supervisor->parts.process.spawner, HAND_OVER_TIMEOUT);
}

/* ---- the check of this program ---- */

/* Checks whether a supervisor could start: `trouped --check`. It changes nothing, and another one
 * may be running. */

static bool needs_store(const struct config *config)
{
    for (size_t i = 0; i < config->n_groups; i++)
        if (config->groups[i]->durable)
            return true;
    return false;
}

/* A damaged or missing store is no error: a supervisor starts without it. Only a store of a newer
 * version is refused, as this version could not take over the jobs in it. */
static int check_store(const struct config *config)
{
    char problem[DATABASE_PROBLEM_MAX];
    _cleanup_free_ char *path = NULL;
    int r;

    if (!needs_store(config))
        return 0;
    path = supervisor_store_path(&config->daemon);
    if (!path)
        return -ENOMEM;
    r = database_check_format(path, problem);
    if (r < 0)
        log_error("%s", problem);
    return r;
}

/* A mistake in a group's files is no error: the supervisor starts without that group. */
static int check_config(const char *directory, struct config **ret)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    int r = config_read(ret, directory, &problems);

    reload_log_problems(&problems);
    if (r < 0)
        log_error("%s: cannot read the configuration: %s", directory, strerror(-r));
    for (size_t i = 0; r > 0 && i < problems.n_problems; i++)
        if (!config_group_of_problem(*ret, directory, &problems.problems[i]))
            r = -EINVAL;
    config_problems_deinit(&problems);
    return r < 0 ? r : 0;
}

int supervisor_check(const struct supervisor_options *options)
{
    struct config *config = NULL;
    int r = check_config(options->config_directory, &config);

    if (r == 0)
        r = check_store(config);
    if (r == 0)
        printf("trouped " TROUPE_VERSION ": ok\n");
    config_free(config);
    return r;
}
