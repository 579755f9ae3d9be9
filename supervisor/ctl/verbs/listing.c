/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/verbs/listing.h"

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"

static void show_items(const struct terminal *terminal, const struct listing *listing,
                       const json_t *items)
{
    const usec_t now = clock_realtime();

    if (listing->columns) {
        list_print(terminal, "", listing->columns, items, now);
        return;
    }
    for (size_t i = 0; i < json_array_size(items); i++) {
        if (i > 0)
            putchar('\n');
        listing->show(terminal, json_array_get(items, i), now);
    }
}

static void show_remarks(const struct invocation *invocation, const struct listing *listing,
                         const json_t *reply)
{
    const size_t n = json_array_size(json_object_get(reply, listing->array));

    if (n == 0 && !field_has(reply, "store_problem"))
        terminal_print(&invocation->out, "%s", listing->none);
    if (field_has(reply, "next"))
        terminal_print(&invocation->out, DIM "the first %s; --limit N shows more" PLAIN, COUNT(n));
    if (listing->remark)
        listing->remark(invocation, reply);
}

int listing_run(struct invocation *invocation, const struct listing *listing, json_t *parameters,
                int64_t limit)
{
    json_auto_t *reply = NULL;
    const json_t *items;
    int r = pages_collect(invocation, listing->method, parameters, listing->array, limit, &reply);

    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        return output_json(invocation, reply);
    if (field_has(reply, "store_problem"))
        complain("those on disk are not shown: %s", field_text(reply, "store_problem"));
    items = json_object_get(reply, listing->array);
    if (json_array_size(items) > 0)
        show_items(&invocation->out, listing, items);
    if (!invocation->options.quiet)
        show_remarks(invocation, listing, reply);
    return EXIT_OK;
}
