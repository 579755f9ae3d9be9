/* SPDX-License-Identifier: MIT */

/* The verbs that control groups and workers, reload and backup. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Changes of targets. */
static const struct change {
    const char *verb, *method;
    const char *doing; /* its name while it is in progress; NULL = complete at once */
    bool ends;         /* workers go down */
} changes[] = {
    {"start", CALL_SUPERVISOR "Start", "starting", false},
    {"stop", CALL_SUPERVISOR "Stop", "stopping", true},
    {"restart", CALL_SUPERVISOR "Restart", "restarting", false},
    {"resize", CALL_SUPERVISOR "Resize", "resizing", false},
    {"reset", CALL_SUPERVISOR "Reset", NULL, false},
    {"pause", CALL_SUPERVISOR "Pause", NULL, false},
    {"resume", CALL_SUPERVISOR "Resume", NULL, false},
};

static const struct change *find_change(const char *verb)
{
    const struct change *change = changes;

    while (strcmp(change->verb, verb) != 0)
        change++;
    return change;
}

struct tally {
    uint64_t n;       /* workers */
    uint64_t n_late;  /* not yet in the wanted state */
    uint64_t n_hands; /* of these: with a job in hand */
};

static void count_workers(const json_t *owner, bool ends, struct tally *tally)
{
    const json_t *workers = json_object_get(owner, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        tally->n++;
        if (ends ? pool_is_down(worker) : pool_is_up(worker))
            continue;
        tally->n_late++;
        tally->n_hands += field_has(worker, "job");
    }
}

static struct tally count(const json_t *groups, bool ends)
{
    struct tally tally = {0};

    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i), *cells = json_object_get(group, "cells");

        count_workers(group, ends, &tally);
        for (size_t k = 0; k < json_array_size(cells); k++)
            count_workers(json_array_get(cells, k), ends, &tally);
    }
    return tally;
}

/*
 * Prints the progress of a change whose --wait timed out: "digest: still stopping: 19 of 60 have a
 * job in hand; it goes on".
 */
static int still_under_way(struct invocation *invocation, const char *target,
                           const struct change *change)
{
    json_auto_t *reply = NULL;
    struct tally tally;
    int r = call(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s}", "target", target),
                 false, &reply);

    if (r != EXIT_OK)
        return r;
    tally = count(json_object_get(reply, "groups"), change->ends);
    if (tally.n_hands > 0)
        complain("%s: still %s: %s of %s ha%s a job in hand; it goes on", target, change->doing,
                 COUNT(tally.n_hands), COUNT(tally.n), tally.n_hands == 1 ? "s" : "ve");
    else
        complain("%s: still %s: %s of %s %s not %s yet; it goes on", target, change->doing,
                 COUNT(tally.n_late), COUNT(tally.n), tally.n_late == 1 ? "is" : "are",
                 change->ends ? "down" : "up");
    return EXIT_TIMEOUT;
}

/* Makes the change of the verb; with --wait until it is complete. */
static int make_change(struct invocation *invocation, const char *target, json_t *parameters,
                       output_fn show)
{
    const struct change *change = find_change(invocation->verb->name);
    const bool wait = invocation->options.wait;
    int r;

    if (parameters && wait && json_object_set_new(parameters, "wait", json_true()) < 0) {
        json_decref(parameters);
        return call_no_memory();
    }
    invocation->waits = wait;
    r = call_print(invocation, change->method, parameters, wait, show);
    invocation->waits = false;
    return wait && r == EXIT_TIMEOUT ? still_under_way(invocation, target, change) : r;
}

static int change_one(struct invocation *invocation, const char *target)
{
    return make_change(invocation, target,
                       json_pack("{s:s, s:o*}", "target", target, "within_usec",
                                 field_given(invocation->options.within)),
                       NULL);
}

int verb_change(struct invocation *invocation)
{
    return invocation_each(invocation, 0, change_one);
}

static int switch_actor(struct invocation *invocation, const char *actor)
{
    bool pause = strcmp(invocation->verb->name, "pause") == 0;

    return call_print(invocation, pause ? CALL_ACTORS "Pause" : CALL_ACTORS "Resume",
                      json_pack("{s:s}", "actor", actor), false, NULL);
}

/* Pauses or resumes the jobs of groups, or the messages of actors. */
int verb_switch(struct invocation *invocation)
{
    return invocation_each(invocation, 0, invocation->options.actor ? switch_actor : change_one);
}

static void show_size(const struct invocation *invocation, const json_t *reply)
{
    if (!invocation->options.quiet)
        terminal_print(
            &invocation->out, "%s: %lld → %s workers", SAFE(invocation_operand(invocation, 0)),
            (long long)field_int(reply, "old_size"), SAFE(invocation_operand(invocation, 1)));
}

int verb_resize(struct invocation *invocation)
{
    const char *target = invocation_operand(invocation, 0),
               *text = invocation_operand(invocation, 1);
    int64_t size;

    /* The supervisor checks the range. */
    if (value_number(text, INT32_MIN, INT32_MAX, &size) < 0) {
        complain("'%s' is no number of workers", text);
        return EXIT_USAGE;
    }
    return make_change(invocation, target,
                       json_pack("{s:s, s:I}", "target", target, "size", (json_int_t)size),
                       show_size);
}

static size_t show_names(const struct terminal *terminal, const json_t *reply, const char *what)
{
    const json_t *names = json_object_get(reply, what);

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        terminal_print(terminal, "%s %s", what, SAFE(name ? name : ""));
    }
    return json_array_size(names);
}

static void show_reload(const struct invocation *invocation, const json_t *reply)
{
    const struct terminal *out = &invocation->out;
    const size_t n_missing = explain_problems(json_object_get(reply, "faults"));
    size_t n = 0;

    if (n_missing > 0)
        complain("%zu thing%s missing: the groups concerned stay as they were, and are tried again "
                 "automatically; all else is in force",
                 n_missing, n_missing == 1 ? " is" : "s are");
    if (!invocation->options.quiet) {
        n += show_names(out, reply, "added");
        n += show_names(out, reply, "removed");
        n += show_names(out, reply, "changed");
        if (n == 0)
            terminal_print(out, "no group has changed");
        if (field_true(reply, "left_safe_mode"))
            terminal_print(out, "safe mode has ended: all groups are resumed");
    }
}

int verb_reload(struct invocation *invocation)
{
    return call_print(invocation, CALL_SUPERVISOR "Reload",
                      json_pack("{s:b}", "allow_empty", invocation->options.allow_empty), false,
                      show_reload);
}

static void show_backup(const struct invocation *invocation, const json_t *reply)
{
    if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: %s", SAFE(invocation_operand(invocation, 0)),
                       BYTES(field_count(reply, "size")));
}

int verb_backup(struct invocation *invocation)
{
    const char *file = invocation_operand(invocation, 0);
    _cleanup_free_ char *directory = *file == '/' ? strdup("") : getcwd(NULL, 0);
    _cleanup_free_ char *path = NULL;

    if (!directory || asprintf(&path, "%s%s%s", directory, *file == '/' ? "" : "/", file) < 0)
        return call_no_memory();
    return call_print(invocation, CALL_SUPERVISOR "Backup", json_pack("{s:s}", "path", path), true,
                      show_backup);
}
