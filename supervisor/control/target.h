/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Targets of calls: finding them, and answering when they are not there.
 */

#include "supervisor/group/registry.h"
#include "supervisor/varlink/request.h"

/* Answers NoSuchTarget with the nearest group's name: false. */
bool control_find_target(struct request *request, const char *target, struct registry_target *ret);

/* The same for what may be a cell or worker of the past, too. */
bool control_find_ever(struct request *request, const char *target);

/* As control_find_target() for what must be a group or a cell, no worker. */
bool control_find_pool(struct request *request, const char *target, struct registry_target *ret);

/* Answers NoSuchGroup with the nearest name. */
void control_refuse_group(struct request *request, const char *name);

/* The fields of TooManyCells. */
void control_report_cells(struct reply *reply, const struct group *group);

/* While the supervisor stops, nothing is begun: answered with Stopping, true. */
bool control_refuse_stopping(struct request *request);

/* In supervisor/status.c. */
void control_get_status(struct request *request);

/* Watch, ListDeaths, GetLog; in supervisor/watch.c. */
void control_watch(struct request *request);
void control_list_deaths(struct request *request);
void control_get_log(struct request *request);
