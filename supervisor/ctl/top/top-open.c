/* SPDX-License-Identifier: MIT */
/* The groups that are open on the screen: all of their workers, or those on the screen only. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/top/top-source.h"
#include <errno.h>
#include <string.h>

static const json_t *metrics_of(const struct top_source *source, const char *group)
{
    const json_t *groups = json_object_get(source->metrics, "groups");

    for (size_t i = 0; i < json_array_size(groups); i++)
        if (field_is(json_array_get(groups, i), "name", group))
            return json_array_get(groups, i);
    return NULL;
}

/* What changes when a worker comes, goes, or gets another process. NULL = not known. */
static json_t *take_census(const struct top_source *source, const char *group)
{
    const json_t *metrics = metrics_of(source, group);
    json_t *workers = json_copy(json_object_get(metrics, "workers"));
    const int64_t up = field_int(workers, "idle") + field_int(workers, "busy");

    (void)json_object_set_new(workers, "idle", json_integer(up));
    (void)json_object_del(workers, "busy");
    return json_pack("{s:o, s:O, s:O}", "workers", workers, "deaths",
                     json_object_get(metrics, "deaths"), "restarts",
                     json_object_get(metrics, "restarts"));
}

bool top_source_is_steady(const struct top_source *source, const char *group)
{
    const json_t *status = json_object_get(source->status, group);
    json_auto_t *census = take_census(source, group);

    return status && !json_object_get(status, "cells") && census &&
           json_equal(census, json_object_get(source->census, group));
}

/* Takes `parameters` over. `*ret`: the group; owned by the caller. Returns 0 or -errno. */
static int ask(struct top_source *source, json_t *parameters, json_t **ret)
{
    json_auto_t *reply = NULL;
    json_t *workers;
    int r = top_source_call(source, "GetStatus", parameters, &reply);

    if (r < 0)
        return r;
    *ret = json_incref(json_array_get(json_object_get(reply, "groups"), 0));
    workers = json_object_get(*ret, "workers");
    for (size_t i = 0; i < json_array_size(workers); i++)
        (void)json_object_set_new(json_array_get(workers, i), "asked_at",
                                  json_integer((json_int_t)source->at));
    return *ret ? 0 : -EBADMSG;
}

int top_source_open(struct top_source *source, const char *group)
{
    json_t *census = take_census(source, group), *status;
    int r = ask(source, json_pack("{s:s, s:b}", "target", group, "brief", 1), &status);

    if (r == 0 && json_object_set_new(source->status, group, status) < 0)
        r = -ENOMEM;
    if (r == 0 && census)
        (void)json_object_set(source->census, group, census); /* else all are asked for again */
    json_decref(census);
    return r;
}

static void remove_slots(json_t *workers, int64_t first, int64_t n)
{
    for (size_t i = json_array_size(workers); i-- > 0;) {
        const int64_t slot = field_int(json_array_get(workers, i), "slot");

        if (slot >= first && slot - first < n)
            (void)json_array_remove(workers, i);
    }
}

int top_source_open_slots(struct top_source *source, const char *group, int64_t first, int64_t n)
{
    json_t *workers = json_object_get(json_object_get(source->status, group), "workers");
    json_auto_t *part = NULL;
    int r = ask(source,
                json_pack("{s:s, s:b, s:I, s:I}", "target", group, "brief", 1, "first_slot",
                          (json_int_t)first, "slots", (json_int_t)n),
                &part);

    if (r < 0)
        return r;
    remove_slots(workers, first, n);
    return json_array_extend(workers, json_object_get(part, "workers")) < 0 ? -ENOMEM : 0;
}

void top_source_close_others(struct top_source *source, const json_t *open)
{
    const char *name;
    json_t *status;
    void *next;

    json_object_foreach_safe(source->status, next, name, status)
    {
        if (json_object_get(open, name))
            continue;
        (void)json_object_del(source->census, name);
        (void)json_object_del(source->status, name);
    }
}
