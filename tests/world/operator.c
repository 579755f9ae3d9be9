/* SPDX-License-Identifier: MIT */
#include "tests/world/programs.h"

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "tests/world/machine.h"
#include "tests/world/model.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_TIMEOUT (30 * USEC_PER_SEC)
/* Seconds until all workers are up again, whatever happened. */
#define IDLE_AFTER 300
/* A new schedule is on disk when there has been a supervisor for so long. */
#define BEGUN_AFTER (5 * USEC_PER_SEC)

static struct {
    const char *socket_path;
    unsigned n_jobs;
    bool rests, has_checked;
    /* Of the schedule: the seconds between its slots, 0 = there is none; the last slot. */
    unsigned period;
    time_t until;
    json_int_t first, n_before; /* a slot, and how many were decided then; 0 = not known yet */
    usec_t ready_before;        /* the last slot: machine_ready_time() */
    json_t *answer;             /* its parameters; NULL = there was none */
} op;

#define TARGET "{\"target\":\"%s\"}"
#define TICK   "{\"name\":\"tick\"}"

static const char *const GROUPS[] = {"plain", "durable"};
static const char *const FILES[] = {"plain.group", "durable.group"};

/* Takes the parameters like printf(). Returns whether there was an answer that is no error. */
__attribute__((format(printf, 2, 3))) static bool call(const char *method, const char *format, ...)
{
    _cleanup_(varlink_client_deinit)
    struct varlink_client client = VARLINK_CLIENT_NULL;
    _cleanup_(varlink_reply_deinit)
    struct varlink_reply reply = VARLINK_REPLY_NULL;
    char name[64], parameters[128];
    va_list list;
    int r;

    va_start(list, format);
    (void)vsnprintf(parameters, sizeof(parameters), format, list);
    va_end(list);
    sim_trace("calls %s %s", method, parameters);
    (void)snprintf(name, sizeof(name), "io.troupe.%s", method);
    r = varlink_client_init(&client, op.socket_path, 0);
    client.timeout = ANSWER_TIMEOUT; /* it waits in the world, unlike the kernel */
    if (r == 0)
        r = varlink_client_send(&client, name, json_loads(parameters, 0, NULL), false);
    if (r == 0)
        r = varlink_client_receive(&client, &reply);
    json_decref(op.answer);
    op.answer = json_incref(reply.parameters);
    /* What comes with an error may contain paths. */
    sim_trace("answer: %d %.100s", r, reply.error ? reply.error : json_dumps(op.answer, 0));
    return r == 0 && !reply.error;
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* ---- the schedule ---- */

/* Notes what became of the slots that were decided last. Returns the latest one. */
static json_int_t note_slots(void)
{
    json_int_t latest = 0;
    const json_t *slot;
    size_t i;

    json_array_foreach(json_object_get(op.answer, "decided"), i, slot)
    {
        const char *outcome = json_string_value(json_object_get(slot, "outcome"));

        /* The row of a job that a failing disk has refused may be there. */
        if (!(model_allowed & MODEL_DISK_FAULTS) || strcmp(outcome, "refused") != 0)
            model_slot_decided(json_string_value(json_object_get(slot, "id")),
                               strcmp(outcome, "fired") == 0);
        if (number(slot, "slot") > latest)
            latest = number(slot, "slot");
    }
    return latest / (json_int_t)USEC_PER_SEC;
}

static void rest(usec_t span)
{
    if (sim_now() + sim_realtime < (usec_t)op.until * USEC_PER_SEC)
        op.ready_before = machine_ready_time();
    sim_rest(span);
}

/* Whether the schedule may have begun, on disk, after its last slot. */
static bool may_have_no_slots(void)
{
    return model_allowed & MODEL_NO_SLOTS || op.ready_before < BEGUN_AFTER;
}

/* Each slot between two looks has one outcome. Returns whether the last slot has one. */
static bool is_schedule_over(const char *unused)
{
    const bool called = call("Schedules.Get", TICK);
    const json_int_t slot = note_slots();
    const json_t *schedule = json_object_get(op.answer, "schedule");
    const json_int_t n = number(schedule, "fired") + number(schedule, "skipped") +
                         number(schedule, "missed") + number(schedule, "paused") +
                         number(schedule, "refused");
    const char *state = json_string_value(json_object_get(schedule, "state"));

    if (called && slot == 0 && may_have_no_slots())
        return true;
    if (!called || slot == 0 || json_object_get(schedule, "waiting") ||
        strcmp(state, "active") != 0)
        return model_allowed & MODEL_DISK_FAULTS;
    if (op.first == 0) {
        op.first = slot;
        op.n_before = n;
    }
    if (slot < op.until)
        return model_allowed & MODEL_DISK_FAULTS;
    sim_expect(
        n - op.n_before == (slot - op.first) / op.period || model_allowed & MODEL_DISK_FAULTS,
        "%lld slots were decided since %lld", (long long)(n - op.n_before), (long long)op.first);
    return true;
}

void operator_watch_schedule(unsigned period, time_t until)
{
    op.period = period;
    op.until = until;
}

bool operator_is_done(void)
{
    const bool is_over =
        op.period == 0 || sim_now() + sim_realtime > ((usec_t)op.until + 5) * USEC_PER_SEC;

    return program_n_clients == 0 && model_n_open == 0 && is_over;
}

/* ---- anything ---- */

static void cancel(void)
{
    const uint32_t index = 1 + (uint32_t)sim_below(op.n_jobs);

    model_job(index)->may_be_cancelled = true;
    if (call("Jobs.Cancel", "{\"id\":\"job-%u\"}", index))
        model_is_cancelled(index);
}

static void remove_or_add(size_t group)
{
    if (sim_one_in(2)) /* what is stopped does not drain */
        (void)call("Supervisor.Stop", TARGET, GROUPS[group]);
    if (rename(FILES[group], GROUPS[group]) < 0)
        (void)rename(GROUPS[group], FILES[group]);
    (void)call("Supervisor.Reload", "{}");
}

static void call_something(enum sim_fault kind)
{
    static const char *const states[] = {"Supervisor.Pause", "Supervisor.Resume", "Supervisor.Stop",
                                         "Supervisor.Start", "Supervisor.Restart"};
    const size_t index = sim_below(ELEMENTS(GROUPS));
    const char *group = GROUPS[index];
    const uint64_t state = sim_below(ELEMENTS(states)), size = 1 + sim_below(4);

    if (!sim_one_in(sim_chances[kind]))
        return;
    if (kind == SIM_UPGRADE)
        (void)call("Supervisor.Upgrade", "{}");
    else if (kind == SIM_RELOAD)
        (void)call("Supervisor.Reload", "{}");
    else if (kind == SIM_REMOVE)
        remove_or_add(index);
    else if (kind == SIM_CANCEL)
        cancel();
    else if (kind == SIM_RESIZE)
        (void)call("Supervisor.Resize", "{\"target\":\"%s\",\"size\":%u}", group, (unsigned)size);
    else if (!sim_one_in(3))
        (void)call(states[state], TARGET, group);
    else if (op.period > 0)
        (void)call(size % 2 ? "Schedules.Pause" : "Schedules.Resume", TICK);
}

static void insist(const char *method, const char *parameters)
{
    for (unsigned i = 0; !call(method, "%s", parameters) && i < 100; i++)
        sim_rest(USEC_PER_SEC);
}

/* Undoes what keeps jobs from ending. */
static void restore(size_t group)
{
    char target[32];

    (void)rename(GROUPS[group], FILES[group]);
    insist("Supervisor.Reload", "{}"); /* the last one may have failed */
    (void)snprintf(target, sizeof(target), TARGET, GROUPS[group]);
    insist("Supervisor.Start", target);
    insist("Supervisor.Resume", target);
}

static bool is_idle(const char *name)
{
    static const char *const none[] = {"queued", "running", "waiting", "ending", "queue_bytes"};
    const bool called = call("Supervisor.GetStatus", "{\"target\":\"%s\",\"brief\":true}", name);
    const json_t *group = json_array_get(json_object_get(op.answer, "groups"), 0);
    const json_int_t size = number(group, "size"), members = number(group, "members");

    for (size_t i = 0; i < ELEMENTS(none); i++)
        if (number(group, none[i]) != 0)
            return false;
    return called && number(group, "up") == members &&
           (json_object_get(group, "size_max") || members % size == 0) &&
           (json_object_get(group, "cells") || members == size);
}

static void await(bool (*is_right)(const char *group), const char *group)
{
    for (unsigned i = 0; !is_right(group); i++) {
        sim_expect(i < IDLE_AFTER, "%s is not right in the end: %.600s", group,
                   json_dumps(op.answer, 0));
        sim_rest(USEC_PER_SEC);
    }
}

static void act(void)
{
    while (!op.rests) {
        rest(sim_below(USEC_PER_SEC));
        call_something(SIM_UPGRADE + (enum sim_fault)sim_below(_SIM_N_FAULTS - SIM_UPGRADE));
        if (op.period > 0)
            (void)is_schedule_over(NULL);
    }
}

static void *run(void *unused)
{
    act();
    for (size_t i = 0; i < ELEMENTS(GROUPS); i++)
        restore(i);
    if (op.period > 0)
        insist("Schedules.Resume", TICK);
    while (!operator_is_done())
        rest(USEC_PER_SEC);
    if (op.period > 0)
        await(is_schedule_over, "the schedule");
    for (size_t i = 0; i < ELEMENTS(GROUPS); i++)
        await(is_idle, GROUPS[i]);
    op.has_checked = true;
    return NULL;
}

void operator_start(const char *socket_path, unsigned n_jobs)
{
    op.socket_path = socket_path;
    op.n_jobs = n_jobs;
    (void)sim_start("operator", run, NULL, NULL);
}

void operator_rest(void)
{
    op.rests = true;
}

bool operator_has_checked(void)
{
    return op.has_checked;
}
