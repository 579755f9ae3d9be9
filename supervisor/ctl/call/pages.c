/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/pages.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/metrics/metrics.h"
#include <errno.h>
#include <string.h>

/* The largest page that the supervisor returns. */
#define PAGE_MAX 1000

/* Requests one page, replaces `*ret` by it, and appends its items to `items`. */
static int add_page(struct invocation *invocation, const char *method, json_t *parameters,
                    const char *array, json_t *items, json_t **ret)
{
    json_t *reply;
    int r = call(invocation, method, json_deep_copy(parameters), false, &reply);

    if (r != EXIT_OK)
        return r;
    json_decref(*ret);
    *ret = reply;
    return json_array_extend(items, json_object_get(reply, array)) < 0 ? call_no_memory() : EXIT_OK;
}

static int64_t page_size(int64_t limit, const json_t *items)
{
    int64_t left = limit - (int64_t)json_array_size(items);

    return limit > 0 && left < PAGE_MAX ? left : PAGE_MAX;
}

int pages_collect(struct invocation *invocation, const char *method, json_t *parameters,
                  const char *array, int64_t limit, pages_fn fn, void *userdata, json_t **ret)
{
    json_auto_t *items = json_array(), *reply = NULL;
    int r = parameters && items ? EXIT_OK : call_no_memory();

    while (r == EXIT_OK) {
        json_object_set_new(parameters, "limit", json_integer(page_size(limit, items)));
        r = add_page(invocation, method, parameters, array, items, &reply);
        if (r != EXIT_OK)
            break;
        if (fn)
            fn(items, userdata);
        if (!field_has(reply, "next") || (limit > 0 && (int64_t)json_array_size(items) >= limit))
            break;
        json_object_set(parameters, "cursor", json_object_get(reply, "next"));
    }
    if (r == EXIT_OK && json_object_set(reply, array, items) < 0)
        r = call_no_memory();
    if (r == EXIT_OK)
        *ret = json_incref(reply);
    json_decref(parameters);
    return r;
}

/* ---- status ---- */

static json_t *last_of(json_t *array)
{
    return json_array_get(array, json_array_size(array) - 1);
}

/* Copies all members except cells, and appends the workers. */
static int update(json_t *into, const json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        if (strcmp(key, "cells") != 0 && strcmp(key, "workers") != 0 &&
            json_object_set(into, key, value) < 0)
            return -ENOMEM;
    }
    return json_array_extend(json_object_get(into, "workers"), json_object_get(from, "workers"));
}

/* Appends named `items`. The first one may continue the last one of `to`. */
static int add_all(json_t *to, const json_t *items, const char *name,
                   int (*go_on)(json_t *into, const json_t *from))
{
    for (size_t i = 0; i < json_array_size(items); i++) {
        json_t *item = json_array_get(items, i), *before = last_of(to);
        int r;

        if (i == 0 && before && field_is(before, name, field_text(item, name)))
            r = go_on(before, item);
        else
            r = json_array_append(to, item);
        if (r < 0)
            return -ENOMEM;
    }
    return 0;
}

static int go_on_group(json_t *into, const json_t *from)
{
    json_t *cells = json_object_get(into, "cells");

    if (update(into, from) < 0)
        return -ENOMEM;
    return cells ? add_all(cells, json_object_get(from, "cells"), "key", update) : 0;
}

int parts_add_groups(json_t *groups, const json_t *part)
{
    return add_all(groups, part, "name", go_on_group);
}

static int add_reply(struct invocation *invocation, const json_t *parameters, bool last,
                     void *userdata)
{
    (void)invocation;
    (void)last;
    if (parts_add_groups(userdata, json_object_get(parameters, "groups")) < 0)
        return call_no_memory();
    return EXIT_OK;
}

int parts_of_status(struct invocation *invocation, const char *target, json_t **ret)
{
    json_auto_t *groups = json_array();
    int r;

    if (!groups)
        return call_no_memory();
    r = call_more(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s*}", "target", target),
                  false, add_reply, groups);
    if (r != EXIT_OK)
        return r;
    *ret = json_pack("{s:O}", "groups", groups);
    return *ret ? EXIT_OK : call_no_memory();
}

static int join_metrics(struct invocation *invocation, const json_t *parameters, bool last,
                        void *userdata)
{
    (void)invocation;
    (void)last;
    return metrics_join(userdata, parameters) < 0 ? call_no_memory() : EXIT_OK;
}

int parts_of_metrics(struct invocation *invocation, json_t **ret)
{
    json_auto_t *whole = json_object();
    int r = whole ? call_more(invocation, CALL_SUPERVISOR "GetMetrics", json_object(), false,
                              join_metrics, whole)
                  : call_no_memory();

    if (r == EXIT_OK)
        *ret = json_incref(whole);
    return r;
}
