/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/slot-trace.h"
#include "supervisor/event/death.h"
#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/process/tracer.h"
#include <signal.h>
#include <stdlib.h>

/* How long the end of a worker that hangs is delayed, at most. */
#define HANG_WAIT (45 * USEC_PER_MSEC)

/* Tells the worker whether to wait if it crashes. */
static void set_wanted(const struct slot *slot, bool wanted)
{
    struct memory_header *inbox = slot->worker.endpoint.channel.mine.header;

    /* Partner: the load in the worker's signal handler. */
    if (slot->worker.endpoint_open && inbox)
        atomic_store_explicit(&inbox->evidence, wanted, memory_order_release);
}

/* Returns what the worker says of its crash. */
static struct memory_crash read_crash(const struct slot *slot)
{
    const struct memory_header *outbox = slot->worker.endpoint.channel.theirs.header;

    return slot->worker.endpoint_open && outbox ? outbox->crash : (struct memory_crash){0};
}

/* ---- what was delayed ---- */

void slot_trace_cancel(struct slot *slot)
{
    slot->trace.then = NULL;
    timer_disarm(slot_timers(slot), &slot->trace.timer);
}

static void go_on(struct slot *slot)
{
    void (*then)(struct slot * slot) = slot->trace.then;

    slot_trace_cancel(slot);
    if (then && !slot->worker.process.ended)
        then(slot);
}

static void on_timer(struct timer *timer, usec_t now)
{
    go_on(slot_of(timer, trace.timer));
}

/* ---- looking ---- */

static void on_released(void *userdata)
{
    struct slot *slot = userdata;

    set_wanted(slot, false);
    go_on(slot);
}

static void on_ended(void *userdata, char *text, size_t size, const char *missing)
{
    struct slot *slot = userdata;

    slot->trace.trace = NULL;
    slot->trace.text = text;
    slot->trace.size = size;
    slot->trace.missing = missing;
}

static const struct trace_handler HANDLER = {.released = on_released, .ended = on_ended};

static int start(struct slot *slot, struct trace **ret, const struct trace_look *look,
                 const struct trace_handler *handler, void *userdata, const char **ret_missing)
{
    struct process *process = &slot->worker.process;

    if (!watch_is_attached(process))
        return trace_start(ret, process, slot->pool->config, look, handler, userdata, ret_missing);
    if (look->duration == 0)
        return watch_look(ret, process, look->crash, handler, userdata, ret_missing);
    *ret_missing = "the processes of a group with CrashStacks=yes are traced already";
    return -EBUSY;
}

static bool look(struct slot *slot, const struct memory_crash *crash)
{
    slot->trace.taken = true;
    return start(slot, &slot->trace.trace, &(struct trace_look){.crash = crash}, &HANDLER, slot,
                 &slot->trace.missing) == 0;
}

void slot_trace_want(struct slot *slot)
{
    set_wanted(slot, slot_context(slot)->process->tracer.program);
}

void slot_trace_crash(struct slot *slot)
{
    const struct memory_crash crash = read_crash(slot);

    if (slot->trace.taken)
        return; /* it hung, and is about to be ended */
    slot->trace.signal = crash.signal;
    if (!look(slot, &crash))
        set_wanted(slot, false);
}

/* Whether it is ended because it takes too long. */
static bool hangs(const struct slot *slot)
{
    switch (slot->worker.kill_reason) {
    case DEATH_JOB_TIMEOUT:
    case DEATH_WATCHDOG:
    case DEATH_START_TIMEOUT:
    case DEATH_NO_PROGRESS:
        return true;
    case DEATH_STOP:
        return slot->state == LIFECYCLE_KILLING && slot->n_jobs > 0;
    default:
        return false;
    }
}

/* Returns what helps to look at a worker that does not crash. */
static struct memory_crash read_hints(const struct slot *slot)
{
    const struct memory_crash crash = read_crash(slot);

    return (struct memory_crash){.python = crash.python, .python_version = crash.python_version};
}

int slot_trace_now(struct slot *slot, struct trace_look look, struct trace **ret,
                   const struct trace_handler *handler, void *userdata, const char **ret_missing)
{
    const struct memory_crash hints = read_hints(slot);

    look.crash = &hints;
    return start(slot, ret, &look, handler, userdata, ret_missing);
}

bool slot_trace_first(struct slot *slot, void (*then)(struct slot *slot))
{
    const struct memory_crash hints = read_hints(slot);

    slot_trace_cancel(slot);
    if (slot->trace.taken || !hangs(slot) || slot->worker.process.ended)
        return false;
    set_wanted(slot, false);
    if (!look(slot, &hints))
        return false;
    slot->trace.then = then;
    timer_arm(slot_timers(slot), &slot->trace.timer, usec_add(slot_now(slot), HANG_WAIT));
    return true;
}

/* ---- crashes that a watcher reports ---- */

static void on_crash_released(void *userdata)
{
}

static void on_crash_ended(void *userdata, char *text, size_t size, const char *missing)
{
    struct slot_crash *crash = &((struct slot *)userdata)->trace.crash;

    crash->trace = NULL;
    crash->text = text;
    crash->size = size;
    crash->missing = missing;
}

static const struct trace_handler CRASH_HANDLER = {.released = on_crash_released,
                                                   .ended = on_crash_ended};

static void forget_crash(struct slot *slot)
{
    struct slot_crash *crash = &slot->trace.crash;

    trace_forget(crash->trace);
    free(crash->text);
    *crash = (struct slot_crash){0};
}

/* Moves the facts about the crash to the report. */
static void give_crash(struct slot *slot, struct death *death)
{
    struct slot_crash *crash = &slot->trace.crash;

    if (crash->trace)
        trace_report_to(crash->trace, death);
    else
        death_set_stack(death, crash->text, crash->size, crash->missing);
    *crash = (struct slot_crash){0};
}

static bool is_of(const struct slot_crash *crash, const struct death *death)
{
    return crash->what.pid != 0 && death->exit.signalled &&
           crash->what.signal == death->exit.code &&
           (crash->what.inner_pid == death->pid || crash->what.pid == death->pid);
}

/* Reports the crash of another process than the worker, whose own death has a report anyway. */
static void settle(struct slot *slot)
{
    const struct slot_crash *crash = &slot->trace.crash;
    struct death *death;

    if (crash->what.pid == 0 || crash->what.pid == slot->worker.process.pid)
        return;
    death = slot_report_crash(slot, &crash->what);
    if (!death) {
        forget_crash(slot);
        return;
    }
    give_crash(slot, death);
    slot_publish_report(slot, death);
    death_unref(death);
}

static void on_crashed(void *userdata, const struct watch_crash *what, struct trace *trace,
                       const char *missing)
{
    struct slot *slot = userdata;

    settle(slot);
    forget_crash(slot);
    slot->trace.crash = (struct slot_crash){.what = *what, .trace = trace, .missing = missing};
    if (slot->n_jobs == 0)
        settle(slot); /* no report of a worker follows */
}

static const struct watch_handler WATCH_HANDLER = {.crashed = on_crashed, .trace = &CRASH_HANDLER};

void slot_trace_watch(struct slot *slot, bool runs)
{
    if (!slot->pool->config->crash_stacks)
        return;
    watch_start(&slot->worker.process, slot->pool->config, &WATCH_HANDLER, slot);
    if (runs)
        watch_attach(&slot->worker.process);
}

void slot_trace_settle(struct slot *slot)
{
    watch_catch_up(&slot->worker.process);
    settle(slot);
}

/* Whether it died of a signal that libtroupe or the watcher reports. */
static bool has_crashed(const struct death *death)
{
    switch (death->exit.signalled ? death->exit.code : 0) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
        return true;
    default:
        return false;
    }
}

void slot_trace_claim(struct slot *slot, struct death *death)
{
    const char *missing = watch_missing(&slot->worker.process);

    watch_catch_up(&slot->worker.process);
    if (is_of(&slot->trace.crash, death))
        give_crash(slot, death);
    else if (missing && has_crashed(death))
        death_set_stack(death, NULL, 0, missing);
}

/* ---- for the slot ---- */

void slot_trace_init(struct slot *slot)
{
    timer_init(&slot->trace.timer, on_timer);
}

void slot_trace_reset(struct slot *slot)
{
    slot_trace_cancel(slot);
    forget_crash(slot);
    slot->trace.trace = trace_forget(slot->trace.trace);
    free(slot->trace.text);
    slot->trace.text = NULL;
    slot->trace.size = 0;
    slot->trace.missing = NULL;
    slot->trace.taken = false;
    slot->trace.signal = 0;
}

void slot_trace_report(struct slot *slot, struct death *death)
{
    struct slot_trace *trace = &slot->trace;

    slot_trace_settle(slot);
    if (!trace->taken && slot->pool->config->crash_stacks) {
        slot_trace_claim(slot, death);
        return;
    }
    if (!trace->taken && has_crashed(death) && !slot_context(slot)->process->tracer.program)
        death_set_stack(death, NULL, 0, TRACE_NOT_INSTALLED);
    if (!trace->taken ||
        (trace->signal != 0 && !(death->exit.signalled && death->exit.code == trace->signal)))
        return;
    if (trace->trace)
        trace_report_to(trace->trace, death);
    else
        death_set_stack(death, trace->text, trace->size, trace->missing);
    trace->trace = NULL;
    trace->text = NULL;
    trace->size = 0;
}
