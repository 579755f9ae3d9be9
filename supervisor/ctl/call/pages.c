/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/pages.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"

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
