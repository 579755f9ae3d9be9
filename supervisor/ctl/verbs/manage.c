/* SPDX-License-Identifier: MIT */

/* The verbs that control groups and workers, reload, info and upgrade. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
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
 * job in hand; it continues".
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
        complain("%s: still %s: %s of %s ha%s a job in hand; it continues", target, change->doing,
                 COUNT(tally.n_hands), COUNT(tally.n), tally.n_hands == 1 ? "s" : "ve");
    else
        complain("%s: still %s: %s of %s %s not %s yet; it continues", target, change->doing,
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

/* ---- info ---- */

static void show_info(const struct invocation *invocation, const json_t *info)
{
    const struct terminal *out = &invocation->out;
    usec_t now = clock_realtime(), started = field_usec(info, "started_at");

    terminal_print(out, "Version: %s", SAFE(field_text(info, "version")));
    terminal_print(out, "  State: %s%s", SAFE(field_text(info, "state")),
                   field_true(info, "safe_mode") ? ", in safe mode" : "");
    if (field_has(info, "config_problem"))
        terminal_print(out, "Trouble: %s", SAFE(field_text(info, "config_problem")));
    terminal_print(out, "    Pid: %lld", (long long)field_int(info, "pid"));
    terminal_print(out, "  Since: %s (%s)", TIME(started), AGO(now, started));
    terminal_print(out, "Crashes: %s", COUNT(field_count(info, "restarts")));
    terminal_print(out, "Upgrade: %s done, %s failed", COUNT(field_count(info, "upgrades")),
                   COUNT(field_count(info, "failed_upgrades")));
    terminal_print(out, " Socket: %s", SAFE(invocation_socket(invocation)));
    if (field_has(info, "loop"))
        terminal_print(out, "   Loop: %s", SAFE(field_text(info, "loop")));
    terminal_print(out, "   Wake: %s", SAFE(field_text(info, "wake")));
    terminal_print(out, "Cgroups: %s", SAFE(field_text(info, "cgroups")));
    terminal_print(out, " Groups: %s", COUNT(field_count(info, "groups")));
    terminal_print(out, "Workers: %s", COUNT(field_count(info, "workers")));
    terminal_print(out, "   Jobs: %s", COUNT(field_count(info, "jobs")));
    terminal_print(out, "Clients: %s", COUNT(field_count(info, "clients")));
    terminal_print(out, " Delays: at most %s since the start, %s in the last minute",
                   SPAN(field_usec(info, "longest_turn_usec")),
                   SPAN(field_usec(info, "recent_turn_usec")));
}

int verb_info(struct invocation *invocation)
{
    return call_print(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, show_info);
}

/* ---- upgrade ---- */

struct upgrade {
    json_t *before; /* GetInfo's reply before the upgrade; owned */
    bool quiet;
};

static int show_outcome(struct invocation *invocation, const struct upgrade *upgrade,
                        const json_t *info)
{
    if (field_count(info, "upgrades") > field_count(upgrade->before, "upgrades")) {
        if (!upgrade->quiet)
            terminal_print(&invocation->out, "trouped %s has taken over from trouped %s",
                           SAFE(field_text(info, "version")),
                           SAFE(field_text(upgrade->before, "version")));
        return EXIT_OK;
    }
    if (field_count(info, "failed_upgrades") > field_count(upgrade->before, "failed_upgrades"))
        complain("the new program did not become ready, and trouped %s continues; its log says why",
                 SAFE(field_text(info, "version")));
    else
        complain("the supervisor ended before it was replaced, and trouped %s continues: try again",
                 SAFE(field_text(info, "version")));
    return EXIT_FAILED;
}

/* Requests the upgrade on the first connection, and looks at the outcome on the next one. */
static int once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct upgrade *upgrade = userdata;
    json_auto_t *info = NULL, *reply = NULL;
    int r = call(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &info);

    if (r != EXIT_OK)
        return r;
    reconnect_done(reconnect);
    if (upgrade->before)
        return show_outcome(invocation, upgrade, info);
    upgrade->before = json_incref(info);
    return call(invocation, CALL_SUPERVISOR "Upgrade", json_object(), true, &reply);
}

int verb_upgrade(struct invocation *invocation)
{
    struct upgrade upgrade = {.quiet = invocation->options.quiet};
    int r;

    invocation->options.quiet = true; /* the connection is expected to break */
    r = reconnect_run(invocation, RECONNECT_DEFAULT, once, &upgrade);
    json_decref(upgrade.before);
    return r;
}
