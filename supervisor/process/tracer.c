/* SPDX-License-Identifier: MIT */
#include "supervisor/process/tracer.h"
#include "shared/base/cleanup.h"
#include "shared/protocol/trace.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRACES_MAX   8
#define PROFILES_MAX 4
#define TRACE_LIMIT  (10 * USEC_PER_SEC)

/* The copy of the process counts as memory only; what is read or unpacked of files is also data. */
#define TRACE_MEMORY  ((rlim_t)1 << 30)
#define TRACE_DATA    ((rlim_t)128 << 20)
#define TRACE_CPU_SEC 8
#define TRACE_FILES   1024
/* It is killed before any worker. */
#define TRACE_OOM_SCORE 800

static const char BUSY_PROFILES[] = "too many other profiles are being taken";
static const char NOT_STARTED[] = "troupe-trace could not be started";
static const char FAILED[] = "troupe-trace could not look at the process";
static const char NO_MEMORY[] = "out of memory";

struct trace {
    struct spawner_client client;
    struct process_context *context;
    struct list link;
    const char *group; /* only compared: the group may be gone */
    usec_t duration;   /* of a profile; 0 = one look */
    uid_t uid;         /* for whom the profile is */
    pid_t pid;
    int release_fd, output_fd, answer_fd;
    struct loop_watch release_watch;
    struct timer limit;
    bool released, killed;
    const struct trace_handler *handler; /* NULL = no caller waits */
    void *userdata;
    struct death *death;   /* to which the text goes; NULL = to the handler */
    struct trace **holder; /* of a watcher: NULL once this is gone */
};

/* The keeper, which is this process's parent, can only pass on capabilities that it has. */
static bool keeper_may_trace(void)
{
    char path[32], text[4096];
    const char *line;
    ssize_t n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)getppid());
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        n = read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    line = strstr(text, "\nCapPrm:");
    return line && strtoull(line + 8, NULL, 16) >> CAP_SYS_PTRACE & 1;
}

void tracer_init(struct tracer *tracer, const char *program)
{
    *tracer = (struct tracer){.program = access(program, X_OK) == 0 ? program : NULL,
                              .may_trace = keeper_may_trace()};
    list_init(&tracer->traces);
    list_init(&tracer->watches);
}

static void trace_free(struct trace *trace)
{
    struct loop *loop = trace->context->loop;

    spawner_forget(&trace->context->spawner, &trace->client);
    loop_unwatch(loop, &trace->release_watch);
    timer_disarm(loop_timers(loop), &trace->limit);
    close_fd(trace->release_fd);
    close_fd(trace->output_fd);
    close_fd(trace->answer_fd);
    death_unref(trace->death);
    list_unlink(&trace->link);
    trace->context->tracer.n -= trace->duration == 0;
    if (trace->holder)
        *trace->holder = NULL;
    free(trace);
}

void tracer_deinit(struct tracer *tracer)
{
    if (!tracer->traces.next)
        return;
    list_for_each_entry_safe (trace, &tracer->traces, struct trace, link)
        trace_free(trace);
}

/* ---- the end ---- */

static void release(struct trace *trace)
{
    loop_unwatch(trace->context->loop, &trace->release_watch);
    if (trace->released)
        return;
    trace->released = true;
    if (trace->handler && trace->handler->released)
        trace->handler->released(trace->userdata);
}

static void on_release(void *userdata, uint32_t events)
{
    release(userdata);
}

static void on_sampled(void *userdata, uint32_t events)
{
    const struct trace *trace = userdata;
    const bool counts = trace->handler && trace->handler->sampled(trace->userdata);

    (void)send(trace->answer_fd, &counts, sizeof(counts), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Returns the text, which the caller owns, or NULL with the reason. */
static char *read_output(const struct trace *trace, size_t *ret_size, const char **ret_missing)
{
    struct trace_output head;
    const size_t before = offsetof(struct trace_output, text);
    char *text;

    *ret_size = 0;
    *ret_missing = FAILED;
    if (pread(trace->output_fd, &head, before, 0) != (ssize_t)before || head.size == 0 ||
        head.size > (trace->duration > 0 ? TRACE_PROFILE_MAX : TRACE_TEXT_MAX))
        return NULL;
    *ret_missing = NO_MEMORY;
    text = malloc(head.size);
    if (!text)
        return NULL;
    if (pread(trace->output_fd, text, head.size, (off_t)before) != (ssize_t)head.size) {
        free(text);
        return NULL;
    }
    *ret_size = head.size;
    *ret_missing = NULL;
    return text;
}

/* Takes what was written, even if the process was killed. */
static void finish(struct trace *trace, const char *missing)
{
    size_t size = 0;
    char *text = NULL;

    if (!missing)
        text = read_output(trace, &size, &missing);
    release(trace);
    if (trace->death) {
        death_set_stack(trace->death, text, size, missing);
        event_locate(trace->context->events, trace->death);
    } else if (trace->handler) {
        trace->handler->ended(trace->userdata, text, size, missing);
    } else {
        free(text);
    }
    trace_free(trace);
}

static void on_exited(struct spawner_client *client, const struct spawn_exit *how)
{
    finish(list_entry(client, struct trace, client), NULL);
}

static void on_spawned(struct spawner_client *client, pid_t pid, int pidfd, int error)
{
    struct trace *trace = list_entry(client, struct trace, client);

    close_fd(pidfd);
    trace->pid = pid;
    if (error < 0)
        finish(trace, NOT_STARTED);
    else if (trace->killed)
        spawner_kill(&trace->context->spawner, client, pid);
}

static const struct spawner_handler TRACE_SPAWNER = {.spawned = on_spawned, .exited = on_exited};

static void kill_trace(struct trace *trace)
{
    trace->killed = true;
    if (trace->pid != 0)
        spawner_kill(&trace->context->spawner, &trace->client, trace->pid);
}

static void on_limit(struct timer *timer, usec_t now)
{
    struct trace *trace = list_entry(timer, struct trace, limit);

    if (trace->holder) {
        finish(trace, NULL);
        return;
    }
    release(trace);
    kill_trace(trace);
}

/* ---- the start ---- */

/* Whether another process of the group may be looked at: a group has no more traces than remain
 * free for all others. */
static bool has_room(const struct tracer *tracer, const char *group)
{
    size_t n = 0;

    list_for_each_entry (trace, &tracer->traces, struct trace, link)
        n += trace->group == group && trace->duration == 0;
    return n < TRACES_MAX - tracer->n;
}

/* A user has no more than remain for all others. */
static bool has_room_for_profile(const struct tracer *tracer, uid_t uid)
{
    size_t n = 0, n_of_user = 0;

    list_for_each_entry (trace, &tracer->traces, struct trace, link) {
        n += trace->duration > 0;
        n_of_user += trace->duration > 0 && trace->uid == uid;
    }
    return n_of_user < PROFILES_MAX - n;
}

/* A new process writes its report at the beginning of the file. */
int trace_open_output(void)
{
    _cleanup_close_ int fd = memfd_create("troupe-trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, sizeof(struct trace_output)) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
        lseek(fd, offsetof(struct trace_output, start), SEEK_SET) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Takes only the capabilities from the worker's sandbox: troupe-trace confines itself. */
static struct sandbox trace_sandbox(const struct config_group *config, uint64_t more)
{
    const bool ordinary = (config->user || config->group_name) && config->uid != 0;
    const uint64_t bounding = config->sandbox ? config->sandbox->bounding
                              : ordinary      ? 0
                                              : UINT64_MAX;

    return (struct sandbox){
        .bounding = bounding | more,
        .ambient = (config->sandbox ? config->sandbox->ambient : 0) | more,
        .no_new_privileges = true,
    };
}

#define LIMIT_TO(resource, value)                                                                  \
    {                                                                                              \
        (resource),                                                                                \
        {                                                                                          \
            (value), (value)                                                                       \
        }                                                                                          \
    }

static const struct spawn_rlimit LIMITS[] = {
    LIMIT_TO(RLIMIT_CPU, TRACE_CPU_SEC), LIMIT_TO(RLIMIT_AS, TRACE_MEMORY),
    LIMIT_TO(RLIMIT_DATA, TRACE_DATA), LIMIT_TO(RLIMIT_NOFILE, TRACE_FILES),
    LIMIT_TO(RLIMIT_CORE, 0)};

struct spawn_options trace_options(const struct config_group *config, uint64_t more,
                                   struct sandbox *sandbox)
{
    static char *const no_variables[] = {NULL};

    *sandbox = trace_sandbox(config, more);
    return (struct spawn_options){
        .environment = no_variables,
        .cgroup_fd = -1,
        .set_user = config->user || config->group_name,
        .uid = config->uid,
        .gid = config->gid,
        .groups = config->groups,
        .n_groups = config->n_groups,
        .rlimits = LIMITS + 1,
        .n_rlimits = ELEMENTS(LIMITS) - 1,
        .sandbox = sandbox,
        .set_oom_score_adjust = true,
        .oom_score_adjust = TRACE_OOM_SCORE,
    };
}

static int request(struct trace *trace, const struct process *process,
                   const struct config_group *config, const struct memory_crash *crash,
                   int answer_fd)
{
    const struct spawn_fd fds[] = {{process->pidfd, TRACE_FD_PROCESS},
                                   {trace->release_fd, TRACE_FD_RELEASE},
                                   {trace->output_fd, TRACE_FD_OUTPUT},
                                   {answer_fd, TRACE_FD_ANSWER}};
    const bool profile = trace->duration > 0;
    struct spawn_rlimit limits[ELEMENTS(LIMITS)];
    struct sandbox sandbox;
    struct spawn_options options = trace_options(config, 0, &sandbox);
    char numbers[6][24];
    char *argv[8] = {(char *)trace->context->tracer.program};
    const uint64_t values[] = {(uint64_t)process->pid,
                               crash ? crash->tid : 0,
                               crash ? crash->context : 0,
                               crash ? crash->python : 0,
                               crash ? crash->python_version : 0,
                               trace->duration};

    for (size_t i = 0; i < ELEMENTS(values) - !profile; i++) {
        (void)snprintf(numbers[i], sizeof(numbers[i]), "%" PRIu64, values[i]);
        argv[i + 1] = numbers[i];
    }
    options.argv = argv;
    options.fds = fds;
    options.n_fds = ELEMENTS(fds) - !profile;
    memcpy(limits, LIMITS, sizeof(limits));
    limits[0].limit.rlim_cur += trace->duration / USEC_PER_SEC; /* of CPU time */
    limits[0].limit.rlim_max += trace->duration / USEC_PER_SEC;
    options.rlimits = limits;
    options.n_rlimits = ELEMENTS(LIMITS);
    options.report_fd = trace->output_fd;
    return spawner_request(&trace->context->spawner, &trace->client, &options);
}

/* Nothing can be sent back: see channel_create(). */
static int open_answer(struct trace *trace, int *ret_theirs)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    trace->answer_fd = ends[0];
    *ret_theirs = ends[1];
    return shutdown(ends[0], SHUT_RD) < 0 ? -errno : 0;
}

static int begin(struct trace *trace, const struct process *process,
                 const struct config_group *config, const struct memory_crash *crash)
{
    struct loop *loop = trace->context->loop;
    _cleanup_close_ int answer_fd = -1;
    int r;

    trace->output_fd = trace_open_output();
    trace->release_fd = eventfd(0, EFD_CLOEXEC);
    if (trace->output_fd < 0 || trace->release_fd < 0)
        return -EMFILE;
    r = trace->duration > 0 ? open_answer(trace, &answer_fd) : 0;
    if (r == 0)
        r = loop_watch_eventfd(loop, &trace->release_watch, trace->release_fd,
                               trace->duration > 0 ? on_sampled : on_release, trace);
    if (r < 0)
        return r;
    timer_arm(loop_timers(loop), &trace->limit,
              usec_add(loop_now(loop), TRACE_LIMIT + trace->duration));
    return request(trace, process, config, crash, answer_fd);
}

/* Returns one that is listed, or -errno with the reason. */
static int trace_new(struct trace **ret, struct process *process, const struct trace_look *look,
                     const char **ret_missing)
{
    struct tracer *tracer = &process->context->tracer;
    struct trace *trace;

    *ret_missing = look->duration > 0 ? BUSY_PROFILES : TRACE_BUSY;
    if (look->duration > 0 ? !has_room_for_profile(tracer, look->uid)
                           : !has_room(tracer, process->subject.group))
        return -EBUSY;
    *ret_missing = NOT_STARTED;
    if (process->pid <= 0 || process->pidfd < 0)
        return -ESRCH;
    trace = calloc(1, sizeof(*trace));
    if (!trace)
        return -ENOMEM;
    trace->context = process->context;
    trace->group = process->subject.group;
    trace->duration = look->duration;
    trace->uid = look->uid;
    trace->release_fd = trace->output_fd = trace->answer_fd = -1;
    timer_init(&trace->limit, on_limit);
    list_push_back(&tracer->traces, &trace->link);
    tracer->n += look->duration == 0;
    *ret = trace;
    return 0;
}

int trace_start(struct trace **ret, struct process *process, const struct config_group *config,
                const struct trace_look *look, const struct trace_handler *handler, void *userdata,
                const char **ret_missing)
{
    struct trace *trace;
    int r;

    *ret_missing = TRACE_NOT_INSTALLED;
    if (!process->context->tracer.program)
        return -ENOENT;
    r = trace_new(&trace, process, look, ret_missing);
    if (r < 0)
        return r;
    trace->client.handler = &TRACE_SPAWNER;
    r = begin(trace, process, config, look->crash);
    if (r < 0) {
        trace_free(trace);
        return r;
    }
    trace->handler = handler;
    trace->userdata = userdata;
    *ret = trace;
    return 0;
}

/* ---- by a watcher ---- */

int trace_expect(struct trace **ret, struct process *process, int output_fd,
                 const struct trace_handler *handler, void *userdata, const char **ret_missing)
{
    struct loop *loop = process->context->loop;
    struct trace *trace;
    int r = trace_new(&trace, process, &(struct trace_look){0}, ret_missing);

    if (r < 0)
        return r;
    trace->output_fd = fcntl(output_fd, F_DUPFD_CLOEXEC, 3);
    if (trace->output_fd < 0) {
        trace_free(trace);
        return -EMFILE;
    }
    timer_arm(loop_timers(loop), &trace->limit, usec_add(loop_now(loop), TRACE_LIMIT));
    trace->handler = handler;
    trace->userdata = userdata;
    trace->holder = ret;
    *ret = trace;
    return 0;
}

void trace_release(struct trace *trace)
{
    if (trace)
        release(trace);
}

void trace_end(struct trace *trace)
{
    if (trace)
        finish(trace, NULL);
}

void trace_report_to(struct trace *trace, struct death *death)
{
    trace->handler = NULL;
    trace->death = death_ref(death);
}

struct trace *trace_forget(struct trace *trace)
{
    if (trace)
        trace->handler = NULL;
    if (trace && trace->duration > 0)
        kill_trace(trace);
    return NULL;
}
