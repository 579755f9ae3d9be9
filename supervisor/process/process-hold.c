/* SPDX-License-Identifier: MIT */

/* Passes a process on from one supervisor to the next. */

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/config/sandbox/call-set.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <string.h>

/* Version of what is held: what follows the owner's descriptors. */
enum {
    OUTPUT = 0,
    LISTENER_AND_OUTPUT = 1,
    LISTENER = 2,
};

struct kept {
    struct call_set logged;
    struct sandbox_state state;
    bool confined; /* `state` is known */
};

_Static_assert(sizeof(struct kept) <= HOLDING_DATA_MAX, "it fits");

/* ---- to the next supervisor ---- */

int process_hold(struct process *process, enum holding_kind kind, const char *name, const int *fds,
                 size_t n_fds)
{
    int all[HOLDING_FDS_MAX];
    const struct kept kept = {
        .logged = process->logged, .state = process->state, .confined = process->confined};
    struct holding_content content = {.kind = kind,
                                      .name = name,
                                      .fds = all,
                                      .n_fds = n_fds,
                                      .data = &kept,
                                      .size = sizeof(kept)};

    FAULT_POINT("process.hold");
    if (process->client.id == 0 && process->holding.id == 0)
        return 0; /* it has ended */
    if (n_fds + 2 > ELEMENTS(all))
        return -E2BIG;
    if (n_fds > 0)
        memcpy(all, fds, n_fds * sizeof(int));
    if (process->calls.fd >= 0) {
        all[content.n_fds++] = process->calls.fd;
        content.version = process->output.fd >= 0 ? LISTENER_AND_OUTPUT : LISTENER;
    }
    if (process->output.fd >= 0)
        all[content.n_fds++] = process->output.fd;
    return holding_put(&process->holding, &process->context->spawner, &process->client,
                       process->pid, &content);
}

/* ---- from the last supervisor ---- */

/* Returns the last but `n` of the descriptors, or NULL. */
static int *fd_before(struct held *held, size_t n)
{
    return held->n_fds > n ? &held->fds[held->n_fds - n - 1] : NULL;
}

static int adopt_output(struct process *process, struct held *held)
{
    int *fd = held->version == LISTENER ? NULL : fd_before(held, 0);
    int r;

    if (!fd || *fd < 0)
        return 0; /* the process had closed it */
    r = capture_adopt(&process->output, *fd);
    if (r == 0)
        (void)TAKE_FD(*fd);
    FAULT_POINT("process.adopt.output");
    return r;
}

/* The filter of the process is the one with which it was started, whatever is configured now. */
static void adopt_kept(struct process *process, const struct held *held)
{
    struct kept kept;

    if (held->size != sizeof(kept))
        return;
    memcpy(&kept, held->data, sizeof(kept));
    process->confined = kept.confined;
    process->state = kept.state;
    call_set_add_all(&process->logged, &kept.logged);
}

static void adopt_listener(struct process *process, struct held *held)
{
    int *fd = held->version == LISTENER              ? fd_before(held, 0)
              : held->version == LISTENER_AND_OUTPUT ? fd_before(held, 1)
                                                     : NULL;

    if (!fd || *fd < 0)
        return;
    process_listen(process, TAKE_FD(*fd));
    call_listener_resume(&process->calls);
}

/* The OOM killer's victims of a living process are known already: commands that it ran. */
static int adopt_cgroup(struct process *process, const struct held *held)
{
    int r;

    if (!process->context->cgroups)
        return 0;
    r = cgroup_adopt(&process->cgroup, process->context->cgroups, held->name);
    if (r == 0 && !held->ended)
        (void)process_take_oom_kill(process);
    return r < 0 ? r : 0;
}

static int adopt_all(struct process *process, struct held *held)
{
    int r = adopt_output(process, held);

    if (r == 0)
        r = adopt_cgroup(process, held);
    if (r == 0 && held->pidfd < 0 && !held->ended)
        r = -EMFILE; /* it could get no signal */
    if (r == 0 && held->pidfd >= 0)
        r = process_watch_exit(process, held->pidfd);
    if (r == 0) {
        process->pidfd = TAKE_FD(held->pidfd);
        adopt_kept(process, held);
        adopt_listener(process, held);
    }
    return r;
}

int process_adopt(struct process *process, struct held *held, const struct process_handler *handler)
{
    int r;

    process_begin(process, handler);
    process->pid = held->pid;
    r = adopt_all(process, held);
    if (r < 0) {
        held_discard(held);
        process_release(process);
        return r;
    }
    if (held->ended) {
        process->ended = true;
        process->exit = held->how;
        task_queue(&process->reap);
    }
    held_adopt(held, &process->client, &process->holding);
    FAULT_POINT("process.adopt.end");
    return 0;
}

/* ---- what is kept for all ---- */

static int hold_kept_states(struct process_context *context)
{
    int r = kept_states_init(&context->kept);

    if (r == -EFBIG)
        log_error("LimitFSIZE= (ulimit -f) must be infinity or at least %zu MiB: the supervisor "
                  "keeps its state in a file in memory",
                  (kept_states_size() >> 20) + 1);
    if (r == 0)
        r = spawner_register(&context->spawner, &context->kept_client);
    if (r < 0)
        return r;
    return holding_put(&context->kept_holding, &context->spawner, &context->kept_client, 0,
                       &(struct holding_content){
                           .kind = HOLDING_STATES,
                           .name = "",
                           .fds = &context->kept.fd,
                           .n_fds = 1,
                       });
}

/* The keeper reads immediately, unless it is stopped or traced. */
#define FLUSH_TIMEOUT (5 * USEC_PER_SEC)

bool process_context_flush(struct process_context *context)
{
    return spawner_drain(&context->spawner, clock_left(context->flush_by));
}

int process_context_adopt(struct process_context *context)
{
    struct held *held = held_take(&context->held, HOLDING_STATES, "");

    context->flush_by = usec_add(clock_now(), FLUSH_TIMEOUT);
    if (held && held->n_fds == 1 && kept_states_adopt(&context->kept, held->fds[0]) == 0) {
        (void)TAKE_FD(held->fds[0]);
        held_adopt(held, &context->kept_client, &context->kept_holding);
        return 0;
    }
    if (held)
        held_discard(held);
    return hold_kept_states(context);
}

void process_context_settle(struct process_context *context)
{
    FAULT_POINT("process.settle");
    held_discard_rest(&context->held);
    kept_states_settle(&context->kept);
    if (context->cgroups && !context->held.end.first)
        cgroup_tree_sweep(context->cgroups);
}
