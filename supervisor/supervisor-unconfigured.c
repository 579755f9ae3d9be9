/* SPDX-License-Identifier: MIT */

/* Waits for a valid configuration if no group can start: troupe.conf has a mistake, or, after a
 * crash, the configuration would end workers. Until then the supervisor leaves its predecessor's
 * processes alone, and serves the control socket, which reports the problem. It starts its groups
 * late, at a reload or when it finds the configuration valid. */

#include "supervisor/config/syntax/strings.h"
#include "supervisor/supervisor-private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_FIRST USEC_PER_SEC
#define RETRY_MAX   (30 * USEC_PER_SEC)

void supervisor_note_error(struct supervisor *supervisor, int r)
{
    (void)snprintf(supervisor->config_problem, CONFIG_PROBLEM_MAX, "%s: %s",
                   supervisor->options->config_directory, strerror(-r));
    supervisor->parts.control.config_problem = supervisor->config_problem;
}

static void tell_status(struct supervisor *supervisor)
{
    const bool first = supervisor->parts.control.predecessors.first;

    notify_status(&supervisor->notify, loop_now(loop_of(supervisor)), "%s: %s",
                  first ? "no group is started"
                        : "cannot continue after a crash, workers keep running",
                  supervisor->config_problem);
}

static void arm(struct supervisor *supervisor)
{
    struct loop *loop = loop_of(supervisor);

    timer_arm(loop_timers(loop), &supervisor->config_timer,
              usec_add(loop_now(loop), supervisor->config_delay));
    supervisor->config_delay *= 2;
    if (supervisor->config_delay > RETRY_MAX)
        supervisor->config_delay = RETRY_MAX;
}

/* Only a valid configuration is worth a reload, which would log its problems again. */
static void on_retry(struct timer *timer, usec_t now)
{
    struct supervisor *supervisor = supervisor_of(timer, config_timer);
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;
    int r;

    if (!supervisor->parts.control.config_problem ||
        supervisor->parts.control.state != CONTROL_STARTING)
        return;
    r = config_read(&config, supervisor->options->config_directory, &problems);
    if (r < 0)
        supervisor_note_error(supervisor, r);
    else
        r = supervisor_admit_config(supervisor, config, &problems, false);
    if (r != 0)
        tell_status(supervisor);
    config_free(config);
    config_problems_deinit(&problems);
    arm(supervisor);
    if (r == 0)
        supervisor_hang_up(supervisor);
}

void supervisor_await_config(struct supervisor *supervisor)
{
    if (supervisor->parts.control.predecessors.first)
        log_error("no group is started until the configuration is valid");
    else
        log_error("no group can be taken over until the configuration is valid; workers and "
                  "services keep running");
    tell_status(supervisor);
    /* Otherwise the service manager would end this process, and no client could ask for the
     * problem. */
    notify_tell(&supervisor->notify, SERVICE_READY, loop_now(loop_of(supervisor)));
    timer_init(&supervisor->config_timer, on_retry);
    supervisor->config_delay = RETRY_FIRST;
    /* A reload ends safe mode, so somebody has to ask for it. */
    if (!supervisor->parts.control.predecessors.safe_mode)
        arm(supervisor);
}

void supervisor_start_late(struct supervisor *supervisor, struct config *config,
                           struct reload_call *call)
{
    int r = 0;

    timer_disarm(loop_timers(loop_of(supervisor)), &supervisor->config_timer);
    supervisor->parts.control.config_problem = NULL;
    config_free(supervisor->config);
    supervisor->config = config;
    for (size_t i = 0; r == 0 && i < config->n_groups; i++)
        r = strv_append(&call->changes.added, config->groups[i]->name);
    supervisor_apply_daemon(supervisor);
    if (r == 0)
        r = supervisor_make_groups(supervisor);
    if (r < 0) {
        log_error("cannot take over all groups: %s; starting again", strerror(-r));
        _exit(EXIT_FAILURE); /* as any start that fails: the keeper still holds all */
    }
    supervisor_start_groups(supervisor);
    supervisor_forget_saved(supervisor);
    loop_defer(loop_of(supervisor), &supervisor->review);
}
