/* SPDX-License-Identifier: MIT */
#pragma once

/* The reports for people: from a reply's JSON to lines. `now` is the wall clock, injected. */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>
#include <stdbool.h>

/* A group as status shows it: what is wrong first. `all`: every worker, else the healthy ones are
 * folded. */
void show_group(const struct terminal *terminal, const json_t *group, usec_t now, bool all);

/* One cell of it, as a group; and all its cells as a table, those that are not well or have most to
 * do first. */
void show_cell(const struct terminal *terminal, const json_t *group, const json_t *cell, usec_t now,
               bool all);
void show_cells(const struct terminal *terminal, const json_t *group, usec_t now, bool all);

/* One worker of a group in full. */
void show_worker(const struct terminal *terminal, const json_t *group, const json_t *worker,
                 usec_t now);

/* A death report. */
void show_death(const struct terminal *terminal, const json_t *death, usec_t now);

/* One event, in one line. */
void show_event(const struct terminal *terminal, const json_t *event);

/* A job in full; a list of jobs as a table; a change of state in a line. */
void show_job(const struct terminal *terminal, const json_t *job, usec_t now);
void show_jobs(const struct terminal *terminal, const json_t *jobs, usec_t now);
void show_job_state(const struct terminal *terminal, const json_t *job, usec_t now);

/* The mark for the colour of a job's, group's or worker's state, and the dot in it. */
const char *show_state_color(const char *state);
const char *show_state_dot(const char *state);

/* Lines of a text from a worker, the last `limit` of them, each behind "│ ". */
void show_quoted(const struct terminal *terminal, const char *indent, const char *text,
                 unsigned limit);

#define SHOW_RESTRICTED "(restricted: not for this user, see ReadGroup= in troupe.conf(5))"

/* Prints SHOW_RESTRICTED after `label` if the supervisor left contents out of `object`. */
void show_restricted(const struct terminal *terminal, const char *label, const json_t *object);

/* The last line of a text that is not empty, into `buffer`; "" if there is none. */
char *show_last_line(char *buffer, size_t size, const char *text);
