/* SPDX-License-Identifier: MIT */
#include "tests/world/operator.h"

#include "shared/base/cleanup.h"
#include "tests/world/machine.h"
#include "tests/world/model.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MAX     65536
#define ANSWER_TIMEOUT 30000 /* ms */
/* Seconds until all workers are up again, whatever happened. */
#define IDLE_AFTER 300
/* A new schedule is on disk when there has been a supervisor for so long. */
#define BEGUN_AFTER (5 * USEC_PER_SEC)

static struct {
    const char *socket_path;
    unsigned n_jobs;
    bool rests, checks, has_checked;
    /* Of the schedule: the seconds between its slots, 0 = there is none; the last slot. */
    unsigned period;
    time_t until;
    uint64_t first, n_before; /* a slot, and how many were decided then; 0 = not known yet */
    usec_t ready_before;      /* the last slot: machine_ready_time() */
    char answer[ANSWER_MAX];
} operator;

#define TARGET "{\"target\":\"%s\"}"
#define TICK   "{\"name\":\"tick\"}"

static const char *const GROUPS[] = {"plain", "durable"};

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Takes the parameters like printf(). Returns whether there was an answer that is no error. */
__attribute__((format(printf, 2, 3))) static bool call(const char *method, const char *format, ...)
{
    char *text = operator.answer, parameters[128];
    _cleanup_close_ int fd = connect_to(operator.socket_path);
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    size_t size = 0;
    va_list list;
    ssize_t n;

    va_start(list, format);
    (void)vsnprintf(parameters, sizeof(parameters), format, list);
    va_end(list);
    sim_trace("calls %s %s", method, parameters);
    n = snprintf(text, ANSWER_MAX, "{\"method\":\"io.troupe.%s\",\"parameters\":%s}", method,
                 parameters);
    if (fd < 0 || send(fd, text, (size_t)n + 1, MSG_NOSIGNAL) < 0)
        return false;
    do {
        if (poll(&poller, 1, ANSWER_TIMEOUT) <= 0)
            break;
        n = recv(fd, text + size, ANSWER_MAX - 1 - size, MSG_DONTWAIT);
        size += n > 0 ? (size_t)n : 0;
    } while (n > 0 && !memchr(text, '\0', size));
    text[size] = '\0';
    /* What follows the name of an error may contain paths. */
    n = strstr(text, "\"error\"") ? (ssize_t)strcspn(text, ",") : 100;
    sim_trace("answer: %.*s", (int)n, text);
    return size > 0 && !strstr(text, "\"error\"");
}

/* ---- the schedule ---- */

/* Returns a number of the answer; 0 = it is not there. */
static uint64_t number(const char *name)
{
    char text[32];
    const char *at;

    (void)snprintf(text, sizeof(text), "\"%s\":", name);
    at = strstr(operator.answer, text);
    return at ? strtoull(at + strlen(text), NULL, 10) : 0;
}

/* Notes what became of the slots that were decided last. Returns the latest one. */
static uint64_t note_slots(void)
{
    static const char begin[] = "{\"slot\":", outcome[] = "\"outcome\":\"fired";
    unsigned long long slot;
    uint64_t latest = 0;
    char id[64];

    for (const char *at = operator.answer; (at = strstr(at, begin)); at++) {
        const char *end = strchr(at, '}');

        if (sscanf(at, "{\"slot\":%llu,\"id\":\"%63[^\"]\",\"outcome", &slot, id) != 2 ||
            !memmem(at, (size_t)(end - at), "outcome", 7))
            continue;
        /* The row of a job that a failing disk has refused may be there. */
        if (!(model_allowed & MODEL_DISK_FAULTS) || !memmem(at, (size_t)(end - at), "refused", 7))
            model_slot_decided(id, memmem(at, (size_t)(end - at), outcome, strlen(outcome)));
        latest = slot > latest ? slot : latest;
    }
    return latest / USEC_PER_SEC;
}

static void rest(usec_t span)
{
    if (sim_now() + sim_realtime < (usec_t) operator.until * USEC_PER_SEC)
        operator.ready_before = machine_ready_time();
    sim_rest(span);
}

/* Whether the schedule may have begun, on disk, after its last slot. */
static bool may_have_no_slots(void)
{
    return model_allowed & MODEL_NO_SLOTS || operator.ready_before<BEGUN_AFTER;
}

/* Each slot between two looks has one outcome. Returns whether the last slot has one. */
static bool is_schedule_over(const char *unused)
{
    const bool called = call("Schedules.Get", TICK);
    const uint64_t slot = note_slots();
    const uint64_t n = number("fired") + number("skipped") + number("missed") + number("paused") +
                       number("refused");

    (void)unused;
    if (called && slot == 0 && may_have_no_slots())
        return true;
    if (!called || slot == 0 || number("waiting") > 0 ||
        !strstr(operator.answer, "\"state\":\"active\""))
        return model_allowed & MODEL_DISK_FAULTS;
    if (operator.first == 0) {
        operator.first = slot;
        operator.n_before = n;
    }
    if (slot < (uint64_t) operator.until)
        return model_allowed & MODEL_DISK_FAULTS;
    sim_expect(n - operator.n_before ==(slot - operator.first) / operator.period ||
                                                                 model_allowed & MODEL_DISK_FAULTS,
               "%llu slots were decided since %llu", (unsigned long long)(n - operator.n_before),
               (unsigned long long)operator.first);
    return true;
}

void operator_watch_schedule(unsigned period, time_t until)
{
    operator.period = period;
    operator.until = until;
}

bool operator_sees_last_slot(void)
{
    return operator.period == 0 || sim_now() + sim_realtime >
           ((usec_t) operator.until + 5) * USEC_PER_SEC;
}

/* ---- anything ---- */

static void cancel(void)
{
    const uint32_t index = 1 + (uint32_t)sim_below(operator.n_jobs);

    model_job(index)->may_be_cancelled = true;
    if (call("Jobs.Cancel", "{\"id\":\"job-%u\"}", index))
        model_is_cancelled(index);
}

static void call_something(enum sim_fault kind)
{
    static const char *const states[] = {"Supervisor.Pause", "Supervisor.Resume", "Supervisor.Stop",
                                         "Supervisor.Start", "Supervisor.Restart"};
    const char *group = GROUPS[sim_below(ELEMENTS(GROUPS))];
    const uint64_t state = sim_below(ELEMENTS(states)), size = 1 + sim_below(4);

    if (!sim_one_in(sim_chances[kind]))
        return;
    if (kind == SIM_UPGRADE)
        (void)call("Supervisor.Upgrade", "{}");
    else if (kind == SIM_RELOAD)
        (void)call("Supervisor.Reload", "{}");
    else if (kind == SIM_CANCEL)
        cancel();
    else if (kind == SIM_RESIZE)
        (void)call("Supervisor.Resize", "{\"target\":\"%s\",\"size\":%u}", group, (unsigned)size);
    else if (!sim_one_in(3))
        (void)call(states[state], TARGET, group);
    else if (operator.period> 0)
        (void)call(size % 2 ? "Schedules.Pause" : "Schedules.Resume", TICK);
}

static void insist(const char *method, const char *key, const char *name)
{
    for (unsigned i = 0; !call(method, "{\"%s\":\"%s\"}", key, name) && i < 100; i++)
        sim_rest(USEC_PER_SEC);
}

static bool is_idle(const char *group)
{
    const char *size;

    if (!call("Supervisor.GetStatus", "{\"target\":\"%s\",\"brief\":true}", group))
        return false;
    size = strstr(operator.answer, "\"size\":");
    if (size) /* what precedes it has numbers of limits */
        memmove(operator.answer, size, strlen(size) + 1);
    return number("up") == number("members") &&
           (strstr(operator.answer, "\"size_max\"") || number("members") % number("size") == 0) &&
           (strstr(operator.answer, "\"cells\"") || number("members") == number("size")) &&
           number("queued") + number("running") + number("waiting") + number("ending") +
                   number("queue_bytes") ==
               0;
}

static void await(bool (*is_right)(const char *group), const char *group)
{
    for (unsigned i = 0; !is_right(group); i++) {
        sim_expect(i < IDLE_AFTER, "%s is not right in the end: %.600s", group, operator.answer);
        sim_rest(USEC_PER_SEC);
    }
}

static void act(void)
{
    while (!operator.rests) {
        rest(sim_below(USEC_PER_SEC));
        call_something(SIM_UPGRADE + (enum sim_fault)sim_below(_SIM_N_FAULTS - SIM_UPGRADE));
        if (operator.period> 0)
            (void)is_schedule_over(NULL);
    }
}

static void run(void *unused)
{
    (void)unused;
    act();
    for (size_t i = 0; i < ELEMENTS(GROUPS); i++) {
        insist("Supervisor.Start", "target", GROUPS[i]);
        insist("Supervisor.Resume", "target", GROUPS[i]);
    }
    if (operator.period> 0)
        insist("Schedules.Resume", "name", "tick");
    while (!operator.checks)
        rest(USEC_PER_SEC);
    if (operator.period> 0)
        await(is_schedule_over, "the schedule");
    for (size_t i = 0; i < ELEMENTS(GROUPS); i++)
        await(is_idle, GROUPS[i]);
    operator.has_checked = true;
}

void operator_start(const char *socket_path, unsigned n_jobs)
{
    operator.socket_path = socket_path;
    operator.n_jobs = n_jobs;
    (void)sim_start("operator", run, NULL, NULL);
}

void operator_rest(void)
{
    operator.rests = true;
}

bool operator_check(void)
{
    operator.checks = true;
    return operator.has_checked;
}
