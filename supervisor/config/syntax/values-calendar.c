/* SPDX-License-Identifier: MIT */

/* Values that are times of a calendar: values_calendar(). */

#include "supervisor/config/syntax/values.h"

#include "supervisor/calendar/calendar.h"
#include <errno.h>
#include <stdio.h>

int values_calendar(const char *text, unsigned *ret_moments, const char **ret_reason)
{
    static char reason[sizeof(((struct calendar_error *)NULL)->text) + 32];
    struct zones zones = ZONES_NULL;
    struct calendar_error error = {.text = "the time zone cannot be read"};
    struct calendar calendar;
    usec_t slot = 0;
    int r = calendar_parse(text, &zones, &calendar, &error);

    *ret_moments = 0;
    while (r == 0 && *ret_moments < 2 && calendar_next(&calendar, slot, &slot) == 0)
        ++*ret_moments;
    zones_deinit(&zones);
    if (r == 0 || r == -ENOMEM)
        return r;
    (void)snprintf(reason, sizeof(reason), "column %u: %s", error.column, error.text);
    *ret_reason = reason;
    return VALUES_E_INVALID;
}
