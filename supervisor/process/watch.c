/* SPDX-License-Identifier: MIT */
#include "supervisor/process/watch.h"
#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "shared/base/utf8.h"
#include "shared/protocol/trace.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define NOTICES_MAX 16 /* in a turn */
/* Longer than any look takes. */
#define LAST_LIMIT (12 * USEC_PER_SEC)
/* How long a watcher that is not busy may take to notice the death of its process. */
#define KILL_LIMIT (100 * USEC_PER_MSEC)

static const char NOT_STARTED[] = "the watcher for CrashStacks= could not be started";
static const char NOT_ATTACHED[] =
    "the watcher for CrashStacks= may not trace it: troupe.group(5), CrashStacks=";
static const char TOO_EARLY[] = "it ended before it was watched";
static const char GONE[] = "the watcher for CrashStacks= has ended";
static const char FAILED[] = "troupe-trace could not look at the process";
static const char UNSEEN[] = "the watcher for CrashStacks= was not told, or was busy";

struct watch {
    struct spawner_client client;
    struct process_context *context;
    struct list link;
    struct process *process; /* NULL = it is gone */
    pid_t pid;               /* the watcher's; 0 = not known yet */
    uint64_t owner;          /* of what is in `fd`: see taker.h */
    int fd, output_fd, gate_fd;
    struct loop_watch readable;
    bool attached, ended;
    struct trace *trace; /* what it is looking at; NULL = nothing */
    struct timer limit;  /* armed once the process is killed or gone: the watcher may be stopped */
    const struct watch_handler *handler;
    void *userdata;
};

/* ---- its end ---- */

static void watch_free(struct watch *watch, const char *missing)
{
    if (watch->process) {
        watch->process->watch = NULL;
        watch->process->watch_missing = missing;
    }
    trace_end(watch->trace);
    loop_unwatch(watch->context->loop, &watch->readable);
    timer_disarm(loop_timers(watch->context->loop), &watch->limit);
    if (watch->pid > 0 && !watch->ended)
        spawner_kill(&watch->context->spawner, &watch->client, watch->pid);
    spawner_forget(&watch->context->spawner, &watch->client);
    close_fd(watch->gate_fd);
    /* The watcher ends when this is shut down. */
    loop_close_owned(watch->context->loop, watch->fd, watch->owner);
    close_fd(watch->output_fd);
    list_unlink(&watch->link);
    free(watch);
}

void watch_deinit(struct tracer *tracer)
{
    if (!tracer->watches.next)
        return;
    list_for_each_entry_safe (watch, &tracer->watches, struct watch, link)
        watch_free(watch, NULL);
}

static void on_limit(struct timer *timer, usec_t now)
{
    watch_free(list_entry(timer, struct watch, limit), GONE);
}

void watch_limit(struct process *process)
{
    struct watch *watch = process->watch;
    struct loop *loop = process->context->loop;

    if (watch && !timer_armed(&watch->limit))
        timer_arm(loop_timers(loop), &watch->limit,
                  usec_add(loop_now(loop), watch->trace ? LAST_LIMIT : KILL_LIMIT));
}

void watch_kill(struct process *process)
{
    if (process->watch)
        watch_free(process->watch, GONE);
}

void watch_end(struct process *process)
{
    struct watch *watch = process->watch;

    if (!watch)
        return;
    watch->process = NULL;
    process->watch = NULL;
    process->watch_missing = TOO_EARLY;
    if (!watch->trace)
        watch_free(watch, NULL);
    else
        timer_arm(loop_timers(watch->context->loop), &watch->limit,
                  usec_add(loop_now(watch->context->loop), LAST_LIMIT));
}

static void on_exited(struct spawner_client *client, const struct spawn_exit *how)
{
    struct watch *watch = list_entry(client, struct watch, client);

    watch->ended = true;
    watch_free(watch, watch->attached ? GONE : NOT_STARTED);
}

static void on_spawned(struct spawner_client *client, pid_t pid, int pidfd, int error)
{
    struct watch *watch = list_entry(client, struct watch, client);

    close_fd(pidfd);
    watch->pid = pid;
    if (error == 0)
        return;
    /* Nobody else has the gate, in whose hands this could block. */
    (void)eventfd_write(watch->gate_fd, 1);
    watch_free(watch, NOT_STARTED);
}

static const struct spawner_handler WATCH_SPAWNER = {.spawned = on_spawned, .exited = on_exited};

/* ---- what it tells ---- */

static void order(const struct watch *watch, const struct watch_order *what, int fd)
{
    const struct iovec data = {.iov_base = (void *)(uintptr_t)what, .iov_len = sizeof(*what)};

    (void)scm_send(watch->fd, data, &fd, fd >= 0, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_crash(struct watch *watch, const struct watch_notice *notice)
{
    struct watch_crash crash = {
        .pid = notice->pid, .inner_pid = notice->inner_pid, .signal = notice->signal};
    const char *missing = FAILED;
    int r = notice->error < 0 ? -ENOENT : -EBUSY;

    if (watch->process && !watch->trace && notice->error == 0)
        r = trace_expect(&watch->trace, watch->process, watch->output_fd, watch->handler->trace,
                         watch->userdata, &missing);
    order(watch, &(struct watch_order){.kind = r == 0 ? WATCH_UNWIND : WATCH_DROP}, -1);
    (void)utf8_escape(crash.name, sizeof(crash.name), notice->name,
                      strnlen(notice->name, sizeof(notice->name)));
    if (watch->process)
        watch->handler->crashed(watch->userdata, &crash, r == 0 ? watch->trace : NULL,
                                r == 0 ? NULL : missing);
}

/* Returns false if the watch is gone. */
static bool take_notice(struct watch *watch, const struct watch_notice *notice)
{
    switch (notice->kind) {
    case WATCH_ATTACHED:
        watch->attached = notice->error == 0;
        if (!watch->attached)
            watch_free(watch, NOT_ATTACHED);
        return notice->error == 0;
    case WATCH_CRASHED:
        take_crash(watch, notice);
        return true;
    case WATCH_RELEASED:
        trace_release(watch->trace);
        return true;
    case WATCH_UNWOUND:
        trace_end(watch->trace);
        if (watch->process)
            return true;
        watch_free(watch, NULL);
        return false;
    default:
        return true;
    }
}

/* Returns the size of a notice, 0 at the end, or -errno. One with descriptors is not received: see
 * scm.h. */
static ssize_t receive(const struct watch *watch, struct watch_notice *ret)
{
    size_t size = sizeof(*ret);
    int r = scm_look(watch->fd, ret, &size);

    if (r != 0)
        return r < 0 ? r : -EPROTO;
    const ssize_t n = recv(watch->fd, ret, sizeof(*ret), MSG_DONTWAIT);
    return n < 0 ? -errno : n;
}

/* Further notices of the watcher wait for the next turn. */
static void read_notices(struct watch *watch)
{
    struct watch_notice notice;

    for (unsigned i = 0; i < NOTICES_MAX; i++) {
        const ssize_t n = receive(watch, &notice);
        if (n == -EPROTO) {
            watch_free(watch, GONE);
            return;
        }
        if (n == 0)
            loop_unwatch(watch->context->loop, &watch->readable); /* it ends */
        if (n != sizeof(notice) || !take_notice(watch, &notice))
            return;
    }
}

static void on_readable(void *userdata, uint32_t events)
{
    read_notices(userdata);
}

void watch_catch_up(struct process *process)
{
    if (process->watch)
        read_notices(process->watch);
}

/* ---- its start ---- */

static int request(struct watch *watch, const struct config_group *config, int fd)
{
    const struct tracer *tracer = &watch->context->tracer;
    const uint64_t may_trace = UINT64_C(1) << CAP_SYS_PTRACE;
    const bool ordinary = (config->user || config->group_name) && config->uid != 0;
    const uint64_t of_worker = ordinary          ? config->sandbox ? config->sandbox->ambient : 0
                               : config->sandbox ? config->sandbox->bounding
                                                 : UINT64_MAX;
    const uint64_t more = tracer->may_trace ? may_trace & ~of_worker : 0;
    const struct spawn_fd fds[] = {{fd, TRACE_FD_ORDERS},
                                   {watch->gate_fd, TRACE_FD_RELEASE},
                                   {watch->output_fd, TRACE_FD_OUTPUT}};
    char *argv[] = {(char *)tracer->program, "watch", more != 0 ? "drop" : "keep", NULL};
    struct sandbox sandbox;
    struct spawn_options options = trace_options(config, more, &sandbox);

    options.argv = argv;
    options.fds = fds;
    options.n_fds = ELEMENTS(fds);
    options.report_fd = watch->output_fd;
    return spawner_request(&watch->context->spawner, &watch->client, &options);
}

static int begin(struct watch *watch, const struct config_group *config)
{
    _cleanup_close_ int theirs = -1;
    int ends[2], r;

    watch->output_fd = trace_open_output();
    watch->gate_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->output_fd < 0 || watch->gate_fd < 0)
        return -EMFILE;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    watch->fd = ends[0];
    theirs = ends[1];
    (void)scm_refuse(watch->fd);
    r = loop_watch_fd(watch->context->loop, &watch->readable, watch->fd, POLLIN, on_readable,
                      watch);
    return r < 0 ? r : request(watch, config, theirs);
}

void watch_start(struct process *process, const struct config_group *config,
                 const struct watch_handler *handler, void *userdata)
{
    struct watch *watch;

    watch_end(process);
    process->watch_missing = TRACE_NOT_INSTALLED;
    if (!process->context->tracer.program)
        return;
    process->watch_missing = NOT_STARTED;
    watch = calloc(1, sizeof(*watch));
    if (!watch)
        return;
    watch->context = process->context;
    watch->client.handler = &WATCH_SPAWNER;
    timer_init(&watch->limit, on_limit);
    watch->fd = watch->output_fd = watch->gate_fd = -1;
    watch->handler = handler;
    watch->userdata = userdata;
    watch->process = process;
    watch->owner = process->output.owner;
    process->watch = watch;
    list_push_back(&process->context->tracer.watches, &watch->link);
    if (begin(watch, config) < 0)
        watch_free(watch, NOT_STARTED);
}

int watch_gate(const struct process *process)
{
    return process->watch ? process->watch->gate_fd : 0;
}

void watch_attach(struct process *process)
{
    if (process->watch)
        order(process->watch, &(struct watch_order){.kind = WATCH_ATTACH, .pid = process->pid},
              process->pidfd);
}

bool watch_is_attached(const struct process *process)
{
    return process->watch && process->watch->attached;
}

int watch_look(struct trace **ret, struct process *process, const struct memory_crash *crash,
               const struct trace_handler *handler, void *userdata, const char **ret_missing)
{
    struct watch *watch = process->watch;
    int r;

    *ret_missing = TRACE_BUSY;
    if (watch->trace)
        return -EBUSY;
    r = trace_expect(&watch->trace, process, watch->output_fd, handler, userdata, ret_missing);
    if (r < 0)
        return r;
    order(watch,
          &(struct watch_order){.kind = WATCH_LOOK,
                                .pid = process->pid,
                                .crashed = (int32_t)crash->tid,
                                .context = crash->context,
                                .python = crash->python,
                                .python_version = crash->python_version},
          -1);
    *ret = watch->trace;
    return 0;
}

const char *watch_missing(const struct process *process)
{
    if (process->watch)
        return process->watch->attached ? UNSEEN : TOO_EARLY;
    return process->watch_missing;
}
