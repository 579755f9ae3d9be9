/* SPDX-License-Identifier: MIT */

/* Opens the parts of the supervisor and starts the groups. */

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "supervisor/client/attachment.h"
#include "supervisor/config/names/names.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/control/control.h"
#include "supervisor/group/cell/cell-ties.h"
#include "supervisor/group/group.h"
#include "supervisor/group/order.h"
#include "supervisor/loop/closer.h"
#include "supervisor/loop/taker.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/supervisor-private.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Logs what failed. Returns `r`. */
static int failed(const char *what, int r)
{
    log_error("cannot %s: %s", what, strerror(-r));
    return r;
}

/* Once threads share the descriptor table, the kernel waits tens of milliseconds whenever the table
 * doubles. So it gets this many entries before that, which take 64 KiB of kernel memory. */
#define DESCRIPTOR_TABLE 8192

/* Workers and large payloads need descriptors. */
static void raise_descriptor_limit(struct parts *parts)
{
    struct rlimit limit;
    rlim_t n;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    parts->process.nofile = limit;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    n = limit.rlim_cur < DESCRIPTOR_TABLE ? limit.rlim_cur : DESCRIPTOR_TABLE;
    close_fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)n - 1));
}

/*
 * The first step: the kernel enables no controllers for the workers' cgroups while a process is in
 * the supervisor's original cgroup, so all helper processes must begin in the leaf. A failure is
 * not an error; see supervisor_use_cgroups().
 */
static int open_cgroups(struct supervisor *supervisor)
{
    (void)cgroup_tree_init(&supervisor->cgroups, NULL, supervisor->options->keeper);
    return 0;
}

/* Starts the thread and the processes that close descriptors: a close may block. */
static int start_helpers(struct supervisor *supervisor)
{
    int r;

    raise_descriptor_limit(&supervisor->parts);
    r = closer_start();
    if (r < 0)
        return failed("start the thread that closes descriptors", r);
    r = taker_start();
    return r < 0 ? failed("start the processes that receive descriptors", r) : 0;
}

static int open_loop(struct supervisor *supervisor)
{
    const struct loop_options options = {.kind = supervisor->options->loop,
                                         .force_eventfd = supervisor->options->force_eventfd};
    const char *reason;
    int r = loop_new(&supervisor->parts.loop, &options, &reason);

    if (r == LOOP_E_UNAVAILABLE) {
        log_error("io_uring is not available: %s", reason);
        return -ENOSYS;
    }
    if (r < 0) {
        log_error("cannot set up the event loop: %s", strerror(-r));
        return r;
    }
    if (reason)
        log_notice("the event loop uses epoll, which costs more per job: %s", reason);
    else if (loop_kind(supervisor->parts.loop) == LOOP_EPOLL)
        log_info("the event loop uses epoll, as asked for");
    loop_set_spin(supervisor->parts.loop, supervisor->parts.control.config->spin);
    taker_set_loop(supervisor->parts.loop);
    return 0;
}

static int check_notify_socket(int fd)
{
    if (fd >= 0 || fd == -ENOENT)
        return 0;
    log_error("NOTIFY_SOCKET=%s: %s; allowed: the absolute path of a socket, or @NAME for an "
              "abstract one",
              getenv("NOTIFY_SOCKET"), strerror(-fd));
    return fd;
}

static int open_notify(struct supervisor *supervisor)
{
    const char *watchdog = getenv("WATCHDOG_USEC");
    int r = check_notify_socket(supervisor->options->notify_fd);

    if (r < 0)
        return r;
    r = notify_init(&supervisor->notify, loop_timers(loop_of(supervisor)), clock_now(),
                    supervisor->options->notify_fd);
    if (r < 0)
        log_error("WATCHDOG_USEC=%s: %s; allowed: a number of microseconds, with a number or "
                  "nothing in WATCHDOG_PID=",
                  watchdog ? watchdog : "", strerror(-r));
    return r;
}

static int open_signals(struct supervisor *supervisor)
{
    int r =
        signals_init(&supervisor->signals, loop_of(supervisor), supervisor_on_signal, supervisor);

    /* The process that has looked up names for this start may have ended before. */
    names_reap();
    return r < 0 ? failed("watch for signals", r) : 0;
}

/* Services get paths in it, and sd_notify(3) takes absolute ones only. */
static int open_runtime_directory(struct supervisor *supervisor)
{
    _cleanup_free_ char *path = strdup(supervisor->options->socket_path);
    const char *directory = path ? dirname(path) : NULL;
    char absolute[PATH_MAX];

    if (directory && directory[0] != '/' && realpath(directory, absolute))
        directory = absolute;
    supervisor->runtime_directory = directory ? strdup(directory) : NULL;
    supervisor->parts.runtime_directory = supervisor->runtime_directory;
    return supervisor->runtime_directory ? 0 : failed("use the control socket's path", -ENOMEM);
}

/* Reserved for clients that may change things, half of them for starting workers. */
#define DESCRIPTORS_RESERVED 64

/* The memory of what clients and workers wait for, and of answers that they have not read. */
#define WAITS_MEMORY_MAX (UINT64_C(512) << 20)

/* Divides the descriptors among payloads and clients. */
static void divide_descriptors(struct parts *parts)
{
    struct rlimit limit;
    rlim_t reserve;

    parts->jobs.blobs.bytes_max = WAITS_MEMORY_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    if (limit.rlim_cur > INT_MAX)
        limit.rlim_cur = INT_MAX;
    parts->jobs.blobs.max = limit.rlim_cur / 2;
    parts->jobs.blobs.fd_max = (int)(limit.rlim_cur - limit.rlim_cur / 4);
    reserve = limit.rlim_cur / 8 < DESCRIPTORS_RESERVED ? limit.rlim_cur / 8 : DESCRIPTORS_RESERVED;
    parts->control.fds_for_all = (int)(limit.rlim_cur - reserve);
    parts->control.fds_for_clients = (int)(limit.rlim_cur - reserve / 2);
}

/* Returns the path of troupe-trace, which is beside the supervisor's program. Static. */
static const char *trace_program(const struct supervisor_options *options)
{
    static char path[PATH_MAX];
    const char *slash = options->program ? strrchr(options->program, '/') : NULL;

    (void)snprintf(path, sizeof(path), "%.*s/troupe-trace",
                   slash ? (int)(slash - options->program) : 0, slash ? options->program : "");
    return path;
}

static int open_parts(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    int r;

    parts->control.keeper = supervisor->options->keeper;
    parts_connect(parts);
    /* First what cannot fail: after a failure, supervisor_free() ends everything. */
    work_queue_init(&parts->announcements, parts->loop);
    alarms_init(&parts->alarms, parts->loop);
    tracer_init(&parts->process.tracer, trace_program(supervisor->options));
    r = process_context_init(&parts->process, parts->loop, supervisor->options->channel);
    if (r < 0)
        return failed("watch the channel to the keeper", r);
    parts->control.started_at = clock_realtime();
    backoff_random_seed(&parts->random, clock_realtime());
    death_log_resize(&parts->deaths, parts->control.config->deaths_max);
    dead_letters_resize(&parts->messages.dead_letters, parts->control.config->dead_letters_max,
                        parts->control.config->dead_letters_memory_max);
    r = event_bus_init(&parts->events);
    parts->events.log = &parts->log;
    if (r == 0)
        r = limited_log_init(&parts->log, parts->loop);
    if (r == 0)
        r = job_table_init(&parts->jobs);
    parts->jobs.free_record = durable_job_free;
    parts->jobs.loop = parts->loop;
    parts->jobs.ties.handler = &CELL_TIES;
    parts->jobs.ties.userdata = &parts->durable;
    divide_descriptors(parts);
    return r < 0 ? failed("set up the tables of jobs and events", r) : 0;
}

/* The keeper sends all of it in one go. */
#define HELD_TIMEOUT (120 * USEC_PER_SEC)

/* The numbers that the next supervisor continues; in the memory of kept-state.h. */
struct kept_numbers {
    uint64_t job_ids; /* jobs that workers have in hand are found by ids made with it */
    struct dead_letter_tally letters;
    usec_t clock_origin;  /* of clock_steady(), so that dates by it stay valid */
    uint64_t last_client; /* the next client does not get the address of one that has ended */
    uint8_t wake;         /* enum wake_backend of the workers */
    uint8_t store_opened; /* by this supervisor, or one before */
};

/* Workers that continue are woken as before. If that is by futexes, epoll cannot wait for them: the
 * workers are replaced after a crash, and an upgrade is refused. io_uring can do both. */
static int resume_wake(struct parts *parts, struct kept_numbers *numbers, bool found)
{
    const bool eventfd = found && numbers->wake == WAKE_EVENTFD;

    if (parts->control.predecessors.upgrading && loop_kind(parts->loop) == LOOP_EPOLL && !eventfd) {
        log_error("the workers are woken by futexes, which only io_uring can wait for, and the "
                  "event loop would use epoll now: allow io_uring, or stop trouped and start it");
        return -ENOTSUP;
    }
    if (eventfd)
        loop_use_eventfds(parts->loop);
    else
        numbers->wake = (uint8_t)loop_wake_backend(parts->loop);
    return 0;
}

static int resume_numbers(struct parts *parts)
{
    static struct kept_numbers not_kept;
    bool found = false;
    struct kept_state *kept = kept_state_open(&parts->process.kept, ":supervisor", &found);
    struct kept_numbers *numbers = kept ? (struct kept_numbers *)(void *)kept->data : &not_kept;

    if (found)
        parts->jobs.random_high = numbers->job_ids;
    numbers->job_ids = parts->jobs.random_high;
    numbers->clock_origin = clock_set_origin(numbers->clock_origin);
    if (numbers->last_client > CLIENT_NUMBER_MAX) {
        log_warning("the number of the last client that was kept is damaged: %" PRIu64,
                    numbers->last_client);
        numbers->last_client = 0;
    }
    parts->messages.last_client = &numbers->last_client;
    parts->durable.opened = &numbers->store_opened;
    dead_letters_resume(&parts->messages.dead_letters, &numbers->letters);
    return resume_wake(parts, numbers, found);
}

static int collect_held(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    struct held_table *held = &parts->process.held;
    int r = held_collect(held, &parts->process.spawner, HELD_TIMEOUT);

    if (r == -EPIPE)
        process_context_end_with_keeper(&parts->process);
    if (r == 0)
        r = process_context_adopt(&parts->process);
    if (r < 0)
        return failed("take over what the keeper holds", r);
    ended_attempts_init(&parts->durable.attempts, kept_states_attempts(&parts->process.kept));
    parts->control.predecessors = held->end;
    return resume_numbers(parts);
}

/* Refuses a first start without a directory, and an upgrade with a problem: the old program may
 * understand the configuration. */
static int refuse_problem(struct supervisor *supervisor)
{
    const struct control_context *control = &supervisor->parts.control;

    if (control->config_problem && control->predecessors.upgrading)
        return -EINVAL;
    return control->predecessors.first ? supervisor->config_error : 0;
}

/* Sets the variable by which services that are clients find this supervisor, and no other one. */
static int name_socket(struct supervisor *supervisor)
{
    const char *path = supervisor->options->socket_path, *slash = strrchr(path, '/');

    if (asprintf(&supervisor->socket_variable, "TROUPE_SOCKET=%s/%s", supervisor->runtime_directory,
                 slash ? slash + 1 : path) < 0) {
        supervisor->socket_variable = NULL;
        return failed("use the control socket's path", -ENOMEM);
    }
    supervisor->parts.process.socket_variable = supervisor->socket_variable;
    return 0;
}

int supervisor_open(struct supervisor *supervisor)
{
    static int (*const steps[])(struct supervisor * supervisor) = {
        open_cgroups,
        supervisor_load_config,
        start_helpers,
        open_runtime_directory,
        open_loop,
        open_parts,
        name_socket,
        collect_held,
        supervisor_settle_config,
        refuse_problem,
        open_notify,
        open_signals,
        supervisor_open_socket,
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ELEMENTS(steps); i++)
        r = steps[i](supervisor);
    return r;
}

void supervisor_use_cgroups(struct supervisor *supervisor)
{
    const char *missing = cgroup_tree_missing(&supervisor->cgroups);

    supervisor->cgroups.loop = supervisor->parts.loop;
    if (supervisor->cgroups.fd >= 0)
        supervisor->parts.process.cgroups = &supervisor->cgroups;
    supervisor->parts.control.cgroups_text = supervisor->cgroups.text;
    if (missing)
        log_notice("cgroups: %s", missing);
}

/* Only cells ask for a review, so a group without cells gets it here. */
static void review_drains(const struct registry *registry)
{
    registry_each_group (group, registry)
        if (group->cells.n_cells == 0)
            group_review_drain(group);
}

int supervisor_make_groups(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    struct reload_changes changes = {0};
    int r;

    supervisor_restore_saved(supervisor, UPGRADE_REFERENCES);
    parts->process.kept.for_next = true;
    supervisor_await_limits(supervisor);
    r = fault_inject("groups");
    if (r == 0)
        r = reload_add_groups(parts, supervisor->config);
    if (r == 0)
        r = reload_take_exchanges(parts, supervisor->config, &changes);
    if (r == 0)
        r = plans_take(&parts->plans, supervisor->config, NULL, NULL, NULL);
    strv_free(changes.added);
    parts->process.kept.for_next = r < 0;
    return r;
}

void supervisor_start_groups(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;

    parts->process.kept.for_next = false;
    supervisor_open_store(supervisor);
    supervisor_open_history(supervisor);
    supervisor_restore_saved(supervisor, UPGRADE_GROUPS);
    supervisor_enter_safe_mode(supervisor);
    groups_resume(&parts->groups);
    supervisor_restore_saved(supervisor, UPGRADE_JOBS);
    handle_table_link_free(&parts->jobs.handles);
    control_adopt_clients(supervisor->control, &parts->process.held);
    supervisor_restore_saved(supervisor, UPGRADE_MESSAGES);
    groups_remove_missing(&parts->groups);
    process_context_settle(&parts->process);
    review_drains(&parts->registry);
    order_start(&parts->registry);
    plans_start(&parts->plans);
}
