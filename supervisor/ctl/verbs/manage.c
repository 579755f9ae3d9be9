/* SPDX-License-Identifier: MIT */

/* The verbs that control groups and workers, reload, info, metrics and upgrade. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/pattern.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/verbs.h"
#include "supervisor/metrics/metrics.h"
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- changes of targets ---- */

static int tell_late(const char *target)
{
    complain("%s: not complete yet; it continues ('troupectl why %s' tells more)", target, target);
    return EXIT_TIMEOUT;
}

/* Calls the method that has the verb's name; with --wait until the change is complete. */
static int make_change(struct invocation *invocation, const char *target, json_t *parameters,
                       output_fn show)
{
    const char *verb = invocation->verb->name;
    const bool wait = invocation->options.wait;
    char method[64];
    int r;

    if (parameters && wait && json_object_set_new(parameters, "wait", json_true()) < 0) {
        json_decref(parameters);
        return call_no_memory();
    }
    (void)snprintf(method, sizeof(method), CALL_SUPERVISOR "%c%s", toupper(verb[0]), verb + 1);
    invocation->waits = wait;
    r = call_print(invocation, method, parameters, wait, show);
    invocation->waits = false;
    return wait && r == EXIT_TIMEOUT ? tell_late(target) : r;
}

static int change_one(struct invocation *invocation, const char *target)
{
    return make_change(invocation, target,
                       json_pack("{s:s, s:o*, s:o*}", "target", target, "within_usec",
                                 field_given(invocation->options.within), "keep",
                                 invocation->options.keep ? json_true() : NULL),
                       NULL);
}

int verb_change(struct invocation *invocation)
{
    return invocation_each(invocation, 0, change_one);
}

static void show_signalled(const struct invocation *invocation, const json_t *reply)
{
    if (!invocation->options.quiet)
        pattern_print(&invocation->out, "sent to {workers:count} worker{workers:s}", reply, 0);
}

int verb_signal(struct invocation *invocation)
{
    return call_print(invocation, CALL_SUPERVISOR "Signal",
                      json_pack("{s:s, s:s*}", "target", invocation_operand(invocation, 0),
                                "signal", invocation_operand(invocation, 1)),
                      false, show_signalled);
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

/* ---- drain and resume ---- */

/* Takes the groups that are wanted as operands. The caller owns `*ret`, from which their names are
 * borrowed, and frees the operands. */
static int name_groups(struct invocation *invocation, bool (*is_wanted)(const json_t *group),
                       json_t **ret)
{
    int r = parts_of_status(invocation, NULL, true, ret);
    const json_t *groups = json_object_get(*ret, "groups");
    const char **names = calloc(json_array_size(groups) + 1, sizeof(*names));

    if (!names)
        return call_no_memory();
    for (size_t i = 0; i < json_array_size(groups); i++)
        if (is_wanted(json_array_get(groups, i)))
            names[invocation->n_operands++] = field_text(json_array_get(groups, i), "name");
    invocation->operands = names;
    return r;
}

static bool has_jobs(const json_t *group)
{
    return field_is(group, "type", "actor");
}

/* Groups that a reload has removed also drain, but not on request. */
static bool is_drained(const json_t *group)
{
    return field_has(group, "drained");
}

static void show_drained(const struct invocation *invocation, const json_t *reply)
{
    if (!invocation->options.quiet)
        pattern_print(&invocation->out,
                      "{group}: drained[; {left>0:count} job{left:s} wait[{left=1}s] until it is "
                      "resumed]",
                      reply, 0);
}

static int drain_one(struct invocation *invocation, const char *group)
{
    const bool wait = invocation->waits;
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_SUPERVISOR "Drain",
                 json_pack("{s:s, s:b}", "target", group, "wait", wait), wait, &reply);

    if (r != EXIT_OK || !wait)
        return r == EXIT_TIMEOUT ? tell_late(group) : r;
    if (json_object_set_new(reply, "group", json_string(group)) < 0)
        return call_no_memory();
    return output_reply(invocation, reply, show_drained);
}

/* All groups stop taking jobs before the first one is waited for. */
int verb_drain(struct invocation *invocation)
{
    const usec_t timeout = invocation->options.timeout;
    const bool all = invocation->n_operands == 0;
    json_auto_t *status = NULL;
    int r = all ? name_groups(invocation, has_jobs, &status) : EXIT_OK;

    invocation->options.timeout = 0;
    if (r == EXIT_OK)
        r = invocation_each(invocation, 0, drain_one);
    invocation->options.timeout = timeout;
    invocation->waits = true;
    invocation->lines = invocation->n_operands > 1;
    if (r == EXIT_OK)
        r = invocation_each(invocation, 0, drain_one);
    if (all)
        free((void *)(uintptr_t)invocation->operands);
    return r;
}

int verb_resume(struct invocation *invocation)
{
    json_auto_t *status = NULL;
    int r;

    if (invocation->n_operands > 0)
        return verb_switch(invocation);
    if (invocation->options.actor) {
        complain("--actor needs the name of an actor");
        return EXIT_USAGE;
    }
    r = name_groups(invocation, is_drained, &status);
    if (r == EXIT_OK)
        r = verb_switch(invocation);
    free((void *)(uintptr_t)invocation->operands);
    return r;
}

/* ---- resize ---- */

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

static const char INFO[] = "Version: {version}\n"
                           "  State: {state}[{safe_mode}, in safe mode]\n"
                           "[Trouble: {config_problem}]\n"
                           "    Pid: {pid}\n"
                           "  Since: {started_at:time} ({started_at:ago})\n"
                           "Crashes: {restarts:count}\n"
                           "Upgrade: {upgrades:count} done, {failed_upgrades:count} failed\n"
                           " Socket: {socket}\n"
                           "[   Loop: {loop}]\n"
                           "   Wake: {wake}\n"
                           "Cgroups: {cgroups}\n"
                           " Groups: {groups:count}\n"
                           "Workers: {workers:count}\n"
                           "   Jobs: {jobs:count}\n"
                           "Clients: {clients:count}\n"
                           " Delays: at most {longest_turn_usec:span} since the start, "
                           "{recent_turn_usec:span} in the last minute";

static void show_info(const struct invocation *invocation, const json_t *info)
{
    json_auto_t *view = json_copy((json_t *)(uintptr_t)info);

    json_object_set_new(view, "socket", json_string(invocation_socket(invocation)));
    pattern_print(&invocation->out, INFO, view, clock_realtime());
    show_kept_back(&invocation->out, "Trouble: ", view, "");
}

int verb_info(struct invocation *invocation)
{
    return call_print(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, show_info);
}

/* ---- metrics ---- */

static int write_text(const struct invocation *invocation, const char *text, size_t size)
{
    const char *path = invocation->options.output;
    int r;

    if (!path)
        return fwrite(text, 1, size, stdout) == size ? EXIT_OK : EXIT_FAILED;
    r = output_replace_file(path, text, size);
    if (r == 0)
        return EXIT_OK;
    complain("%s: %s", SAFE(path), strerror(-r));
    return EXIT_FAILED;
}

static int print_text(const struct invocation *invocation, const json_t *reply)
{
    size_t size = 0;
    _cleanup_free_ char *text = metrics_to_text(reply, &size);

    return text ? write_text(invocation, text, size) : call_no_memory();
}

int verb_metrics(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    int r;

    if (invocation->options.json && invocation->options.output) {
        complain(
            "--output writes metrics, and --json prints the supervisor's reply: give only one");
        return EXIT_USAGE;
    }
    r = parts_of_metrics(invocation, &reply);
    if (r != EXIT_OK)
        return r;
    return invocation->options.json ? output_json(invocation, reply)
                                    : print_text(invocation, reply);
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
