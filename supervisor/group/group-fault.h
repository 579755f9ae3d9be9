/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A fault of a configuration: its program, user, directory or environment file is missing on this
 * machine, or its files have a mistake (config_group.unread). It blocks a new group: no worker is
 * started, and jobs wait. A running group keeps its old configuration. The new one is tried again,
 * at growing intervals and on request, until it works; files with a mistake are read again.
 */

#include "shared/base/list.h"
#include "supervisor/config/names/lookup.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>

struct config_group;
struct group;
struct group_fault;

/* The faults of all groups. One at a time is tried again. */
struct group_faults {
    struct loop *loop;         /* set with the first fault */
    struct list all;           /* struct group_fault.link */
    struct timer timer;        /* armed for the next try, unless one is under way */
    struct lookup lookup;      /* of the names of the one that is being tried */
    struct group_fault *tried; /* NULL = none */
};

void group_faults_init(struct group_faults *faults);

/* Begins to try. `next` is the new configuration of a running group, taken over; NULL = the group's
 * own has the fault. Returns 0 or -ENOMEM. */
int group_fault_begin(struct group *group, struct config_group *next);
/* Ends it, if there is one, and drops the new configuration. */
void group_fault_end(struct group *group);

/* Returns the fault, or NULL. */
const char *group_fault_text(const struct group *group);

/* Whether its workers cannot be started. */
bool group_is_blocked(const struct group *group);

/* Starts what is wanted after the fault has gone. */
void group_fault_unblock(struct group *group);

/* Tries immediately, or after the try that is under way, if there is a fault; an event reports the
 * outcome. */
void group_fault_retry(struct group *group);
/* Whether its fault is being tried, or about to be. */
bool group_fault_is_tried(const struct group *group);
