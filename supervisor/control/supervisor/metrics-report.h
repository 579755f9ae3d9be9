/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes the parts of GetMetrics' reply. */

#include "shared/base/clock.h"
#include "supervisor/varlink/reply.h"

struct control;
struct control_context;
struct group;

/* An element of groups. `oldest`: when the oldest queued job was created; 0 = none is queued. */
void metrics_report_group(struct reply *reply, const struct control_context *context,
                          const struct group *group, usec_t oldest);
/* The members for the whole supervisor: bounds_usec, store, dead_letters, supervisor. */
void metrics_report_rest(struct reply *reply, const struct control_context *context,
                         const struct control *control);
