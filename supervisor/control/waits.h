/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes what a group, cell, worker or job waits for, as an array of the type Wait. What decides
 * comes first. */

struct cell;
struct group;
struct job;
struct reply;
struct slot;

/* The reasons why no job of the group would begin, whatever its key. */
void waits_of_group(struct reply *reply, const char *key, const struct group *group);
void waits_of_cell(struct reply *reply, const char *key, const struct cell *cell);
void waits_of_slot(struct reply *reply, const char *key, const struct slot *slot);
/* Empty for a job that has ended. */
void waits_of_job(struct reply *reply, const char *key, const struct job *job);
