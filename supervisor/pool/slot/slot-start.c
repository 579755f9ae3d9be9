/* SPDX-License-Identifier: MIT */
/* Starts a worker: its rings or its notify socket, its environment, its process. */

#include "shared/base/cleanup.h"
#include "shared/base/probe.h"
#include "shared/base/utf8.h"
#include "supervisor/config/sandbox/files-compile.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/pool/slot/slot-template.h"
#include "supervisor/process/submit-socket.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The first descriptor of a worker's mailbox; its environment names them all. */
#define WORKER_FIRST_FD 3

/* What could not be done: rarely more than a few words, but a path may be long. */
#define STEP_MAX 512

static void slot_on_end(struct process *process)
{
    struct slot *slot = slot_of(process, worker.process);

    list_unlink(&slot->available_link);
    slot->worker.submits = submit_socket_free(slot->worker.submits);
}

/* Reads the answers from before the death, which count. */
static bool slot_on_drained(struct process *process)
{
    struct slot *slot = slot_of(process, worker.process);

    return !slot->worker.endpoint_open || endpoint_drain(&slot->worker.endpoint);
}

static void slot_on_exit(struct process *process)
{
    struct slot *slot = slot_of(process, worker.process);

    slot_prove_lost(slot);
    slot_event(slot, LIFECYCLE_EVENT_EXITED);
}

/* The process could not be started: [Restart] decides about the next try. */
static void slot_spawn_failed(struct slot *slot, const char *step, int error)
{
    char text[STEP_MAX + SLOT_TEXT_MAX];

    slot_disarm(slot);
    slot_close_endpoint(slot);
    notify_server_deinit(&slot->worker.notify);
    (void)snprintf(text, sizeof(text), "could not be started: %s: %s", step, strerror(-error));
    slot_set_status(slot, text);
    slot_tell(slot, (struct event){.level = LOG_LEVEL_WARNING, .type = "worker.spawn-failed"}, "%s",
              text);
    slot->worker.spawn_failed = true;
    slot_event(slot, LIFECYCLE_EVENT_SPAWN_FAILED);
}

/* Returns the path at which the sandbox of the new process has failed. NULL = at none, or the
 * configuration has changed since. */
static const struct sandbox_path *slot_path_of(const struct slot *slot,
                                               const struct spawn_report *report)
{
    const struct sandbox_files *files = slot->pool->config->sandbox_files;

    if (report->step != SPAWN_FILES || report->path == 0 || !slot_has_kept_config(slot))
        return NULL;
    return files && report->path <= files->n_paths ? &files->paths[report->path - 1] : NULL;
}

/* After a failed fork, which is no failed start. Returns false if the worker is not wanted any
 * more. */
static bool slot_executes_instead(struct slot *slot, int error)
{
    slot_template_forked(slot, error);
    if (slot->state != LIFECYCLE_STARTING)
        return false;
    slot_disarm(slot);
    slot_close_endpoint(slot);
    slot_action_spawn(slot);
    return true;
}

static void slot_on_spawn_failed(struct process *process, const struct spawn_report *report)
{
    struct slot *slot = slot_of(process, worker.process);
    const struct sandbox_path *path = slot_path_of(slot, report);
    const char *step = spawn_step_to_string(report->step);
    char text[STEP_MAX], escaped[STEP_MAX];

    if (report->step == SPAWN_TEMPLATE && slot_executes_instead(slot, report->error))
        return;
    if (path) {
        (void)snprintf(text, sizeof(text), "%s: %s", files_key(slot->pool->config, path),
                       path->path);
        (void)utf8_escape(escaped, sizeof(escaped), text, strlen(text));
        step = escaped;
    }
    /* The kernel also returns this for a script whose interpreter is missing. */
    if (report->step == SPAWN_EXEC && report->error == -ENOENT)
        step = "exec: the program, or the interpreter that it names";
    slot_spawn_failed(slot, step, report->error);
}

static void slot_on_spawned(struct process *process)
{
    struct slot *slot = slot_of(process, worker.process);

    slot_tell(slot, (struct event){.level = LOG_LEVEL_DEBUG, .type = "worker.started"}, "started");
    PROBE(worker_started, slot->pool->config->name, (const char *)slot->name, process->pid,
          slot->generation, (int)process->forked);
    slot_hold(slot);
    if (process->forked)
        slot_template_forked(slot, 0);
    if (!slot_is_actor(slot) && notify_server_hold(&slot->worker.notify, false) < 0)
        log_error("%s: out of memory watching its readiness", slot->name);
    if (slot->pool->config->type == CONFIG_SERVICE)
        slot_event(slot, LIFECYCLE_EVENT_READY);
    else if (slot->worker.readiness == WORKER_READY_EARLY && slot->worker.process.ended)
        slot->worker.readiness = WORKER_CAME_UP; /* before it ended */
    else if (slot->worker.readiness == WORKER_READY_EARLY && slot->state == LIFECYCLE_STARTING)
        slot_is_ready(slot);
}

static bool slot_output_job(struct process *process, struct process_job *ret)
{
    const struct slot *slot = slot_of(process, worker.process);
    const struct job *job = slot->n_jobs > 0 ? slot_job_at_work(slot) : NULL;

    if (!job)
        return false;
    (void)job_format_id(job, ret->id);
    ret->accepted_at = job->created_at;
    return true;
}

const struct process_handler SLOT_PROCESS = {
    .started = slot_on_spawned,
    .failed = slot_on_spawn_failed,
    .ended = slot_on_end,
    .exited = slot_on_exit,
    .drained = slot_on_drained,
    .job = slot_output_job,
};

struct slot_environment {
    char text[10][DEATH_WORKER_MAX + 32];
    const char *strings[11];
    size_t n;
};

static void slot_setenv(struct slot_environment *environment, const char *name, const char *value)
{
    char *text = environment->text[environment->n];

    assert(environment->n < ELEMENTS(environment->text));
    (void)snprintf(text, sizeof(environment->text[0]), "%s=%s", name, value);
    environment->strings[environment->n++] = text;
}

static void slot_setenv_number(struct slot_environment *environment, const char *name,
                               uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    slot_setenv(environment, name, text);
}

static void slot_describe_to_worker(struct slot *slot, struct slot_environment *environment)
{
    slot_setenv(environment, "TROUPE_WORKER", slot->name);
    slot_setenv_number(environment, "TROUPE_GENERATION", slot->generation);
    if (*slot->pool->key != '\0')
        slot_setenv(environment, "TROUPE_CELL", slot->pool->key);
    if (slot->pool->config->private_tmp == CONFIG_PRIVATE_TMP_JOB)
        slot_setenv(environment, "TROUPE_PRIVATE_TMP", "job");
}

static int slot_launch(struct slot *slot, const struct spawn_fd *fds, size_t n_fds,
                       const struct slot_environment *environment, const char **ret_step)
{
    const struct config_group *config = slot->pool->config;
    const struct process_options options = {
        .config = config,
        .slot = slot->index,
        .twin = slot->twin,
        .fds = fds,
        .n_fds = n_fds,
        .environment = environment->strings,
        .template_fd = slot_template_socket(slot),
    };

    slot_keep_config(slot);
    slot_trace_watch(slot, false);
    return process_start(&slot->worker.process, &options, &SLOT_PROCESS, ret_step);
}

static void slot_hand_over(struct slot_environment *environment, struct spawn_fd *list, size_t *n,
                           const char *name, int fd)
{
    const int number = WORKER_FIRST_FD + (int)*n;

    list[(*n)++] = (struct spawn_fd){fd, number};
    slot_setenv_number(environment, name, (uint64_t)number);
}

static bool needs_job(void *userdata, const struct job *job)
{
    const struct slot *slot = userdata;

    list_for_each (node, &slot->jobs)
        if (ties_wait_for(list_entry(node, struct job, link), job))
            return true;
    return false;
}

struct submit_socket_options slot_submit_options(struct slot *slot)
{
    return (struct submit_socket_options){
        .loop = slot_context(slot)->loop,
        .spawner = &slot_context(slot)->process->spawner,
        .server = slot_context(slot)->submits,
        .group = slot->worker.process.subject.group,
        .needs = needs_job,
        .userdata = slot,
    };
}

/* Gives the worker its socket for MaySubmit=. The caller closes `*ret_fd`, or -1. */
static int slot_hand_submits_over(struct slot *slot, struct slot_environment *environment,
                                  struct spawn_fd *list, size_t *n, int *ret_fd)
{
    const struct submit_socket_options options = slot_submit_options(slot);
    char path[32];
    int r;

    if (slot->pool->config->may_submit.n == 0)
        return 0;
    r = submit_socket_new(&slot->worker.submits, &options, slot_context(slot)->runtime_directory,
                          ret_fd);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", WORKER_FIRST_FD + (int)*n);
    list[*n] = (struct spawn_fd){*ret_fd, WORKER_FIRST_FD + (int)*n};
    (*n)++;
    slot_setenv(environment, "TROUPE_SOCKET", path);
    return 0;
}

static struct endpoint_options slot_endpoint_options(const struct slot *slot)
{
    const struct pool *pool = slot->pool;

    return (struct endpoint_options){
        .ring_size = pool->config->mailbox_size,
        .inline_max = pool->config->inline_max,
        .spin_usec = (uint32_t)pool->config->spin,
        .blobs = pool->set->blobs,
        .stock = slot_context(slot)->stock,
    };
}

void slot_prepare_successor(const struct slot *slot)
{
    const struct endpoint_options options = slot_endpoint_options(slot);

    if (options.stock && slot->plan == SLOT_ON && !slot->retired)
        endpoint_stock_fill(options.stock, slot_context(slot)->loop, &options);
}

static int slot_start_actor(struct slot *slot, const char **ret_step)
{
    const struct endpoint_options options = slot_endpoint_options(slot);
    struct slot_environment environment = {.n = 0};
    struct endpoint_fds fds;
    _cleanup_close_ int submits = -1;
    struct spawn_fd list[6];
    size_t n = 0;
    int r;

    *ret_step = "mailbox";
    r = endpoint_init(&slot->worker.endpoint, slot_context(slot)->loop, &options, &SLOT_ENDPOINT,
                      &fds);
    if (r == -EUSERS)
        *ret_step = "mailbox, as descriptors that its workers have sent do not close";
    if (r == -EBUSY)
        *ret_step = "mailbox, as too much waited at sockets of its workers to be woken";
    if (r < 0)
        return r;
    slot->worker.endpoint_open = true;
    slot->worker.wants_room = false;
    slot_trace_want(slot);
    delivery_attach(slot->actor, &slot->worker.endpoint);
    slot_describe_to_worker(slot, &environment);
    slot_hand_over(&environment, list, &n, "TROUPE_INBOX", fds.channel.inbox);
    slot_hand_over(&environment, list, &n, "TROUPE_OUTBOX", fds.channel.outbox);
    slot_hand_over(&environment, list, &n, "TROUPE_CONTROL", fds.control);
    slot_hand_over(&environment, list, &n, "TROUPE_WAIT", fds.channel.wait_fd);
    if (fds.channel.wake_fd >= 0)
        slot_hand_over(&environment, list, &n, "TROUPE_WAKE", fds.channel.wake_fd);
    r = endpoint_open(&slot->worker.endpoint);
    if (r == 0)
        r = slot_hand_submits_over(slot, &environment, list, &n, &submits);
    if (r == 0)
        r = slot_launch(slot, list, n, &environment, ret_step);
    fds.control = close_fd(fds.control);
    return r;
}

static int slot_start_service(struct slot *slot, const char **ret_step)
{
    struct slot_environment environment = {.n = 0};
    const struct config_group *config = slot->pool->config;
    _cleanup_close_ int submits = -1;
    struct spawn_fd list[1];
    size_t n = 0;
    int r;

    *ret_step = "notify socket";
    r = slot_open_notify(slot);
    if (r == -EUSERS)
        *ret_step = "notify socket, as descriptors that its user has sent do not close";
    if (r < 0)
        return r;
    slot_describe_to_worker(slot, &environment);
    slot_setenv(&environment, "NOTIFY_SOCKET", slot->worker.notify.path);
    if (config->watchdog != USEC_INFINITY)
        slot_setenv_number(&environment, "WATCHDOG_USEC", config->watchdog);
    r = slot_hand_submits_over(slot, &environment, list, &n, &submits);
    return r < 0 ? r : slot_launch(slot, list, n, &environment, ret_step);
}

void slot_close_endpoint(struct slot *slot)
{
    slot->worker.submits = submit_socket_free(slot->worker.submits);
    if (!slot->worker.endpoint_open)
        return;
    loop_unwatch(slot_context(slot)->loop, &slot->worker.owner_watch);
    slot_recover_messages(slot, NULL);
    endpoint_deinit(&slot->worker.endpoint);
    slot->worker.endpoint_open = false;
}

/* Returns a generation above all that the place has had. */
static uint64_t slot_next_generation(const struct slot *slot)
{
    const struct slot *other =
        slot->role == SLOT_MEMBER ? slot->standby : slot->pool->slots[slot->index];
    uint64_t highest = slot->generation < slot->tried ? slot->tried : slot->generation;

    if (other && highest < other->generation)
        highest = other->generation;
    if (other && highest < other->tried)
        highest = other->tried;
    return highest + 1;
}

void slot_begin_worker(struct slot *slot)
{
    slot->worker.readiness = WORKER_NOT_READY;
    slot->worker.lifeline = LIFELINE_HELD;
    slot->worker.signalled = SIGNALLED_NOT;
    slot->worker.jobs_done = 0;
    slot->worker.silent_until = 0;
    slot->worker.kill_reason = DEATH_EXIT;
    slot->worker.started_at = slot_now(slot);
    slot->health.consumed_before = slot->actor ? slot->actor->counters.consumed : 0;
    slot->health.at_work = false;
    slot->restart_at = 0;
    slot_trace_reset(slot);
    slot_disarm(slot);
}

void slot_action_spawn(struct slot *slot)
{
    const char *step = "";
    int r;

    slot->pool->slot_handler->starting(slot);
    slot->generation = slot_next_generation(slot);
    slot_set_status(slot, ""); /* why the last attempt failed */
    slot_begin_worker(slot);
    r = slot_is_actor(slot) ? slot_start_actor(slot, &step) : slot_start_service(slot, &step);
    if (r < 0)
        slot_spawn_failed(slot, step, r);
    else
        slot_arm(slot, slot->pool->config->timeout_start);
}
