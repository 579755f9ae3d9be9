/* SPDX-License-Identifier: MIT */
/* The details of a row of top. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/cells.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/top/top.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */

static void write_output(const struct terminal *out, const json_t *output)
{
    const json_t *lines = json_object_get(output, "lines");

    if (json_array_size(lines) > 0)
        terminal_print(out, "\n    Output:");
    for (size_t i = 0; i < json_array_size(lines); i++)
        terminal_print(out, "            │ %s",
                       SAFE_LINE(json_string_value(json_array_get(lines, i))));
}

static void write_worker(const struct top *top, const struct terminal *out, const json_t *group)
{
    json_auto_t *whole = cells_merge(group);
    const json_t *workers = json_object_get(whole, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        if (field_is(worker, "name", top->selected))
            show_worker(out, group, worker, clock_realtime());
    }
    write_output(out, top->details.output);
}

static void write_details(const struct top *top, const struct terminal *out)
{
    const json_t *groups = json_object_get(top->details.status, "groups");
    const json_t *group = json_array_get(groups, 0), *cell = cells_find(group, top->selected);

    if (!group)
        terminal_print(out, "%s: %s", SAFE(top->selected), SAFE(top->source.problem));
    else if (field_is(group, "name", top->selected))
        show_group(out, group, clock_realtime(), true);
    else if (cell)
        show_cell(out, group, cell, clock_realtime(), true);
    else
        write_worker(top, out, group);
}

static void write_text(struct top *top)
{
    struct terminal out = {.utf8 = top->invocation->out.utf8};
    char *text = NULL;
    size_t size;

    out.file = open_memstream(&text, &size);
    if (!out.file)
        return;
    write_details(top, &out);
    (void)fclose(out.file);
    free(top->text);
    top->text = text;
}

/* ---- asking ---- */

/* Keeps the last answer if there is none. */
static void ask(struct top *top, const char *method, json_t **answer)
{
    json_t *reply;

    if (top_source_call(&top->source, method, json_pack("{s:s}", "target", top->selected), &reply) <
        0)
        return;
    json_decref(*answer);
    *answer = reply;
}

void top_show_details(struct top *top, bool worker)
{
    top_forget_details(top);
    ask(top, "GetStatus", &top->details.status);
    if (worker && top->details.status)
        ask(top, "GetLog", &top->details.output);
    write_text(top);
}

/* A call each time: a worker's status and its output take turns. The latter is not there if the
 * user may not read it. */
void top_refresh_details(struct top *top)
{
    top->details.output_is_next = top->details.output && !top->details.output_is_next;
    if (top->details.output_is_next)
        ask(top, "GetLog", &top->details.output);
    else
        ask(top, "GetStatus", &top->details.status);
    write_text(top);
}

void top_forget_details(struct top *top)
{
    json_decref(TAKE_PTR(top->details.status));
    json_decref(TAKE_PTR(top->details.output));
    top->details.output_is_next = false;
}
