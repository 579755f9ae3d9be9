/* SPDX-License-Identifier: MIT */
#pragma once

/* Prints replies for people. `now` is the wall clock. */

#include "shared/base/clock.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/text/table.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Shows a group, problems first. Healthy workers are summarised unless `all` is set. */
void show_group(const struct terminal *terminal, const json_t *group, usec_t now, bool all);

/* Shows all groups as a table, in their order. */
void show_groups(const struct terminal *terminal, const json_t *groups, usec_t now);

/* Shows one cell like a group; and all cells as a table, cells in trouble and busy cells first. */
void show_cell(const struct terminal *terminal, const json_t *group, const json_t *cell, usec_t now,
               bool all);
void show_cells(const struct terminal *terminal, const json_t *group, usec_t now, bool all);

/* Shows one worker of a group in full. */
void show_worker(const struct terminal *terminal, const json_t *group, const json_t *worker,
                 usec_t now);

/* Shows a death report. */
void show_death(const struct terminal *terminal, const json_t *death, usec_t now);

/* Shows an event in one line. */
void show_event(const struct terminal *terminal, const json_t *event);

/* The columns of a table of jobs. */
extern const struct list_column show_job_columns[];

/* Show a job in full, and a change of state in a line. */
void show_job(const struct terminal *terminal, const json_t *job, usec_t now);
void show_job_state(const struct terminal *terminal, const json_t *job, usec_t now);
/* Shows how an ended job ended, and the dead letter of a dead one, in several lines. */
void show_job_end(const struct terminal *terminal, const json_t *job, usec_t now);

#define SHOW_STATE_SIZE 64
/* Write a dot, or `text`, in the colour of the state of a job, group or worker. Return `buffer`. */
char *show_dot(char buffer[SHOW_STATE_SIZE], const char *state);
char *show_state(char buffer[SHOW_STATE_SIZE], const char *state, const char *text);
#define DOT(state)            show_dot((char[SHOW_STATE_SIZE]){0}, state)
#define STATE_AS(state, text) show_state((char[SHOW_STATE_SIZE]){0}, state, text)
#define STATE(state)          STATE_AS(state, state)

/* Shows the last `limit` lines of a text from a worker, each after "│ ". */
void show_quoted(const struct terminal *terminal, const char *indent, const char *text,
                 unsigned limit);

/* Like show_quoted(), but omits the first line; shows nothing if there is no other. */
void show_more_lines(const struct terminal *terminal, const char *indent, const char *text);

/* Shows the Payload in the member `name`, if there is one. */
void show_payload(const struct terminal *terminal, const char *label, const json_t *object,
                  const char *name);

#define SHOW_RESTRICTED "(restricted: not for this user, see ReadGroup= in troupe.conf(5))"

/* Prints SHOW_RESTRICTED after `label` if the supervisor left contents out of `object`. */
void show_restricted(const struct terminal *terminal, const char *label, const json_t *object);

/* Copies the last line that is not empty into `buffer`; "" if there is none. */
char *show_last_line(char *buffer, size_t size, const char *text);

/* Prints a sentence about what something waits for: an object of the type Wait. */
void show_wait(FILE *file, const json_t *wait);

/* Whether it is an obstacle, which may stay until somebody does something; not a wait for a turn, a
 * time or what has begun. */
bool show_wait_is_obstacle(const json_t *wait);

/* Explains why a group is in trouble: the end of its title, and a line about its last failure. */

/*
 * The state of a group or cell; "cannot start" if something that its configuration names is
 * missing.
 */
const char *show_group_state(const json_t *group);
/* Whether single cells are failing while the group as a whole is running or paused. */
bool show_has_failing_cells(const json_t *group);

/*
 * Adds why a group is in trouble: "100 % of the last 20 jobs dead (since 01:10)"; nothing for a
 * healthy group.
 */
void show_why(struct joined *why, const json_t *group, usec_t now);

/*
 * Prints "Last: killed by SIGSEGV: …" and the command that shows more, for a group in trouble.
 * Returns whether it printed anything.
 */
bool show_last(const struct terminal *terminal, const json_t *group, usec_t now);
