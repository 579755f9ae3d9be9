/* SPDX-License-Identifier: MIT */
#pragma once

/* Prints replies for people. `now` is the wall clock. */

#include "shared/base/clock.h"
#include "supervisor/ctl/show/list.h"
#include "supervisor/ctl/show/view.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Shows a group, or a cell of it, problems first. Healthy workers are summarised unless `all`. */
void show_group(const struct terminal *terminal, const json_t *group, usec_t now, bool all);
void show_cell(const struct terminal *terminal, const json_t *group, const json_t *cell, usec_t now,
               bool all);

/* Shows all groups as a table, in their order. */
void show_groups(const struct terminal *terminal, const json_t *groups, usec_t now);

/* Shows one worker of a group in full. */
void show_worker(const struct terminal *terminal, const json_t *group, const json_t *worker,
                 usec_t now);

/* Shows where the threads of a worker are, and were when it died last: the reply of GetStack. */
void show_stack(const struct terminal *terminal, const json_t *reply, usec_t now);

/* Shows a death report. */
void show_death(const struct terminal *terminal, const json_t *death, usec_t now);
/* Shows in a line how many deaths were the same; `named`: with their group. */
void show_death_place(const struct terminal *terminal, const json_t *place, bool named);

/* Shows an event in one line. */
void show_event(const struct terminal *terminal, const json_t *event);

/* The columns of a table of jobs. */
extern const struct list_column show_job_columns[];

/* Show a job in full, and a change of state in a line. */
void show_job(const struct terminal *terminal, const json_t *job, usec_t now);
void show_job_state(const struct terminal *terminal, const json_t *job, usec_t now);
/* Shows how an ended job ended, and the dead letter of a dead one, in several lines. */
void show_job_end(const struct terminal *terminal, const json_t *job, usec_t now);

/* Shows the last `limit` lines of a text from a worker, each after "│ ". */
void show_quoted(const struct terminal *terminal, const char *indent, const char *text,
                 unsigned limit);

/* Like show_quoted(), but omits the first line; shows nothing if there is no other. */
void show_more_lines(const struct terminal *terminal, const char *indent, const char *text);

/* Shows the Payload in the member `name`, if there is one. */
void show_payload(const struct terminal *terminal, const char *label, const json_t *object,
                  const char *name);

/* Shows what GetInfo says of files with mistakes, each in a line after `label`: those with `part`
 * in "FILE:LINE: TEXT". */
void show_kept_back(const struct terminal *terminal, const char *label, const json_t *info,
                    const char *part);

#define SHOW_RESTRICTED "(restricted: not for this user, see ReadGroup= in troupe.conf(5))"

/* Returns a sentence about what something waits for, an object of the type Wait; the caller frees
 * it. NULL when out of memory. */
char *show_wait(const json_t *wait);

/* Whether the wait may last until somebody does something: it is not for a turn, for a time, or for
 * something that has begun. */
bool show_wait_is_obstacle(const json_t *wait);

/* Shows why a group is in trouble, or that it is up, then its last failure. If `waits`, shows only
 * the last failure. */
void show_trouble(const struct terminal *terminal, const json_t *group, usec_t now, bool waits);
/* Shows what keeps the first cell of the group's status from having more workers. Returns false if
 * nothing does. */
bool show_held_cell(const struct terminal *terminal, const json_t *group, const char *name,
                    usec_t now);
