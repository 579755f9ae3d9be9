/* SPDX-License-Identifier: MIT */

/* The verb top: groups, cells and workers, as they work. */

#include "supervisor/ctl/top/top.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/interrupt.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/top/top-screen.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INTERVAL USEC_PER_SEC
/* A hanging supervisor does not keep the screen from answering for longer. */
#define TIMEOUT (5 * USEC_PER_SEC)
/* A call takes about a thousand names. */
#define ROWS_MAX 800

/* ---- refresh ---- */

/* Adds the name that the row's cell, or its worker in a group without cells, has in its group. */
static void add_name(json_t *names, const struct top_row *row)
{
    const char *rest = row->address + strcspn(row->address, "/");
    char name[TOP_ADDRESS_MAX];

    if (row->kind == TOP_GROUP)
        return;
    rest += *rest == '/';
    if (row->kind == TOP_WORKER && row->depth == 1)
        (void)snprintf(name, sizeof(name), "%" PRId64, row->slot);
    else
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(rest, "/"), rest);
    (void)json_object_set_new(names, name, json_true());
}

/* The row's group, if it is open, is in view; adds the row's name to it. */
static void add_row(const struct top *top, const struct top_row *row, json_t *in_view)
{
    if (!json_object_get(top->choice.open, row->group))
        return;
    if (!json_object_get(in_view, row->group))
        (void)json_object_set_new(in_view, row->group, json_object());
    add_name(json_object_get(in_view, row->group), row);
}

/* Of open groups, only what is on the screen is asked for. */
static void want_rows(struct top *top)
{
    const size_t shown = top->shown < ROWS_MAX ? top->shown : ROWS_MAX;
    json_auto_t *in_view = json_object();

    for (size_t i = 0; i < shown && top->first + i < top->rows.n; i++)
        add_row(top, &top->rows.items[top->first + i], in_view);
    top_source_close_others(&top->source, top->choice.open);
    top_source_want(&top->source, in_view, top->choice.sort != TOP_BY_NAME);
}

void top_show_rows(struct top *top)
{
    top_processes_begin(&top->processes);
    top_rows_build(&top->rows, &top->source, &top->processes, &top->choice);
}

/* One call. Rows are not seen behind details, and stay as they were. */
static void refresh(struct top *top)
{
    if (top->mode == TOP_DETAILS) {
        top_refresh_details(top);
        return;
    }
    want_rows(top);
    top->connected = top_source_refresh(&top->source) == 0;
    top_show_rows(top);
}

/* ---- on a terminal ---- */

static int milliseconds_until(usec_t at)
{
    return (int)(usec_sub(at, clock_now()) / USEC_PER_MSEC) + 1;
}

/* The first data are there. */
static void run_screen(struct top *top)
{
    usec_t next = usec_add(clock_now(), top->interval);
    int64_t n = 1;

    while (!top->ends && !interrupt_seen()) {
        if (clock_now() >= next) {
            if (top->invocation->options.count > 0 && n++ >= top->invocation->options.count)
                break;
            refresh(top);
            next = usec_add(clock_now(), top->interval);
        }
        top_draw(top);
        top_on_key(top, top_screen_key(milliseconds_until(next)));
    }
}

/* Those of the beginning; the user may close them again. */
static void open_groups(struct top *top)
{
    const json_t *groups = json_object_get(top->source.metrics, "groups");

    top->choice.everything = false;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(groups, i), "name"));

        if (name)
            (void)json_object_set_new(top->choice.open, name, json_true());
    }
}

static bool is_terminal(const struct invocation *invocation)
{
    return invocation->out.is_terminal && isatty(STDIN_FILENO) == 1;
}

static int run(struct top *top)
{
    int r;

    top->source.wants_all = top->choice.everything;
    r = top_source_refresh(&top->source);
    if (r < 0)
        return r == -EREMOTEIO ? (complain("%s", top->source.problem), EXIT_FAILED)
                               : explain_connect(invocation_socket(top->invocation), r);
    interrupt_catch();
    if (!is_terminal(top->invocation) || !top_screen_open(top->invocation->out.colors))
        return top_run_plain(top);
    top->connected = true;
    top->source.wants_all = false;
    if (top->choice.everything)
        open_groups(top);
    top_show_rows(top);
    interrupt_before_exit(top_screen_abandon);
    run_screen(top);
    interrupt_before_exit(NULL);
    top_screen_close();
    return interrupt_seen() ? EXIT_INTERRUPTED : EXIT_OK;
}

int verb_top(struct invocation *invocation)
{
    struct top top = {.invocation = invocation, .interval = INTERVAL};
    usec_t timeout = invocation->options.timeout;
    int r;

    if (invocation->options.json) {
        complain("top prints no JSON: see 'troupectl metrics --json'");
        return EXIT_USAGE;
    }
    if (invocation->options.interval > 0)
        top.interval = invocation->options.interval;
    top.choice = (struct top_choice){
        .open = json_object(), .filter = top.filter, .everything = invocation->options.all};
    if (!top.choice.open || top_source_init(&top.source, invocation_socket(invocation),
                                            timeout > 0 ? timeout : TIMEOUT) < 0) {
        json_decref(top.choice.open);
        return call_no_memory();
    }
    r = run(&top);
    top_rows_deinit(&top.rows);
    top_processes_deinit(&top.processes);
    top_source_deinit(&top.source);
    json_decref(top.choice.open);
    top_forget_details(&top);
    free(top.text);
    return r;
}
