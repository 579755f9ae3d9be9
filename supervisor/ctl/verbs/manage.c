/* SPDX-License-Identifier: MIT */

/* The verbs that control groups and workers, and reload. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/still.h"
#include "supervisor/ctl/verbs/verbs.h"

/* A change of targets, and its name while it is in progress. */
struct change {
    const char *method;
    const char *doing; /* NULL = complete at once */
    bool ends;         /* workers go down */
};

static int order_one(struct invocation *invocation, const struct change *change, const char *target)
{
    bool wait = invocation->options.wait;
    const char *name = invocation->options.actor ? "actor" : "target";
    json_t *reply, *parameters = json_pack("{s:s}", name, target);
    usec_t within = invocation->options.within;
    int r;

    if (!parameters || (wait && json_object_set_new(parameters, "wait", json_true()) < 0) ||
        (within > 0 &&
         json_object_set_new(parameters, "within_usec", json_integer((json_int_t)within)) < 0))
        return call_no_memory();
    r = wait ? call_wait(invocation, change->method, parameters, &reply)
             : call(invocation, change->method, parameters, false, &reply);
    if (wait && r == EXIT_TIMEOUT)
        return still_under_way(invocation, target, change->doing, change->ends);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json_line(reply);
    json_decref(reply);
    return r;
}

/* Tries all targets; the last failure is the exit status. */
static int order(struct invocation *invocation, const struct change *change)
{
    int status = EXIT_OK;

    for (size_t i = 0; i < invocation->n_operands; i++) {
        int r = order_one(invocation, change, invocation->operands[i]);

        if (r == EXIT_UNREACHABLE)
            return r;
        if (r != EXIT_OK)
            status = r;
    }
    return status;
}

int verb_start(struct invocation *invocation)
{
    return order(invocation, &(struct change){CALL_SUPERVISOR "Start", "starting", false});
}

int verb_stop(struct invocation *invocation)
{
    return order(invocation, &(struct change){CALL_SUPERVISOR "Stop", "stopping", true});
}

int verb_restart(struct invocation *invocation)
{
    return order(invocation, &(struct change){CALL_SUPERVISOR "Restart", "restarting", false});
}

int verb_reset(struct invocation *invocation)
{
    return order(invocation, &(struct change){.method = CALL_SUPERVISOR "Reset"});
}

static int pause_or_resume(struct invocation *invocation, const char *verb)
{
    char method[64];

    snprintf(method, sizeof(method), "%s%s",
             invocation->options.actor ? CALL_ACTORS : CALL_SUPERVISOR, verb);
    return order(invocation, &(struct change){.method = method});
}

int verb_pause(struct invocation *invocation)
{
    return pause_or_resume(invocation, "Pause");
}

int verb_resume(struct invocation *invocation)
{
    return pause_or_resume(invocation, "Resume");
}

int verb_resize(struct invocation *invocation)
{
    const char *target = invocation_operand(invocation, 0),
               *text = invocation_operand(invocation, 1);
    bool wait = invocation->options.wait;
    json_t *reply, *parameters;
    int64_t size;
    int r;

    /* The supervisor checks the range. */
    if (value_number(text, INT32_MIN, INT32_MAX, &size) < 0) {
        complain("'%s' is no number of workers", text);
        return EXIT_USAGE;
    }
    parameters = json_pack("{s:s, s:I}", "target", target, "size", (json_int_t)size);
    if (!parameters || (wait && json_object_set_new(parameters, "wait", json_true()) < 0))
        return call_no_memory();
    r = wait ? call_wait(invocation, CALL_SUPERVISOR "Resize", parameters, &reply)
             : call(invocation, CALL_SUPERVISOR "Resize", parameters, false, &reply);
    if (wait && r == EXIT_TIMEOUT)
        return still_under_way(invocation, target, "resizing", false);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json(invocation, reply);
    else if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: %lld → %lld workers", SAFE(target),
                       (long long)field_int(reply, "old_size"), (long long)size);
    json_decref(reply);
    return r;
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

/* Prints each problem on standard error, like `verify`. */
static size_t print_problems(const json_t *reply, const char *what)
{
    const json_t *lines = json_object_get(reply, what);

    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));

        fprintf(stderr, "%s\n", SAFE_LINE(line ? line : ""));
    }
    return json_array_size(lines);
}

static void show_reload(const struct invocation *invocation, const json_t *reply)
{
    const struct terminal *out = &invocation->out;
    const size_t n_left_out = print_problems(reply, "left_out");
    const size_t n_missing = print_problems(reply, "faults");
    size_t n = 0;

    if (n_left_out > 0)
        complain("%zu problem%s: these files are left out, and what they configured before stays; "
                 "all others are in force",
                 n_left_out, plural(n_left_out));
    if (n_missing > 0)
        complain("%zu thing%s missing: a group without what it needs waits, or goes on as it was, "
                 "and is tried again by itself; all else is in force",
                 n_missing, n_missing == 1 ? " is" : "s are");
    if (!invocation->options.quiet) {
        n += show_names(out, reply, "added");
        n += show_names(out, reply, "removed");
        n += show_names(out, reply, "changed");
        if (n == 0)
            terminal_print(out, "no group has changed");
    }
}

/* A missing program does not keep the configuration from being in force; a skipped file does. */
static int reload_status(const json_t *reply)
{
    return json_array_size(json_object_get(reply, "left_out")) > 0 ? EXIT_INVALID : EXIT_OK;
}

int verb_reload(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    json_t *reply, *parameters = json_pack("{s:b, s:b}", "partial", options->partial, "allow_empty",
                                           options->allow_empty);
    int r;

    if (!parameters)
        return call_no_memory();
    r = call(invocation, CALL_SUPERVISOR "Reload", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    if (options->json)
        r = call_print_json(invocation, reply);
    else
        show_reload(invocation, reply);
    if (r == EXIT_OK)
        r = reload_status(reply);
    json_decref(reply);
    return r;
}
