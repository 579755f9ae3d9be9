/* SPDX-License-Identifier: MIT */

/* Reads NAME.schedule. */

#include "supervisor/config/config-schedule.h"

#include "shared/base/cleanup.h"
#include "shared/base/list.h"
#include "shared/protocol/protocol.h"
#include "supervisor/config/keys/draft.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check_times(const struct config_schedule *schedule)
{
    static const char *const names[] = {"OnUnitActiveSec", "OnUnitInactiveSec"};
    const usec_t spans[] = {schedule->on_active, schedule->on_inactive};
    struct config_draft *draft = schedule->draft;
    bool given = config_draft_given(draft, "OnCalendar");
    int r = 0;

    for (size_t i = 0; r == 0 && i < ELEMENTS(names); i++) {
        given = given || config_draft_given(draft, names[i]);
        if (spans[i] != USEC_INFINITY && spans[i] % USEC_PER_SEC != 0)
            r = config_draft_problem(draft, names[i], "%s= is not a whole number of seconds",
                                     names[i]);
    }
    if (r == 0 && schedule->on_calendar.n > CONFIG_CALENDARS_MAX)
        r = config_draft_problem(draft, "OnCalendar",
                                 "more than %d lines of OnCalendar=; allowed: several schedules",
                                 CONFIG_CALENDARS_MAX);
    if (r < 0 || given)
        return r;
    return config_draft_problem(
        draft, "OnCalendar",
        "[Schedule] has no times; allowed: OnCalendar=, OnUnitActiveSec= or "
        "OnUnitInactiveSec=");
}

static int check_key(const struct config_schedule *schedule)
{
    if (!schedule->key || strlen(schedule->key) <= PROTOCOL_KEY_MAX)
        return 0;
    return config_draft_problem(schedule->draft, "Key", "Key= is too long; allowed: up to %d bytes",
                                PROTOCOL_KEY_MAX);
}

static int check_backoff(const struct config_schedule *schedule)
{
    if (!schedule->backoff_min_set || !schedule->backoff_max_set ||
        schedule->backoff_min <= schedule->backoff_max)
        return 0;
    return config_draft_problem(schedule->draft, "BackoffMinSec",
                                "BackoffMinSec= is above BackoffMaxSec=");
}

static int check_data(const struct config_schedule *schedule)
{
    if (!schedule->data || !schedule->data_file)
        return 0;
    return config_draft_problem(schedule->draft, "DataFile",
                                "DataFile= is given beside Data=; allowed: one of the two");
}

int config_schedule_check(struct config_file *file, struct config_draft **draft)
{
    struct config_schedule *schedule = list_entry(file, struct config_schedule, file);
    int r;

    schedule->draft = TAKE_PTR(*draft);
    if (!schedule->draft->paths)
        return 0;
    r = check_times(schedule);
    if (r == 0)
        r = check_key(schedule);
    if (r == 0)
        r = check_backoff(schedule);
    return r < 0 ? r : check_data(schedule);
}

void config_schedule_clear(struct config_file *file)
{
    struct config_schedule *schedule = list_entry(file, struct config_schedule, file);

    config_draft_free(schedule->draft);
    free(schedule->file_bytes);
}

const char *config_schedule_group(const struct config_schedule *schedule)
{
    return schedule->group ? schedule->group : schedule->name;
}

int config_schedule_set_data(struct config_schedule *schedule, const char *data, size_t size)
{
    char *bytes = malloc(size + 1); /* it may be empty */

    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, data, size);
    free(schedule->file_bytes);
    schedule->file_bytes = bytes;
    schedule->file_size = size;
    return 0;
}

const char *config_schedule_data(const struct config_schedule *schedule, size_t *ret_size)
{
    const char *data = schedule->data ? schedule->data : "";

    *ret_size = schedule->file_bytes ? schedule->file_size : strlen(data);
    return schedule->file_bytes ? schedule->file_bytes : data;
}

bool config_schedule_equal(const struct config_schedule *a, const struct config_schedule *b)
{
    size_t size_a, size_b;
    const char *data_a = config_schedule_data(a, &size_a);
    const char *data_b = config_schedule_data(b, &size_b);

    return config_schema_equal(&CONFIG_SCHEDULE_SCHEMA, a, b, false) && size_a == size_b &&
           memcmp(data_a, data_b, size_a) == 0;
}
