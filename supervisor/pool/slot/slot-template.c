/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/slot-template.h"

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "shared/base/utf8.h"
#include "shared/protocol/template-wire.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/loop/toll.h"
#include "supervisor/pool/slot/slot-private.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* OpenBLAS would start a thread for each processor when it is loaded. */
static const char NO_THREADS[] = "OPENBLAS_NUM_THREADS=1";

/* ---- its life ---- */

enum template_event {
    EVENT_START,
    EVENT_SAID_READY,
    EVENT_SAID_UNSAFE,
    EVENT_LOST, /* it does not answer, or not in time */
    EVENT_EXITED,
    EVENT_DUE, /* its backoff is over */
    EVENT_STOP,
    _N_EVENTS,
};

static void act_spawn(struct slot_template *template);
static void act_ready(struct slot_template *template);
static void act_kill(struct slot_template *template);
static void act_wait(struct slot_template *template);
static void act_disarm(struct slot_template *template);
static void act_nothing(struct slot_template *template);
static void act_review(struct slot_template *template);

struct transition {
    enum template_state state;
    void (*act)(struct slot_template *template); /* NULL = the state ignores the event */
};

#define ON(event, to, what) [EVENT_##event] = {TEMPLATE_STATE_##to, act_##what}

/* clang-format off */
static const struct transition TABLE[_TEMPLATE_N_STATES][_N_EVENTS] = {
    [TEMPLATE_STATE_OFF] = {
        ON(START, WARMING, spawn),
    },
    [TEMPLATE_STATE_WARMING] = {
        ON(SAID_READY, READY, ready),
        ON(SAID_UNSAFE, REFUSED, kill),
        ON(LOST, ENDING, kill),
        ON(EXITED, BACKOFF, wait),
        ON(STOP, STOPPING, kill),
    },
    [TEMPLATE_STATE_READY] = {
        ON(SAID_UNSAFE, REFUSED, kill),
        ON(LOST, ENDING, kill),
        ON(EXITED, BACKOFF, wait),
        ON(STOP, STOPPING, kill),
    },
    [TEMPLATE_STATE_REFUSED] = {
        ON(EXITED, UNSAFE, nothing),
        ON(STOP, STOPPING, nothing),
    },
    [TEMPLATE_STATE_UNSAFE] = {
        ON(STOP, OFF, nothing),
    },
    [TEMPLATE_STATE_ENDING] = {
        ON(EXITED, BACKOFF, wait),
        ON(STOP, STOPPING, nothing),
    },
    [TEMPLATE_STATE_STOPPING] = {
        ON(EXITED, OFF, review),
    },
    [TEMPLATE_STATE_BACKOFF] = {
        ON(DUE, OFF, review), /* not while the worker starts: see process_share_cgroup() */
        ON(STOP, OFF, disarm),
    },
};
/* clang-format on */

_Static_assert(_TEMPLATE_N_STATES == 8, "a new state needs a row and a name");

const char *template_state_to_string(enum template_state state)
{
    static const char *const names[_TEMPLATE_N_STATES] = {
        [TEMPLATE_STATE_OFF] = "off",           [TEMPLATE_STATE_WARMING] = "warming",
        [TEMPLATE_STATE_READY] = "ready",       [TEMPLATE_STATE_REFUSED] = "unsafe",
        [TEMPLATE_STATE_UNSAFE] = "unsafe",     [TEMPLATE_STATE_ENDING] = "ending",
        [TEMPLATE_STATE_STOPPING] = "stopping", [TEMPLATE_STATE_BACKOFF] = "backoff",
    };
    return (size_t)state < _TEMPLATE_N_STATES ? names[state] : "unknown";
}

static void feed(struct slot_template *template, enum template_event event)
{
    const struct transition *next = &TABLE[template->state][event];

    if (!next->act)
        return;
    template->state = next->state;
    template->since_at = loop_realtime(slot_context(template->slot)->loop);
    next->act(template);
}

/* Tells why workers start by exec, once. `quotes`: it is the template's own text. */
static __attribute__((format(printf, 3, 4))) void tell_reason(struct slot_template *template,
                                                              bool quotes, const char *format, ...)
{
    va_list arguments;

    if (template->told)
        return;
    template->told = true;
    va_start(arguments, format);
    (void)vsnprintf(template->reason, sizeof(template->reason), format, arguments);
    va_end(arguments);
    slot_tell(template->slot,
              (struct event){.level = LOG_LEVEL_WARNING,
                             .type = quotes ? "template.unsafe" : "template.died",
                             .quotes = quotes},
              "starts its workers by exec: its template %s", template->reason);
}

/* ---- its messages ---- */

static void close_socket(struct slot_template *template)
{
    struct loop *loop = slot_context(template->slot)->loop;

    loop_unwatch(loop, &template->watch);
    loop_close_owned(loop, TAKE_FD(template->fd), template->process.output.owner);
}

/* Returns the size of a message, 0 at the end, or -errno. A message with descriptors is not
 * received: see scm.h. */
static ssize_t receive(const struct slot_template *template, char *text, size_t size)
{
    size_t look = size;
    int r = scm_look(template->fd, text, &look);

    if (r != 0)
        return r < 0 ? r : -EPROTO;
    const ssize_t n = recv(template->fd, text, size, MSG_DONTWAIT);
    return n < 0 ? -errno : n;
}

static void on_message(void *userdata, uint32_t events)
{
    struct slot_template *template = userdata;
    char text[TEMPLATE_REASON_MAX + 1], reason[TEMPLATE_TEXT_MAX - 32];
    const usec_t now = slot_now(template->slot);
    const struct toll toll = toll_begin(now);
    const ssize_t n = receive(template, text, sizeof(text));

    (void)toll_end(toll, now, template->process.output.owner);
    if (n == -EAGAIN)
        return;
    if (n > 0 && (text[0] == TEMPLATE_UNSAFE || text[0] == TEMPLATE_FAILED)) {
        (void)utf8_escape(reason, sizeof(reason), text + 1, (size_t)n - 1);
        tell_reason(template, true, "%s: %s",
                    text[0] == TEMPLATE_UNSAFE ? "cannot be forked" : "could not fork", reason);
    }
    if (n > 0 && text[0] == TEMPLATE_READY && template->state == TEMPLATE_STATE_WARMING)
        feed(template, EVENT_SAID_READY);
    else
        feed(template, n > 0 && text[0] == TEMPLATE_UNSAFE ? EVENT_SAID_UNSAFE : EVENT_LOST);
}

/* ---- its process ---- */

static bool was_killed_for_memory(struct slot_template *template)
{
    const bool ours =
        template->state != TEMPLATE_STATE_WARMING && template->state != TEMPLATE_STATE_READY;
    const struct spawn_exit *how = &template->process.exit;

    return !ours && how->signalled && how->code == SIGKILL &&
           process_take_oom_kill(&template->process);
}

static void tell_end(struct slot_template *template)
{
    const struct spawn_exit *how = &template->process.exit;
    const char *call = process_forbidden_call(&template->process, template->process.pid);

    if (was_killed_for_memory(template))
        tell_reason(template, false, "ran out of memory: %s", process_oom(&template->process));
    else if (how->signalled && call)
        tell_reason(template, false, "was killed: %s", call);
    else
        tell_reason(template, false, "%s %d",
                    how->signalled ? "was killed by signal" : "exited with status", how->code);
}

static void on_started(struct process *process)
{
}

static void gone(struct slot_template *template)
{
    close_socket(template);
    feed(template, EVENT_EXITED);
    if (template->slot->retired)
        pool_wake(template->slot->pool); /* frees the slot */
}

static void on_failed(struct process *process, const struct spawn_report *report)
{
    struct slot_template *template = list_entry(process, struct slot_template, process);

    tell_reason(template, false, "could not be started: %s: %s", spawn_step_to_string(report->step),
                strerror(-report->error));
    gone(template);
}

static void on_exited(struct process *process)
{
    struct slot_template *template = list_entry(process, struct slot_template, process);

    if (template->state != TEMPLATE_STATE_STOPPING)
        tell_end(template);
    process_release(process);
    gone(template);
}

static const struct process_handler HANDLER = {
    .started = on_started,
    .failed = on_failed,
    .ended = on_started,
    .exited = on_exited,
};

/* The template has the socket under all numbers that its workers' descriptors get. */
static int launch(struct slot_template *template, int socket, const char **ret_step)
{
    const struct slot *slot = template->slot;
    const struct config_group *config = slot->pool->config;
    char variable[64], cell[DEATH_WORKER_MAX + 32];
    const char *environment[4] = {variable};
    size_t n = 1;
    struct spawn_fd fds[TEMPLATE_FDS_MAX];
    const struct process_options options = {
        .config = config,
        .slot = slot->index,
        .twin = slot->twin,
        .fds = fds,
        .n_fds = ELEMENTS(fds),
        .environment = environment,
    };

    for (int i = 0; i < TEMPLATE_FDS_MAX; i++)
        fds[i] = (struct spawn_fd){socket, TEMPLATE_FIRST_FD + i};
    if (*slot->pool->key != '\0')
        environment[n++] = cell;
    if (!strings_has(&config->environment, NO_THREADS))
        environment[n++] = NO_THREADS;
    (void)snprintf(variable, sizeof(variable), TEMPLATE_VARIABLE "=%d%s", TEMPLATE_FIRST_FD,
                   environment[n - 1] == NO_THREADS ? " OPENBLAS_NUM_THREADS" : "");
    (void)snprintf(cell, sizeof(cell), "TROUPE_CELL=%s", slot->pool->key);
    return process_start(&template->process, &options, &HANDLER, ret_step);
}

static int start(struct slot_template *template, const char **ret_step)
{
    struct loop *loop = slot_context(template->slot)->loop;
    _cleanup_close_ int theirs = -1;
    int fds[2], r;

    *ret_step = "socket";
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    template->fd = fds[0];
    theirs = fds[1];
    (void)scm_refuse(template->fd);
    r = loop_watch_fd(loop, &template->watch, template->fd, POLLIN, on_message, template);
    return r < 0 ? r : launch(template, theirs, ret_step);
}

/* ---- actions ---- */

static void arm(struct slot_template *template, usec_t delay)
{
    timer_arm(slot_timers(template->slot), &template->timer,
              usec_add(slot_now(template->slot), delay));
}

static void act_disarm(struct slot_template *template)
{
    timer_disarm(slot_timers(template->slot), &template->timer);
}

static void act_nothing(struct slot_template *template)
{
}

static void act_review(struct slot_template *template)
{
    slot_template_review(template->slot);
}

static void act_spawn(struct slot_template *template)
{
    const struct config_group *config = template->slot->pool->config;
    const char *step = "";
    int r;

    template->digest = config->process_digest;
    template->reason[0] = '\0';
    template->told = false;
    process_take_config(&template->process, config);
    arm(template, config->timeout_start);
    r = start(template, &step);
    if (r < 0) {
        const struct spawn_report report = {.error = r, .step = SPAWN_CLONE};
        on_failed(&template->process, &report);
    }
}

static void act_ready(struct slot_template *template)
{
    arm(template, template->slot->pool->config->template_max_age);
    slot_tell(template->slot, (struct event){.level = LOG_LEVEL_INFO, .type = "template.ready"},
              "has a template, which forks its workers from now on");
}

static void act_kill(struct slot_template *template)
{
    act_disarm(template);
    close_socket(template);
    process_kill_all(&template->process);
}

static void act_wait(struct slot_template *template)
{
    const struct config_group *config = template->slot->pool->config;
    const struct backoff_policy policy = {
        .min = config->min, .max = config->max, .random = config->random};

    arm(template,
        backoff_delay(&policy, template->n_failures++, slot_context(template->slot)->random));
}

static const enum template_event DUE[_TEMPLATE_N_STATES] = {
    [TEMPLATE_STATE_WARMING] = EVENT_LOST,
    [TEMPLATE_STATE_READY] = EVENT_STOP, /* it is too old */
    [TEMPLATE_STATE_BACKOFF] = EVENT_DUE,
};

static void on_timer(struct timer *timer, usec_t now)
{
    struct slot_template *template = list_entry(timer, struct slot_template, timer);

    if (template->state == TEMPLATE_STATE_WARMING)
        tell_reason(template, false, "was not ready within TimeoutStartSec=");
    feed(template, DUE[template->state]);
}

/* ---- for the slot ---- */

static struct slot_template *template_new(struct slot *slot)
{
    struct slot_template *template = calloc(1, sizeof(*template));

    if (!template)
        return NULL;
    template->slot = slot;
    template->fd = -1;
    timer_init(&template->timer, on_timer);
    process_init(&template->process, slot_context(slot)->process, &slot->worker.process.subject,
                 &template->output);
    template->process.output.owner = slot->worker.process.output.owner;
    template->process.is_template = true;
    template->process.mate = &slot->worker.process;
    slot->worker.process.mate = &template->process;
    return template;
}

/* The first template stays while an elastic pool has no worker. */
static bool rests(const struct slot *slot)
{
    const struct pool *pool = slot->pool;

    return slot->index == 0 && pool->size == 0 && pool->wanted && !pool->retiring;
}

static bool is_wanted(const struct slot *slot)
{
    return slot->pool->config->template == CONFIG_TEMPLATE_SLOT && slot->role == SLOT_MEMBER &&
           ((slot->plan != SLOT_OFF && !slot->retired) || rests(slot)) &&
           slot->state != LIFECYCLE_FAILED;
}

void slot_template_review(struct slot *slot)
{
    const bool wanted = is_wanted(slot);
    struct slot_template *template = slot->template;

    if (template && (!wanted || template->digest != slot->pool->config->process_digest))
        feed(template, EVENT_STOP);
    if (!wanted || !slot_is_up(slot) || !slot_has_kept_config(slot))
        return;
    if (!template)
        template = slot->template = template_new(slot);
    if (template)
        feed(template, EVENT_START);
}

void slot_template_renew(struct slot *slot)
{
    if (slot->template)
        feed(slot->template, EVENT_STOP);
}

int slot_template_socket(const struct slot *slot)
{
    const struct slot_template *template = slot->template;

    return template && template->state == TEMPLATE_STATE_READY && !template->process.ended &&
                   template->digest == slot->pool->config->process_digest
               ? template->fd
               : 0;
}

/* The template may have said why. */
static void fork_failed(struct slot_template *template, int error)
{
    on_message(template, 0);
    if (error == -ETIMEDOUT)
        tell_reason(template, false, "did not fork in time");
    feed(template, EVENT_LOST);
}

void slot_template_forked(struct slot *slot, int error)
{
    struct slot_template *template = slot->template;

    if (template && error < 0 && template->state == TEMPLATE_STATE_READY)
        fork_failed(template, error);
    if (!template || error < 0)
        return;
    template->n_failures = 0;
    slot_counts(slot)->n_forks++;
}

bool slot_template_is_gone(const struct slot *slot)
{
    return !slot->template || slot->template->process.client.id == 0;
}

struct slot_template *slot_template_free(struct slot_template *template)
{
    if (!template)
        return NULL;
    template->slot->worker.process.mate = NULL;
    template->process.mate = NULL;
    act_disarm(template);
    close_socket(template);
    process_abandon(&template->process);
    process_deinit(&template->process);
    free(template);
    return NULL;
}
