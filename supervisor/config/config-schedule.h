/* SPDX-License-Identifier: MIT */
#pragma once

/* The contents of NAME.schedule. troupe.schedule(5) has the meaning of the keys. */

#include "shared/base/clock.h"
#include "supervisor/config/config-file.h"
#include "supervisor/config/config-group.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Leaves room for "@2026-11-22T02:00:00Z" in the id of a job. */
#define CONFIG_SCHEDULE_NAME_MAX 43
#define CONFIG_SCHEDULES_MAX     10000
/* Lines of OnCalendar=: each is searched for each slot. */
#define CONFIG_CALENDARS_MAX 100

/* The order of each enumeration is that of its names in keys.c. */

/* Which of the slots that nothing could fire are fired afterwards. */
enum config_catch_up {
    CONFIG_CATCH_UP_LAST,
    CONFIG_CATCH_UP_ALL,
    CONFIG_CATCH_UP_NONE,
};

/* The treatment of a slot that comes while a job of the schedule is live. */
enum config_overlap {
    CONFIG_OVERLAP_SKIP,
    CONFIG_OVERLAP_BUFFER_ONE,
    CONFIG_OVERLAP_BUFFER,
    CONFIG_OVERLAP_CANCEL,
    CONFIG_OVERLAP_ALLOW,
};

struct config_schedule {
    CONFIG_FILE_MEMBERS

    /* [Schedule] */
    char *description;
    struct config_strings on_calendar; /* as written */
    usec_t on_active, on_inactive;     /* whole seconds; USEC_INFINITY = not given */
    char *until;                       /* a calendar expression of one moment; NULL = for ever */
    usec_t randomized_delay;
    enum config_catch_up catch_up;
    usec_t catch_up_within;
    enum config_overlap overlap;
    unsigned pause_on_failure; /* 0 = never */

    /* [Job]; unset numbers are PROTOCOL_DEFAULT_* */
    char *group; /* NULL = the schedule's name */
    char *key;
    char *data, *data_file; /* at most one is given */
    unsigned priority, max_retries;
    usec_t timeout, backoff_min, backoff_max;
    bool timeout_set, backoff_min_set, backoff_max_set;
    usec_t deadline; /* USEC_INFINITY = none */

    char *file_bytes; /* what DataFile= contains, set by config_resolve(); owned */
    size_t file_size;
    struct config_draft *draft; /* where its keys were given; owned */
};

/* For struct config_file_kind. */
int config_schedule_check(struct config_file *file, struct config_draft **draft);
void config_schedule_clear(struct config_file *file);

/* Returns the name of the group that gets its jobs. */
const char *config_schedule_group(const struct config_schedule *schedule);
/* Copies what DataFile= contains. Returns 0 or -ENOMEM. */
int config_schedule_set_data(struct config_schedule *schedule, const char *data, size_t size);
/* The payload of its jobs; borrowed. */
const char *config_schedule_data(const struct config_schedule *schedule, size_t *ret_size);

/* Whether both are equal except for the path. */
bool config_schedule_equal(const struct config_schedule *a, const struct config_schedule *b);
