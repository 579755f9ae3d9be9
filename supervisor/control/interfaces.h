/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The interfaces of the control socket: their methods, and the .varlink files beside this one,
 * embedded as text.
 */

#include "supervisor/varlink/request.h"

/* NULL-terminated. */
extern struct request_interface *const control_interfaces[];

/* Their methods, a table per file; the name NULL ends each. */
extern const struct request_method control_supervisor_methods[], control_life_methods[],
    control_limit_methods[], control_status_methods[], control_watch_methods[],
    control_log_methods[], control_stack_methods[], control_place_methods[],
    control_metrics_methods[];
extern const struct request_method control_job_methods[], control_list_jobs_methods[],
    control_history_methods[], control_stream_methods[], control_change_methods[],
    control_attach_methods[];
extern const struct request_method control_actor_methods[], control_tell_methods[],
    control_dead_letter_methods[];
extern const struct request_method control_schedule_methods[];

/* Gives the connection of this request the rings that its client had before a crash. Takes over
 * `held`, also on error. 0 or -errno. */
struct held;
int control_adopt_attachment(struct request *request, struct held *held);
