/* SPDX-License-Identifier: MIT */
#include "tests/world/operator.h"

#include "shared/base/cleanup.h"
#include "tests/world/model.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <poll.h>
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

static struct {
    const char *socket_path;
    unsigned n_jobs;
    bool rests, checks, has_checked;
    /* Of the schedule: the seconds between its slots, 0 = there is none; the last slot. */
    unsigned period;
    time_t until;
    uint64_t first, n_before; /* a slot, and how many were decided then; 0 = not known yet */
    char answer[ANSWER_MAX];
} operator;

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

/* Returns whether there was an answer that is no error. */
static bool call(const char *method, const char *parameters)
{
    char *text = operator.answer;
    _cleanup_close_ int fd = connect_to(operator.socket_path);
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    size_t size = 0;
    ssize_t n;

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
    sim_trace("answer: %.100s", text);
    return size > 0 && !strstr(text, "\"error\"");
}

static void call_for_job(const char *method)
{
    const uint32_t index = (uint32_t)sim_below(operator.n_jobs);
    char parameters[64];

    (void)snprintf(parameters, sizeof(parameters), "{\"id\":\"job-%u\"}", index);
    model_may_be_cancelled(index);
    if (call(method, parameters))
        model_is_cancelled(index);
}

static void change_state(const char *group)
{
    static const char *const methods[] = {"Pause", "Resume", "Stop", "Start", "Restart"};
    char parameters[64], method[32];

    (void)snprintf(parameters, sizeof(parameters), "{\"target\":\"%s\"}", group);
    (void)snprintf(method, sizeof(method), "Supervisor.%s", methods[sim_below(ELEMENTS(methods))]);
    (void)call(method, parameters);
}

static void resize(const char *group)
{
    char parameters[64];

    (void)snprintf(parameters, sizeof(parameters), "{\"target\":\"%s\",\"size\":%u}", group,
                   (unsigned)(1 + sim_below(4)));
    (void)call("Supervisor.Resize", parameters);
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
        if (!model_allows(MODEL_DISK_FAULTS) || !memmem(at, (size_t)(end - at), "refused", 7))
            model_slot_decided(id, memmem(at, (size_t)(end - at), outcome, strlen(outcome)));
        latest = slot > latest ? slot : latest;
    }
    return latest / USEC_PER_SEC;
}

/* Each slot between two looks has one outcome. Returns whether the last slot has one. */
static bool is_schedule_over(const char *unused)
{
    const bool called = call("Schedules.Get", "{\"name\":\"tick\"}");
    const uint64_t slot = note_slots();
    const uint64_t n = number("fired") + number("skipped") + number("missed") + number("paused") +
                       number("refused");

    (void)unused;
    if (!called || slot == 0 || number("waiting") > 0 ||
        !strstr(operator.answer, "\"state\":\"active\""))
        return model_allows(MODEL_DISK_FAULTS);
    if (operator.first == 0) {
        operator.first = slot;
        operator.n_before = n;
    }
    if (slot < (uint64_t) operator.until)
        return model_allows(MODEL_DISK_FAULTS);
    model_slots_counted(n - operator.n_before, (slot - operator.first) / operator.period);
    return true;
}

static void pause_or_resume(void)
{
    if (operator.period> 0)
        (void)call(sim_one_in(2) ? "Schedules.Pause" : "Schedules.Resume", "{\"name\":\"tick\"}");
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

static void call_something(enum sim_fault kind)
{
    const char *group = GROUPS[sim_below(ELEMENTS(GROUPS))];

    if (!sim_one_in(sim_chances[kind]))
        return;
    if (kind == SIM_UPGRADE)
        (void)call("Supervisor.Upgrade", "{}");
    else if (kind == SIM_RELOAD)
        (void)call("Supervisor.Reload", "{}");
    else if (kind == SIM_CANCEL)
        call_for_job("Jobs.Cancel");
    else if (kind == SIM_RESIZE)
        resize(group);
    else if (sim_one_in(3))
        pause_or_resume();
    else
        change_state(group);
}

static void insist(const char *method, const char *key, const char *name)
{
    char parameters[64];

    (void)snprintf(parameters, sizeof(parameters), "{\"%s\":\"%s\"}", key, name);
    for (unsigned i = 0; !call(method, parameters) && i < 100; i++)
        sim_rest(USEC_PER_SEC);
}

static bool is_idle(const char *group)
{
    char parameters[64];
    const char *size;

    (void)snprintf(parameters, sizeof(parameters), "{\"target\":\"%s\",\"brief\":true}", group);
    if (!call("Supervisor.GetStatus", parameters))
        return false;
    size = strstr(operator.answer, "\"size\":");
    if (size) /* what precedes it has numbers of limits */
        memmove(operator.answer, size, strlen(size) + 1);
    return number("up") == number("members") && number("members") % number("size") == 0 &&
           (strstr(operator.answer, "\"cells\"") || number("members") == number("size")) &&
           number("queued") + number("running") + number("waiting") + number("ending") == 0;
}

static void await(bool (*is_right)(const char *group), const char *group)
{
    for (unsigned i = 0; !is_right(group); i++) {
        if (i == IDLE_AFTER) {
            model_fault("%s is not right in the end: %.600s", group, operator.answer);
            return;
        }
        sim_rest(USEC_PER_SEC);
    }
}

static void act(void)
{
    while (!operator.rests) {
        sim_rest(sim_below(4 * USEC_PER_SEC));
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
        sim_rest(USEC_PER_SEC);
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
    (void)sim_start("operator", NULL, run, NULL, NULL, NULL);
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
