/* SPDX-License-Identifier: MIT */
#include "shared/base/fault.h"

#ifdef TROUPE_FAULTS

#include "shared/base/cleanup.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FAULT_NAME_MAX 64
#define FAULT_PLANS    8

struct plan {
    char name[FAULT_NAME_MAX];
    unsigned long nth, passed;
    bool onwards;
    int error;
};

static struct {
    bool initialised;
    struct plan point;
    struct plan plans[FAULT_PLANS];
    size_t n_plans;
    const char *file; /* with the specification of `point`; NULL = none */
    const char *gate; /* with the specification of the plans, while it exists; NULL = none */
    void (*tell)(const char *name);
} fault;

/* The errno of each call when its resource is exhausted. */
static const struct {
    const char *what;
    int error;
} default_errors[] = {
    {"alloc", ENOMEM}, {"memfd", EMFILE},   {"mmap", ENOMEM},   {"eventfd", EMFILE},
    {"clone", EAGAIN}, {"pipe", EMFILE},    {"accept", EMFILE}, {"open", EMFILE},
    {"write", ENOSPC}, {"receive", ENOMEM},
};

static int default_error(const char *what)
{
    for (size_t i = 0; i < ELEMENTS(default_errors); i++)
        if (strcmp(default_errors[i].what, what) == 0)
            return default_errors[i].error;
    return EIO;
}

static void malformed(const char *specification)
{
    fprintf(stderr, "malformed fault specification: %s\n", specification);
    abort();
}

/* NAME:N[+][=ERRNO]; returns the first character behind it. */
static const char *parse_plan(struct plan *ret, const char *text)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    char *end;

    if (length == 0 || length >= FAULT_NAME_MAX)
        malformed(text);
    *ret = (struct plan){0};
    memcpy(ret->name, text, length);
    ret->nth = strtoul(colon + 1, &end, 10);
    if (end == colon + 1 || ret->nth == 0)
        malformed(text);
    if (*end == '+') {
        ret->onwards = true;
        end++;
    }
    ret->error = default_error(ret->name);
    if (*end == '=')
        ret->error = (int)strtoul(end + 1, &end, 10);
    return end;
}

void fault_arm_point(const char *specification)
{
    fault.initialised = true;
    fault.point = (struct plan){0};
    if (specification && *parse_plan(&fault.point, specification) != '\0')
        malformed(specification);
}

void fault_arm(const char *specification)
{
    const char *at = specification;

    fault.initialised = true;
    fault.n_plans = 0;
    while (at && *at != '\0') {
        if (fault.n_plans == FAULT_PLANS)
            malformed(specification);
        at = parse_plan(&fault.plans[fault.n_plans++], at);
        if (*at == ',')
            at++;
        else if (*at != '\0')
            malformed(specification);
    }
}

void fault_on_kill(void (*tell)(const char *name))
{
    fault.tell = tell;
}

/* Arms the faults of the file, if it exists. */
static void arm_by_file(const char *path, void (*arm)(const char *specification))
{
    char text[FAULT_NAME_MAX + 32] = "";
    FILE *file = fopen(path, "re");

    if (!file)
        return;
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    arm(*text != '\0' ? text : NULL);
}

/* Returns the file's name; NULL = the variable holds the specification itself. */
static const char *arm_by_variable(const char *name, void (*arm)(const char *specification))
{
    const char *value = getenv(name);
    const char *file = value && *value == '@' ? value + 1 : NULL;

    if (file)
        arm_by_file(file, arm);
    else
        arm(value);
    return file;
}

static void initialise(void)
{
    if (fault.initialised)
        return;
    fault.initialised = true;
    fault.file = arm_by_variable("TROUPE_FAULT_POINT", fault_arm_point);
    fault.gate = arm_by_variable("TROUPE_FAULT", fault_arm);
}

void fault_point(const char *name)
{
    struct plan *plan = &fault.point;

    initialise();
    if (plan->nth == 0 || (strcmp(plan->name, "any") != 0 && strcmp(plan->name, name) != 0))
        return;
    if (++plan->passed != plan->nth)
        return;
    if (fault.tell)
        fault.tell(name);
    if (fault.file)
        (void)unlink(fault.file);
    (void)raise(SIGKILL);
}

static int fail(const struct plan *plan)
{
    if (fault.gate && !plan->onwards)
        (void)unlink(fault.gate);
    return -plan->error;
}

int fault_inject(const char *what)
{
    initialise();
    for (size_t i = 0; i < fault.n_plans; i++) {
        struct plan *plan = &fault.plans[i];

        if (strcmp(plan->name, what) != 0 || (fault.gate && access(fault.gate, F_OK) < 0))
            continue;
        plan->passed++;
        if (plan->passed == plan->nth || (plan->onwards && plan->passed > plan->nth))
            return fail(plan);
    }
    return 0;
}

#endif
