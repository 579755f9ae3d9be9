/* SPDX-License-Identifier: MIT */
#include "supervisor/process/process.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include "shared/base/log.h"
#include "supervisor/event/event.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/event/output-log.h"
#include "supervisor/process/journal.h"
#include "supervisor/process/procfs.h"
#include "supervisor/process/watch.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- output ---- */

/* A line of output, and what goes with it. */
struct output {
    int level;       /* as of syslog(3) */
    const char *job; /* NULL = none */
    const char *text;
};

/* Takes a prefix such as "<3>" off. */
static void process_take_level(const struct process *process, struct output *output)
{
    const size_t size = line_level_size(output->text, strlen(output->text));

    if (!process->level_prefix || size == 0)
        return;
    output->level = output->text[1] - '0';
    output->text += size;
}

/* The log's own levels begin with LOG_LEVEL_ERROR; the journal takes all. */
static enum log_level process_log_level(const struct output *output)
{
    return output->level < LOG_LEVEL_ERROR ? LOG_LEVEL_ERROR : (enum log_level)output->level;
}

static void process_log_line(const struct process *process, const struct output *output)
{
    const struct process_subject *subject = &process->subject;
    char pid[16] = "";

    if (process->pid > 0)
        (void)snprintf(pid, sizeof(pid), "%d", (int)process->pid);
    /* The journal's _PID= is the supervisor's, so SYSLOG_PID= names the writer. Accepted from
     * root only, OBJECT_PID= makes the journal add the writer's other fields. */
    const struct log_fields fields = LOG_FIELDS(
        {"TROUPE_GROUP", subject->group}, {"TROUPE_WORKER", subject->worker},
        {"TROUPE_JOB", output->job}, {"TROUPE_KEY", *subject->key != '\0' ? subject->key : NULL},
        {"SYSLOG_PID", *pid != '\0' ? pid : NULL}, {"OBJECT_PID", *pid != '\0' ? pid : NULL});

    if (process->context->journal)
        (void)journal_send(process->context->journal, (enum log_level)output->level, subject->group,
                           fields, output->text);
    else
        log_write(process_log_level(output), fields, "[%s] %s", subject->worker, output->text);
}

/* Limits repetitions of the same line: thousands of deaths must not flood the log. The journal gets
 * all lines of a job, so that it can be asked for them. */
static bool process_logs(const struct process *process, const struct output *output)
{
    const struct limited_line what = {
        .level = process_log_level(output),
        .subject = process->subject.group,
        .kind = "worker.output",
        .id = hash_bytes(output->text, strlen(output->text)),
        .text = output->text,
    };

    return (output->job && process->context->journal) ||
           limited_log_admits(process->context->log, &what);
}

static void process_on_line(void *userdata, const char *line)
{
    struct process *process = userdata;
    struct output output = {.level = LOG_LEVEL_INFO, .text = line};
    struct process_job job;

    /* Suppressed lines may have been written for several jobs. */
    if (!process->output.is_ours && process->handler && process->handler->job &&
        process->handler->job(process, &job))
        output.job = job.id;
    process_take_level(process, &output);
    if (*output.text == '\0')
        return;
    if (process_logs(process, &output))
        process_log_line(process, &output);
    if (output.job && process->subject.log)
        output_log_add(process->subject.log, &(struct output_line){.at = clock_realtime(),
                                                                   .level = output.level,
                                                                   .job_at = job.accepted_at,
                                                                   .job = output.job,
                                                                   .text = output.text});
    event_publish(&process->context->events->line_subscribers,
                  &(struct event){.worker = process->subject.worker,
                                  .job = output.job,
                                  .message = output.text});
}

/* ---- end ---- */

/*
 * Once the pidfd reports the death, the keeper soon reaps the process, unless a descendant traces
 * it. So all remaining processes are killed repeatedly, with growing pauses; after a second a
 * traced process counts as reaped. If the process is not traced, the keeper does not run; it
 * reports the end once it runs again.
 */
#define OVERDUE_FIRST (15 * USEC_PER_MSEC)
#define OVERDUE_MAX   6
#define OVERDUE_WATCH 3
/* How long to wait for the output of a service that has ended. Only a process that holds the lock
 * of the pipe makes it take long. */
#define OUTPUT_WAIT USEC_PER_SEC

void process_resume_reap(struct process *process)
{
    timer_disarm(loop_timers(process->context->loop), &process->overdue);
    task_queue(&process->reap);
}

static void process_warn_unreaped(const struct process *process)
{
    log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_WORKER", process->subject.worker}),
              "%s: process %d is dead, but the main process does not run and cannot reap it",
              process->subject.worker, (int)process->pid);
}

static void process_on_overdue(struct timer *timer, usec_t now)
{
    struct process *process = list_entry(timer, struct process, overdue);
    const bool last = process->n_overdue >= OVERDUE_MAX - 1;
    usec_t delay;

    if (process->awaits_output) {
        process_resume_reap(process);
        return;
    }
    delay = OVERDUE_FIRST << (last ? OVERDUE_MAX : ++process->n_overdue);
    if (process->n_overdue == OVERDUE_WATCH)
        watch_kill(process);
    if (!process->rest || last)
        process_kill_all(process);
    if (!process->rest && !last)
        spawner_kill(&process->context->spawner, &process->client, process->pid);
    if (last && process->n_overdue++ == OVERDUE_MAX - 1 && !procfs_is_traced(process->pid))
        process_warn_unreaped(process);
    if (!last || !procfs_is_traced(process->pid)) {
        timer_arm(loop_timers(process->context->loop), timer, usec_add(now, delay));
        return;
    }
    log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_WORKER", process->subject.worker}),
              "%s: process %d is dead, but another process traces it: how it ended is unknown",
              process->subject.worker, (int)process->pid);
    spawner_forget(&process->context->spawner, &process->client);
    (void)process_confirm(process);
    process->exit = (struct spawn_exit){.unknown = true};
    process_resume_reap(process);
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

    process->n_overdue = 0;
    timer_arm(timers, &process->overdue, usec_add(loop_now(process->context->loop), OVERDUE_FIRST));
    process_end(process);
}

int process_watch_exit(struct process *process, int pidfd)
{
    return loop_watch_fd(process->context->loop, &process->exit_watch, pidfd, POLLIN,
                         process_on_exit, process);
}

static void process_on_reaped(struct spawner_client *client, const struct spawn_exit *how)
{
    struct process *process = list_entry(client, struct process, client);

    process->exit = *how;
    process_end(process);
    (void)process_confirm(process);
    if (process_rest_await(process))
        timer_disarm(loop_timers(process->context->loop), &process->overdue);
    else
        process_resume_reap(process);
}

/* The last output of a service is in its pump, which ends when no process has the pipe any more.
 * Returns whether it is being read now. */
static bool process_await_output(struct process *process)
{
    struct loop *loop = process->context->loop;

    if (!process->has_pump || process->output.fd < 0 || process->awaits_output)
        return false;
    process_kill_cgroup(process);
    timer_arm(loop_timers(loop), &process->overdue, usec_add(loop_now(loop), OUTPUT_WAIT));
    process->awaits_output = true;
    return true;
}

static void process_on_output_end(void *userdata)
{
    struct process *process = userdata;

    if (process->awaits_output)
        process_resume_reap(process);
}

static void process_on_reap(struct task *task)
{
    struct process *process = list_entry(task, struct process, reap);
    const struct spawn_report error = process->error;

    if (process_await_output(process) ||
        (error.error == 0 && process->handler->drained && !process->handler->drained(process)))
        return;
    process->pidfd = close_fd(process->pidfd);
    if (error.error == 0) {
        process->handler->exited(process);
        return;
    }
    process_release(process);
    process->handler->failed(process, &error);
}

/* ---- start ---- */

/* How long the report is not watched: exec closes it, and a supervisor that wakes up for that takes
 * the CPU from the new program before its first instruction. */
#define REPORT_AFTER (2 * USEC_PER_MSEC)

static void process_close_report(struct process *process)
{
    process_close_gate(process);
    timer_disarm(loop_timers(process->context->loop), &process->report);
    loop_unwatch(process->context->loop, &process->report_watch);
    process->report_fd = close_fd(process->report_fd);
}

/* Kills a process that cannot be watched. The keeper still reports its end. */
static void process_give_up(struct process *process, int error)
{
    process_close_report(process);
    process->error = (struct spawn_report){.error = error, .step = SPAWN_CLONE};
    process_kill_all(process);
    spawner_kill(&process->context->spawner, &process->client, process->pid);
}

/* `r`: what process_read_report() has returned; -EAGAIN if the process runs its program although
 * the end of file was not seen. */
static void process_take_report(struct process *process, int r, const struct spawn_report *report)
{
    process_close_report(process);
    if (r < 0 && r != -EAGAIN)
        process_give_up(process, r);
    else if (r > 0)
        process->error = *report;
    else if (process->error.error == 0)
        process->handler->started(process);
}

bool process_confirm(struct process *process)
{
    struct spawn_report report;

    if (process->pid == 0)
        return false;
    if (process->report_fd >= 0)
        process_take_report(process, process_read_report(process, &report), &report);
    return process->error.error == 0;
}

static void process_on_report(void *userdata, uint32_t events)
{
    struct process *process = userdata;
    struct spawn_report report;
    int r = process_read_report(process, &report);

    if (r != -EAGAIN)
        process_take_report(process, r, &report);
}

static void process_watch_report(struct timer *timer, usec_t now)
{
    struct process *process = list_entry(timer, struct process, report);
    int r;

    if (process->forking) {
        process_fork_failed(process, -ETIMEDOUT);
        return;
    }
    r = loop_watch_fd(process->context->loop, &process->report_watch, process->report_fd, POLLIN,
                      process_on_report, process);
    if (r < 0)
        process_give_up(process, r);
}

static void process_on_spawned(struct spawner_client *client, pid_t pid, int pidfd, int error)
{
    struct process *process = list_entry(client, struct process, client);
    struct loop *loop = process->context->loop;
    int r;

    if (error == 0 && process->forking && !process_is_at_gate(process, pid)) {
        close_fd(pidfd);
        error = -ECHILD;
    }
    if (error < 0 && process->forking) {
        process_fork_failed(process, error);
        return;
    }
    if (error < 0) {
        const struct spawn_report report = {.error = error, .step = SPAWN_CLONE};

        process_release(process);
        process->handler->failed(process, &report);
        return;
    }
    process->pid = pid;
    process->pidfd = pidfd;
    watch_attach(process);
    r = pidfd < 0 ? -EMFILE : process_watch_exit(process, pidfd);
    if (r == 0 && !process->forking)
        timer_arm(loop_timers(loop), &process->report, usec_add(loop_now(loop), REPORT_AFTER));
    if (r < 0)
        process_give_up(process, r);
    else if (process->early_signal == SIGKILL)
        process_kill_all(process);
    else if (process->early_signal != 0)
        process_signal(process, process->early_signal);
    if (r == 0 && process->forking)
        process_fork_passed(process);
}

static const struct spawner_handler PROCESS_SPAWNER = {
    .spawned = process_on_spawned,
    .exited = process_on_reaped,
};

/* ---- the keeper's end ---- */

/* Kills the process of each client. Writes the pids, if `pids` is not NULL, and returns their
 * number. */
static size_t process_end_all(struct process_context *context, pid_t *pids)
{
    const struct handle_table *clients = &context->spawner.clients;
    struct spawner_client *client;
    size_t cursor = 0, n = 0;

    while ((client = handle_table_next(clients, &cursor))) {
        if (client->handler != &PROCESS_SPAWNER)
            continue;
        struct process *process = list_entry(client, struct process, client);

        process_kill_all(process);
        if (process->pid > 0 && pids)
            pids[n++] = process->pid;
    }
    return n;
}

_Noreturn void process_context_end_with_keeper(struct process_context *context)
{
    pid_t *pids = calloc(context->spawner.clients.n_entries + 1, sizeof(*pids));
    const size_t n = process_end_all(context, pids);

    log_error("the main process was killed; killing all workers and their processes");
    survivors_kill(context->main_variable, pids, n);
    if (context->cgroups)
        cgroup_tree_deinit(context->cgroups);
    _exit(EXIT_FAILURE);
}

static void process_on_keeper_lost(struct spawner *spawner)
{
    process_context_end_with_keeper(list_entry(spawner, struct process_context, spawner));
}

int process_context_init(struct process_context *context, struct loop *loop, int channel)
{
    int r;

    context->loop = loop;
    work_queue_init(&context->reaps, loop);
    context->reaps.prompt = true;
    work_queue_init(&context->outputs, loop);
    survivors_variable(getppid(), context->main_variable);
    r = spawner_init(&context->spawner, loop, channel);
    context->spawner.keeper_lost = process_on_keeper_lost;
    return r;
}

void process_context_deinit(struct process_context *context)
{
    if (!context->loop)
        return;
    held_deinit(&context->held);
    watch_deinit(&context->tracer);
    tracer_deinit(&context->tracer);
    spawner_deinit(&context->spawner);
    work_queue_deinit(&context->reaps);
    work_queue_deinit(&context->outputs);
    kept_states_deinit(&context->kept);
}

void process_init(struct process *process, struct process_context *context,
                  const struct process_subject *subject, struct capture_memory *memory)
{
    *process = (struct process){
        .context = context,
        .client = {.handler = &PROCESS_SPAWNER},
        .pidfd = -1,
        .report_fd = -1,
        .mounts_fd = -1,
        .cgroup = CGROUP_NULL,
        .calls = CALL_LISTENER_NULL,
        .subject = *subject,
        .level_prefix = true,
    };
    task_init(&process->reap, &context->reaps, process_on_reap);
    timer_init(&process->overdue, process_on_overdue);
    timer_init(&process->report, process_watch_report);
    capture_init(&process->output, &context->outputs, memory, process_on_line, process);
    process->output.on_end = process_on_output_end;
}

void process_take_config(struct process *process, const struct config_group *config)
{
    process->level_prefix = config->syslog_level_prefix;
    process->has_pump = config->type != CONFIG_ACTOR;
    process_log_calls(process, config);
    capture_set_limit(&process->output, config->log_rate_limit_interval,
                      config->log_rate_limit_burst);
}

void process_abandon(struct process *process)
{
    struct loop *loop = process->context->loop;

    if (process->client.id == 0 && process->pid == 0)
        return;
    process_kill_all(process);
    spawner_kill(&process->context->spawner, &process->client, process->pid);
    spawner_forget(&process->context->spawner, &process->client);
    timer_disarm(loop_timers(loop), &process->overdue);
    loop_unwatch(loop, &process->exit_watch);
    process->pidfd = close_fd(process->pidfd);
    process_release(process);
}

void process_deinit(struct process *process)
{
    task_cancel(&process->reap);
    capture_deinit(&process->output);
    free(process->kill);
}

/* ---- for its owner ---- */

struct process_kill *process_note_kill(struct process *process)
{
    if (!process->kill)
        process->kill = calloc(1, sizeof(*process->kill));
    return process->kill;
}

/* The kernel counts for both processes in the cgroup. */
static void note_oom_kill(const struct process *process)
{
    struct oom_counts *other = process->mate ? &process->mate->cgroup.oom : NULL;

    if (other && process->is_template)
        other->kills++;
    else if (other)
        *other = process->cgroup.oom;
}

bool process_take_oom_kill(struct process *process)
{
    const usec_t now = loop_now(process->context->loop);
    struct process_kill *kill;
    struct oom oom;

    if (fault_inject("oom") < 0) {
        kill = process_note_kill(process);
        if (kill)
            (void)snprintf(kill->oom, sizeof(kill->oom), "as a test wants it");
        return true;
    }
    if (process->cgroup.fd < 0 || !oom_take(&process->cgroup, process->context->cgroups, now, &oom))
        return false;
    note_oom_kill(process);
    kill = process_note_kill(process);
    if (kill)
        oom_describe(&oom, kill->oom, sizeof(kill->oom));
    return true;
}

const char *process_oom(const struct process *process)
{
    return process->kill ? process->kill->oom : "without memory to say whose limit it was";
}

size_t process_last_output(const struct process *process, size_t since, char *buffer, size_t size)
{
    const size_t n = capture_tail(&process->output, since, buffer, size);

    return process->level_prefix ? line_levels_remove(buffer, n) : n;
}

void process_release(struct process *process)
{
    process_close_report(process);
    watch_end(process);
    call_listener_deinit(&process->calls);
    loop_close(process->context->loop, TAKE_FD(process->mounts_fd));
    process_kill_cgroup(process);
    process->pid = 0;
    capture_finish(&process->output);
    if (process_has_mate(process))
        cgroup_deinit(&process->cgroup);
    else
        cgroup_leave(&process->cgroup, process->context->cgroups);
    if (process->forked && process->mate)
        call_listener_pause(&process->mate->calls, false);
    FAULT_POINT("process.release");
    holding_drop(&process->holding, &process->context->spawner);
    FAULT_POINT("process.released");
}
