/* SPDX-License-Identifier: MIT */

/* Reads the configuration again, and applies it. */

#include "shared/base/cleanup.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/control/control.h"
#include "supervisor/supervisor-private.h"
#include <errno.h>
#include <string.h>

/* Faults of groups are events of their own. */
static void log_faults_of_daemon(const char *directory, const struct config_problems *faults)
{
    for (size_t i = 0; i < faults->n_problems; i++)
        if (config_problem_is_of(&faults->problems[i], directory, "troupe", ".conf"))
            log_error("%s:%u: %s", faults->problems[i].path, faults->problems[i].line,
                      faults->problems[i].text);
}

static int resolve(struct supervisor *supervisor)
{
    struct config_problems faults = CONFIG_PROBLEMS_NULL;
    struct names names = NAMES_NULL;
    int r = config_want_names(supervisor->config, &names);

    if (r == 0)
        r = names_wait(&names);
    if (r < 0 && r != -ENOMEM) {
        log_warning("users, groups and files cannot be looked up: %s", strerror(-r));
        r = 0;
    }
    if (r == 0)
        r = config_resolve(supervisor->config, &names, &faults);
    log_faults_of_daemon(supervisor->options->config_directory, &faults);
    config_problems_deinit(&faults);
    names_deinit(&names);
    return r;
}

static void take_daemon(struct supervisor *supervisor)
{
    supervisor->parts.control.config = &supervisor->config->daemon;
    if (!supervisor->options->log_level_given)
        log_set_max_level((enum log_level)supervisor->config->daemon.log_level);
}

void supervisor_apply_daemon(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;

    take_daemon(supervisor);
    death_log_resize(&parts->deaths, parts->control.config->deaths_max);
    dead_letters_resize(&parts->messages.dead_letters, parts->control.config->dead_letters_max,
                        parts->control.config->dead_letters_memory_max);
    loop_set_spin(parts->loop, parts->control.config->spin);
    if (supervisor->control)
        control_review_clients(supervisor->control);
}

int supervisor_load_config(struct supervisor *supervisor)
{
    const char *directory = supervisor->options->config_directory;
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    int r = config_read(&supervisor->config, directory, &problems);

    if (r == CONFIG_E_INVALID)
        reload_log_problems(&problems);
    else if (r == 0)
        r = resolve(supervisor);
    if (r < 0)
        log_error("%s: cannot read the configuration: %s", directory, strerror(-r));
    if (r != 0) {
        supervisor_note_problem(supervisor, &problems, r);
        config_free(TAKE_PTR(supervisor->config));
        r = config_empty(&supervisor->config);
    }
    config_problems_deinit(&problems);
    if (r == 0)
        take_daemon(supervisor);
    return r;
}

static struct reload_call *first_call(const struct supervisor *supervisor)
{
    const struct list *first = list_first(&supervisor->reloads);

    return first ? list_entry(first, struct reload_call, link) : NULL;
}

static void log_outcome(const struct supervisor *supervisor, const struct reload_call *call)
{
    const char *directory = supervisor->options->config_directory;
    size_t n = call->problems.n_problems;

    log_faults_of_daemon(directory, &call->faults);
    if (call->log)
        reload_log_problems(&call->problems);
    else if (n > 0)
        log_error("%s: %zu problem%s, reported to the client that asked for the reload%s",
                  directory, n, n == 1 ? "" : "s",
                  call->result == 0 ? "" : "; nothing has changed");
    if (call->result < 0)
        log_error("%s: cannot read the configuration: %s", directory, strerror(-call->result));
}

/* Ends the call under way. */
static void finish(struct supervisor *supervisor, int r)
{
    struct parts *parts = &supervisor->parts;
    struct reload_call *call = first_call(supervisor);

    lookup_deinit(&supervisor->lookup);
    supervisor->loaded = config_free(supervisor->loaded);
    parts->control.state = supervisor->ready ? CONTROL_RUNNING : CONTROL_STARTING;
    notify_ready(&supervisor->notify, loop_now(parts->loop));
    list_unlink(&call->link);
    call->result = r;
    if (r == 0)
        call->left_safe_mode = supervisor_leave_safe_mode(supervisor);
    log_outcome(supervisor, call);
    if (!list_empty(&supervisor->reloads))
        loop_defer(parts->loop, &supervisor->reload);
    supervisor_resume_upgrade(supervisor);
    if (call->done)
        call->done(call);
}

static int apply(struct supervisor *supervisor)
{
    struct parts *parts = &supervisor->parts;
    struct reload_call *call = first_call(supervisor);
    int r = config_resolve(supervisor->loaded, &supervisor->lookup.names, &call->faults);

    if (r < 0)
        return r;
    if (parts->control.config_problem) {
        supervisor_start_late(supervisor, TAKE_PTR(supervisor->loaded), call);
        return 0;
    }
    r = reload_apply(parts, supervisor->options->config_directory, &supervisor->config,
                     TAKE_PTR(supervisor->loaded), call);
    supervisor_apply_daemon(supervisor);
    supervisor_open_store(supervisor);
    return r;
}

static void on_lookup_done(struct lookup *lookup)
{
    struct supervisor *supervisor = supervisor_of(lookup, lookup);

    finish(supervisor, apply(supervisor));
}

static bool may_begin(const struct control_context *control)
{
    return control->state == CONTROL_RUNNING ||
           (control->state == CONTROL_STARTING && control->config_problem);
}

static void begin(struct loop_deferred *deferred)
{
    struct supervisor *supervisor = supervisor_of(deferred, reload);
    struct parts *parts = &supervisor->parts;
    struct reload_call *call = first_call(supervisor);
    int r;

    if (!call || !may_begin(&parts->control))
        return;
    /* What is left out would end with its workers. */
    if (parts->control.config_problem)
        call->partial = false;
    notify_reloading(&supervisor->notify, loop_now(parts->loop));
    parts->control.state = CONTROL_RELOADING;
    lookup_init(&supervisor->lookup, parts->loop, on_lookup_done);
    r = reload_read(parts, supervisor->options->config_directory, call, &supervisor->loaded);
    if (r != 0) {
        finish(supervisor, r);
        return;
    }
    r = config_want_names(supervisor->loaded, &supervisor->lookup.names);
    if (r == 0)
        r = lookup_start(&supervisor->lookup);
    if (r < 0)
        finish(supervisor, r);
    else if (r == LOOKUP_E_DONE)
        finish(supervisor, apply(supervisor));
}

static void supervisor_reload(void *userdata, struct reload_call *call)
{
    struct supervisor *supervisor = userdata;

    list_push_back(&supervisor->reloads, &call->link);
    if (may_begin(&supervisor->parts.control))
        begin(&supervisor->reload);
}

void supervisor_resume_reload(struct supervisor *supervisor)
{
    if (!list_empty(&supervisor->reloads))
        loop_defer(loop_of(supervisor), &supervisor->reload);
}

static void hang_up_done(struct reload_call *call)
{
    struct supervisor *supervisor = supervisor_of(call, hangup);
    bool again = supervisor->hangup_again;

    supervisor->hangup_again = false;
    reload_call_deinit(call);
    if (again)
        supervisor_hang_up(supervisor);
}

void supervisor_hang_up(struct supervisor *supervisor)
{
    struct reload_call *call = &supervisor->hangup;

    if (list_linked(&call->link)) {
        supervisor->hangup_again = call == first_call(supervisor);
        return;
    }
    reload_call_init(call, hang_up_done);
    call->log = true;
    supervisor_reload(supervisor, call);
}

void supervisor_init_reload(struct supervisor *supervisor)
{
    supervisor->parts.control.reload = supervisor_reload;
    supervisor->parts.control.userdata = supervisor;
    list_init(&supervisor->reloads);
    loop_deferred_init(&supervisor->reload, begin);
    reload_call_init(&supervisor->hangup, NULL);
}

void supervisor_end_reload(struct supervisor *supervisor)
{
    struct reload_call *call;

    lookup_deinit(&supervisor->lookup);
    supervisor->loaded = config_free(supervisor->loaded);
    loop_undefer(&supervisor->reload);
    supervisor->hangup_again = false;
    while ((call = first_call(supervisor))) {
        list_unlink(&call->link);
        call->result = -ESHUTDOWN;
        if (call->done)
            call->done(call);
    }
}
